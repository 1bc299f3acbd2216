"""Addresses of the pods of a Job: `<hostname>.<subdomain>`, relative to the namespace.

A template that sets `hostname` gives it to every pod of its task, so such a task has one address for all replicas. A
template's `subdomain` replaces the Job's name, and Pumice creates no Service for it. Pods of other controllers have the
names that these give them.
"""

from dataclasses import dataclass

from pumice.api import keys, names
from pumice.api.jobs import Job, Task
from pumice.api.raw import text_in


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


class OwnerTask(Task, frozen=True):
    """A task whose pods another controller creates.

    Attributes:
        hostnames: Their naming scheme.
        labels: Labels that select exactly its pods in the Job; empty if there are none.
    """

    hostnames: Hostnames = Hostnames("")
    labels: dict[str, str] | None = None


class OwnerJob(Job, frozen=True):
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


_FEW_PODS = 128


def fixed_hostname(task: Task) -> str:
    """`template.spec.hostname`, empty when each pod has its own."""
    return "" if isinstance(task, OwnerTask) else text_in(task.pod_spec(), "hostname")


def hostname(job: Job, task: Task, index: int) -> str:
    """Hostname of one pod of a task."""
    if isinstance(task, OwnerTask):
        return task.hostnames.at(index)
    return fixed_hostname(task) or names.pod_name(job.metadata.name, task.name, index)


def hostnames(job: Job, task: Task) -> list[str]:
    """Hostnames of a task's pods by index; exactly one if the template sets it."""
    if isinstance(task, OwnerTask):
        return [task.hostnames.at(index) for index in range(task.size)]
    if fixed := fixed_hostname(task):
        return [fixed]
    prefix = f"{job.metadata.name}-{task.name}-"
    return [f"{prefix}{index}" for index in range(task.size)]


def hostname_pattern(job: Job, task: Task) -> str:
    """Pattern of the hostnames of a task's pods, including later ones; empty for a fixed hostname."""
    if isinstance(task, OwnerTask):
        stem = task.hostnames.stem
        return f"{stem} {stem}-*" if task.hostnames.leader else f"{stem}-*"
    return "" if fixed_hostname(task) else f"{job.metadata.name}-{task.name}-*"


def domain(job: Job) -> str:
    """The subdomain of the pods of a Job, unless their template sets another: the Job's name."""
    return job.subdomain if isinstance(job, OwnerJob) else job.metadata.name


def subdomain(job: Job, task: Task) -> str:
    """`template.spec.subdomain`, or else the Job's own, for which plugin `svc` creates a Service."""
    return text_in(task.pod_spec(), "subdomain") or domain(job)


def labels_of_job(job: Job) -> dict[str, str]:
    """Labels that select exactly the pods of a Job."""
    if isinstance(job, OwnerJob):
        return dict(job.labels or {})
    return {keys.JOB_NAME: job.metadata.name, keys.JOB_NAMESPACE: job.metadata.namespace}


def labels_of_task(job: Job, name: str) -> dict[str, str]:
    """Labels that select exactly the pods of a task; those of the Job if its tasks cannot be distinguished."""
    task = job.task(name)
    if isinstance(task, OwnerTask):
        return labels_of_job(job) | (task.labels or {})
    return labels_of_job(job) | {keys.TASK_SPEC: name}


def address(job: Job, task: Task, index: int) -> str:
    """Address of one pod of a task."""
    return names.address(hostname(job, task, index), subdomain(job, task))


def addresses(job: Job, task: Task) -> list[str]:
    """Addresses of a task's pods by index; exactly one if the template sets the hostname."""
    suffix = f".{subdomain(job, task)}"
    return [f"{each}{suffix}" for each in hostnames(job, task)]


def is_small(job: Job) -> bool:
    """True if the addresses of all pods are surely far below every limit; they are not computed.

    Hostnames and subdomains have at most 63 characters each, and 128 addresses of that length are 16 KiB. Nearly every
    Job is small, and every review calls this.
    """
    return job.replicas <= _FEW_PODS


def joined_size(job: Job, task: Task) -> int:
    """Bytes of a task's addresses with one separator between two, without computing the addresses.

    Admission calls this for Jobs of any size.
    """
    if fixed_hostname(task):
        return len(address(job, task, 0))
    if not task.size:
        return 0
    if isinstance(task, OwnerTask):
        suffix = len(subdomain(job, task)) + len(".,")
        return task.hostnames.joined_size(task.size) + task.size * suffix - len(",")
    rest = len(address(job, task, 0)) - len("0") + len(",")
    return task.size * rest + digits(task.size) - len(",")
