"""The size of a Job together with the status that it can get.

etcd stores objects of 1.5 MiB. A Job that just fits would never get a status: the API server would refuse each write of it.
"""

import msgspec

from pumice.api.jobs import DEFAULT_MAX_PODS, Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import stricter

JOB_SIZE = stricter(
    "JOB-SIZE",
    "a Job leaves room for its status",
    "etcd stores 1.5 MiB of an object, and the status has several entries for each task; without room for it the Job "
    "would never get one.",
    "spec: {tasks: [{name: t0, …}, …, {name: t9999, …}]}",
    reason="FieldValueTooLong",
)

MOST = 1_500_000
"""Bytes of a Job as JSON with its status."""

OF_A_JOB = 20_000
"""Bytes of the status besides its entries for tasks, pods and volumes: messages, notes and times."""

_OF_A_TASK, _OF_A_PHASE, _NAMES = 400, 45, 9
"""For a task: the bytes of its entries, of each further phase that its pods are in, and how often its name occurs.

The API server notes the owner of each field of a status, which takes as much again.
"""

_PODS_A_BYTE = 2
"""Pods of which four sets are written with a byte each at most; see `podsets`."""

_PHASES = 6
_CLAIMS, _OF_A_CLAIM = 200, 600


def status_bytes(job: Job) -> int:
    """The most bytes that the status of a Job takes; of more pods than a Job may have it has no notes."""
    tasks = sum(
        _OF_A_TASK + _NAMES * len(task.name) + _OF_A_PHASE * min(max(task.size, 1) - 1, _PHASES - 1)
        for task in job.tasks
    )
    tasks += min(max(job.replicas, 0), DEFAULT_MAX_PODS) // _PODS_A_BYTE
    return OF_A_JOB + tasks + _OF_A_CLAIM * min(_CLAIMS, len(job.spec.volumes or ()))


def size(case: Case, job: Job) -> None:
    """Check that the status has room beside the spec and the metadata."""
    try:
        stored = len(_encode((job.metadata.labels, job.metadata.annotations, job.spec)))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return  # other rules report numbers and texts that no API server takes
    status = status_bytes(job)
    if stored + status > MOST:
        message = (
            f"takes {stored} bytes, and the status of its {len(job.tasks)} tasks can take {status} more: "
            f"must be at most {MOST} bytes in all; divide it into several Jobs"
        )
        case.report(JOB_SIZE, "spec.tasks", message, excess=stored + status)


_encode = msgspec.json.Encoder().encode
