"""Parked gangs: which gangs a cycle tries, and why all others stay as they are.

Trying a gang costs a look at all nodes, and most events help none of the gangs that wait. So a gang that does not fit is *parked*
with the causes of its refusal. An event wakes the gangs that are parked by its cause:

| refused by | cause | woken when |
|---|---|---|
| nodes: too little room, or a filter | `NODES` | a pod comes to a node or leaves it, a node comes, changes or goes |
| its queue, or the gate of queues (shares, overcommit) | `SHARES` | anything changes that queues hold, ask for or reserve |
| a quota | `QUOTAS` | a quota changes |
| claims that its pods mount | `CLAIMS` | a claim, volume or class changes |
| rules about other pods | `PEERS`, `NODES` | also when labels of a namespace change |
| the network: no domain has room for it | `DOMAIN`, `NODES` | also when a HyperNode comes, changes or goes, or a node joins or leaves one |
| nodes, and running pods that may not be evicted for it | `VICTIMS`, `NODES`, `SHARES` | also when a budget for disruptions changes |
| itself: too few pods, gates | `ITSELF` | the gang or one of its pods changes |
| an earlier gang (fifo), places that are promised to it or to others, a plugin that names no cause | `ANY` | it is tried in every cycle |

`RULES` (queues, priorities, the configuration, the reservation, a moment that a plugin has named) wakes every gang, and a
gang that changes itself is not parked any more. Only `preempt` and `reclaim` look at parked gangs, too, once a second after any
change: after most changes some running pod may be evicted for a gang. What decides about these pods is asked once, if a plugin says that
it lasts (`seeks`), so that one look tells whether there are any for all gangs like it.

Events are coarse, and nothing is assumed about what plugins answer, apart from the causes that they name. A gang that was woken is
tried, unless it would be refused as before (`session/refused_before`), or exceeds all nodes even if they were empty and these are as large as before.

Such a gang keeps its reason, which may be out of date. It is *stale* until it is tried. A cycle tries the first `RENEWALS_PER_CYCLE` stale
gangs in any case, so that in the end each reason tells of the cluster as it is, while one event causes few writes. What else a cycle
may take, its budget bounds (`budget`).
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from enum import IntFlag
from itertools import islice
from typing import NamedTuple

import msgspec

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.free_room import Needs, least
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.waiting.wanted import WantedKinds

RENEWALS_PER_CYCLE = 2
"""Maximum number of gangs that a cycle tries, or whose reasons it writes, only because numbers in them have changed."""


class Cause(IntFlag):
    """What a refusal depends on, and what an event changes; see the module."""

    ITSELF = 0
    NODES = 1
    SIZES = 2  # a node came, changed or went: what nodes could hold if they were empty
    SHARES = 4
    QUOTAS = 8
    CLAIMS = 16
    PEERS = 32
    VICTIMS = 64
    RULES = 128
    DOMAIN = 256
    ANY = 511


_RESIZED = int(Cause.SIZES | Cause.RULES)
"""What may help a gang that exceeds all nodes."""

_RARER = 10
"""How many pauses between renewals the reason of such a gang lasts, in which only numbers change."""


class Bound(NamedTuple):
    """Pods of a gang that must all have a place for it to become ready.

    Attributes:
        shapes: Their shapes.
        needs: What a pod of any of these shapes takes at least.
        required: How many there are.
    """

    shapes: tuple[PodShape, ...]
    needs: Needs
    required: int


class Parked(msgspec.Struct):
    """Why a gang waits.

    Attributes:
        causes: What its refusal depends on.
        bounds: Places that it requires of nodes.
        from_queue: What it requires of its queue, by column; None if its queue did not refuse it.
        likeness: Equal for gangs that the nodes, or the gate of queues, refuse alike; None if that is not known.
        kinds: One of its waiting pods of each kind, once `preempt` or `reclaim` has picked them.
        glance: The number of the kind of pods of the first bound in `WantedKinds`, and how many of it are required; None without bounds.
        seeks: What decides by action about the running pods that may go for it, once it was asked; only if it stays the same.
        exceeds_all: Whether all nodes together could not hold its minimum if they were empty, and none has changed since.
        tried_at: When it was tried, UNIX seconds.
    """

    causes: int
    bounds: tuple[Bound, ...] = ()
    from_queue: Ints | None = None
    likeness: Hashable = None
    kinds: Sequence[TaskInfo] | None = None
    glance: tuple[int, int] | None = None
    seeks: dict[str, Hashable] = {}
    exceeds_all: bool = False
    tried_at: float = -math.inf


class ParkedGangs:
    """The gangs that are parked, and what has happened since the last cycle.

    Attributes:
        gangs: Why gangs wait, by key; a gang that is not here is tried.
        stale: Keys of parked gangs that were woken and not tried since, those first that have waited longest.
        wanted: What pods of the first bounds of the gangs take.
        events: What had happened when the last cycle began.
        version: Grows with every change that matters to scheduling.
        renewed_at: When a cycle last tried stale gangs in any case, UNIX seconds.
        due: The moment at which a cycle may do so next, if there are some and this one may not.
    """

    def __init__(self) -> None:
        self.gangs: dict[str, Parked] = {}
        self.stale: dict[str, None] = {}
        self.wanted = WantedKinds()
        self.events = self.version = 0
        self.renewed_at = -math.inf
        self.due: tuple[float, ...] = ()
        self._news = int(Cause.ANY)

    def happened(self, causes: Cause) -> None:
        """Note that something has changed."""
        self._news |= int(causes)

    def changed(self, changed: bool, causes: Cause = Cause.ITSELF) -> bool:
        """Note a change, if it is one, and what gangs wait for that it may help."""
        if changed:
            self.version += 1
            self.happened(causes)
        return changed

    def wake(self, key: str) -> None:
        """Have a gang tried that has changed itself."""
        parked = self.gangs.pop(key, None)
        if parked is not None:
            self.stale.pop(key, None)
            if parked.glance is not None:
                self.wanted.release(parked.bounds[0].needs)

    def wake_all(self) -> None:
        """Have all gangs tried."""
        self.gangs.clear()
        self.stale.clear()
        self.wanted = WantedKinds()

    def outdated(self) -> list[str]:
        """Keys of parked gangs whose reasons may be out of date, those first that have waited longest."""
        woken = [key for key, each in self.gangs.items() if each.causes & self._news]
        return list(dict.fromkeys([*self.stale, *woken]))

    def park(self, key: str, parked: Parked | None) -> None:
        """Note why a gang waits that was just tried; None if it is to be tried in every cycle."""
        # Counted before the gang is woken, so that a kind that it had before stays one.
        if parked is not None and parked.bounds:
            first = parked.bounds[0]
            parked.glance = self.wanted.use(first.needs), first.required
        self.wake(key)
        if parked is not None:
            self.gangs[key] = parked

    def begin(
        self,
        waiting: Mapping[str, JobInfo],
        order: Iterable[str],
        untried: Collection[str],
        now: float = 0.0,
        pause: float = 0.0,
    ) -> tuple[list[JobInfo], Collection[str]]:
        """Begin a cycle.

        Args:
            waiting: Gangs that wait, by key.
            order: Their keys, ascending.
            untried: Keys of gangs for which the last cycle had no time.
            now: The moment, UNIX seconds.
            pause: Seconds after a cycle that renewed reasons in which none are.

        Returns:
            Gangs that are not parked or were woken, in the order of their keys, and the keys of those of them whose reasons
            are renewed, so that nothing keeps them from being tried.
        """
        self.events, self._news = self._news, 0
        events, always, gangs = self.events, int(Cause.ANY), self.gangs
        kept: set[str] = set()
        for key in waiting:
            if (parked := gangs.get(key)) is None:
                continue
            if events & _RESIZED:
                parked.exceeds_all = False
            if parked.causes & events:
                if not parked.exceeds_all or now >= parked.tried_at + _RARER * pause:
                    self.stale[key] = None
                if parked.exceeds_all and key not in untried:
                    kept.add(key)
            elif parked.causes != always and key not in untried:
                kept.add(key)
        renewed: frozenset[str] = frozenset()
        self.due = ()
        if self.stale:
            later = self.renewed_at + pause
            if now >= later:
                known = (key for key in self.stale if key in waiting)
                renewed = frozenset(islice(known, RENEWALS_PER_CYCLE))
            if renewed:
                self.renewed_at = now
                kept -= renewed
            elif later > now:
                self.due = (later,)
        return [waiting[key] for key in order if key not in kept], renewed


def bounds(failed: PodShape, waiting: Iterable[TaskInfo], required: int) -> tuple[Bound, ...]:
    """Places that a gang requires of the nodes that refused it.

    Args:
        failed: Shape of the first pod for which there was no node.
        waiting: Its pods that wait and have no gates.
        required: How many of them must find a place for the gang to become ready; at least 1.
    """
    counts: dict[PodShape, int] = {}
    for task in waiting:
        counts[task.shape] = counts.get(task.shape, 0) + 1
    shapes = tuple(counts)
    if not shapes:
        return ()
    found = [Bound(shapes, least(shapes), required)]
    if len(shapes) > 1:
        alone = required - sum(counts.values()) + counts.get(failed, 0)
        if alone > 0:
            found.append(Bound((failed,), least((failed,)), alone))
    return tuple(found)


def likeness(job: JobInfo) -> Hashable:
    """Equal for gangs of which the nodes refuse all or none, as long as nothing is decided; None if that is not known."""
    if job.holding or job.group is None:
        return None
    pods: dict[Hashable, int] = {}
    groups = job.sub_groups
    for task in job.tasks.values():
        if task.nominated:
            return None
        group = groups.of(task) if groups is not None else None
        order = group.order if group is not None else None
        kind = (task.shape.number, task.role, task.status, task.gates, order)
        pods[kind] = pods.get(kind, 0) + 1
    annotations = job.group.metadata.annotations or {}
    policies = job.group.spec.sub_group_policy or ()
    return (
        job.queue,
        job.min_member,
        frozenset(pods.items()),
        frozenset(job.min_task.items()),
        groups and tuple([(each.size, each.minimum) for each in groups.policies]),
        job.group.spec.network_topology,
        tuple([each.network_topology for each in policies]),
        frozenset(annotations.items()),
    )
