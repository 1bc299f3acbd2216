"""The end of a session: the outcome of each gang is recorded, and reports that are due are emitted.

Only gangs that changed, were tried, or have a report that is due are processed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pumice.api.messages import listed
from pumice.api.podgroups import PodGroupCondition, PodGroupStatus
from pumice.scheduler.cycle.phases import (
    is_releasing,
    next_conditions,
    next_phase,
    standing_message,
    with_counters,
)
from pumice.scheduler.cycle.waiting_reasons import find
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.report_times import NEVER, Report
from pumice.scheduler.model.tasks import PENDING
from pumice.scheduler.results import Event, Finding, PodVerdict
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.state.reserved_nodes import reserved_condition
from pumice.scheduler.state.watched_cluster import ClusterState
from pumice.scheduler.topology.whereabouts import whereabouts
from pumice.scheduler.waiting.parked import RENEWALS_PER_CYCLE, Bound, Cause, Parked, bounds

_LEFT = 300.0
"""Seconds after which no room is kept for a gang that has entered its queue and has no pods."""


class Closing:
    """Collects the results of a session.

    Attributes:
        session: The session.
        statuses: PodGroup statuses that changed.
        urgent: Keys of the statuses to write immediately.
        pods: Changed conditions of pods.
        events: Events for the owners.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._state = session.state
        self._cycle = f"cycle-{session.state.cycles}"
        self._judges = bool(session.extensions.job_ready)
        self.statuses: dict[str, PodGroupStatus] = {}
        self.started: list[str] = []
        self.urgent: set[str] = set()
        self.pods: dict[str, PodVerdict] = {}
        self.events: list[Event] = session.events
        self._renewals: list[tuple[float, str]] = []

    def run(self) -> None:
        """Look at every gang that changed, was tried, or has something due, in the order of their keys."""
        state, now = self._state, self.session.now
        tried = self.session.tried
        # What is known of a gang that was not tried holds until it is, also where a decision about another one has changed it.
        untried = self.session.untried | (self.session.skipped - self.session.outcomes.keys())
        fresh = state.gangs.dirty.keys() | tried | self.session.outcomes.keys()
        due = {key for key, moment in state.gangs.dues.items() if moment <= now}
        for key in sorted(fresh | due):
            state.gangs.dues.pop(key, None)
            job = state.jobs[key]
            is_fresh = key in fresh or job.finding is None
            if key in untried and key not in self.session.entered:
                is_fresh = False
            try:
                self._conclude(job, is_fresh=is_fresh)
            except Exception as error:
                self.session.fail(job.key, error)
                self._conclude(job, is_fresh=True)  # plugins are not called for a job in quarantine
        self._renew()
        state.gangs.dirty = {key: None for key in state.gangs.dirty if key in untried}

    def _renew(self) -> None:
        """Write changed reasons of a few gangs, the longest unchanged first; the others follow in later cycles."""
        for place, (_, key) in enumerate(sorted(self._renewals)):
            job = self._state.jobs[key]
            if place < RENEWALS_PER_CYCLE:
                self._write(job, job.finding, renews=True)
            else:
                self._wake(job, self.session.now)

    def _conclude(self, job: JobInfo, *, is_fresh: bool) -> None:
        is_fresh |= self._look_for_pods(job)
        if is_fresh:
            self._look(job)
        self._close(job)
        if is_fresh:
            self._state.parked.park(job.key, self._parked(job))

    def _look_for_pods(self, job: JobInfo) -> bool:
        """Note since when a gang is in its queue without pods; True if the room that is kept for it has changed."""
        if job.tasks and job.empty_since is None and not job.is_left:
            return False
        now = self.session.now
        has_entered = job.status.phase == "Inqueue" or job.key in self.session.entered
        is_empty = has_entered and not job.tasks and job.group is not None and job.min_resources
        job.empty_since = (
            (now if job.empty_since is None else job.empty_since) if is_empty else None
        )
        is_left = job.empty_since is not None and now >= job.empty_since + _LEFT
        if job.empty_since is not None and not is_left:
            self._wake(job, job.empty_since + _LEFT)
        if is_left == job.is_left:
            return False
        job.is_left = is_left
        self._state.shares.outdate(job)
        self._state.parked.happened(Cause.SHARES)  # for gangs that wait for this room
        self.session.view.wake_at(now)
        return True

    def _look(self, job: JobInfo) -> None:
        """Find the reason why a gang waits."""
        now, (moment, count) = self.session.now, job.arrived
        if len(job.tasks) != count:
            moment = now if len(job.tasks) > count else moment
            job.arrived = (moment, len(job.tasks))
        job.finding = find(self.session, job)
        if job.is_too_large:
            self.session.why_too_large(job)  # it may be no more
        if job.finding is not None:
            return
        said = moment + self._state.delays.arrival
        if job.valid < job.min_member and now < said:
            self._wake(job, said)

    def _close(self, job: JobInfo) -> None:
        finding = job.finding
        if finding is None:
            self._state.gangs.pending.pop(job.key, None)
            job.pod_report = None
        else:
            self._state.gangs.pending[job.key] = finding.reason
            self._judge_pods(job, finding)
        if job.group is not None:
            self._write(job, finding)

    def _parked(self, job: JobInfo) -> Parked | None:
        """Why a gang waits; None if it is to be tried in every cycle, or does not wait."""
        if not job.is_waiting:
            return None
        session = self.session
        outcome = session.outcomes.get(job.key) or JobOutcome()
        queue = self._state.queues.get(job.queue)
        waiting = [task for task in job.tasks.values() if task.status is PENDING]
        is_refused = outcome.refusal is not None or outcome.refused is not None
        is_blocked = job.group is None or any(task.gates for task in waiting)
        if (
            (queue is not None and queue.is_fifo)
            or session.may_use_reserved(job.key)
            or any(task.is_held or task.key in session.pipelined for task in waiting)
            or not (outcome.failed or is_refused or is_blocked)
        ):
            return None  # gates of pods that are held go when their queue has room, for any nodes
        causes = outcome.causes | int(Cause.RULES)
        lacking = session.answers.lacking(job)
        if outcome.failed is not None or outcome.refused is not None:
            causes |= session.extensions.causes["ready"]
        places: tuple[Bound, ...] = ()
        exceeds_all = False
        if outcome.failed is not None:
            causes |= int(Cause.NODES) | session.extensions.causes["filter"]
            if job.key in session.spared:
                causes |= int(Cause.VICTIMS | Cause.SHARES)
            if causes != Cause.ANY and not any(task.shape.claims for task in waiting):
                causes &= ~int(Cause.CLAIMS)
            if session.pipelined or session.nominations:
                causes = int(Cause.ANY)  # what is held for others may be free without an event
            free = [task for task in waiting if not task.gates]
            places = bounds(outcome.failed[0].shape, free, lacking)
            exceeds_all = job.is_too_large and session.empty_nodes.exceeds_all(job)
        from_queue = None
        if outcome.is_over_share and not session.is_pending(job):
            from_queue = job.least_asked(lacking)
        if causes == Cause.ANY and from_queue is None and not places:
            return None
        return Parked(
            causes,
            places,
            from_queue,
            outcome.likeness,
            exceeds_all=exceeds_all,
            tried_at=session.now,
        )

    def _wake(self, job: JobInfo, moment: float) -> None:
        """Schedule a check of a job at a time in UNIX seconds."""
        if moment != NEVER:
            self._state.gangs.dues[job.key] = min(
                moment, self._state.gangs.dues.get(job.key, NEVER)
            )

    # -- the gang ----------------------------------------------------------------------------

    def _write(self, job: JobInfo, finding: Finding | None, *, renews: bool = False) -> None:
        session, before = self.session, job.status
        entered = job.key in session.entered
        unschedulable = finding is not None and finding.is_unschedulable
        phase = next_phase(job, "Inqueue" if entered else before.phase, unschedulable=unschedulable)
        conditions = before.conditions or []
        event: Event | None = None
        is_urgent = phase not in (before.phase, "Completed")
        if phase != "Completed" and not is_releasing(job):
            if finding is not None and unschedulable:
                is_due, is_new = self._is_due(job, finding, renews=renews)
                if is_due:
                    reason = finding.reason
                    conditions = next_conditions(
                        conditions, reason, cycle=self._cycle, now=session.now
                    )
                    is_urgent = True
                    if is_new:
                        event = _event(job, "Warning", "Unschedulable", reason.message)
            elif job.tasks and self._judges and session.answers.is_ready(job):
                job.report = None
                if standing_message(conditions)[1] is not None:
                    event = _event(job, "Normal", "Scheduled", "pod group is ready")
                found = whereabouts(job, self._state.network, self._state.nodes.row_of)
                conditions = next_conditions(
                    conditions,
                    None,
                    cycle=self._cycle,
                    now=session.now,
                    where=found.message if found is not None else "",
                )
        reserved = self._reserved(job, conditions)
        is_urgent |= reserved is not conditions
        after = with_counters(job, phase, reserved)
        if after == before:
            return
        if event is not None and after.conditions != before.conditions:
            self.events.append(event)
        self.statuses[job.key] = after
        if after.phase == "Running" and before.phase in ("", "Pending", "Inqueue"):
            self.started.append(job.key)
        if is_urgent:
            self.urgent.add(job.key)
        self._state.gangs.assume_status(job, after)

    def _reserved(
        self, job: JobInfo, conditions: Sequence[PodGroupCondition]
    ) -> Sequence[PodGroupCondition]:
        """Conditions with what is reserved for a gang; the same object if nothing changes."""
        session, reservation = self.session, self._state.reservation
        return reserved_condition(
            conditions,
            reservation if reservation is not None and session.is_target(job.key) else None,
            session.ended.get(job.key, "Released"),
            cycle=self._cycle,
            now=session.now,
        )

    def _is_due(self, job: JobInfo, finding: Finding, *, renews: bool) -> tuple[bool, bool]:
        """Whether the reason of a gang is to be written now, and whether its cause is new.

        One event can change what hundreds of gangs have as reasons: numbers, or the gang ahead of them. Where a reason of the same
        kind stands, it is written if `renews`.
        """
        now, delays = self.session.now, self._state.delays
        reason = finding.reason
        cause = (*reason.cause, *_asked(job))
        kind, standing = standing_message(job.status.conditions or ())
        if job.report is None:
            told = standing is not None and kind == reason.reason
            job.report = Report(cause, now, told=told)
        job.report.stand(cause, now)
        due = job.report.due(reason.message, standing, delays.cause, delays.numbers)
        if due > now:
            self._wake(job, due)
            return False, False
        if delays.numbers and not renews and standing is not None and kind == reason.reason:
            self._renewals.append((job.report.written, job.key))
            return False, False
        return True, job.report.tell(now)

    # -- its pods ----------------------------------------------------------------------------

    def _judge_pods(self, job: JobInfo, finding: Finding) -> None:
        if not finding.pods:
            job.pod_report = None
        tasks = [job.tasks[key] for key in finding.pods if key in job.tasks]
        changed = [task for task in tasks if task.verdict != finding.pods[task.key]]
        if not changed:
            return
        now, delays = self.session.now, self._state.delays
        cause = (*finding.reason.cause, *finding.pods)
        if job.pod_report is None:
            job.pod_report = Report(cause, now)
        job.pod_report.stand(cause, now)
        standing = None if any(task.verdict is None for task in tasks) else ""
        due = job.pod_report.due("changed", standing, delays.pods, delays.numbers)
        if due > now:
            self._wake(job, due)
            return
        is_new = job.pod_report.tell(now)
        for task in changed:
            verdict = finding.pods[task.key]
            task.verdict = verdict
            self.pods[task.key] = verdict if is_new else replace(verdict, is_new=False)


def _asked(job: JobInfo) -> Iterator[str]:
    """What a gang says that it needs: another need is a new cause, for example after it was scaled."""
    yield str(job.min_member)
    for name, milli in sorted(job.min_resources.items()):
        yield f"{name}={milli}"


def _event(job: JobInfo, type_: Literal["Normal", "Warning"], reason: str, message: str) -> Event:
    return Event("PodGroup", job.namespace, job.name, type_, reason, message)


_MOST_BROKEN = 20
"""HyperNodes with events about their faults; others follow when some of these are repaired. One mistake may break hundreds."""


def broken_topology(state: ClusterState) -> Iterator[Event]:
    """Events about what is set aside of HyperNodes that changed."""
    faults = state.network.faults
    told = {name: said for name, said in state.told_faults.items() if faults.get(name) == said}
    new = [name for name in faults if name not in told][: max(0, _MOST_BROKEN - len(told))]
    state.told_faults = told | {name: faults[name] for name in new}
    for name in new:
        yield Event("HyperNode", "", name, "Warning", "InvalidTopology", listed(faults[name], "; "))
