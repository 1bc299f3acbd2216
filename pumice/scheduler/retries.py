"""Which gangs a cycle tries: not those that nothing since their last try could have helped.

A gang that found no node remembers the shapes of its waiting pods. It is tried again when it changed itself, when a node
on which one of these shapes has room now gained room, or when something changed that may help anyone: nodes, queues,
priorities, claims, the configuration. A gang that cannot become ready whatever the nodes are is tried again when it
changed itself, or when something changed that may help anyone. Every other gang is tried in every cycle.
"""

from collections.abc import Callable, Iterable, Sequence

from pumice.scheduler.model.jobs import Job
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import NEEDS_ROOM, Status, Task

__all__ = ["Gains", "to_try"]


class Gains:
    """What has changed since the last cycle that may help gangs which found no node.

    Attributes:
        anyone: Whether something changed that may help any gang.
        nodes: Names of nodes that pods have left, or are about to leave.
    """

    __slots__ = ("anyone", "nodes")

    def __init__(self) -> None:
        self.anyone = True
        self.nodes: set[str] = set()

    def left(self, old: Task, new: Task | None, node: str) -> None:
        """Note that a pod changed, or is gone.

        Args:
            old: The pod as it was.
            new: The pod as it is; None when it is gone.
            node: Node that it is on now.
        """
        if old.node and old.status in NEEDS_ROOM and not _stays(old, new, node):
            self.nodes.add(old.node)

    def clear(self) -> None:
        """Begin anew; a cycle has seen everything."""
        self.anyone = False
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
    if gains.anyone:
        return sorted(waiting, key=_key)
    fits = _fitting(gains, nodes)
    found = [job for job in waiting if job.blocked is None or any(map(fits, job.blocked))]
    return sorted(found, key=_key)


def _key(job: Job) -> str:
    return job.key


def _fitting(gains: Gains, nodes: NodeTable) -> Callable[[PodShape], bool]:
    """Whether a shape has room, now or once terminating pods are gone, on one of the nodes that gained some."""
    names = [name for name in gains.nodes if name in nodes.records]
    gained = sorted(row for name in names if (row := nodes.records[name].row) >= 0)
    answers: dict[int, bool] = {}

    def fits(shape: PodShape) -> bool:
        answer = answers.get(shape.number)
        if answer is None:
            answer = answers[shape.number] = bool(gained) and _has_room(shape, gained, nodes)
        return answer

    return fits


def _has_room(shape: PodShape, gained: Sequence[int], nodes: NodeTable) -> bool:
    rows = nodes.rows()
    return any(
        all(
            int(rows.allocatable[row, need.column])
            - int(rows.used[row, need.column])
            + int(rows.releasing[row, need.column])
            >= need.amount
            for need in shape.needs
        )
        for row in gained
    )
