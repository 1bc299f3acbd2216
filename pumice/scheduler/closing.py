"""The end of a session: what became of each gang, and why the rest waits.

Only gangs that changed or wait are looked at; the others are as they were.
"""

from dataclasses import dataclass

from pumice.api.podgroups import PodGroupStatus
from pumice.scheduler.explain import gang_message, group_message, possible_message
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.tasks import Status, Task
from pumice.scheduler.phases import is_releasing, next_conditions, next_phase, with_counters
from pumice.scheduler.results import Event, PodVerdict, Reason
from pumice.scheduler.session import Outcome, Session

__all__ = ["Closing"]

_GATED = PodVerdict("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")


@dataclass(frozen=True, slots=True)
class _Finding:
    """What a session found out about a gang that is not all placed."""

    reason: Reason
    is_unschedulable: bool


class Closing:
    """Collects what a session has to say.

    Attributes:
        statuses: PodGroup statuses that changed.
        pods: Verdicts on pods that changed.
        events: What to tell the owners.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._state = session.state
        self._cycle = f"cycle-{session.state.cycles}"
        self._judges = bool(session.extensions.job_ready)
        self.statuses: dict[str, PodGroupStatus] = {}
        self.pods: dict[str, PodVerdict] = {}
        self.events: list[Event] = session.events

    def run(self) -> None:
        """Look at every gang that changed or waits, in the order of their keys."""
        state = self._state
        for key in sorted(
            state.dirty.keys() | state.waiting.keys() | self._session.outcomes.keys()
        ):
            job = state.jobs.get(key)
            if job is None:
                state.pending.pop(key, None)
                continue
            self._close(job)
        state.dirty.clear()

    def _close(self, job: Job) -> None:
        try:
            self._conclude(job)
        except Exception as error:
            self._session.fail(job.key, error)
            self._conclude(job)  # of a job in quarantine no plugin is asked

    def _conclude(self, job: Job) -> None:
        pending = self._state.pending
        finding = self._find(job)
        if finding is None:
            pending.pop(job.key, None)
        else:
            pending[job.key] = finding.reason
            self._judge_pods(job, finding.reason)
        if job.group is not None:
            self._write(job, finding)

    # -- the gang ----------------------------------------------------------------------------

    def _write(self, job: Job, finding: _Finding | None) -> None:
        session, before = self._session, job.status
        entered = job.key in session.entered
        unschedulable = finding is not None and finding.is_unschedulable
        phase = next_phase(job, "Inqueue" if entered else before.phase, unschedulable=unschedulable)
        conditions = before.conditions or []
        if phase != "Completed" and not is_releasing(job):
            if finding is not None and unschedulable:
                conditions = next_conditions(
                    conditions, finding.reason, cycle=self._cycle, now=session.now
                )
            elif job.tasks and self._judges and session.is_ready(job):
                conditions = next_conditions(conditions, None, cycle=self._cycle, now=session.now)
        after = with_counters(job, phase, conditions)
        if after == before:
            return
        if after.conditions != before.conditions:
            self._tell(job, finding)
        self.statuses[job.key] = after
        self._state.assume_status(job, after)

    def _tell(self, job: Job, finding: _Finding | None) -> None:
        if finding is not None and finding.is_unschedulable:
            message = finding.reason.message
            event = Event("PodGroup", job.namespace, job.name, "Warning", "Unschedulable", message)
        else:
            event = Event(
                "PodGroup", job.namespace, job.name, "Normal", "Scheduled", "pod group is ready"
            )
        self.events.append(event)

    # -- the reason --------------------------------------------------------------------------

    def _find(self, job: Job) -> _Finding | None:
        session = self._session
        held = self._state.quarantined.get(job.key)
        if held is not None:
            return _Finding(held, True)
        waiting = job.counts[Status.PENDING]
        if job.group is None:
            message = f"PodGroup {job.key} does not exist; {waiting} pods name it"
            details = {"podGroup": job.key, "pods": waiting}
            return (
                _Finding(Reason("PodGroupNotFound", message, details), False) if waiting else None
            )
        outcome = session.outcomes.get(job.key) or Outcome()
        if outcome.refusal is not None:
            is_short = self._judges and not session.is_ready(job)
            return _Finding(outcome.refusal, is_short or session.is_pending(job))
        if self._judges and not session.is_ready(job):
            return self._find_unready(job, outcome)
        if not waiting:
            return None
        return _Finding(self._remainder(job, outcome), False)

    def _find_unready(self, job: Job, outcome: Outcome) -> _Finding | None:
        session = self._session
        if (
            is_releasing(job)
            or next_phase(job, job.status.phase, unschedulable=False) == "Completed"
        ):
            return None
        promised = self._promised(job)
        if promised is not None:
            return _Finding(promised, True)
        invalid = session.why_invalid(job)
        if invalid is not None:
            return _Finding(invalid, bool(job.tasks))
        return _Finding(self._gang(job, outcome), True)

    def _promised(self, job: Job) -> Reason | None:
        places = {
            task.key: self._session.pipelined[task.key]
            for task in job.tasks.values()
            if task.key in self._session.pipelined
        }
        if not places:
            return None
        nodes = ", ".join(sorted(set(places.values())))
        message = f"{len(places)} pods wait for terminating pods to leave {nodes}"
        return Reason("Pipelined", message, {"places": dict(sorted(places.items()))})

    def _gang(self, job: Job, outcome: Outcome) -> Reason:
        gated = [task for task in _in_order(job) if task.gates]
        schedulable = job.ready + len(outcome.tentative)
        total = len(job.tasks)
        pending = _verdict_counts(job, outcome)
        origin: tuple[str, str] | None = None
        if outcome.failed is not None:
            origin = (outcome.failed[0].name, outcome.failed[1].message)
        elif outcome.refused is not None:
            origin = ("", outcome.refused.message)
        elif gated:
            origin = (gated[0].name, f"scheduling gates {gated[0].gates}")
        why = group_message(job, ready=False, pending=pending, origin=origin)
        details: dict[str, object] = {
            "minMember": job.min_member,
            "tasks": total,
            "schedulable": schedulable,
            "pending": dict(sorted(pending.items())),
        }
        reason = "NotEnoughResources"
        if outcome.failed is not None:
            details["pod"] = outcome.failed[0].key
            details |= outcome.failed[1].details
        elif outcome.refused is not None:
            reason = outcome.refused.reason
            details |= outcome.refused.details
        elif gated:
            reason = "SchedulingGated"
            details["gates"] = {task.key: task.gates for task in gated}
        short = max(job.min_member - schedulable, 0)
        return Reason(reason, gang_message(short, total, why), details)

    def _remainder(self, job: Job, outcome: Outcome) -> Reason:
        """Why pods beyond the minimum wait."""
        waiting = job.counts[Status.PENDING]
        start = f"{waiting} of {len(job.tasks)} pods wait beyond the minimum of {job.min_member}"
        details: dict[str, object] = {"tasks": len(job.tasks), "waiting": waiting}
        promised = self._promised(job)
        if promised is not None:
            return Reason("Pipelined", promised.message, details | promised.details)
        if outcome.failed is not None:
            task, failure = outcome.failed
            details |= {"pod": task.key} | failure.details
            return Reason("NotEnoughResources", f"{start}: {task.name}: {failure.message}", details)
        if outcome.refused is not None:
            why = outcome.refused
            return Reason(why.reason, f"{start}: {why.message}", details | why.details)
        gated = {task.key: task.gates for task in _in_order(job) if task.gates}
        if gated:
            listed = ", ".join(sorted(set(gated.values())))
            return Reason(
                "SchedulingGated", f"{start}: scheduling gates {listed}", details | {"gates": gated}
            )
        return Reason("NotTried", f"{start}: no action has tried to place them", details)

    # -- its pods ----------------------------------------------------------------------------

    def _judge_pods(self, job: Job, reason: Reason) -> None:
        outcome = self._session.outcomes.get(job.key) or Outcome()
        shared = PodVerdict("Unschedulable", reason.message)
        for task in _in_order(job):
            if task.status is not Status.PENDING:
                continue
            verdict = shared
            if task.gates:
                verdict = _GATED
            elif task.key in outcome.tentative:
                node = outcome.tentative[task.key]
                verdict = PodVerdict("Schedulable", possible_message(task, node))
            elif outcome.failed is not None and outcome.failed[0] is task:
                verdict = PodVerdict("Unschedulable", outcome.failed[1].message)
            if task.verdict != verdict:
                task.verdict = verdict
                self.pods[task.key] = verdict


def _in_order(job: Job) -> list[Task]:
    return sorted(job.tasks.values(), key=lambda task: task.order)


def _verdict_counts(job: Job, outcome: Outcome) -> dict[str, int]:
    gated = sum(1 for task in job.tasks.values() if _is_gated(task))
    schedulable = len(outcome.tentative)
    rest = job.counts[Status.PENDING] - gated - schedulable
    return {"Schedulable": schedulable, "SchedulingGated": gated, "Unschedulable": rest}


def _is_gated(task: Task) -> bool:
    return bool(task.gates) and task.status is Status.PENDING
