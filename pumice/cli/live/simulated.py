"""A scheduling cycle on the objects that were read: the figures of `pumice explain`, and of the page of `pumice web`.

A verb simulates once. The page keeps the simulation, and gives it what has changed since (`Follower`): with 5,000 nodes and
1,000 gangs that wait, a new one costs a second and a change some hundredths.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np

from pumice.api.messages import listed
from pumice.api.pods import Pod
from pumice.api.requests import Amounts
from pumice.cli.live.observed import ReadableCluster
from pumice.scheduler import Config, Reason
from pumice.scheduler.cycle.queue_events import not_enforced
from pumice.scheduler.model.running_pods import Away
from pumice.scheduler.model.tasks import PENDING
from pumice.scheduler.options import open_session
from pumice.scheduler.plugins import fairshare
from pumice.scheduler.plugins.fairshare import NamespaceShares
from pumice.scheduler.results import CycleFailedError
from pumice.scheduler.simulate import Simulation, Subject, UnreadableObjectError

Change = tuple[Subject | None, Subject | None]
"""An object as it was and as it is; None if it did not exist, or does not any more."""

_SCHEDULER = ("volcano",)

MOST_CHANGES = 5000
"""Changes that are followed at most; after more a new simulation is made."""

TRIES = 25
"""Gangs that a cycle tries at most only because numbers in their reasons may have changed; each costs a third of a millisecond."""


class QueueFigures(msgspec.Struct, frozen=True):
    """What a queue has before the cycle, in milli-units by resource.

    Attributes:
        held: What its pods hold.
        asked: What they ask for.
        deserved: What the configured plugins say that it deserves.
        away: What its pods hold on nodes that are not ready.
        not_enforced: Which of its fields no configured plugin enforces; empty if all are enforced.
        namespaces: What its namespaces have used, if plugin `fairshare` counts in it.
    """

    held: Amounts
    asked: Amounts
    deserved: Amounts
    away: Amounts
    not_enforced: str
    namespaces: NamespaceShares | None


class Figures(msgspec.Struct, frozen=True):
    """The result of a simulated cycle.

    Attributes:
        is_known: Whether there was a cycle: False without the rights for it, or if saved usage cannot be read.
        error: The error in that.
        left_out: Why objects do not count in the cycle, by `Kind/namespace/name`.
        pending: Why gangs wait after the cycle, by `namespace/name`.
        lines: Gangs that wait by queue, in the order in which they are tried.
        queues: The queues.
    """

    is_known: bool = False
    error: str | None = None
    left_out: Mapping[str, str] = {}
    pending: Mapping[str, Reason] = {}
    lines: Mapping[str, list[str]] = {}
    queues: Mapping[str, QueueFigures] = {}

    @property
    def not_counted(self) -> str:
        """Which objects do not count, and why; empty if all do."""
        return listed(self.left_out.values(), "; ")


def simulated(seen: ReadableCluster, config: Config, now: float) -> Figures:
    """Run a cycle on objects."""
    return Follower(config).look(seen, now)


def joined(
    before: Sequence[Change] | None, more: Sequence[Change] | None
) -> Sequence[Change] | None:
    """Changes with later ones; None if they are more than a simulation follows."""
    if before is None or more is None or len(before) + len(more) > MOST_CHANGES:
        return None
    return [*before, *more]


class Follower:
    """Keeps a simulation like the cluster as it changes, and runs cycles of which nothing is left."""

    def __init__(self, config: Config) -> None:
        """Begin without objects."""
        self.simulation: Simulation | None = None
        self._config = config
        self._changes: Sequence[Change] | None = ()
        self._names: tuple[str, ...] = ()
        self._schedulers: Counter[str] = Counter()

    def note(self, changes: Sequence[Change] | None) -> None:
        """Note changes for the next call of `follow`: pods, PodGroups, nodes and queues; None if others have changed, too."""
        self._changes = joined(self._changes, changes)

    def look(
        self, seen: ReadableCluster, now: float, changes: Sequence[Change] | None = None
    ) -> Figures:
        """Run a cycle on objects; nothing is left of what it decides.

        It tries gangs that the changes may help, and of the others only `TRIES`, those first that were not tried for longest.
        Until it is tried, numbers in the reason of a gang are those of an earlier cycle.
        """
        self.note(changes)
        if not seen.sees_cluster:
            self.simulation = None
            return Figures()
        try:
            simulation = self.follow(seen)
        except UnreadableObjectError as error:
            return Figures(error=str(error))
        state = simulation.state
        state.settle(now)
        waiting = list(state.gangs.waiting)
        state.try_again(waiting if len(waiting) <= TRIES else state.parked.outdated()[:TRIES])
        try:
            return _figures(simulation, now)
        except CycleFailedError as error:
            self.simulation = None
            return Figures(error=str(error))

    def is_behind(self) -> bool:
        """Whether numbers in reasons are those of an earlier cycle, so that another `look` without changes renews some."""
        return self.simulation is not None and bool(self.simulation.state.parked.outdated())

    def follow(self, seen: ReadableCluster) -> Simulation:
        """The simulation, brought to what was read.

        Args:
            seen: The objects, with all changes that were noted, and without later ones.

        Raises:
            UnreadableObjectError: Saved usage cannot be read.
        """
        changes, self._changes = self._changes, ()
        known, self.simulation = self.simulation, None
        if known is not None and changes is not None:
            for old, new in changes:
                known.replace(old, new)
                self._count(old, -1)
                self._count(new, 1)
        else:
            known, self._schedulers = None, Counter()
            for pod in seen.objects.pods:
                self._count(pod, 1)
        names = tuple(sorted(name for name, count in self._schedulers.items() if count > 0))
        names = names or _SCHEDULER
        if known is None or names != self._names:
            known = Simulation(seen.objects, self._config, scheduler_names=names, leaves_out=True)
            self._names = names
        self.simulation = known
        return known

    def _count(self, subject: Subject | None, by: int) -> None:
        """Count the schedulers of pods of gangs: a cycle places the pods of all, so that no gang seems to have no pods."""
        if isinstance(subject, Pod) and subject.group:
            self._schedulers[subject.spec.scheduler_name] += by


def _figures(simulation: Simulation, now: float) -> Figures:
    """What is there before a cycle, and why gangs wait after it."""
    lines = simulation.lines(now)
    queues = _queue_figures(simulation, now)
    simulation.cycle(now)
    found = Figures(True, None, dict(simulation.left_out), simulation.pending, lines, queues)
    simulation.undo()
    return found


def _queue_figures(simulation: Simulation, now: float) -> dict[str, QueueFigures]:
    state, config = simulation.state, simulation.config
    shares, amounts = state.shares, state.axis.amounts
    asked = shares.below(shares.pending)
    away = shares.below(Away.of(state.nodes.running, state.facts.unready, shares).held)
    # What plugins have computed for the order of gangs.
    said = state.figure("deserved")
    deserved = np.floor(np.zeros_like(asked) if said is None else said).astype(np.int64)
    parents = {shares.names[row] for row in shares.parents if row >= 0}
    counted = config.plugin(fairshare.NAME)
    session = open_session(state, config, now)
    found = {}
    for name, queue in state.queues.items():
        row = shares.rows[name]
        found[name] = QueueFigures(
            held=amounts(shares.tree[row]),
            asked=amounts(asked[row]),
            deserved=amounts(deserved[row]),
            away=amounts(away[row]),
            not_enforced=not_enforced(queue, config, below=name in parents),
            namespaces=fairshare.shares_of(session.view, counted.arguments, name)
            if counted
            else None,
        )
    session.close()
    return found


def usable_nodes(simulation: Simulation, now: float) -> dict[str, bool]:
    """Whether a pod that waits fits on a node, once terminating pods are gone, by the node's name; empty if no pod waits."""
    state = simulation.state
    state.settle(now)
    session = open_session(state, simulation.config, now)
    found = np.zeros(len(state.nodes), bool)
    seen: set[Hashable] = set()
    for job in state.gangs.waiting.values():
        for task in job.tasks.values():
            kind = job.queue, session.alike(task)
            if task.status is PENDING and kind not in seen:
                seen.add(kind)
                found |= session.ranking(task, job.queue).fits_later()
    session.close()
    return dict(zip(state.nodes.names, found.tolist(), strict=True)) if seen else {}
