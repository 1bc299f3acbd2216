"""network-topology-aware: keep the pods of a gang in one domain of the network, and prefer domains that are in use.

A gang or sub-group with a `networkTopology` is placed in the lowest domain that has room; see `placing/search.py`. Of several domains of a
tier the one is best that is fullest afterwards, so that whole domains stay free:
`score = 100 · weight · Σ w_r · (used_r + asked_r) / allocatable_r / Σ w_r`, and 0 where something would be exceeded.
"""

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Floats
from pumice.scheduler.points import DomainFit
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView

__all__ = ["SPEC", "NetworkTopologyAware"]

_FULL = 100.0


class NetworkTopologyAware:
    """Gives gangs domains of the network."""

    def __init__(self, arguments: Arguments) -> None:
        weight = arguments.integer("weight")
        self._weight = weight if weight >= 0 else 1
        self._weights = _Weights(arguments)

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the search, and scores unless the weight is 0."""
        register.alike_queues()
        register.domain_search(lambda _: True)
        if self._weight:
            register.domain_order(self.order)

    def order(self, fit: DomainFit) -> Floats | None:
        """How full domains would be; of the fullest ones, those are better that have more of the pods already."""
        counted = [
            (column, amount, weight)
            for name, (column, amount) in fit.asked.items()
            if amount and (weight := self._weights.of(name))
        ]
        if not counted:
            return None
        total = sum(weight for _, _, weight in counted)
        found: Floats | None = None
        for column, amount, weight in counted:
            has = fit.allocatable(column)
            filled = fit.used(column) + amount
            part = np.where(filled <= has, weight * filled / np.maximum(has, 1), -np.inf)
            found = part if found is None else found + part
        assert found is not None
        found = np.where(found >= 0, found / total, 0.0)
        best = found == found.max(initial=0.0)
        if np.count_nonzero(best) > 1:
            found = found + best * (fit.held / max(fit.pods, 1))
        return found * (_FULL * self._weight)


class _Weights:
    """Weights of resources; a negative one is 1. Devices count unless they have a weight of their own."""

    def __init__(self, arguments: Arguments) -> None:
        names = [name.strip() for name in arguments.text("hypernode.binpack.resources").split(",")]
        given = {
            "cpu": arguments.integer("hypernode.binpack.cpu"),
            "memory": arguments.integer("hypernode.binpack.memory"),
            **{
                name: arguments.integer(f"hypernode.binpack.resources.{name}")
                for name in names
                if name
            },
        }
        self._given = {name: weight if weight >= 0 else 1 for name, weight in given.items()}

    def of(self, resource: str) -> int:
        """The weight of a resource."""
        return self._given.get(resource, int("/" in resource))


SPEC = PluginSpec(
    name="network-topology-aware",
    summary="Keeps the pods of a gang near to each other in the network, as its `networkTopology` asks.",
    build=NetworkTopologyAware,
    arguments=(
        SchedulerArgument(
            "weight", 1, "Weight of all scores of the plugin; 0 turns these off, not the limits."
        ),
        SchedulerArgument("hypernode.binpack.cpu", 1, "Weight of cpu in the score of a domain."),
        SchedulerArgument(
            "hypernode.binpack.memory", 1, "Weight of memory in the score of a domain."
        ),
        SchedulerArgument(
            "hypernode.binpack.resources",
            "",
            "Further resources that count, separated by commas; devices (names with `/`) do in any case.",
        ),
        SchedulerArgument(
            "hypernode.binpack.resources.", 1, "Weight of one of these resources.", is_prefix=True
        ),
    ),
)
