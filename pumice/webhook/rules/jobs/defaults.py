"""Defaults of a Job, written when it is created and again when it is updated.

An update has the user's whole object. If the stored Job has a default that the user never wrote, the update lacks it
and would look like a change of an immutable field. So a field that is missing in the update *and set in the stored Job*
is defaulted again. A field that was never set stays unset, so an update of one field changes no other.

The default of `minAvailable` is computed from the tasks. If a manifest without it is applied again with other replicas,
the stored value would be too large or too small. Managed fields record who has set a field, and admission owns none: as
long as no manager owns `minAvailable`, it is computed again.
"""

from collections.abc import Sequence
from itertools import count

from pumice import plugins
from pumice.api import keys
from pumice.api.meta import MAX_INT32
from pumice.api.names import default_task_name
from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftJob, DraftPodSpec, DraftSpec, DraftTask
from pumice.webhook.rules.jobs.depends_on import PLUGIN, launch_order
from pumice.webhook.rules.rule import warned

DEFAULT_RETRIES = 3
CLUSTER_DNS_FOR_HOST_NETWORK = "ClusterFirstWithHostNet"

JOB_ZERO = warned(
    "JOB-ZERO",
    "maxRetry and minAvailable are not written as 0",
    "Volcano cannot tell 0 from a missing value and puts the default in its place; so does Pumice.",
    "maxRetry: 0",
)

_NO_SPEC = DraftSpec()
_NO_TASK = DraftTask()
_NO_POD_SPEC = DraftPodSpec()


def job_defaults(case: Case, job: DraftJob, old: DraftJob | None = None) -> None:
    """Write defaults into the case's patch; `old` is the stored Job of an update."""
    spec, patch = job.spec or _NO_SPEC, case.patch
    stored = None if old is None else old.spec or _NO_SPEC
    if job.spec is None:
        patch.missing("/spec")
    if not spec.queue and (stored is None or stored.queue):
        patch.set("/spec/queue", keys.DEFAULT_QUEUE)
    if not spec.scheduler_name and (stored is None or stored.scheduler_name):
        # Which name is the default may have changed since; the Job stays where it is.
        kept = stored.scheduler_name if stored is not None else None
        patch.set("/spec/schedulerName", kept or case.settings.scheduler_names[0])
    if not spec.max_retry and (stored is None or stored.max_retry):
        if spec.max_retry == 0:
            _zero(case, "spec.maxRetry", DEFAULT_RETRIES)
        patch.set("/spec/maxRetry", DEFAULT_RETRIES)
    tasks = spec.tasks or ()
    before: Sequence[DraftTask] | None = None if stored is None else stored.tasks or ()
    minimum = 0
    names = _names(tasks)
    for index, (name, task) in enumerate(zip(names, tasks, strict=True)):
        was = None if before is None else before[index] if index < len(before) else _NO_TASK
        minimum += _task(case, task, was, index, name)
    if spec.plugins and PLUGIN in spec.plugins:
        launch_order(case, spec, names, stored)
    _min_available(case, job, stored, minimum)
    if spec.plugins:
        named = {name: arguments or [] for name, arguments in spec.plugins.items()}
        for name, arguments in plugins.dependencies(named, case.plugins).items():
            if stored is None or name in (stored.plugins or ()):
                patch.set(f"/spec/plugins/{escape(name)}", arguments)


def _min_available(case: Case, job: DraftJob, stored: DraftSpec | None, minimum: int) -> None:
    """Default `minAvailable` of the Job: the sum over its tasks."""
    spec, default = job.spec or _NO_SPEC, _count(minimum)
    if spec.min_available in (minimum, default):
        return
    if spec.min_available:
        if stored is not None and stored.tasks and _follows(job, spec, stored):
            case.patch.set("/spec/minAvailable", default)
    # A stored 0 is either the sum of tasks without pods, or older than admission.
    elif stored is None or stored.min_available not in (None, spec.min_available):
        if spec.min_available == 0 and default:
            _zero(case, "spec.minAvailable", default)
        case.patch.set("/spec/minAvailable", default)


def _task(case: Case, task: DraftTask, was: DraftTask | None, index: int, name: str) -> int:
    """Default one task; returns the number of its pods for which the gang waits."""
    patch = case.patch
    if not task.name and (was is None or was.name):
        patch.set(f"/spec/tasks/{index}/name", name)
    template = task.template
    if template is not None and template.spec is not None and template.spec.host_network is True:
        pod = template.spec
        before = None if was is None else (was.template and was.template.spec) or _NO_POD_SPEC
        if not pod.dns_policy and (before is None or before.dns_policy):
            pointer = f"/spec/tasks/{index}/template/spec/dnsPolicy"
            patch.set(pointer, CLUSTER_DNS_FOR_HOST_NETWORK)
    minimum = _minimum_of(task)
    if task.min_available is None and (was is None or was.min_available is not None):
        patch.set(f"/spec/tasks/{index}/minAvailable", minimum)
    if not task.max_retry and (was is None or was.max_retry):
        if task.max_retry == 0:
            _zero(case, f"spec.tasks[{index}].maxRetry", DEFAULT_RETRIES)
        patch.set(f"/spec/tasks/{index}/maxRetry", DEFAULT_RETRIES)
    return minimum


def _minimum_of(task: DraftTask) -> int:
    """The number of a task's pods for which the gang waits.

    Its default is limited to 32 bits and not negative, so that an invalid number of replicas is reported only once.
    """
    if task.min_available is not None:
        return task.min_available
    partitions = task.partition_policy
    if partitions is not None and partitions.min_partitions > 0:
        return max(partitions.min_partitions * partitions.partition_size, 0)
    return _count(task.replicas or 0)


def _count(number: int) -> int:
    """A number, or the closest one that is not negative and has 32 bits."""
    return number if 0 <= number <= MAX_INT32 else 0 if number < 0 else MAX_INT32


def _names(tasks: Sequence[DraftTask]) -> list[str]:
    """Names of all tasks, with defaults by position.

    A default that another task already has as its name is skipped, so names stay unique.
    """
    names = [task.name or "" for task in tasks]
    taken = set(names)
    for index, name in enumerate(names):
        if not name:
            defaults = map(default_task_name, count(index))
            names[index] = next(each for each in defaults if each not in taken)
            taken.add(names[index])
    return names


def _zero(case: Case, path: str, default: int) -> None:
    case.report(JOB_ZERO, path, f"0 counts as not set and becomes {default}")


def _follows(job: DraftJob, spec: DraftSpec, stored: DraftSpec) -> bool:
    """True if an update does not set `minAvailable`, and its stored value is the default of admission.

    If managed fields cannot be read, a user may have set it.
    """
    if spec.min_available is None or spec.min_available != stored.min_available:
        return False
    if sum(_minimum_of(task) for task in stored.tasks or ()) != stored.min_available:
        return False
    entries = (job.metadata.managed_fields if job.metadata is not None else None) or ()
    owned = [entry.owned() for entry in entries]
    return bool(owned) and all(each is not None and "f:minAvailable" not in each for each in owned)
