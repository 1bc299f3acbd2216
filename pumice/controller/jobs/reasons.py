"""Why a Job waits, in one word and one sentence, for its status and its events.

Reasons are checked in the order in which they must be solved: a name that is taken, a write that the API server
refuses, a plugin that cannot be used, then the scheduler, then the Job's own launch order, then the pods. The
scheduler's message is used unchanged.

An event reports a change, so it is recorded only together with a change of the status.
"""

import msgspec

from pumice.api.messages import LONGEST, listed
from pumice.controller import podgroups
from pumice.controller.jobs.depends import HeldTask
from pumice.controller.jobs.phases import FAILED, PENDING, RUNNING, PhaseResult
from pumice.controller.jobs.situation import Situation
from pumice.controller.objects import NameConflict
from pumice.controller.plan import RecordEvent


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """State on which a running or pending Job waits.

    Attributes:
        conflicts: Names that objects of other owners have.
        problem: The problem of its plugins; empty if there is none.
        admitted: Whether the scheduler has let its PodGroup enqueue.
        held: Tasks that lack pods because other tasks are not ready.
        missing: Number of missing pods.
        backoff: Which pods failed again and are restarted after a while.
    """

    conflicts: tuple[NameConflict, ...] = ()
    problem: str = ""
    admitted: bool = False
    held: tuple[HeldTask, ...] = ()
    missing: int = 0
    backoff: str = ""


class WaitReason(msgspec.Struct, frozen=True):
    """The reason why a Job does not proceed.

    Attributes:
        word: One word, empty if there is nothing to report.
        sentence: One sentence.
        event: The event to record; None for a normal state.
    """

    word: str = ""
    sentence: str = ""
    event: RecordEvent | None = None


def why(situation: Situation, phase: str, waiting: Waiting) -> WaitReason:
    """The reason why a Job that is or becomes `Pending` or `Running` does not proceed."""
    trouble = situation.observed.trouble
    if waiting.conflicts:
        told = listed([each.message for each in waiting.conflicts], "; ")
        return _warned("NameConflict", told)
    if trouble is not None:
        return _warned(trouble.reason, trouble.message)
    if waiting.problem:
        return _warned("PluginError", waiting.problem)
    if waiting.backoff:
        return WaitReason("RestartBackOff", waiting.backoff)
    if not (situation.facts.pending or waiting.missing):
        return WaitReason()
    if waiting.held and waiting.admitted:
        told = listed([each.message for each in waiting.held], "; ", LONGEST)
        return WaitReason("DependsOn", told)
    group = situation.observed.group
    if group is not None and (condition := podgroups.condition_of(group)):
        return _of_group(situation, *condition)
    if not waiting.admitted:
        queue = podgroups.queue_of(situation.job.spec.queue, group)
        sentence = f"waiting for the scheduler to let the Job into queue {queue}"
        return WaitReason("PodGroupPending", sentence)
    return _of_pods(situation, waiting) if phase == PENDING else _of_surplus(situation)


def arrival(situation: Situation, verdict: PhaseResult) -> list[RecordEvent]:
    """The event for a phase in which the Job will stay for some time."""
    if verdict.phase == situation.job.status.state.phase or verdict.phase == PENDING:
        return []
    message = verdict.message
    if verdict.phase == RUNNING:
        running, total = situation.facts.running, situation.facts.total
        message = f"{running} of {total} pods run" if total > 1 else "its only pod runs"
    return [
        RecordEvent(
            "Warning" if verdict.phase == FAILED else "Normal",
            verdict.phase,
            message or f"the Job is {verdict.phase}",
        )
    ]


def _of_group(situation: Situation, word: str, sentence: str) -> WaitReason:
    told = f"PodGroup {situation.namespace}:{situation.job.metadata.name} unschedulable: {sentence}"
    return WaitReason(word, sentence, RecordEvent("Warning", "PodGroupPending", told))


def _of_pods(situation: Situation, waiting: Waiting) -> WaitReason:
    if waiting.missing and situation.counts.terminating:
        return WaitReason(
            "PodsTerminating",
            "1 earlier pod is still being removed"
            if situation.counts.terminating == 1
            else f"{situation.counts.terminating} earlier pods are still being removed",
        )
    waits = situation.facts.pending + waiting.missing
    return WaitReason("PodsPending", _do_not_run(waits, situation.facts.total))


def _of_surplus(situation: Situation) -> WaitReason:
    """Pods beyond the minimum that do not run. Missing ones are left out: they are not counted in the status either."""
    facts = situation.facts
    if not facts.pending:
        return WaitReason()
    sentence = _do_not_run(facts.pending, facts.total)
    return WaitReason("PodsPending", f"{sentence}; minAvailable {facts.min_available} is reached")


def _do_not_run(number: int, total: int) -> str:
    return (
        f"{number} of {total} pods do not run yet" if total > 1 else "its only pod does not run yet"
    )


def _warned(word: str, sentence: str) -> WaitReason:
    return WaitReason(word, sentence, RecordEvent("Warning", word, sentence))
