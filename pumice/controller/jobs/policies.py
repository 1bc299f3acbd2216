"""The action for an event.

A Job and its tasks carry lifecycle policies: `PodFailed` → `RestartJob`, exit code 3 → `AbortJob`, and so on. Task
policies are checked before the Job's, and within a list the first that matches wins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from pumice.api.durations import parse_seconds
from pumice.api.jobs import Job, LifecyclePolicy
from pumice.controller.jobs.phases import SYNC_JOB

ANY_EVENT = "*"
POD_EVICTED = "PodEvicted"
POD_FAILED = "PodFailed"
POD_PENDING = "PodPending"
TASK_COMPLETED = "TaskCompleted"

INTERNAL = frozenset({"OutOfSync", "CommandIssued", "PodRunning"})
"""Events that never match a policy."""


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of a Job, or an action of a Command. There may be one for each pod, so they must be cheap.

    Attributes:
        event: What happened; empty when only the action counts.
        action: Action of a Command; it takes precedence over every policy.
        task: The affected task.
        pod: The affected pod.
        partition: The affected partition.
        job_uid: uid of the Job; empty for any Job of that name.
        version: Version of the Job that the event belongs to; None for the current one.
        exit_codes: Exit codes with which containers of the pod failed.
        since: When it happened, in UNIX seconds; None when that is not known.
        ran: Seconds that the failed pod had run; None when that is not known.
        gone: Whether the pod no longer exists.
        detail: What happened, for the user.
    """

    event: str = ""
    action: str = ""
    task: str = ""
    pod: str = ""
    partition: str = ""
    job_uid: str = ""
    version: int | None = None
    exit_codes: tuple[int, ...] = ()
    since: float | None = None
    ran: float | None = None
    gone: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The chosen action.

    Attributes:
        action: The action; `SyncJob` when no policy matches.
        delay: Seconds to wait after the event.
        path: Path of the policy in the Job; empty without one.
    """

    action: str
    delay: float = 0.0
    path: str = ""


_SYNC = PolicyChoice(SYNC_JOB)


def has_policies(job: Job) -> bool:
    """True if a Job or one of its tasks has a policy; events of its pods mean nothing otherwise."""
    return bool(job.spec.policies) or any(task.policies for task in job.tasks)


def concerns(job: Job, event: str) -> bool:
    """True if a policy of a Job or of one of its tasks may match an event."""
    lists = (job.spec.policies, *(task.policies for task in job.tasks))
    return any(
        _matches(policy, PolicyRequest(event=event)) for each in lists for policy in each or ()
    )


_Placed = tuple[str, LifecyclePolicy]
"""A policy with its path."""


class Policies:
    """Chooses actions for the events of one Job, and remembers them: there may be as many pods, tasks and policies as an object holds."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._of_job = tuple(_with_paths("spec.policies", job.spec.policies))
        self._of_tasks: dict[str, list[_Placed]] = {}
        for position, task in enumerate(job.tasks):
            if task.policies and task.name:
                placed = _with_paths(f"spec.tasks[{position}].policies", task.policies)
                self._of_tasks.setdefault(task.name, []).extend(placed)
        self._chosen: dict[tuple[str, str, tuple[int, ...]], PolicyChoice] = {}
        self._awaited: dict[str, frozenset[int]] = {}

    def choose(self, request: PolicyRequest) -> PolicyChoice:
        """Choose the action for a request."""
        if request.action:
            return PolicyChoice(request.action)
        if request.event in INTERNAL:
            return _SYNC
        if request.job_uid and request.job_uid != self._job.metadata.uid:
            return _SYNC
        if request.version is not None and request.version < self._job.status.version:
            return _SYNC
        for task in (request.task, "") if request.task in self._of_tasks else ("",):
            alike = request.event, task, request.exit_codes
            found = self._chosen.get(alike)
            if found is None:
                found = self._chosen[alike] = self._first(request, task)
            if found is not _SYNC:
                return found
        return _SYNC

    def _first(self, request: PolicyRequest, task: str) -> PolicyChoice:
        """What the first policy of a task that matches says, or of the Job for an empty name; `_SYNC` if none does."""
        matching = (
            PolicyChoice(policy.action or SYNC_JOB, _delay(policy), path)
            for path, policy in self._placed(task)
            if _matches(policy, request)
        )
        return next(matching, _SYNC)

    def awaited(self, task: str) -> tuple[int, ...]:
        """The exit code for which a policy about a task has a timeout; empty if there are several."""
        codes = self._delayed(task) | self._delayed("")
        return tuple(codes) if len(codes) == 1 else ()

    def _delayed(self, task: str) -> frozenset[int]:
        """Exit codes for which policies of a task have a timeout, or those of the Job for an empty name."""
        found = self._awaited.get(task)
        if found is None:
            codes = (each.exit_code for _, each in self._placed(task) if _delay(each))
            found = self._awaited[task] = frozenset(each for each in codes if each is not None)
        return found

    def _placed(self, task: str) -> Sequence[_Placed]:
        """The policies of a task, or of the Job for an empty name."""
        return self._of_tasks.get(task, ()) if task else self._of_job


def _with_paths(path: str, policies: Sequence[LifecyclePolicy] | None) -> Iterator[_Placed]:
    for position, policy in enumerate(policies or ()):
        yield f"{path}[{position}]", policy


def _matches(policy: LifecyclePolicy, request: PolicyRequest) -> bool:
    if policy.exit_code is not None and policy.exit_code in request.exit_codes:
        return True
    if not request.event or (request.event == POD_PENDING and policy.timeout is None):
        return False
    events = {*(policy.events or ()), policy.event}
    return request.event in events or ANY_EVENT in events


def _delay(policy: LifecyclePolicy) -> float:
    return parse_seconds(policy.timeout) or 0.0 if policy.timeout else 0.0
