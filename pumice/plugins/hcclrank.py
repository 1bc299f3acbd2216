"""Plugin `hcclrank`: Ascend's rank as an annotation of the pod."""

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.raw import list_in, objects_in, text_in
from pumice.plugins.arguments import TEXT, Argument, ArgumentSpec, Values
from pumice.plugins.edits import PodEdits
from pumice.plugins.interface import Findings, JobPlugin, PodEditor
from pumice.plugins.pytorch import PyTorch, pytorch_ranks
from pumice.plugins.role_members import RoleMembers, role_warnings

_VARIABLE = "RANK"


class HcclRank(JobPlugin):
    """Pods of master and workers have their rank in annotation `hccl/rankIndex`."""

    name = "hcclrank"
    summary = "Writes each pod's rank where Ascend's device plugin looks for it."
    after = ("svc", "ssh", "env", PyTorch.name)
    arguments = ArgumentSpec(
        Argument("master", TEXT, "master", "task of the master"),
        Argument("worker", TEXT, "worker", "task of the workers"),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Warn about roles that no task has."""
        return Findings(warnings=role_warnings(job, self.name, values, ("master", "worker")))

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """The annotation: variable RANK of the pod if it has one, or else its number among the roles."""
        members = RoleMembers(job, {"master": values["master"], "worker": values["worker"]})
        written = pytorch_ranks(job, strict_upstream=values.strict_upstream)

        def edit(task: Task, index: int) -> PodEdits:
            rank = _own(task, written(task, index))
            if not rank:
                place = members.rank(task, index)
                rank = "" if place is None else str(place)
            return PodEdits(annotations={keys.HCCL_RANK: rank}) if rank else PodEdits()

        return edit


def _own(task: Task, written: str) -> str:
    """RANK of the first container that will have it; the user's takes precedence over plugin pytorch's."""
    for container in list_in(task.pod_spec(), "containers"):
        for variable in objects_in(container, "env"):
            if variable.get("name") == _VARIABLE:
                return text_in(variable, "value")
        if written:
            return written
    return ""
