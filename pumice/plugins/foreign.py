"""Jobs whose pods another controller makes: it has named and labelled them, and plugins must go by that.

Pumice's own pods are `<job>-<task>-<index>` and carry Volcano's labels. Those of an Indexed Job, a JobSet
or a LeaderWorkerSet are named and labelled otherwise; in all else a plugin sees a Job like any other.
"""

from dataclasses import dataclass

from pumice.api.jobs import Job, Task

__all__ = ["ForeignJob", "ForeignTask", "Hostnames"]


@dataclass(frozen=True, slots=True)
class Hostnames:
    """How the pods of a task are called.

    Attributes:
        stem: What comes before the numbers.
        first: Position of the task's first pod among all of that stem.
        per_job: Pods of each Job where two numbers count, that of the Job and that of the pod in it; 0 for
            one number.
        leader: Whether position 0 has the stem alone for its name.
    """

    stem: str
    first: int = 0
    per_job: int = 0
    leader: bool = False

    def at(self, index: int) -> str:
        """Hostname of a pod of the task."""
        position = self.first + index
        if self.leader and position == 0:
            return self.stem
        if self.per_job:
            return f"{self.stem}-{position // self.per_job}-{position % self.per_job}"
        return f"{self.stem}-{position}"


class ForeignTask(Task, frozen=True):
    """A task whose pods another controller makes.

    Attributes:
        hostnames: How they are called.
        labels: Labels that its pods have and no others of the Job; empty where nothing tells them apart.
    """

    hostnames: Hostnames = Hostnames("")
    labels: dict[str, str] | None = None


class ForeignJob(Job, frozen=True):
    """A Job whose pods another controller makes.

    Attributes:
        labels: Labels that its pods have and no others.
        subdomain: Subdomain of its pods.
        has_service: Whether the other controller makes the headless Service of that name.
    """

    labels: dict[str, str] | None = None
    subdomain: str = ""
    has_service: bool = False
