"""A scheduling cycle on the objects that were read: the figures of `pumice explain`, and of the page of `pumice web`.

A verb simulates once. The page keeps the simulation, and gives it what has changed since (`Follower`): with 5,000 nodes and
1,000 gangs that wait, a new one costs a second and a change some hundredths.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pumice.api import keys
from pumice.api.pods import Pod
from pumice.api.requests import Amounts
from pumice.cli.live.observed import ReadableCluster
from pumice.scheduler import Config, Reason
from pumice.scheduler.plugins.fairshare import NamespaceShares
from pumice.scheduler.simulate import Simulation, Subject, UnreadableObjectError

__all__ = ["Change", "Figures", "Follower", "QueueFigures", "group_of", "schedulers", "simulated"]

Change = tuple[Subject | None, Subject | None]
"""An object as it was and as it is; None if it did not exist, or does not any more."""

_SCHEDULER = ("volcano",)

_MANY = 200
"""Changed objects from which on a new simulation is made."""


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
        is_known: Whether there was a cycle: False without the rights for it, or with an object that cannot be read.
        error: The error in that object.
        pending: Why gangs wait after the cycle, by `namespace/name`.
        lines: Gangs that wait by queue, in the order in which they are tried.
        queues: The queues.
    """

    is_known: bool = False
    error: str | None = None
    pending: Mapping[str, Reason] = {}
    lines: Mapping[str, list[str]] = {}
    queues: Mapping[str, QueueFigures] = {}


def simulated(seen: ReadableCluster, config: Config, now: float) -> Figures:
    """Run a cycle on objects.

    Args:
        seen: The objects.
        config: Configuration of the scheduler.
        now: The moment, in UNIX seconds.
    """
    return Follower(config).look(seen, now)


class Follower:
    """Simulates one cycle after the other, each on the cluster as it then is.

    Attributes:
        simulation: The simulation before a cycle; None if there is none.
    """

    def __init__(self, config: Config) -> None:
        """Begin without objects."""
        self.simulation: Simulation | None = None
        self._config = config
        self._names: tuple[str, ...] = ()

    def look(
        self,
        seen: ReadableCluster,
        now: float,
        changes: Sequence[Change] | None = None,
        *,
        is_exact: bool = True,
    ) -> Figures:
        """Run a cycle on objects; nothing is left of what it decides.

        Args:
            seen: The objects.
            now: The moment, in UNIX seconds.
            changes: Pods, PodGroups, nodes and queues that have changed since the last call; None if others have changed, too.
            is_exact: Whether all gangs are tried. Otherwise only those are that the changes may help, and the numbers in other
                reasons are those of an earlier cycle.
        """
        if not seen.sees_cluster:
            self.simulation = None
            return Figures()
        names = schedulers(seen.objects.pods)
        try:
            self._follow(seen, names, changes, is_exact)
        except UnreadableObjectError as error:
            self.simulation = None
            return Figures(error=str(error))
        assert self.simulation is not None
        return _figures(self.simulation, now)

    def _follow(
        self,
        seen: ReadableCluster,
        names: tuple[str, ...],
        changes: Sequence[Change] | None,
        is_exact: bool,
    ) -> None:
        """Bring the simulation to what was read."""
        known = self.simulation
        if known is None or changes is None or len(changes) > _MANY or names != self._names:
            self.simulation = None
            self.simulation = Simulation(seen.objects, self._config, scheduler_names=names)
            self._names = names
            return
        for old, new in changes:
            known.replace(old, new)
        if is_exact:
            known.try_all()


def _figures(simulation: Simulation, now: float) -> Figures:
    """What is there before a cycle, and why gangs wait after it."""
    lines = simulation.lines(now)
    queues = {
        name: QueueFigures(
            *simulation.sums(name),
            simulation.deserved(name),
            simulation.away(name),
            simulation.not_enforced(name),
            simulation.namespaces(name, now),
        )
        for name in simulation.state.queues
    }
    simulation.cycle(now)
    found = Figures(True, None, simulation.pending, lines, queues)
    simulation.undo()
    return found


def schedulers(pods: Iterable[Pod]) -> tuple[str, ...]:
    """Names of schedulers whose pods a cycle places: those of all pods of gangs, so that none of these seems to have no pods."""
    names = {pod.spec.scheduler_name for pod in pods if group_of(pod)}
    return tuple(sorted(names)) or _SCHEDULER


def group_of(pod: Pod) -> str:
    """Name of the PodGroup that a pod names; empty for none."""
    annotation = pod.metadata.annotation
    return annotation(keys.GROUP_NAME) or annotation(keys.GROUP_NAME_VOLCANO)
