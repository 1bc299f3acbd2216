"""binpack: prefer the fuller node.

`score = 100 · binpack.weight · Σ part_r / Σ w_r` over the resources that the pod asks for and that have a
weight, with `part_r = (request_r + used_r) · w_r / allocatable_r`.
"""

from collections.abc import Mapping

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Bools, Floats
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView


class Binpack(LastingPlugin):
    """Scores nodes by how full they would be."""

    def __init__(self, arguments: Arguments) -> None:
        self._weight = arguments.integer("binpack.weight")
        self._weights = resource_weights(arguments)

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the scorer, unless its weight is 0."""
        register.alike_queues()
        if self._weight:
            register.node_score(self._score, scope="row", amounts_only=True)

    def _score(self, pods: PodClass, rows: Rows) -> Floats | None:
        return pack_score(pods, rows, self._weights, self._weight)


def resource_weights(arguments: Arguments) -> dict[str, int]:
    """Weight of each resource that counts; a negative one is 1."""
    weights = {
        "cpu": arguments.integer("binpack.cpu"),
        "memory": arguments.integer("binpack.memory"),
        **{
            name: arguments.integer(f"binpack.resources.{name}")
            for name in arguments.names("binpack.resources")
        },
    }
    return {name: weight if weight >= 0 else 1 for name, weight in weights.items()}


def pack_score(
    pods: PodClass, rows: Rows, weights: Mapping[str, int], weight: int
) -> Floats | None:
    """How full nodes would be; 0 where the pod does not fit."""
    parts: Floats | None = None
    fits: Bools | None = None
    total = 0
    for need in pods.shape.needs:
        resource_weight = weights.get(need.name)
        if resource_weight is None:
            continue
        total += resource_weight
        if resource_weight == 0:
            continue
        column, lacking = need.column, rows.lacking(need.column)
        future = rows.used[:, column] + need.amount
        fitting = future <= rows.allocatable[:, column]
        full = rows.filled(column, need.amount)
        if resource_weight != 1:
            full = future * float(resource_weight) / rows.divisor(column)
        if lacking is not None:
            fitting |= lacking
            full = np.where(lacking, 0.0, full)
        parts = full if parts is None else parts + full
        fits = fitting if fits is None else fits & fitting
    if total == 0:
        return None
    if parts is None or fits is None:
        return np.zeros(len(rows))
    return np.where(fits, parts * (100.0 * weight / total), 0.0)


SPEC = PluginSpec(
    name="binpack",
    summary="Prefers the node that is fuller already, so that whole nodes stay free.",
    build=Binpack,
    arguments=(
        SchedulerArgument("binpack.weight", 1, "Weight of the plugin; 0 turns it off."),
        SchedulerArgument("binpack.cpu", 1, "Weight of CPU."),
        SchedulerArgument("binpack.memory", 1, "Weight of memory."),
        SchedulerArgument(
            "binpack.resources", "", "Other resources that count, separated by commas."
        ),
        SchedulerArgument(
            "binpack.resources.", 1, "Weight of one of the other resources.", is_prefix=True
        ),
    ),
)
