"""Plugin `mpi`: gives the master the addresses of the workers, by a variable and by host files with slots.

The files are a ConfigMap that the controller keeps current, so that a running master sees added and removed workers;
the variables that name them are read by Open MPI (4 and 5), and by Intel MPI and MPICH, whose launcher is Hydra.
"""

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.api.meta import Raw
from pumice.plugins import shards
from pumice.plugins.accelerators import accelerators, claim_warnings, cpus
from pumice.plugins.addresses import addresses, is_small, joined_size
from pumice.plugins.arguments import (
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    Values,
    between,
    parse,
)
from pumice.plugins.edits import EnvVar, Mount, PodEdits, Port
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.kept_volumes import kept_volume_warnings
from pumice.plugins.role_members import RoleMembers, empty_warnings, missing_task, role_warnings
from pumice.plugins.shared_checks import kept_warnings, pod_size_errors, shared_hostname_errors
from pumice.plugins.variables import too_large_for_variable
from pumice.plugins.waiting import wait_arguments, wait_step, wait_warnings

MOUNT_PATH = "/etc/mpi"
"""Directory in which every container of the master finds the host files."""

HOST_FILE = "hostfile"
"""File for Open MPI, one line for each worker: `<address> slots=<n>`."""

MACHINE_FILE = "machinefile"
"""File for Hydra, the launcher of Intel MPI and MPICH, one line for each worker: `<address>:<n>`."""

_FILES = (
    ("OMPI_MCA_orte_default_hostfile", HOST_FILE),
    ("PRTE_MCA_prte_default_hostfile", HOST_FILE),
    ("I_MPI_HYDRA_HOST_FILE", MACHINE_FILE),
    ("HYDRA_HOST_FILE", MACHINE_FILE),
)

# Hydra has its helpers on the workers connect back to the master's bare hostname, which resolves in
# the master alone, unless an interface is configured whose address it gives them. Container runtimes
# call a pod's own interface so; a pod in the node's network has none of its own.
_INTERFACE = "eth0"
_INTERFACES = ("I_MPI_HYDRA_IFACE", "HYDRA_IFACE")


class Mpi(JobPlugin):
    """The master starts processes on the workers by ssh."""

    name = "mpi"
    summary = "Tells the master where the workers are and how many processes each of them takes."
    requires = ("svc", "ssh")
    arguments = ArgumentSpec(
        Argument("master", TEXT, "master", "task that starts the computation"),
        Argument("worker", TEXT, "worker", "task that takes part in it"),
        Argument("port", PORT, 22, "port of the workers' ssh server; plugin `ssh` uses it too"),
        Argument(
            "slots-per-worker",
            between("number", "a number", 0, 65535),
            0,
            "processes a worker takes; 0 is one a requested accelerator, or else a whole CPU",
            ours=True,
        ),
        *wait_arguments("workers", "hold the master back until workers answer", "the master"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse a Job without a master; warn about roles without effect and about conflicting values."""
        warnings = list(role_warnings(job, self.name, values, ("worker",)))
        worker = job.task(values["worker"])
        if worker is not None and too_large_for_variable(job, worker):
            text = (
                f"the addresses of {worker.size} workers do not fit into a variable: MPI_HOST is not set; "
                f"read {MOUNT_PATH}/{HOST_FILE}"
            )
            path = f"spec.tasks[{job.tasks.index(worker)}].replicas"
            warnings.append(FieldError(path, text, "JOB-PLUGIN-SIZE"))
        if values["wait-workers-enabled"] and values["worker"] == values["master"]:
            text = "--wait-workers-enabled has no effect: the master is a worker, and would wait for itself"
            warnings.append(FieldError("spec.plugins.mpi", text, "JOB-PLUGIN-ARGUMENT"))
        warnings += wait_warnings(job, self.name, "workers", values, values["master"])
        warnings += kept_warnings(job, values, _kept(job, worker), tasks=(values["master"],))
        warnings += empty_warnings(job, values, "master")
        if not values["slots-per-worker"] and not values.strict_upstream:
            missing = "a worker takes a process a CPU; say how many with --slots-per-worker"
            warnings += claim_warnings(job, (values["worker"],), missing)
        if worker is not None and not values.strict_upstream:
            name, master = _config_map(job), (values["master"],)
            warnings += kept_volume_warnings(job, self.name, name, (MOUNT_PATH,), tasks=master)
        errors = [*_size_error(job, worker, values)]
        if worker is not None and not is_small(job) and not too_large_for_variable(job, worker):
            size = joined_size(job, worker)
            errors += pod_size_errors(job, self.name, size, tasks=(values["master"],))
        errors += shared_hostname_errors(job, self.name, (values["worker"],))
        if job.task(values["master"]) is None:
            errors.insert(0, missing_task(job, self.name, values, "master"))
        return Findings(tuple(errors), tuple(warnings))

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """ConfigMap `<job>-mpi` with both host files; several if one is too small."""
        worker = job.task(values["worker"])
        if values.strict_upstream or worker is None:
            return []
        return _config_maps(job, worker, values)

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """The port on every container; the workers' addresses on the master."""
        members = RoleMembers(job, {"master": values["master"], "worker": values["worker"]})
        port = (Port("mpijob-port", values["port"], init_containers=True),)
        others = PodEdits(ports=port)
        master = _master(job, values, port)

        def edit(task: Task, index: int) -> PodEdits:  # noqa: ARG001
            return master if members.role(task) == "master" else others

        return edit


def mpi_port(job: Job) -> int | None:
    """Port of the ssh servers in plugin `mpi`; None if the Job does not name the plugin."""
    plugins = job.spec.plugins or {}
    if Mpi.name not in plugins:
        return None
    port: int = parse(Mpi.arguments, plugins[Mpi.name] or ()).values["port"]
    return port


def _master(job: Job, values: Values, port: tuple[Port, ...]) -> PodEdits:
    # The same task may be both, which starts as many masters as there are workers.
    worker = job.task(values["worker"])
    if worker is None:
        return PodEdits()
    env = []
    if values.strict_upstream or not too_large_for_variable(job, worker):
        env.append(EnvVar("MPI_HOST", ",".join(addresses(job, worker))))
    if values.strict_upstream:
        return PodEdits(env=tuple(env), ports=port)
    name = _config_map(job)
    return PodEdits(
        env=(
            *env,
            *(EnvVar(name, f"{MOUNT_PATH}/{file}") for name, file in _FILES),
            *_interface(job.task(values["master"])),
        ),
        ports=port,
        volumes=(shards.volume(name, _config_maps(job, worker, values)),),
        mounts=(Mount(name, MOUNT_PATH),),
        init_containers=_waiting(worker, values, job.task(values["master"])),
    )


def _kept(job: Job, worker: Task | None) -> list[str]:
    """Variables that a template may set itself; the network interface is always the template's choice."""
    if worker is None:
        return []
    files = [name for name, _ in _FILES]
    return files if too_large_for_variable(job, worker) else ["MPI_HOST", *files]


def _waiting(worker: Task, values: Values, master: Task | None) -> tuple[Raw, ...]:
    if values["worker"] == values["master"] or not worker.size:
        return ()
    return wait_step("workers", f"{MOUNT_PATH}/{HOST_FILE}", values["port"], values, master)


def _interface(master: Task | None) -> tuple[EnvVar, ...]:
    if master is None or master.pod_spec().get("hostNetwork") is True:
        return ()
    return tuple(EnvVar(name, _INTERFACE) for name in _INTERFACES)


def _slots(worker: Task, values: Values) -> int:
    given: int = values["slots-per-worker"]
    return given if given > 0 else accelerators(worker) or cpus(worker) or 1


def _config_map(job: Job) -> str:
    return f"{job.metadata.name}-mpi"


def _config_maps(job: Job, worker: Task, values: Values) -> list[Raw]:
    slots = _slots(worker, values)
    found = addresses(job, worker)
    data = {
        HOST_FILE: "".join(f"{each} slots={slots}\n" for each in found),
        MACHINE_FILE: "".join(f"{each}:{slots}\n" for each in found),
    }
    return shards.config_maps(_config_map(job), job.metadata.namespace, data)


def _size_error(job: Job, worker: Task | None, values: Values) -> tuple[FieldError, ...]:
    """Refuse host files that are too large for one ConfigMap: launchers cannot read a file in parts."""
    if worker is None or is_small(job) or values.strict_upstream:
        return ()
    line = len(f" slots={_slots(worker, values)}")
    size = joined_size(job, worker) + worker.size * line
    if not shards.is_in_parts(HOST_FILE, size):
        return ()
    text = (
        f"plugin mpi would write a host file of {size} bytes for {worker.size} workers, and a ConfigMap "
        f"holds {shards.LIMIT}; use shorter names or fewer pods"
    )
    path = f"spec.tasks[{job.tasks.index(worker)}].replicas"
    return (FieldError(path, text, "JOB-PLUGIN-SIZE"),)
