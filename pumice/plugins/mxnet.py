"""Plugin `mxnet`: the parameter server's variables, `DMLC_*`.

Volcano never had this plugin; the variables are those of its example for MXNet.
"""

from pumice.api.jobs import Job, Task
from pumice.plugins.arguments import PORT, TEXT, Argument, ArgumentSpec, Values
from pumice.plugins.edits import PodEdits, Port
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.role_members import (
    RoleMembers,
    empty_warnings,
    missing_task,
    role_warnings,
    single_warnings,
)
from pumice.plugins.shared_checks import kept_warnings, shared_hostname_errors
from pumice.plugins.variables import Variable, prepared

_VARIABLES = (
    Variable("DMLC_PS_ROOT_URI", "{address:scheduler}"),
    Variable("DMLC_PS_ROOT_PORT", "{port}"),
    Variable("DMLC_NUM_SERVER", "{count:server}"),
    Variable("DMLC_NUM_WORKER", "{count:worker}"),
    Variable("DMLC_ROLE", "{role}"),
    Variable("DMLC_USE_KUBERNETES", "1"),
)
_ROLES = ("scheduler", "server", "worker")


class MXNet(JobPlugin):
    """Tasks named scheduler, server and worker become the roles of a parameter server."""

    name = "mxnet"
    summary = (
        "Tells every container the scheduler's address, its own role and the numbers of the others."
    )
    requires = ("svc",)
    arguments = ArgumentSpec(
        Argument("scheduler", TEXT, "scheduler", "task of the scheduler"),
        Argument("server", TEXT, "server", "task of the servers"),
        Argument("worker", TEXT, "worker", "task of the workers"),
        Argument("port", PORT, 9000, "port on which the scheduler listens"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse a Job without a scheduler; warn about the user's own variables."""
        if _is_single(job):
            return Findings()
        warnings = role_warnings(job, self.name, values, ("server", "worker"))
        if "scheduler" not in _members(job, values):
            return Findings((missing_task(job, self.name, values, "scheduler"),), warnings)
        kept = kept_warnings(job, values, [each.name for each in _VARIABLES])
        number = (
            *single_warnings(job, values, "scheduler"),
            *empty_warnings(job, values, "scheduler"),
        )
        shared = shared_hostname_errors(job, self.name, (values["scheduler"],))
        return Findings(tuple(shared), (*warnings, *number, *kept))

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """The variables of every pod, and the port on the scheduler's pod."""
        members = _members(job, values)
        if _is_single(job) or "scheduler" not in members:
            return lambda _task, _index: PodEdits()
        variables = prepared(_VARIABLES, members, values["port"])
        port = (Port("mxnetjob-port", values["port"]),)

        def edit(task: Task, index: int) -> PodEdits:
            ports = port if members.role(task) == "scheduler" else ()
            return PodEdits(env=variables(task, index), ports=ports)

        return edit


def _members(job: Job, values: Values) -> RoleMembers:
    return RoleMembers(job, {role: values[role] for role in _ROLES})


def _is_single(job: Job) -> bool:
    return len(job.tasks) == 1 and job.tasks[0].size == 1
