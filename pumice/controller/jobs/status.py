"""The Job's status: counts of its pods, its phase, and the times at which phases were entered.

The status is composed on what is stored, so that fields which Pumice does not know survive, and it is
written only when it differs. All pods that are known count: those that a finished Job keeps, and those that
succeeded and exist no longer. Pods that the controller is about to remove count as terminating.

The times when the Job began to run and ended are in `controlledResources`, as `pumice.dev/startTime` and
`pumice.dev/completionTime`: the CRD has no other place that outlives a return to `Pending`.

Pods of a gang start and end one after the other, and a status for each of them would be as many writes as there are pods. So
changed counts wait for a second (`COUNT_SECONDS`). Phases, reasons with an event, restarts and notes are written immediately,
except for the note of succeeded pods, which grows like a count.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from pumice.api import keys
from pumice.api.durations import format_duration
from pumice.api.failures import (
    PODS_FAILED,
    FailureGroup,
    with_failures,
    without_failures,
)
from pumice.api.jobs import Job
from pumice.api.kinds import POD
from pumice.api.messages import shortened
from pumice.api.meta import Raw, format_time, parse_time
from pumice.api.pods import Pod
from pumice.controller.jobs import job_pods
from pumice.controller.jobs.phases import (
    ABORTED,
    FINISHED,
    PENDING,
    RESTARTING,
    RUNNING,
    Facts,
    PhaseResult,
    TaskFacts,
    phase_of,
)
from pumice.controller.jobs.subject import DEFAULT_MAX_RETRY, min_available
from pumice.controller.plan import DeleteObject, PatchStatus, Plan, RecordEvent, Step, UpdateObject

START = "pumice.dev/startTime"
"""Key of the note with the time when the present incarnation first ran."""

COMPLETION = "pumice.dev/completionTime"
"""Key of the note with the time when the Job ended."""

INVALID = "InvalidJob"
"""Reason of a Job from which no pods can be made."""

_FIELD = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}
_NUMBERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


class Counts(msgspec.Struct, frozen=True):
    """Pods by phase.

    Attributes:
        pending: Pods that wait.
        running: Pods that run.
        succeeded: Pods that succeeded.
        failed: Pods that failed.
        terminating: Pods that are being removed; they count nowhere else.
        unknown: Pods of unknown state.
        tasks: Pods by task and pod phase.
    """

    pending: int
    running: int
    succeeded: int
    failed: int
    terminating: int
    unknown: int
    tasks: dict[str, dict[str, int]]


def count(
    pods: Sequence[Pod], removing: Collection[str] = (), lost: Mapping[str, int] | None = None
) -> Counts:
    """Count pods.

    Args:
        pods: The Job's pods.
        removing: Names of those that the controller is about to remove.
        lost: Numbers of pods by task that succeeded and exist no longer.
    """
    numbers = dict.fromkeys(_NUMBERS, 0)
    tasks: dict[str, dict[str, int]] = {}
    staying = [
        ((pod.metadata.annotations or {}).get(keys.TASK_SPEC, "default"), pod.status.phase)
        for pod in pods
        if pod.metadata.deletion_timestamp is None and pod.metadata.name not in removing
    ]
    numbers["terminating"] = len(pods) - len(staying)
    for (task, known), number in Counter(staying).items():
        phase = known or "Pending"
        numbers[_FIELD.get(phase, "unknown")] += number
        by_phase = tasks.setdefault(task, {})
        by_phase[phase] = by_phase.get(phase, 0) + number
    for task, number in (lost or {}).items():
        numbers["succeeded"] += number
        by_phase = tasks.setdefault(task, {})
        by_phase["Succeeded"] = by_phase.get("Succeeded", 0) + number
    ordered = {name: dict(sorted(tasks[name].items())) for name in sorted(tasks)}
    return Counts(**numbers, tasks=ordered)


def facts(job: Job, counts: Counts) -> Facts:
    """The numbers that the state machine uses."""
    return Facts(
        total=job.replicas,
        min_available=min_available(job),
        judged_by=job.status.min_available,
        task_minimums=sum(task.minimum for task in job.tasks),
        min_success=job.spec.min_success,
        retry_count=job.status.retry_count,
        max_retry=DEFAULT_MAX_RETRY if job.spec.max_retry is None else job.spec.max_retry,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        tasks=tuple(
            TaskFacts(
                task.name,
                task.min_available,
                counts.tasks.get(task.name, {}).get("Succeeded", 0),
                task.name in counts.tasks,
            )
            for task in job.tasks
        ),
    )


def compose(
    stored: Raw,
    counts: Counts,
    verdict: PhaseResult,
    *,
    minimum: int,
    now: float,
    version: int,
    retry_count: int,
    controlled: dict[str, str],
) -> Raw | None:
    """The new status, or None when it equals the stored one.

    Args:
        stored: Status as stored.
        counts: Pods by phase.
        verdict: Phase, reason and message.
        minimum: `spec.minAvailable`, by which the phase was judged.
        now: The moment, in UNIX seconds; written only where the phase changes.
        version: Incarnation of the Job.
        retry_count: Restarts so far.
        controlled: `controlledResources`.
    """
    numbers = {name: getattr(counts, name) for name in _NUMBERS}
    numbers |= {"minAvailable": minimum, "version": version, "retryCount": retry_count}
    status = {key: value for key, value in stored.items() if key not in numbers}
    status |= {name: number for name, number in numbers.items() if number}
    _set(status, "controlledResources", controlled)
    _set(
        status,
        "taskStatusCount",
        {task: {"phase": by_phase} for task, by_phase in counts.tasks.items()},
    )
    _enter(status, stored, verdict, now)
    _note_times(status, stored)
    if status["state"]["phase"] != phase_of(stored):
        return status
    return None if _plain(status) == _plain(stored) else status


def with_failed_pods(status: Raw, groups: Sequence[FailureGroup]) -> Raw:
    """A status that will be written anyway, with the reasons for which pods failed in its message."""
    state = status["state"]
    if message := with_failures(state.get("message", ""), groups):
        state["message"] = message
        state.setdefault("reason", PODS_FAILED)
    return status


def said(state: Raw) -> tuple[str, str]:
    """Reason and message of a stored state, without what `with_failed_pods` has added."""
    reason = state.get("reason", "")
    message = without_failures(state.get("message", ""))
    return ("", "") if reason == PODS_FAILED else (reason, message)


def refused(stored: Raw, reason: str, message: str, now: float) -> Raw | None:
    """The status of a Job from which no pods can be made, or None if it is stored already.

    The phase is kept: a Job that became unreadable while it ran may still have running pods.
    """
    status = {**stored}
    phase = phase_of(stored) or PENDING
    _enter(status, stored, PhaseResult(phase, reason, message), now)
    return None if status == stored else status


def _enter(status: Raw, stored: Raw, verdict: PhaseResult, now: float) -> None:
    """Set the phase; the transition time changes only with the phase."""
    before = stored.get("state") or {}
    since = before.get("lastTransitionTime")
    if before.get("phase") != verdict.phase:
        since = format_time(now)
        conditions = [
            each for each in stored.get("conditions") or () if each.get("status") != verdict.phase
        ]
        started = _started(stored, conditions)
        conditions.append({"status": verdict.phase, "lastTransitionTime": since})
        status["conditions"] = conditions
        status.pop("runningDuration", None)
        if (verdict.phase in FINISHED or verdict.phase == ABORTED) and started is not None:
            status["runningDuration"] = format_duration(now - started)
    state = {"phase": verdict.phase, "lastTransitionTime": since}
    if verdict.reason:
        state["reason"] = verdict.reason
    if verdict.message:
        state["message"] = shortened(verdict.message)
    status["state"] = state


def _note_times(status: Raw, stored: Raw) -> None:
    """Record when the Job began to run and when it ended."""
    state = status["state"]
    if state["phase"] == phase_of(stored):
        return
    key = START if state["phase"] == RUNNING else COMPLETION
    if state["phase"] == RUNNING or state["phase"] in FINISHED:
        noted = status.get("controlledResources") or {}
        status["controlledResources"] = {key: state["lastTransitionTime"]} | noted


def _started(stored: Raw, conditions: Sequence[Raw]) -> float | None:
    """When the Job began to run; for Jobs without that note, when it last entered `Running`."""
    noted = parse_time((stored.get("controlledResources") or {}).get(START))
    if noted is not None:
        return noted
    for each in reversed(conditions):
        if each.get("status") == RUNNING:
            return parse_time(each.get("lastTransitionTime"))
        if each.get("status") == RESTARTING and each is not conditions[-1]:
            return None  # that was before the Job was restarted or resumed
    return None


def _set(status: Raw, key: str, value: object) -> None:
    if value:
        status[key] = value
    else:
        status.pop(key, None)


def _plain(status: Raw) -> Raw:
    """A status without empty fields, since some writers store zeros and others leave them out, and without the reasons for which pods failed, which are no reason for a write."""
    state = status.get("state") or {}
    kept = {key: value for key, value in status.items() if value or value == ""}
    return kept | {"state": {**state, "said": said(state), "reason": "", "message": ""}}


COUNT_SECONDS = 1.0
"""How long a change of counts waits, so that several are written together."""

_COUNTS = frozenset(
    ("pending", "running", "succeeded", "failed", "terminating", "unknown", "taskStatusCount")
)


def counts_only(stored: Raw, plan: Plan) -> bool:
    """True if a plan writes the status, and changes only counts and similar fields in it.

    The message about why a Job waits contains counts, too.
    """
    status = plan.status
    if status is None or any(map(_depends_on_it, plan.built)):
        return False
    return _rest(stored) == _rest(status)


def _depends_on_it(step: Step) -> bool:
    """True for a step that must not be taken before the status is written."""
    if isinstance(step, UpdateObject | DeleteObject):
        return step.kind == POD
    return isinstance(step, RecordEvent)


def without_status(plan: Plan) -> Plan:
    """A plan without its write of the status."""
    return plan.without(lambda step: isinstance(step, PatchStatus))


def _rest(status: Raw) -> Raw:
    rest = {key: value for key, value in status.items() if key not in _COUNTS and value}
    rest["state"] = {"phase": phase_of(status)}
    notes = status.get("controlledResources") or {}
    rest["controlledResources"] = {
        key: text for key, text in notes.items() if key != job_pods.SUCCEEDED
    }
    return rest
