"""Jobs whose pods another controller makes: it has named and labelled them, and plugins must go by that.

Pumice's own pods are `<job>-<task>-<index>` and carry Volcano's labels. Those of an Indexed Job, a JobSet
or a LeaderWorkerSet are named and labelled otherwise; in all else a plugin sees a Job like any other.
"""

from dataclasses import dataclass

from pumice.api.jobs import Job, Task

__all__ = ["ForeignJob", "ForeignTask", "Hostnames", "digits"]


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

    def joined_size(self, count: int) -> int:
        """Bytes of the first hostnames of the task together, without making them."""
        return self._bytes_below(self.first + count) - self._bytes_below(self.first)

    def _bytes_below(self, end: int) -> int:
        """Bytes of the hostnames at all positions below one."""
        if not self.per_job:
            lead = len("-0") if self.leader and end else 0
            return end * len(f"{self.stem}-") + digits(end) - lead
        jobs, rest = divmod(end, self.per_job)
        of_jobs = self.per_job * digits(jobs) + rest * len(str(jobs))
        of_pods = jobs * digits(self.per_job) + digits(rest)
        return end * len(f"{self.stem}--") + of_jobs + of_pods


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


def digits(count: int) -> int:
    """Digits of all numbers from 0 below a count."""
    total, first, width = 0, 0, 1
    while first < count:
        following = min(count, 10**width)
        total += (following - first) * width
        first, width = following, width + 1
    return total
