"""Plugin `ray`: the head starts the cluster, the workers join it.

The Service's target ports are numbers, so that a port with another name in the container is reached, too. The
NetworkPolicy of plugin `svc` admits only the Job's own pods, so this plugin adds an exception for the ports of the
Service. Ray does not authenticate clients, so the exception is limited to the Job's namespace by default.
"""

from copy import deepcopy
from typing import Any

from pumice.api import names
from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.kinds import NETWORK_POLICY, SERVICE
from pumice.api.meta import Raw
from pumice.api.raw import list_in
from pumice.plugins.addresses import labels_of_task
from pumice.plugins.arguments import (
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    Values,
    one_of,
    parse,
)
from pumice.plugins.edits import ContainerEdits, PodEdits, Port, meant
from pumice.plugins.interface import Findings, JobPlugin, PodEditor, manifest, name_errors
from pumice.plugins.role_members import (
    RoleMembers,
    empty_warnings,
    missing_task,
    role_warnings,
    single_warnings,
)
from pumice.plugins.shared_checks import shared_hostname_errors
from pumice.plugins.svc import Svc
from pumice.plugins.waiting import wait_arguments, wait_step, wait_warnings

_PORTS = (("gcs", "port"), ("dashboard", "dashboardPort"), ("client-server", "clientPort"))
_CLIENT_PORTS = ("clientPort", "clientServerPort")
# Who may connect to the head from outside of the Job, as the `from` of a NetworkPolicy.
_CLIENTS: dict[str, list[Raw] | None] = {
    "job": None,
    "namespace": [{"podSelector": {}}],
    "cluster": [{"namespaceSelector": {}}],
}


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
        Argument("clientServerPort", PORT, 10001, "another name for `clientPort`", ours=True),
        Argument(
            "clients",
            one_of("reach", _CLIENTS),
            "namespace",
            "who may use the head's Service, the Job's pods besides: `job`, `namespace` or `cluster`",
            ours=True,
        ),
        *wait_arguments("head", "hold workers back until the head answers", "a worker"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse a Job without a head; warn about overwritten commands and missing containers."""
        warnings = list(role_warnings(job, self.name, values, ("worker",)))
        warnings += single_warnings(job, values, "head")
        warnings += empty_warnings(job, values, "head")
        warnings += wait_warnings(job, self.name, "head", values, values["worker"])
        for role in ("head", "worker"):
            warnings += _container_warnings(job, values, role)
        errors = [*_name_errors(job), *_port_errors(values)]
        errors += shared_hostname_errors(job, self.name, (values["head"],))
        if job.task(values["head"]) is None:
            errors.append(missing_task(job, self.name, values, "head"))
        return Findings(tuple(errors), tuple(warnings))

    def in_effect(self, job: Job, values: Values, name: str) -> Any:  # noqa: ARG002
        """Both spellings of the clients' port are accepted."""
        return _client_port(values) if name in _CLIENT_PORTS else values[name]

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """Service `<job>-head-svc`, and the NetworkPolicy that admits its clients."""
        wanted = [_head_service(job, values)]
        sources = _CLIENTS[values["clients"]]
        if sources is not None and _is_closed(job) and not values.strict_upstream:
            wanted.append(_head_policy(job, values, sources))
        return wanted

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """Command and ports of the container that runs Ray."""
        members = RoleMembers(job, {"head": values["head"], "worker": values["worker"]})
        if "head" not in members:
            return lambda _task, _index: PodEdits()
        head = ContainerEdits(
            values["headContainer"],
            ("sh", "-c", _head_command(values)),
            tuple(Port(name, number) for name, number in _numbers(values)),
            by_name_only=values.strict_upstream,
        )
        start = f"ray start --block --address={members.address('head')}:{values['port']}"
        worker = ContainerEdits(
            values["workerContainer"], ("sh", "-c", start), by_name_only=values.strict_upstream
        )
        hosts, held = [members.address("head")], members.task("worker")
        waiting = wait_step("head", hosts, values["port"], values, held)
        edits = {
            "head": PodEdits(containers=(head,)),
            "worker": PodEdits(containers=(worker,), init_containers=waiting),
        }
        return lambda task, _index: edits.get(members.role(task)) or PodEdits()


def _service(job: Job) -> str:
    return f"{job.metadata.name}-head-svc"


def _head_service(job: Job, values: Values) -> Raw:
    ports = [
        {
            "name": name,
            "port": number,
            "protocol": "TCP",
            "targetPort": name if values.strict_upstream else number,
        }
        for name, number in _numbers(values)
    ]
    spec = {"selector": _head_labels(job, values), "ports": ports}
    return manifest(SERVICE, _service(job), job.metadata.namespace, spec=spec)


def _head_policy(job: Job, values: Values, sources: list[Raw]) -> Raw:
    ports = [{"protocol": "TCP", "port": number} for _, number in _numbers(values)]
    spec = {
        "podSelector": {"matchLabels": _head_labels(job, values)},
        "ingress": [{"from": deepcopy(sources), "ports": ports}],
        "policyTypes": ["Ingress"],
    }
    return manifest(NETWORK_POLICY, _service(job), job.metadata.namespace, spec=spec)


def _head_labels(job: Job, values: Values) -> dict[str, str]:
    return labels_of_task(job, values["head"])


def _is_closed(job: Job) -> bool:
    """True if plugin `svc` adds a NetworkPolicy; without it a policy of this plugin would block all pods but its clients."""
    plugins = job.spec.plugins or {}
    if Svc.name not in plugins:
        return False
    return not parse(Svc.arguments, plugins[Svc.name] or ()).values["disable-network-policy"]


def _name_errors(job: Job) -> list[FieldError]:
    name = _service(job)
    service = ("Service", name, names.service_name_problem(name))
    return name_errors(job, Ray.name, (service,))


def _numbers(values: Values) -> list[tuple[str, int]]:
    return [
        (name, _client_port(values) if name == "client-server" else values[argument])
        for name, argument in _PORTS
    ]


def _port_errors(values: Values) -> list[FieldError]:
    """Refuse a port with two uses: only one process can listen on it, and a Service has it once."""
    arguments = dict(_PORTS)
    first: dict[int, str] = {}
    errors = []
    for name, number in _numbers(values):
        other = first.setdefault(number, name)
        if other != name:
            text = (
                f"--{arguments[other]} and --{arguments[name]} are both {number}, and the head listens on each; "
                "give each a port of its own"
            )
            errors.append(
                FieldError("spec.plugins.ray", text, "JOB-PLUGIN-PORTS", "FieldValueDuplicate")
            )
    return errors


def _client_port(values: Values) -> int:
    """Port of clients. Volcano's guide spells the argument differently from its code; both are accepted."""
    given = "clientPort" in values.given or "clientServerPort" not in values.given
    port: int = values["clientPort" if given else "clientServerPort"]
    return port


def _head_command(values: Values) -> str:
    return (
        f"ray start --head --block --dashboard-host=0.0.0.0 --port={values['port']} "
        f"--dashboard-port={values['dashboardPort']} --ray-client-server-port={_client_port(values)}"
    )


def _container_warnings(job: Job, values: Values, role: str) -> list[FieldError]:
    warnings = []
    for position, task in enumerate(job.tasks):
        if task.name != values[role]:
            continue
        path = f"spec.tasks[{position}].template.spec.containers"
        containers = list_in(task.pod_spec(), "containers")
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
