"""The range of pods of an elastic group: `--elastic=2:8` of plugin `pytorch`."""

import re
from dataclasses import dataclass

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.plugins.foreign import ForeignJob
from pumice.plugins.role_members import RoleMembers

__all__ = ["Nodes", "elastic_warnings", "read_nodes"]

_RANGE = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Nodes:
    """A range of pods.

    Attributes:
        least: Number with which the group starts.
        most: Maximum number.
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least}:{self.most}"


def read_nodes(word: str) -> Nodes:
    """Read a range.

    Raises:
        ValueError: The text is not a range; the message says what was expected.
    """
    match = _RANGE.fullmatch(word)
    if match and 0 < (least := int(match[1])) <= (most := int(match[2])):
        return Nodes(least, most)
    raise ValueError("expected least:most, for example 2:8")


def elastic_warnings(job: Job, members: RoleMembers, nodes: Nodes) -> list[FieldError]:
    """Warn about a range for which the Job has too few pods, or whose minimum the gang always exceeds.

    Args:
        job: The Job.
        members: Members of the roles.
        nodes: The range.
    """
    warnings = []
    if nodes.most > members.size > 0:
        text = f"--elastic={nodes} reaches beyond the {members.size} pods of master and workers"
        warnings.append(FieldError("spec.plugins.pytorch", text, "JOB-PLUGIN-ROLE"))
    if isinstance(job, ForeignJob):
        return warnings  # its pods are no gang
    others = sum(task.minimum for task in job.tasks if not members.role(task))
    minimum = job.spec.min_available or sum(task.minimum for task in job.tasks)
    if minimum > nodes.least + others:
        text = (
            f"is {minimum} (by default the minimum of all tasks), and no pod starts before {minimum} pods fit, so "
            f"--elastic={nodes} of plugin pytorch never starts with {nodes.least}: let minAvailable of the tasks "
            f"add up to {nodes.least + others}"
        )
        warnings.append(FieldError("spec.minAvailable", text, "JOB-PLUGIN-ROLE"))
    return warnings
