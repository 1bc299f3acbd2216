"""A scheduler plugin in one file: prefer the node on which the fewest pods run.

Pods that write many small files compete for a disk that no resource name stands for; the number of
neighbours is a fair guess of how busy it is.
"""

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Floats
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView

__all__ = ["SPEC", "FewestPods"]


class FewestPods:
    """Scores a node by the share of its pod slots that is free, from 0 to 100 times the weight."""

    def __init__(self, arguments: Arguments) -> None:
        """Read the weight."""
        self._weight = arguments.integer("fewest-pods.weight")

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the scorer: asked once for a kind of pod, then only for the node that took one."""
        register.node_score(self._score, scope="row")

    def _score(self, pods: PodClass, rows: Rows) -> Floats | None:
        slots = next((need for need in pods.shape.needs if need.name == "pods"), None)
        if slots is None:
            return None
        used, allocatable = rows.used[:, slots.column], rows.allocatable[:, slots.column]
        free: Floats = 1.0 - used / allocatable.clip(1)
        return free * (100.0 * self._weight)


SPEC = PluginSpec(
    name="fewest-pods",
    summary="Prefers the node on which the fewest pods run.",
    build=FewestPods,
    arguments=(SchedulerArgument("fewest-pods.weight", 1, "Weight of the plugin."),),
)
