"""Plugin `ray`: the head starts the cluster, the workers join it.

Source: job specification, section 9 and weakness W-13, W-14. The Service's targets are numbers, so that
a port which the container declares under another name is reached too.
"""

from pumice.api import keys, names
from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.kinds import SERVICE
from pumice.plugins.arguments import BOOLEAN, INTEGER, PORT, TEXT, Argument, ArgumentSpec, Values
from pumice.plugins.cast import Cast, missing_task, role_warnings
from pumice.plugins.edits import ContainerEdits, PodEdits, Port, meant
from pumice.plugins.interface import Findings, JobPlugin, PodEditor, Raw
from pumice.plugins.waiting import wait_container

__all__ = ["Ray"]

_PORTS = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))


class Ray(JobPlugin):
    """Tasks named head and worker become a Ray cluster."""

    name = "ray"
    summary = "Starts Ray on the head and joins the workers to it; a Service leads to the head."
    requires = ("svc",)
    arguments = ArgumentSpec(
        Argument("head", TEXT, "head", "task of the head"),
        Argument("headContainer", TEXT, "head", "container of the head that runs Ray"),
        Argument("worker", TEXT, "worker", "task of the workers"),
        Argument("workerContainer", TEXT, "worker", "container of the workers that runs Ray"),
        Argument("port", PORT, 6379, "port of the head's control store"),
        Argument("dashboardPort", PORT, 8265, "port of the dashboard"),
        Argument("clientPort", PORT, 10001, "port for Ray clients"),
        Argument("clientServerPort", PORT, 10001, "another name for `clientPort`"),
        Argument("wait-head-enabled", BOOLEAN, False, "hold workers back until the head answers"),
        Argument(
            "wait-head-timeout", INTEGER, 300, "seconds after which a worker gives up waiting"
        ),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse a Job without a head, warn about what is overwritten or not found."""
        warnings = list(role_warnings(job, self.name, values, ("worker",)))
        for role in ("head", "worker"):
            warnings += _container_warnings(job, values, role)
        errors = list(_name_errors(job))
        if job.task(values["head"]) is None:
            errors.append(missing_task(job, self.name, values, "head"))
        return Findings(tuple(errors), tuple(warnings))

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """Service `<job>-head-svc`, which leads to the head from anywhere in the cluster."""
        selector = {
            keys.JOB_NAME: job.metadata.name,
            keys.JOB_NAMESPACE: job.metadata.namespace,
            keys.TASK_SPEC: values["head"],
        }
        ports = [
            {
                "name": name,
                "port": number,
                "protocol": "TCP",
                "targetPort": name if values.strict_upstream else number,
            }
            for name, number in _numbers(values)
        ]
        metadata = {"name": _service(job), "namespace": job.metadata.namespace}
        return [
            {
                "apiVersion": SERVICE.api_version,
                "kind": SERVICE.kind,
                "metadata": metadata,
                "spec": {"selector": selector, "ports": ports},
            }
        ]

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """Command and ports of the container that runs Ray."""
        cast = Cast(job, {"head": values["head"], "worker": values["worker"]})
        if "head" not in cast:
            return lambda _task, _index: PodEdits()
        head = ContainerEdits(
            values["headContainer"],
            ("sh", "-c", _head_command(values)),
            tuple(Port(name, number) for name, number in _numbers(values)),
            by_name_only=values.strict_upstream,
        )
        start = f"ray start --block --address={cast.address('head')}:{values['port']}"
        worker = ContainerEdits(
            values["workerContainer"], ("sh", "-c", start), by_name_only=values.strict_upstream
        )
        waiting = (_wait(cast, values),) if values["wait-head-enabled"] else ()
        edits = {
            "head": PodEdits(containers=(head,)),
            "worker": PodEdits(containers=(worker,), init_containers=waiting),
        }
        return lambda task, _index: edits.get(cast.role(task)) or PodEdits()


def _service(job: Job) -> str:
    return f"{job.metadata.name}-head-svc"


def _name_errors(job: Job) -> tuple[FieldError, ...]:
    problem = names.service_name_problem(_service(job)) if job.metadata.name else None
    if problem is None:
        return ()
    text = (
        f'plugin ray names a Service "{_service(job)}" after the Job, and that {problem}; '
        "choose another name for the Job"
    )
    return (FieldError("metadata.name", text, "JOB-PLUGIN-NAME"),)


def _numbers(values: Values) -> list[tuple[str, int]]:
    return [
        (name, _client_port(values) if name == "client-server" else values[argument])
        for name, argument in _PORTS
    ]


def _client_port(values: Values) -> int:
    """Volcano's guide spells the argument another way than its code; both count."""
    given = "clientPort" in values.given or "clientServerPort" not in values.given
    port: int = values["clientPort" if given else "clientServerPort"]
    return port


def _head_command(values: Values) -> str:
    return (
        f"ray start --head --block --dashboard-host=0.0.0.0 --port={values['port']} "
        f"--dashboard-port={values['dashboardPort']} --ray-client-server-port={_client_port(values)}"
    )


def _wait(cast: Cast, values: Values) -> Raw:
    return wait_container(
        "wait-for-head",
        [cast.address("head")],
        values["port"],
        settings=values.settings,
        timeout=values["wait-head-timeout"],
    )


def _container_warnings(job: Job, values: Values, role: str) -> list[FieldError]:
    warnings = []
    for position, task in enumerate(job.tasks):
        if task.name != values[role]:
            continue
        path = f"spec.tasks[{position}].template.spec.containers"
        containers = task.pod_spec().get("containers")
        containers = containers if isinstance(containers, list) else []
        found = meant(containers, values[f"{role}Container"])
        if containers and found is None:
            text = (
                f'none is named "{values[f"{role}Container"]}", so none runs Ray; name one so, or say '
                f"which it is with --{role}Container=<container>"
            )
            warnings.append(FieldError(path, text, "JOB-PLUGIN-ROLE"))
        elif found is not None:
            warnings += [
                FieldError(
                    f"{path}[{found}].{field}",
                    f"has no effect: plugin ray starts this container with its own command{also}",
                    "JOB-PLUGIN-OVERWRITTEN",
                )
                for field, also in (("command", ""), ("args", ", which ignores arguments"))
                if containers[found].get(field)
            ]
    return warnings
