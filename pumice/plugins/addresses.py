"""Where the pods of a Job can be reached: `<hostname>.<subdomain>`, relative to the namespace.

Source: job specification, section 2. A template that sets `hostname` gives it to every pod of its
task, so such a task has one address, whatever its replicas; a template's `subdomain` replaces the
Job's name, and Pumice makes no Service for it.
"""

from pumice.api import names
from pumice.api.jobs import Job, Task

__all__ = ["address", "addresses", "fixed_hostname", "is_small", "joined_size", "subdomain"]

_FEW_PODS = 128


def fixed_hostname(task: Task) -> str:
    """`template.spec.hostname`, empty when each pod has its own."""
    return _text(task, "hostname")


def subdomain(job: Job, task: Task) -> str:
    """`template.spec.subdomain`, or else the Job's name, for which plugin `svc` makes a Service."""
    return _text(task, "subdomain") or job.metadata.name


def address(job: Job, task: Task, index: int) -> str:
    """Address of one pod of a task."""
    hostname = fixed_hostname(task) or names.pod_name(job.metadata.name, task.name, index)
    return names.address(hostname, subdomain(job, task))


def addresses(job: Job, task: Task) -> list[str]:
    """Addresses of a task's pods by index; exactly one where the template fixes the hostname."""
    if fixed_hostname(task):
        return [address(job, task, 0)]
    prefix = f"{job.metadata.name}-{task.name}-"
    suffix = f".{subdomain(job, task)}"
    return [f"{prefix}{index}{suffix}" for index in range(task.size)]


def is_small(job: Job) -> bool:
    """Whether the addresses of all pods are far from every limit, without looking at them.

    Hostnames and subdomains have at most 63 characters each, or are refused as such; 128 addresses of
    that length are 16 KiB. Nearly every Job is small, and every review asks.
    """
    return job.replicas <= _FEW_PODS


def joined_size(job: Job, task: Task) -> int:
    """Bytes of a task's addresses with one separator between two, without making them.

    Admission asks this of every Job, whatever its size.
    """
    if fixed_hostname(task):
        return len(address(job, task, 0))
    if not task.size:
        return 0
    rest = len(address(job, task, 0)) - len("0") + len(",")
    return task.size * rest + _digits(task.size) - len(",")


def _digits(count: int) -> int:
    """Digits of all numbers from 0 below a count."""
    total, first, width = 0, 0, 1
    while first < count:
        following = min(count, 10**width)
        total += (following - first) * width
        first, width = following, width + 1
    return total


def _text(task: Task, field: str) -> str:
    value = task.pod_spec().get(field)
    return value if isinstance(value, str) else ""
