"""One turn of a gang that is to be near to each other: domains are tried until it is ready, or one more of its pods or sub-groups has a place.

A gang with sub-groups is served unit by unit in a domain of its own, each of them one level down.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.scheduler.explain.sentences import FitFailure, Refusals
from pumice.scheduler.model.sub_groups import SubGroup
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, SchedulingStatus, TaskInfo
from pumice.scheduler.placing.domain_search import Around, DomainSearch, Trial
from pumice.scheduler.placing.filling import GangTurn
from pumice.scheduler.placing.nowhere import why_nowhere
from pumice.scheduler.placing.pod_queue import PodQueue
from pumice.scheduler.placing.requests import DomainRequest, Members, MembersOf, Placed, scores
from pumice.scheduler.placing.units import Unit, Units
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.statement import Steps
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.limits import NO_LIMIT, Limit, limit_of_part
from pumice.scheduler.topology.tree import Domain
from pumice.scheduler.waiting.parked import Cause

_TRIALS = 8
"""Domains of a tier in which a gang with sub-groups is placed for trial at most. Each trial costs as much as placing the gang."""

_NOT_ASKED = FitFailure(Refusals(0, {}, {}))
"""Of a pod that was tried on no node, because no domain has room enough by arithmetic."""


class _Lost(NamedTuple):
    """The request without which a gang waits.

    Attributes:
        placed: Pods of the gang that had places before.
        around: In which domains one was sought.
        group: The sub-group that asked.
        fit: How many sub-groups of its policy had places.
    """

    placed: int
    request: DomainRequest
    around: Around
    group: SubGroup | None
    fit: int
    trials: Sequence[Trial]

    @property
    def prefix(self) -> str:
        """What is said first of a sub-group."""
        return "" if self.group is None else f"{self.group.of.fitting(self.fit)}; the next one "


class _Serving(NamedTuple):
    """What came of serving the units of a gang in one domain."""

    placed: Placed
    score: float
    steps: Steps


class DomainTurn:
    """A turn of a gang."""

    def __init__(
        self, turn: GangTurn, limit: Limit, members: MembersOf, around: Domain | None = None
    ) -> None:
        """Begin with nothing placed; pods go into domains inside `around`."""
        self._turn = turn
        self._session, self._queue, self._job, self._statement, self._promises, _ = turn
        self._limit = limit
        self._members = members
        self._limit_of_rest = NO_LIMIT
        self._search = DomainSearch(turn)
        self._around = self._search.inside(around or self._session.levels.tree.root)
        self._failed: set[Hashable] = set()
        self._lost: _Lost | None = None

    def _placed(self) -> Placed:
        """What the gang has got."""
        if not self._promises and self._turn.has_enough:
            return Placed.PLACES
        return Placed(self._session.answers.is_pipelined(self._job))

    def _request(
        self,
        pods: Sequence[TaskInfo],
        required: int,
        members: Members,
        limit: Limit,
        placed: Callable[[], Placed],
    ) -> DomainRequest:
        queue = self._queue.metadata.name
        return DomainRequest(self._session, queue, pods, members, required, limit, placed)

    # -- until it is ready -------------------------------------------------------------------

    def whole(self, pods: Sequence[TaskInfo]) -> None:
        """Place what makes the gang ready."""
        lacking = self._session.answers.lacking(self._job)
        request = self._request(pods, lacking, self._members[None], self._limit, self._placed)
        if self._job.sub_groups is None:
            self._find(request, self._around)
            return
        for domains in self._search.domains(request, self._around):
            if self._serve_best(request, domains, pods):
                return
        if self._lost is None:  # by arithmetic no domain has room
            self._lost = _Lost(0, request, self._around, None, 0, ())

    def _serve_best(
        self, request: DomainRequest, domains: SideBySide, pods: Sequence[TaskInfo]
    ) -> bool:
        """Serve the units in the best of some domains of a tier: the sum of their scores decides, which a trial in each of them tells.

        Of domains that are alike, the first is tried; and no more than a few in which the gang would be placed, the fullest first.
        """
        _, may = self._search.rooms(request, domains)
        worth = scores(self._session, request, domains)
        places = [place for place in np.argsort(-worth, kind="stable").tolist() if may[place]]
        found: list[tuple[int, _Serving]] = []
        seen: set[Hashable] = set()
        for place in places:
            self._session.time.check()
            domain = domains.domains[place]
            likeness = self._search.likeness(request, domain) if len(places) > 1 else None
            if likeness is not None and likeness in seen:
                continue
            seen.add(likeness)
            tried = self._serve(pods, domain, keep=len(places) == 1)
            if tried.placed:
                found.append((place, tried))
            if len(found) == _TRIALS:
                break
        if found:
            _, best = max(found, key=lambda each: (each[1][:2], -each[0]))
            self._statement.repeat(best.steps)
        return bool(found)

    def _serve(self, pods: Sequence[TaskInfo], domain: Domain, *, keep: bool) -> _Serving:
        """Serve the units in a domain; what was placed is undone, unless it serves and is to be kept."""
        before = self._statement.savepoint()
        units = Units(self._session, self._job, pods)
        score, around = 0.0, self._search.inside(domain)
        self._failed.clear()
        while units:
            self._session.time.check()
            unit = units.pop()
            found = self._unit(units, unit, around)
            if found is not None:
                score += found
                if self._turn.has_enough:
                    break
            elif not units.may_be_ready():
                break
        placed = self._placed() if self._statement.savepoint() > before else Placed.NOTHING
        steps: Steps = ()
        if not (keep and placed):
            steps = self._statement.cut(before)
            self._members.clear()
        return _Serving(placed, score, steps)

    def _unit(self, units: Units, unit: Unit, around: Around) -> float | None:
        """Place what a unit needs, or nothing; how good its domain is, None if there is none."""
        if units.passes_over(unit):
            return None
        group = unit.sub_group
        if group is None or not unit.is_whole:
            return self._one_of(units, unit, around)
        pods = sorted(unit.tasks.left(), key=self._session.answers.task_key)

        def placed() -> Placed:
            return Placed.PLACES if group.is_ready else Placed(group.is_pipelined)

        lacking = group.size - group.ready - group.pipelined
        members = self._members[group]
        request = self._request(pods, lacking, members, self._limit_of(group), placed)
        score = self._find(request, around, group)
        if score is None:
            units.pass_over(unit, pods)
            return None
        left = [task for task in pods if task.status is SchedulingStatus.PENDING]
        unit.tasks = PodQueue(self._session, self._job, left, among=units.waiting)
        units.tried(unit)
        return score

    def _one_of(self, units: Units, unit: Unit, around: Around) -> float | None:
        """Place the first pod of a unit for which there is a place."""
        group = unit.sub_group
        limit = self._limit if group is None else self._limit_of(group)
        while unit.tasks:
            task = unit.tasks.pop()
            members = Members(self._session, [task]) if group is None else self._members[group]
            score = self._one(task, members, limit, around, group)
            if score is not None:
                unit.tasks.placed()
                units.tried(unit)
                return score
            units.pass_over(unit, [task])
        units.tried(unit)
        return None

    def _one(
        self,
        task: TaskInfo,
        members: Members,
        limit: Limit,
        around: Around,
        group: SubGroup | None = None,
    ) -> float | None:
        """Place one pod, unless one like it has just found no place."""
        kind = (self._session.alike(task), group and group.order)
        if kind in self._failed:
            return None

        def placed() -> Placed:
            if task.status in ALLOCATED_LIKE:
                return Placed.PLACES
            return Placed(task.status is SchedulingStatus.PIPELINED)

        found = self._find(self._request([task], 1, members, limit, placed), around)
        if found is None:
            self._failed.add(kind)
        return found

    def _find(
        self, request: DomainRequest, around: Around, group: SubGroup | None = None
    ) -> float | None:
        """Place pods in one of these domains; how good it is, None if there is none."""
        placed, trials = self._statement.savepoint(), len(self._search.trials)
        score = self._search.find(request, around)
        if score is not None:
            if group is not None:
                self._members[group].note(request.pods)
            return score
        if self._lost is None or placed > self._lost.placed:
            fit = group.of.promised if group is not None else 0
            self._lost = _Lost(placed, request, around, group, fit, self._search.trials[trials:])
        return None

    # -- why it waits ------------------------------------------------------------------------

    def explain(self, outcome: JobOutcome) -> None:
        """Note why nothing was placed."""
        lost = self._lost
        if self._statement.savepoint() or lost is None:
            return
        best = max(lost.trials, key=lambda trial: trial.fitting, default=None)
        outcome.schedulable = lost.placed + (best.fitting if best is not None else 0)
        outcome.causes |= int(Cause.DOMAIN)
        if best is not None:
            outcome.causes |= best.outcome.causes
            outcome.refused = best.outcome.refused
            outcome.is_over_share = best.outcome.is_over_share
            if best.outcome.refused is not None and best.outcome.failed is None:
                return
        request = lost.request
        failed = [trial.outcome.failed for trial in lost.trials if trial.outcome.failed]
        task = failed[0][0] if failed else request.pods[0]
        if best is not None and best.domain.parent is None and best.outcome.failed is not None:
            outcome.failed = best.outcome.failed  # nodes of the whole cluster
            outcome.fit, outcome.beside = lost.fit, best.fitting
            return
        outcome.failed = failed[0] if failed else (task, _NOT_ASKED)
        outcome.nowhere = why_nowhere(
            self._session,
            request,
            list(self._search.domains(request, lost.around)),
            {trial.domain.name: trial.fitting for trial in lost.trials},
            lost.prefix,
        )

    def _limit_of(self, group: SubGroup) -> Limit:
        if group.topology is None:
            return self._limit_of_rest
        return limit_of_part(group.topology, self._limit, self._session.levels)

    # -- once it is ready --------------------------------------------------------------------

    def further(self, left: PodQueue | Units) -> None:
        """Place one more pod, or sub-group, for which there is a place."""
        members = self._members[None]
        if isinstance(left, PodQueue):
            while left:
                self._session.time.check()
                if self._one(left.pop(), members, self._limit, self._around) is not None:
                    left.placed()
                    return
            return
        if self._limit.tier is not None:
            request = self._request((), 0, members, self._limit, self._placed)
            self._around = list(self._search.domains(request, self._around))
            self._limit_of_rest = self._limit
        while left:
            self._session.time.check()
            if self._unit(left, left.pop(), self._around) is not None:
                return
