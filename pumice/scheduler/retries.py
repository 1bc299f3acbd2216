"""Which gangs a cycle tries: not those that nothing since their last try could have helped.

A gang that found no node remembers the shapes of its waiting pods, and if that is one shape, how many places it was
short of. It is tried again when it changed itself, when nodes gained room for one of these shapes, or for as many pods as
it was short of, or when something changed that may help any gang: nodes, queues, priorities, claims, the configuration. A
gang that cannot become ready whatever the nodes are is tried again when it changed itself, or when something changed that
may help any gang. Every other gang is tried in every cycle.

Pods of one shape take the same room wherever they go, so counting their places is exact, unless something else than room
decides how many a node takes, such as a host port. Of several shapes a single new place may be enough, because it lets
others move.
"""

from collections.abc import Iterable, Sequence

from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import NEEDS_ROOM, Status, Task

__all__ = ["Gains", "to_try"]


class Gains:
    """What has changed since the last cycle that may help gangs which found no node.

    Attributes:
        any_gang: Whether something changed that may help any gang.
        nodes: Nodes that pods have left, or are about to leave: what was free on them before, by column.
    """

    __slots__ = ("_table", "any_gang", "nodes")

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.any_gang = True
        self.nodes: dict[str, Ints] = {}

    def about_to_change(self, old: Task, new: Task | None, node: str) -> None:
        """Note that a pod is about to change, or to go.

        Args:
            old: The pod as it is.
            new: The pod as it will be; None when it goes.
            node: Node that it will be on.
        """
        if old.node and old.status in NEEDS_ROOM and not _stays(old, new, node):
            self.about_to_leave(old.node)

    def about_to_leave(self, node: str) -> None:
        """Note that a pod is about to leave a node."""
        row = self._table.records[node].row
        if row >= 0 and node not in self.nodes:
            self.nodes[node] = self._table.free(row)

    def clear(self) -> None:
        """Begin anew; a cycle has seen everything."""
        self.any_gang = False
        self.nodes.clear()


def _stays(old: Task, new: Task | None, node: str) -> bool:
    """Whether a pod takes as much of its node as before, for as long as is known."""
    if new is None or node != old.node or new.shape is not old.shape:
        return False
    if new.status is Status.RELEASING:
        return old.status is Status.RELEASING
    return new.status in NEEDS_ROOM


def to_try(waiting: Iterable[Job], gains: Gains, nodes: NodeTable) -> list[Job]:
    """The waiting gangs that a cycle has to try, in the order of their keys."""
    room = None if gains.any_gang else _Room(gains, nodes)
    return sorted((job for job in waiting if _is_worth_it(job, room)), key=lambda job: job.key)


def _is_worth_it(job: Job, room: "_Room | None") -> bool:
    """Whether to try a gang, given the room that nodes have gained; None when anything may help."""
    if room is None or job.blocked is None:
        return True
    if not job.short or len(job.blocked) != 1:
        return any(room.of(shape)[1] for shape in job.blocked)
    job.gained += room.of(job.blocked[0])[0]
    return job.gained >= job.short


class _Room:
    """What the nodes that gained room have for pods, now or once terminating pods are gone."""

    def __init__(self, gains: Gains, nodes: NodeTable) -> None:
        records = [nodes.records[name] for name in sorted(gains.nodes) if name in nodes.records]
        self._changes = [
            (gains.nodes[record.name].tolist(), nodes.free(record.row).tolist())
            for record in records
            if record.row >= 0
        ]
        self._answers: dict[int, tuple[int, bool]] = {}

    def of(self, shape: PodShape) -> tuple[int, bool]:
        """How many more pods of a shape fit than before, and whether any fits."""
        answer = self._answers.get(shape.number)
        if answer is None:
            counts = [
                (_fitting(shape, before), _fitting(shape, now)) for before, now in self._changes
            ]
            more = sum(max(now - before, 0) for before, now in counts)
            answer = self._answers[shape.number] = more, any(now for _, now in counts)
        return answer


def _fitting(shape: PodShape, free: Sequence[int]) -> int:
    """Pods of a shape that fit into what is free of each resource; columns opened since count as empty."""
    return min(
        max(free[need.column] // need.amount, 0) if need.column < len(free) else 0
        for need in shape.needs
    )
