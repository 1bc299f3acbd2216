"""Why there is no domain for pods that are to be near to each other: one sentence with the domain that comes nearest, and its numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pumice.scheduler.explain.nearest import NearestNode, nodes_of, pods_of
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.shapes import Need, PodShape
from pumice.scheduler.placing.requests import DomainRequest
from pumice.scheduler.results import Reason, with_text
from pumice.scheduler.session.session import Session
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.tree import Domain

WITHOUT_PLUGIN = Reason(
    "NoNetworkTopology",
    "networkTopology of mode hard is followed by plugin network-topology-aware, which the scheduler's configuration lacks, or whose "
    "switch enabledHyperNodeGradient is off",
    {"plugin": "network-topology-aware"},
)


def spread_too_far(anchor: Domain, limit: int) -> Reason:
    """Pods run further apart than they may, because the network has changed under them."""
    where = f"across {called(anchor)} (tier {anchor.tier})"
    message = f"its pods run {where}, above the limit of tier {limit}; no more are placed"
    return Reason(
        "NetworkTopologyTooWide",
        message,
        {"hyperNode": anchor.name, "tier": anchor.tier, "highestTier": limit},
    )


def why_nowhere(
    session: Session,
    request: DomainRequest,
    tried: Sequence[SideBySide],
    counts: dict[str, int],
    prefix: str = "",
) -> Reason:
    """Why no domain has room for pods, which have no places.

    Of domains in which they were tried, `counts` has how many pods found a place; others are judged by arithmetic.
    """
    demand, limit = request.demands[0], request.limit.tier
    shape = max(request.shapes, key=lambda shape: [need.amount for need in shape.needs])
    tried = [some for some in tried if len(some)]
    numbers: dict[str, Any] = {"pods": request.required, "highestTier": limit}
    if not tried:
        return _reason("no HyperNode of that tier has a ready node", numbers, prefix, session)
    empty = session.places.empty(demand.needs) * demand.nodes
    now = request.counts(demand, later=session.touched.releases)
    room = np.concatenate([some.sums(now) for some in tried])
    places = [(some, index) for some in tried for index in range(len(some))]
    for at, (some, index) in enumerate(places if counts else ()):
        room[at] = min(room[at], counts.get(some.domains[index].name, room[at]))
    when_empty = np.concatenate([some.sums(empty) for some in tried])
    some, index = places[int(room.argmax())]
    has = min(int(room.max()), request.required - 1)
    most = int(when_empty.max())
    nearest = some.domains[index]
    asked = NearestNode(shape.needs, _scarcest(session, shape, some.rows_of(index))).request
    needs = f"{request.required} × {asked}" if request.required > 1 else asked
    text = f"needs {needs} in {_one_of(tried, limit)}"
    anchor = request.members.anchor
    if anchor is not None:
        top = tried[-1].domains[-1]
        text = _beside(anchor, top, limit)
        numbers |= {"hyperNode": anchor.name, "tier": anchor.tier}
    elif most < request.required:
        some, index = places[int(when_empty.argmax())]
        size = nodes_of(len(some.rows_of(index)))
        name = called(some.domains[index])
        text += f"; the largest ({name}, {size}) holds {pods_of(most)} even when empty"
        numbers |= {"hyperNode": some.domains[index].name, "places": most}
    else:
        numbers |= {"hyperNode": nearest.name, "places": has}
        if has:
            text += f"; {called(nearest)} has room for {has} of {pods_of(request.required)}"
            text += ", which is the most" if len(room) > 1 else ""
        else:
            text += "; none of them has room now" if len(room) > 1 else ", which has no room"
    return _reason(text, numbers, prefix, session)


def called(domain: Domain) -> str:
    """What sentences call a domain."""
    return domain.name or "the cluster"


def _reason(text: str, numbers: dict[str, Any], prefix: str, session: Session) -> Reason:
    text = f"{prefix}{text}"
    faults = [fault for found in session.levels.tree.faults.values() for fault in found]
    if faults:
        text = with_text(text, faults[0])
    return Reason("NotEnoughResources", text, numbers, ("networkTopology",), numbers=numbers)


def _one_of(tried: Sequence[SideBySide], limit: int | None) -> str:
    """Where pods must be."""
    domains = [domain for some in tried for domain in some.domains]
    if len(domains) == 1:
        return called(domains[0])
    return f"one HyperNode of tier {limit} or lower"


def _beside(anchor: Domain, top: Domain, limit: int | None) -> str:
    """Why pods cannot join others."""
    text = f"its other pods run in {called(anchor)} (tier {anchor.tier})"
    if top.name == anchor.name:
        return f"{text}, which has no room; tier {limit} is the limit"
    return f"{text}, and {called(top)} (tier {top.tier}) has no room; tier {limit} is the limit"


def _scarcest(session: Session, shape: PodShape, rows: Ints) -> Need:
    """The resource of which a domain has least, in parts of what a pod asks for."""
    view = session.view.rows

    def places(need: Need) -> int:
        free = view.future_idle(need.column)[rows]
        return int((np.maximum(free, 0) // max(need.amount, 1)).sum())

    named = [need for need in shape.needs if need.name != "pods"] or list(shape.needs)
    return min(named, key=places)
