"""Jobs whose pods another controller creates, with its own names and labels.

Pumice's own pods are `<job>-<task>-<index>` and carry Volcano's labels. Those of an Indexed Job, a JobSet or a
LeaderWorkerSet have other names and labels; otherwise a plugin sees a normal Job.
"""

from dataclasses import dataclass

from pumice.api.jobs import Job, Task

__all__ = ["ForeignJob", "ForeignTask", "Hostnames", "digits"]


@dataclass(frozen=True, slots=True)
class Hostnames:
    """Naming scheme of the pods of a task.

    Attributes:
        stem: Text before the numbers.
        first: Position of the task's first pod among all pods with that stem.
        per_job: Pods of each Job if names have two numbers, that of the Job and that of the pod in it; 0 for one
            number.
        leader: Whether the name at position 0 is the stem alone.
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
        """Bytes of the first hostnames of the task together, without computing them."""
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
    """A task whose pods another controller creates.

    Attributes:
        hostnames: Their naming scheme.
        labels: Labels that select exactly its pods in the Job; empty if there are none.
    """

    hostnames: Hostnames = Hostnames("")
    labels: dict[str, str] | None = None


class ForeignJob(Job, frozen=True):
    """A Job whose pods another controller creates.

    Attributes:
        labels: Labels that select exactly its pods.
        subdomain: Subdomain of its pods.
        has_service: Whether the other controller creates the headless Service of that name.
    """

    labels: dict[str, str] | None = None
    subdomain: str = ""
    has_service: bool = False


def digits(count: int) -> int:
    """Total number of digits of the integers from 0 below a count."""
    total, first, width = 0, 0, 1
    while first < count:
        following = min(count, 10**width)
        total += (following - first) * width
        first, width = following, width + 1
    return total
