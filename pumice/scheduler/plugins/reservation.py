"""reservation: keep nodes free for one large gang, so that small ones do not starve it.

Actions `elect` and `reserve` decide when; this plugin says for which gang and which nodes. The gang of the highest
priority is chosen; of equals one that cannot be placed now, and of these the oldest. Nodes are taken that its pods may use, one in each cycle, until what is
reserved could hold all of its pods. They are the largest ones (`specification`, as Volcano's documentation says), or those
with the most room (`idle`).

Source: Volcano's documentation of scheduler plugins, section Reservation.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import SCORED_MEMORY, Bools
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.state.reserved_nodes import WAITING, lack
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_SELECTION = "reservation.selection"


class ReservationPlugin:
    """Chooses the target and its nodes, and keeps others off them."""

    def __init__(self, arguments: Arguments) -> None:
        self._by_idle = arguments.text(_SELECTION) == "idle"

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the choices and the filter."""
        self._session = session
        register.target_job(self._target)
        register.reserved_nodes(self._next_node)
        register.alike_queues()
        register.node_filter(self._judge, by_rules=True, wakes=Cause.NODES)

    def _target(self, jobs: Sequence[JobInfo]) -> JobInfo:
        highest = max(job.order_priority for job in jobs)
        equals = [job for job in jobs if job.order_priority == highest]
        equals.sort(key=lambda job: (job.created, job.key))
        fits = self._session.seems_to_fit
        return next((job for job in equals if not fits(job)), equals[0])

    def _judge(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        reservation = self._session.reservation
        if reservation is None or not reservation.nodes or pods.gang:
            return None
        text = f"node(s) are reserved for gang {reservation.gang}"
        return FilterResult(self._reserved()[rows.index].astype(np.int64), (text,))

    def _reserved(self) -> Bools:
        reservation = self._session.reservation
        mask = np.zeros(len(self._session.node_names), dtype=np.bool_)
        for name in reservation.nodes if reservation is not None else ():
            row = self._session.row_of(name)
            if row >= 0:
                mask[row] = True
        return mask

    # -- which node next ---------------------------------------------------------------------

    def _next_node(self, job: JobInfo, usable: Callable[[TaskInfo], Bools]) -> str | None:
        """The node that a gang needs next; None when those reserved could hold its pods, or no other would help."""
        reserved, rows = self._reserved(), self._session.rows
        lacking = lack(job, rows.allocatable, reserved, usable)
        if lacking is None:
            return None
        tasks = lacking or [task for task in job.tasks.values() if task.status in WAITING]
        shapes = {task.shape: task for task in tasks}
        if shapes:
            useful = np.logical_or.reduce([usable(task) for task in shapes.values()])
        else:  # its pods are made when it is let into its queue
            useful = self._session.facts.open
        return self._best(useful & ~reserved)

    def _best(self, rows: Bools) -> str | None:
        """The row that has most, in parts of the largest node, summed over resources; the first of equals."""
        index = np.flatnonzero(rows)
        if not len(index):
            return None
        found = self._session.rows.take(index)
        amounts = found.allocatable - found.used if self._by_idle else found.allocatable
        largest = np.maximum(self._session.rows.allocatable.max(axis=0), 1)
        parts = (amounts / largest)[:, [0, 1, *range(SCORED_MEMORY + 1, amounts.shape[1])]]
        best = int(index[int(parts.sum(axis=1).argmax())])
        return self._session.node_names[best]


SPEC = PluginSpec(
    name="reservation",
    summary="Keeps nodes free for one gang that waits, so that smaller ones do not starve it.",
    build=ReservationPlugin,
    arguments=(
        SchedulerArgument(
            _SELECTION,
            "specification",
            "Which nodes are reserved first: the largest, or those with the most room.",
            choices=("specification", "idle"),
        ),
    ),
)
