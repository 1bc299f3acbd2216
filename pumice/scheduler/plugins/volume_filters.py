"""The filters of `predicates` that look at volumes: claims that are not bound, and nodes that do not reach a volume."""

import numpy as np

from pumice.scheduler.arguments import Argument
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.claims import ZONES
from pumice.scheduler.model.facts import ABSENT
from pumice.scheduler.model.nodes import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.points import PodClass, Verdict
from pumice.scheduler.results import Reason
from pumice.scheduler.view import SessionView

__all__ = ["VOLUME_ARGUMENTS", "VolumeFilters"]


class VolumeFilters:
    """Filters of nodes by the volumes that pods mount."""

    def __init__(self, session: SessionView) -> None:
        self._session = session

    def why_unbound(self, shape: PodShape) -> Reason | None:
        """Why no node will do for the claims of a pod."""
        for key in shape.claims:
            if problem := self._session.claims.problem(key):
                return Reason("VolumeNotBound", problem, {"claim": key})
        return None

    def out_of_reach(self, pods: PodClass, rows: Rows) -> Verdict | None:
        """Nodes from which the volume of a bound claim cannot be reached."""
        claims = self._session.claims
        selectors = [found for key in pods.shape.claims if (found := claims.affinity(key))]
        if not selectors:
            return None
        matches = np.ones(len(self._session.node_names), dtype=np.bool_)
        for selector in selectors:
            matches &= self._session.matcher.selector(selector)
        codes: Ints = (~matches[rows.index]).astype(np.int64)
        return Verdict(codes, ("node(s) had volume node affinity conflict",))

    def other_zones(self, pods: PodClass, rows: Rows) -> Verdict | None:
        """Nodes in another zone or region than the volume of a bound claim."""
        claims = self._session.claims
        zones = [zone for key in pods.shape.claims for zone in claims.zones(key)]
        if not zones:
            return None
        label = self._session.facts.label
        matches = np.ones(len(self._session.node_names), dtype=np.bool_)
        for name, values in zones:
            absent = label(name).codes == ABSENT
            successor = label(ZONES[name]).where(values.__contains__)
            matches &= label(name).where(values.__contains__) | (absent & successor)
        in_no_zone = np.logical_and.reduce([label(name).codes == ABSENT for name in ZONES])
        matches |= in_no_zone
        codes: Ints = (~matches[rows.index]).astype(np.int64)
        return Verdict(codes, ("node(s) had no available volume zone",))


VOLUME_ARGUMENTS = (
    Argument("predicate.NodeVolumeLimitsEnable", True, "Volume limits.", is_absent=True),
    Argument(
        "predicate.VolumeZoneEnable", True, "Look at the zones of the volumes of bound claims."
    ),
    Argument(
        "predicate.VolumeBindingEnable",
        True,
        "Place pods when their claims are bound, on nodes that reach the volumes.",
    ),
)
"""Arguments of `predicates` that concern volumes."""
