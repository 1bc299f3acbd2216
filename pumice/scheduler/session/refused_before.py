"""Gangs that were woken and need not be tried, because they would be refused as before.

One of these is known of such a gang:

* There is room for fewer pods in all than the gang lacks: by arithmetic on what nodes have free once terminating pods are gone,
  and on what a plugin says that its queue may still take (`room`). Pods of one shape are counted exactly, pods of several by the
  least that any of them asks for.
* It must be in one domain of the network, and none has as much free.
* A gang of the same queue, with as many pods of the same shapes, was refused by nodes, and nothing was decided since.

Most are told `at_a_glance`, many by one comparison. Action `enqueue` knows two more: a gang needs more than any of its queue and priority that
plugins let in (`room`), and plugins keep out another one that is like it.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence, Sized
from contextlib import suppress

import numpy as np

from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.session.answers import PluginAnswers
from pumice.scheduler.session.node_rankings import NodeRankings
from pumice.scheduler.state.watched_cluster import ClusterState
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Bound, Cause, Parked, likeness
from pumice.scheduler.waiting.wanted import Places, WantedKinds

_ANY, _DOMAIN = int(Cause.ANY), int(Cause.DOMAIN)

_FEW = 8
"""Shapes up to which filters are asked when their pods are counted together, and sets of nodes that are counted apart."""


class RefusedBefore:
    """What one session knows of gangs that were refused before, in earlier cycles and in this one."""

    def __init__(
        self,
        state: ClusterState,
        view: SessionView,
        answers: PluginAnswers,
        renewed: Collection[str],
        decided: Sequence[Sized],
        rankings: NodeRankings,
    ) -> None:
        """Begin a session.

        Args:
            state: The cluster, settled.
            view: What gangs the session tries, and the rows that it changes.
            answers: What plugins answer.
            renewed: Keys of gangs that are tried in any case.
            decided: What stays decided at least until the end of the session; it grows.
            rankings: Tell which nodes the fixed filters allow.
        """
        self._state = state
        self._gangs = state.parked.gangs
        self._view = view
        self._answers = answers
        self._renewed = renewed
        self._decided = decided
        self._rankings = rankings
        self._room: _RoomBounds | None = None
        self._most: dict[tuple[int, int], tuple[int, int]] = {}
        self._refused: dict[Hashable, int] = {}

    def parked(self, job: JobInfo) -> Parked | None:
        """Why a gang waits that was refused before; None if it is tried in any case."""
        return None if job.key in self._renewed else self._gangs.get(job.key)

    def before(self, jobs: Iterable[JobInfo]) -> list[tuple[JobInfo, Parked]]:
        """Those of some gangs that were refused before and are not tried in any case, and why they wait."""
        gangs, renewed = self._gangs, self._renewed
        return [
            (job, gangs[job.key]) for job in jobs if job.key in gangs and job.key not in renewed
        ]

    def at_a_glance(self, jobs: Iterable[JobInfo]) -> set[str]:
        """Keys of those of some gangs for which all nodes together, or their queues, have too little room."""
        return self._at_a_glance(self.before(jobs))

    def _at_a_glance(self, before: Sequence[tuple[JobInfo, Parked]]) -> set[str]:
        found: set[str] = set()
        by_queue: dict[str, list[tuple[str, Ints]]] = {}
        for job, parked in before:
            if parked.from_queue is not None and job.queue in self._state.queues:
                by_queue.setdefault(job.queue, []).append((job.key, parked.from_queue))
        with suppress(
            Exception
        ):  # a plugin that fails does so again when it is asked about one gang
            for name, asking in by_queue.items():
                needs = np.array([each for _, each in asking])
                lack = self._answers.lack_room(self._state.queues[name], needs)
                found.update([asking[place][0] for place in lack.nonzero()[0].tolist()])
        some = [(job.key, glance) for job, parked in before if (glance := parked.glance)]
        if some:
            has = (self._room or self._begin_room()).totals()
            found.update([key for key, (kind, count) in some if has.get(kind, count) < count])
        return found

    def again(self, jobs: Collection[JobInfo]) -> set[str]:
        """Keys of those of some gangs that would be refused again; not of those about which a plugin raises, as it does when they have their turn."""
        before = self.before(jobs)
        found = self._at_a_glance(before)
        alike: dict[Hashable, list[tuple[JobInfo, Parked]]] = {}
        for job, parked in before:
            if job.key in found:
                continue
            bounds = parked.bounds
            is_told = len(bounds) == 1 and len(bounds[0].shapes) == 1 and parked.from_queue is None
            if is_told and self._room and not (self._refused or parked.causes & _DOMAIN):
                kind = self._rankings.rules_of(bounds[0].shapes[0]), job.queue
                alike.setdefault(kind, []).append((job, parked))
                continue
            with suppress(Exception):
                if self.is_refused_again(job):
                    found.add(job.key)
        for each in alike.values():
            found.update(self._lack_suiting(each))
        return found

    def _lack_suiting(self, some: Sequence[tuple[JobInfo, Parked]]) -> list[str]:
        """Keys of those of some gangs with pods of one shape, for which the same nodes suit and have too little room."""
        job, parked = some[0]
        try:
            suiting = (self._room or self._begin_room()).suiting(parked.bounds[0].shapes, job.queue)
        except Exception:
            return []
        if suiting is None:
            return []
        has = suiting.totals
        return [
            job.key
            for job, parked in some
            if (glance := parked.glance) and has.get(glance[0], glance[1]) < glance[1]
        ]

    def refuse(self, job: JobInfo) -> Hashable:
        """Note that no nodes were found for a gang, nothing of which is placed tentatively; its likeness."""
        alike = likeness(job)
        if alike is not None:
            self._refused[alike] = self._decisions
        return alike

    def is_refused_again(self, job: JobInfo) -> bool:
        """Whether a gang was refused before, and there still is too little room for it, or one like it was refused.

        Raises:
            Exception: Whatever a plugin raised.
        """
        parked = self._gangs.get(job.key)
        if parked is None or job.key in self._renewed:
            return False
        if parked.from_queue is not None:
            queue = self._state.queues.get(job.queue)
            if queue is not None and not self._answers.has_room(queue, parked.from_queue):
                return True
        if self._refused and parked.causes != _ANY:
            moment = self._refused.get(parked.likeness)
            if moment is not None and moment == self._decisions:
                return True
        if not parked.bounds:
            return False
        room = self._room or self._begin_room()
        return room.lack(parked.bounds, job.queue) or self._domains_lack(job, parked)

    def _domains_lack(self, job: JobInfo, parked: Parked) -> bool:
        """True if no domain has as much free as a gang requires that must be in one; added up over its nodes."""
        limit = self._view.network_limit(job)
        if not parked.causes & _DOMAIN or not limit.is_hard or limit.tier is None:
            return False
        return any(
            amount * each.required > self._most_free(limit.tier, column)
            for each in parked.bounds
            for column, amount in each.needs
        )

    def _most_free(self, tier: int, column: int) -> int:
        """The most that a domain, of a tier up to a highest one, has free of a resource once terminating pods are gone."""
        levels, rows = self._view.levels, self._view.rows
        key, moment = (tier, column), len(self._view.touched)
        known = self._most.get(key)
        if known is None or known[0] != moment:
            free = np.maximum(rows.future_idle(column), 0)
            sums = [some.sums(free) for some in levels.below(levels.tree.root, tier)]
            known = moment, max([int(each.max(initial=0)) for each in sums], default=0)
            self._most[key] = known
        return known[1]

    def has_too_few_places(self, job: JobInfo, bounds: Iterable[Bound]) -> bool:
        """True if the nodes have room for fewer pods of a gang than it requires."""
        room = self._room or self._begin_room()
        return room.lack(bounds, job.queue)

    def _begin_room(self) -> "_RoomBounds":
        known = self._gangs
        woken = [known[each.key] for each in self._view.waiting if each.key in known]
        wanted = self._state.parked.wanted
        self._room = _RoomBounds(
            woken, wanted, self._state.nodes, self._view.touched, self._rankings
        )
        return self._room

    @property
    def _decisions(self) -> int:
        return sum(map(len, self._decided))


class _RoomBounds:
    """Room on nodes during one session, for the gangs that were woken."""

    def __init__(
        self,
        woken: Iterable[Parked],
        wanted: WantedKinds,
        table: NodeTable,
        touched: Sequence[int],
        rankings: NodeRankings,
    ) -> None:
        """Begin a session.

        Args:
            woken: Why the gangs waited that were woken.
            wanted: What their pods take.
            table: The nodes, settled.
            touched: Rows that the session changes; it grows.
            rankings: Tell which nodes the fixed filters allow.
        """
        self._touched = touched
        self._rankings = rankings
        self._everywhere = wanted.places(
            table, {each.glance[0] for each in woken if each.glance is not None}
        )
        self._seen = len(touched)
        self._counts: dict[
            int, tuple[Bools, Places]
        ] = {}  # with the mask, so that its id stays its own

    def lack(self, bounds: Iterable[Bound], queue: str) -> bool:
        """Whether there is room for fewer pods of a gang in a queue than it requires.

        Raises:
            Exception: Whatever a filter raised.
        """
        self.totals()  # as they are now
        for each in bounds:
            if self._everywhere.count(each.needs) < each.required:
                return True
        for each in bounds:
            suiting = self.suiting(each.shapes, queue)
            if suiting is not None and suiting.count(each.needs) < each.required:
                return True
        return False

    def totals(self) -> dict[int, int]:
        """Places on all nodes, now, by the number of the kind."""
        if self._seen != len(self._touched):
            self._seen = len(self._touched)
            for some in dict.fromkeys(
                (self._everywhere, *[each for _, each in self._counts.values()])
            ):
                some.follow()
        return self._everywhere.totals

    def suiting(self, shapes: tuple[PodShape, ...], queue: str) -> Places | None:
        """Places on the nodes that suit each of a few shapes; None if these are all nodes, or it is not known."""
        if len(shapes) > _FEW:
            return None
        masks = [self._rankings.fixed(shape, queue, "").allowed for shape in shapes]
        mask = masks[0]
        if any(each is not mask for each in masks):
            return None
        known = self._counts.get(id(mask))
        if known is None:
            if len(self._counts) == _FEW:
                return None
            known = mask, self._everywhere if mask.all() else self._everywhere.among(mask)
            self._counts[id(mask)] = known
        found = known[1]
        return None if found is self._everywhere else found
