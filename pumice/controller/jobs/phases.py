"""The state machine of a Job, as a table.

Two rules for this file: everything that decides a phase stands here, and nothing here knows how a pod
is made or removed.

A Job is in one of ten phases. Four are *resting* (`Pending`, `Running` while it lives; `Aborted`, which
can be resumed), three are *ends* (`Completed`, `Failed`, `Terminated`), and four are *passages* in which
pods are being removed (`Aborting`, `Completing`, `Terminating`, `Restarting`). Time moves a Job by
*actions*: `SyncJob` whenever anything about it changed, the others because a user (a Command) or a
lifecycle policy asked. A row of the table says, for a phase and an action,

* the work: bring the pods to what the spec wants (`SYNC`), remove pods (`KILL`), or remove the pods
  that one failure concerns (`KILL_TARGET`);
* the pod phases that a kill leaves alone: none, or `SOFT`, the finished pods whose logs matter;
* whether it costs one of the Job's `maxRetry`; targeted restarts have budgets of their own (`restart_budgets`);
* where it leads: either a phase at once (`to`), or a `rule` over counts, evaluated after the work.

A row with `to` is an *intention*. It is written to the status before the work begins. So the phase itself, for example
`Aborting`, records what must be done, and a controller that starts in between finds it. The rows with a `rule` then
finish the work, pass after pass, until the rule is met.

`ANY` stands for every action that has no row of its own; unknown actions therefore end there. An empty
or unknown phase is `Pending`.

                    ┌────────────────────── Restarting ◄───────── ResumeJob ────┐
                    ▼                        ▲      │ retries exhausted         │
    (new) ──► Pending ◄───────► Running ─────┘      ▼                           │
                 │                 │ ├────────► Failed                          │
                 │                 │ └────────► Completed                       │
                 ├── AbortJob ─────┴──► Aborting ──────────────────────────► Aborted
                 ├── CompleteJob ─────► Completing ───► Completed
                 └── TerminateJob ────► Terminating ──► Terminated

The phases and rules are Volcano's. Three differences are deliberate. In `Restarting`, `AbortJob`,
`CompleteJob` and `TerminateJob` are obeyed, and so is `TerminateJob` in `Aborting`; Volcano removes the
pods and then forgets what was asked. In `Restarting`, any other action carries on with the restart that
is under way instead of removing all pods. Only restarts of the whole Job cost one of its `maxRetry`;
with `strict-upstream` targeted restarts and resuming do as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

from pumice.api.failures import attempts
from pumice.api.meta import Raw

PENDING = "Pending"
ABORTING = "Aborting"
ABORTED = "Aborted"
RUNNING = "Running"
RESTARTING = "Restarting"
COMPLETING = "Completing"
COMPLETED = "Completed"
TERMINATING = "Terminating"
TERMINATED = "Terminated"
FAILED = "Failed"

FINISHED = frozenset({COMPLETED, FAILED, TERMINATED})
"""Final phases of a Job."""

SYNC_JOB = "SyncJob"
ABORT_JOB = "AbortJob"
RESTART_JOB = "RestartJob"
RESTART_TASK = "RestartTask"
RESTART_POD = "RestartPod"
RESTART_PARTITION = "RestartPartition"
TERMINATE_JOB = "TerminateJob"
COMPLETE_JOB = "CompleteJob"
RESUME_JOB = "ResumeJob"
ANY = "*"

TARGETED = frozenset({RESTART_TASK, RESTART_POD, RESTART_PARTITION})
"""Actions that concern some pods of the Job only."""

NOTHING: frozenset[str] = frozenset()
SOFT = frozenset({"Succeeded", "Failed"})
"""Pod phases that a soft kill leaves alone."""


class Work(Enum):
    """What happens to the pods."""

    SYNC = "sync"
    KILL = "kill"
    KILL_TARGET = "kill target"


class NextPhase(Enum):
    """How the next phase is determined after the work."""

    STAY = "stay"
    START = "start"
    RUN = "run"
    RESTART = "restart"
    RESUME = "resume, whatever it has cost so far"
    ABORTED = "aborted when nothing is alive"
    COMPLETED = "completed when nothing is alive"
    TERMINATED = "terminated when nothing is alive"


@dataclass(frozen=True, slots=True)
class Transition:
    """The effect of an action in a phase.

    Attributes:
        work: What is done to the pods.
        retain: Pod phases that a kill leaves alone.
        retry: Whether it costs one of the Job's `maxRetry`.
        to: Phase that is entered at once, as an intention; empty when the rule decides.
        rule: How the next phase is found when `to` is empty.
    """

    work: Work
    retain: frozenset[str] = NOTHING
    retry: bool = False
    to: str = ""
    rule: NextPhase = NextPhase.STAY


_RESTART = Transition(Work.KILL, NOTHING, retry=True, to=RESTARTING)
_RESTART_TARGET = Transition(Work.KILL_TARGET, NOTHING, to=RESTARTING)
_ABORT = Transition(Work.KILL, SOFT, to=ABORTING)
_COMPLETE = Transition(Work.KILL, SOFT, to=COMPLETING)
_TERMINATE = Transition(Work.KILL, SOFT, to=TERMINATING)
_RESUME = Transition(Work.KILL, SOFT, to=RESTARTING)
_CARRY_ON = Transition(Work.KILL_TARGET, NOTHING, rule=NextPhase.RESTART)

TABLE: Mapping[tuple[str, str], Transition] = {
    (PENDING, RESTART_JOB): _RESTART,
    (PENDING, RESTART_TASK): _RESTART_TARGET,
    (PENDING, RESTART_POD): _RESTART_TARGET,
    (PENDING, RESTART_PARTITION): _RESTART_TARGET,
    (PENDING, ABORT_JOB): _ABORT,
    (PENDING, COMPLETE_JOB): _COMPLETE,
    (PENDING, TERMINATE_JOB): _TERMINATE,
    (PENDING, ANY): Transition(Work.SYNC, rule=NextPhase.START),
    (RUNNING, RESTART_JOB): _RESTART,
    (RUNNING, RESTART_TASK): _RESTART_TARGET,
    (RUNNING, RESTART_POD): _RESTART_TARGET,
    (RUNNING, RESTART_PARTITION): _RESTART_TARGET,
    (RUNNING, ABORT_JOB): _ABORT,
    (RUNNING, COMPLETE_JOB): _COMPLETE,
    (RUNNING, TERMINATE_JOB): _TERMINATE,
    (RUNNING, ANY): Transition(Work.SYNC, rule=NextPhase.RUN),
    (RESTARTING, RESTART_JOB): Transition(Work.KILL, NOTHING, rule=NextPhase.RESTART),
    (RESTARTING, ABORT_JOB): _ABORT,
    (RESTARTING, COMPLETE_JOB): _COMPLETE,
    (RESTARTING, TERMINATE_JOB): _TERMINATE,
    (RESTARTING, ANY): _CARRY_ON,
    (ABORTING, RESUME_JOB): _RESUME,
    (ABORTING, TERMINATE_JOB): _TERMINATE,
    (ABORTING, ANY): Transition(Work.KILL, SOFT, rule=NextPhase.ABORTED),
    (ABORTED, RESUME_JOB): _RESUME,
    (ABORTED, ANY): Transition(Work.KILL, SOFT),
    (COMPLETING, ANY): Transition(Work.KILL, SOFT, rule=NextPhase.COMPLETED),
    (TERMINATING, ANY): Transition(Work.KILL, SOFT, rule=NextPhase.TERMINATED),
    (COMPLETED, ANY): Transition(Work.KILL, SOFT),
    (FAILED, ANY): Transition(Work.KILL, SOFT),
    (TERMINATED, ANY): Transition(Work.KILL, SOFT),
}
"""Phase and action to row. Read it with `row`, which knows what `ANY` and unknown phases mean."""

_PHASES = frozenset(phase for phase, _ in TABLE)


class TaskFacts(msgspec.Struct, frozen=True):
    """Numbers of a task that the rules need.

    Attributes:
        name: Its name.
        minimum: Its `minAvailable`; None when the Job does not say.
        succeeded: Its pods that succeeded.
        counted: Whether any pod of it is known.
    """

    name: str
    minimum: int | None = None
    succeeded: int = 0
    counted: bool = False


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of a Job that the rules need.

    Attributes:
        total: Pods that the Job wants, over all tasks.
        min_available: `spec.minAvailable`.
        judged_by: `status.minAvailable`, which applied to the last incarnation.
        task_minimums: Sum of the tasks' minimums.
        min_success: `spec.minSuccess`, if the Job says.
        retry_count: Restarts so far of what is being restarted.
        restarted: The restarted unit; empty for the whole Job.
        max_retry: Restarts after which the Job fails.
        pending: Pods that wait.
        running: Pods that run.
        succeeded: Pods that succeeded.
        failed: Pods that failed.
        terminating: Pods that are being removed.
        tasks: The tasks.
    """

    total: int = 0
    min_available: int = 0
    judged_by: int = 0
    task_minimums: int = 0
    min_success: int | None = None
    retry_count: int = 0
    restarted: str = ""
    max_retry: int = 3
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    tasks: tuple[TaskFacts, ...] = msgspec.field(default=())

    @property
    def alive(self) -> int:
        """Pods that wait, run or are being removed."""
        return self.pending + self.running + self.terminating


class PhaseResult(msgspec.Struct, frozen=True):
    """A phase, and why.

    Attributes:
        phase: The next phase; may be the present one.
        reason: One word why, empty when nothing needs saying.
        message: One sentence why.
    """

    phase: str
    reason: str = ""
    message: str = ""


def phase_of(status: Raw | None) -> str:
    """The phase in the status of a Job or JobFlow; empty before it has one."""
    return str(((status or {}).get("state") or {}).get("phase") or "")


def known(phase: str) -> str:
    """The phase, or `Pending` for an empty or unknown one."""
    return phase if phase in _PHASES else PENDING


def row(phase: str, action: str) -> Transition:
    """Row of the table for a phase and an action."""
    phase = known(phase)
    return TABLE.get((phase, action)) or TABLE[phase, ANY]


def turning(phase: str) -> frozenset[str]:
    """Actions that send a Job in a phase to another one at once."""
    return frozenset(action for _, action in TABLE if row(phase, action).to)


def judge(rule: NextPhase, phase: str, facts: Facts) -> PhaseResult:
    """Apply a rule to the counts after the work."""
    match rule:
        case NextPhase.START:
            settled = facts.running + facts.succeeded + facts.failed
            return PhaseResult(RUNNING if facts.min_available <= settled else phase)
        case NextPhase.RUN:
            return _run(phase, facts)
        case NextPhase.RESTART:
            return _restart(phase, facts)
        case NextPhase.RESUME:
            return PhaseResult(PENDING if _is_enough(facts) else phase)
        case NextPhase.ABORTED:
            return PhaseResult(phase if facts.alive else ABORTED)
        case NextPhase.COMPLETED:
            return PhaseResult(phase if facts.alive else COMPLETED)
        case NextPhase.TERMINATED:
            return PhaseResult(phase if facts.alive else TERMINATED)
        case NextPhase.STAY:
            return PhaseResult(phase)


def _run(phase: str, facts: Facts) -> PhaseResult:
    if facts.total == 0:
        return PhaseResult(phase)
    if facts.min_success is not None and facts.succeeded >= facts.min_success:
        return PhaseResult(
            COMPLETED, "MinSuccess", f"{_score(facts)}, minSuccess {facts.min_success} is reached"
        )
    if facts.succeeded + facts.failed == facts.total:
        return _ended(facts)
    if facts.pending > facts.total - facts.min_available:
        return PhaseResult(PENDING)
    return PhaseResult(phase)


def _ended(facts: Facts) -> PhaseResult:
    if facts.min_available >= facts.task_minimums:
        for task in facts.tasks:
            if task.counted and task.minimum is not None and task.succeeded < task.minimum:
                return PhaseResult(
                    FAILED,
                    "TaskTooFewSucceeded",
                    f"{_score(facts)}; task {task.name} has {task.succeeded} succeeded pods and"
                    f" needs {task.minimum} (minAvailable)",
                )
    if facts.min_success is not None:
        return PhaseResult(
            FAILED, "TooFewSucceeded", f"{_score(facts)}, minSuccess is {facts.min_success}"
        )
    if facts.succeeded >= facts.min_available:
        return PhaseResult(COMPLETED, "PodsSucceeded", _score(facts))
    return PhaseResult(
        FAILED, "TooFewSucceeded", f"{_score(facts)}, minAvailable is {facts.min_available}"
    )


def _restart(phase: str, facts: Facts) -> PhaseResult:
    if facts.retry_count >= facts.max_retry:
        return PhaseResult(
            FAILED,
            "RetriesExhausted",
            attempts(facts.retry_count, facts.max_retry, facts.restarted),
        )
    return PhaseResult(PENDING if _is_enough(facts) else phase)


def _is_enough(facts: Facts) -> bool:
    """True if the pods that can still be created, with those that still end, reach the required minimum."""
    return facts.total - facts.terminating >= facts.judged_by


def _score(facts: Facts) -> str:
    pods = "pod" if facts.total == 1 else "pods"
    return f"{facts.succeeded} of {facts.total} {pods} succeeded, {facts.failed} failed"
