"""The filters of `predicates` that look at volumes, and the arguments that turn them on and off.

Pods that differ only in the names of their claims share results about nodes. So the requests of their claims are stored
when nodes are first filtered, before any of these pods is placed.
"""

from functools import cache

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.claims import ZONES
from pumice.scheduler.model.facts import ABSENT
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.points import FilterResult, PodClass, Scope
from pumice.scheduler.results import Reason
from pumice.scheduler.view import SessionView

_UNBINDABLE = "node(s) didn't find available persistent volumes to bind"
_OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
_OTHER_ZONE = "node(s) had no available volume zone"
_TOO_MANY = "node(s) exceed max volume count"
_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)


class VolumeFilters:
    """Filters of nodes by the volumes that pods mount."""

    def __init__(self, session: SessionView) -> None:
        self._session = session
        self._claims = session.claims
        # Asked before any of the pods is placed, and kept.
        self._waiting = cache(lambda pods: self._claims.waiting(pods.shape.claims))
        self._more = cache(lambda pods: dict(self._claims.more(pods.shape.claims)))

    def why_unbound(self, shape: PodShape) -> Reason | None:
        """Why no node fits the claims of a pod."""
        for key in shape.claims:
            if problem := self._claims.problem(key):
                return Reason("VolumeNotBound", problem, {"claim": key}, (key,))
        return None

    def out_of_reach(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """Nodes from which the volume of a bound claim cannot be reached."""
        reached = [
            rows_of
            for key in pods.shape.claims
            if (rows_of := self._claims.reached_from(key)) is not None
        ]
        if not reached:
            return None
        times = np.zeros(len(self._session.node_names), dtype=np.int64)
        for rows_of in reached:
            times[rows_of] += 1
        return _verdict(times[rows.index] == len(reached), _OUT_OF_REACH)

    def other_zones(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """Nodes in another zone or region than the volume of a bound claim."""
        zones = [zone for key in pods.shape.claims for zone in self._claims.zones(key)]
        if not zones:
            return None
        label = self._session.facts.label
        matches = np.ones(len(self._session.node_names), dtype=np.bool_)
        for name, values in zones:
            absent = label(name).codes == ABSENT
            successor = label(ZONES[name]).among(values)
            matches &= label(name).among(values) | (absent & successor)
        in_no_zone = np.logical_and.reduce([label(name).codes == ABSENT for name in ZONES])
        matches |= in_no_zone
        return _verdict(matches[rows.index], _OTHER_ZONE)

    # -- claims that wait ----------------------------------------------------------------------

    def unprovisionable(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """Nodes for which no volume would be provisioned, for claims without a suitable existing volume."""
        return self._unbindable(pods, rows, "fixed")

    def unbindable_here(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """Nodes that reach no free volume, for claims whose volumes are reached from one node each."""
        return self._unbindable(pods, rows, "row")

    def unbindable(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """Nodes on which other claims that wait cannot be bound."""
        return self._unbindable(pods, rows, "all")

    def _unbindable(self, pods: PodClass, rows: Rows, scope: Scope) -> FilterResult | None:
        if not pods.shape.claims:
            return None
        waiting = self._waiting(pods)
        if not waiting or self._claims.choices.scope(waiting) != scope:
            return None
        return _verdict(self._claims.choices.bindable(waiting, rows.index), _UNBINDABLE)

    # -- use -----------------------------------------------------------------------------------

    def in_use(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """A mask of all nodes if another pod uses a ReadWriteOncePod claim of this pod."""
        exclusive = self._claims.exclusive(pods.shape.claims)
        if not exclusive:
            return None
        used = any(self._claims.is_in_use(key, is_later=rows.is_later) for key in exclusive)
        return _verdict(np.full(len(rows), not used, dtype=np.bool_), _IN_USE)

    def too_many(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        """Nodes that cannot attach the volumes of a pod besides those in use."""
        if not pods.shape.claims:
            return None
        more = self._more(pods)
        if not more:
            return None
        exceeds, names = self._claims.attachments.exceeds, self._session.node_names
        index = range(len(names))[rows.index] if isinstance(rows.index, slice) else rows.index
        free = [not exceeds(names[row], more, is_later=rows.is_later) for row in index]
        return _verdict(np.array(free, dtype=np.bool_), _TOO_MANY)


def _verdict(allowed: Bools, text: str) -> FilterResult:
    codes: Ints = (~allowed).astype(np.int64)
    return FilterResult(codes, (text,))


def bind_timeout(arguments: Arguments) -> float | None:
    """Seconds that binding the claims of a gang may take; None where pods are placed whatever their claims are."""
    if not arguments.flag("predicate.VolumeBindingEnable"):
        return None
    return max(arguments.number("volumebinding.bindTimeoutSeconds"), 0.0)


VOLUME_ARGUMENTS = (
    SchedulerArgument(
        "predicate.NodeVolumeLimitsEnable", True, "Look at how many volumes a node can attach."
    ),
    SchedulerArgument(
        "predicate.VolumeZoneEnable", True, "Look at the zones of the volumes of bound claims."
    ),
    SchedulerArgument(
        "predicate.VolumeBindingEnable",
        True,
        "Place pods where their claims are bound or can be bound, and bind those that wait.",
    ),
    SchedulerArgument(
        "volumebinding.bindTimeoutSeconds",
        600,
        "How long the claims of a gang may take to be bound before its pods wait again.",
    ),
    SchedulerArgument(
        "volumebinding.weight",
        1,
        "Weight of nodes by the capacity of volumes, which kube-scheduler does not use by default.",
        is_absent=True,
    ),
)
"""Arguments of `predicates` that concern volumes."""
