"""predicates: nodes that a pod may not use.

Cordoned nodes, node selector and required node affinity, taints that nothing tolerates, host ports that are
taken, other pods that a pod must be near to or apart from, topology spread, and nodes from which a bound volume
cannot be reached. Room for the requests is checked by the session
itself, for every configuration.

A pod that rules out nodes in a way that is not known here is not placed at all, and the reason says so.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from pumice.api.nodes import Taint
from pumice.api.not_here_yet import LONGEST_ABOUT_NODES, LONGEST_ABOUT_PODS
from pumice.api.pods import NodeSelector
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.host_ports import PortUsers, are_taken, is_one_port
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.selectors import Tolerance
from pumice.scheduler.model.shapes import (
    NODE_AFFINITY,
    NODE_SELECTOR,
    TOLERATIONS,
    PodShape,
)
from pumice.scheduler.plugins.pod_affinity import affinity_filter
from pumice.scheduler.plugins.topology_spread import spread_filter
from pumice.scheduler.plugins.volume_filters import VOLUME_ARGUMENTS, VolumeFilters, bind_timeout
from pumice.scheduler.points import DomainFilter, FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_HARD = ("NoSchedule", "NoExecute")
_OF_CLAIMS, _OF_PEERS = Cause.NODES | Cause.CLAIMS, Cause.NODES | Cause.PEERS
_LONG = f"more than {LONGEST_ABOUT_PODS // 1024} KiB of rules about other pods"
_LONG_ABOUT_NODES = f"more than {LONGEST_ABOUT_NODES // 1024} KiB of rules about nodes"
_UNSUPPORTED = {
    "resourceClaims": ("predicate.DynamicResourceAllocationEnable", "a claim to devices"),
    "affinity": ("predicate.PodAffinityEnable", _LONG),
    "topologySpreadConstraints": ("predicate.PodTopologySpreadEnable", _LONG),
    NODE_SELECTOR: ("predicate.NodeAffinityEnable", _LONG_ABOUT_NODES),
    NODE_AFFINITY: ("predicate.NodeAffinityEnable", _LONG_ABOUT_NODES),
    TOLERATIONS: ("predicate.TaintTolerationEnable", _LONG_ABOUT_NODES),
}
"""Rules of pods that are not followed, the argument that turns each off, and what it is called."""
_NOBODY: Mapping[str, PortUsers] = MappingProxyType({})


class Predicates(LastingPlugin):
    """Filters of nodes by shape; the fixed ones are kept for as long as nodes do not change."""

    def __init__(self, arguments: Arguments) -> None:
        self._affinity = arguments.flag("predicate.NodeAffinityEnable")
        self._taints = arguments.flag("predicate.TaintTolerationEnable")
        self._ports = arguments.flag("predicate.NodePortsEnable")
        self._claims = arguments.flag("predicate.VolumeBindingEnable")
        self._pod_affinity = arguments.flag("predicate.PodAffinityEnable")
        self._spread = arguments.flag("predicate.PodTopologySpreadEnable")
        self._zones = arguments.flag("predicate.VolumeZoneEnable")
        self._limits = arguments.flag("predicate.NodeVolumeLimitsEnable")
        self._topology = arguments.flag("predicate.NetworkTopologyEnable")
        self._unsupported = {
            field: words
            for field, (switch, words) in _UNSUPPORTED.items()
            if arguments.flag(switch)
        }

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the filters; those about claims and other pods only while pods have such rules."""
        self._session = session
        self._has_peers, self._has_claims = session.peers.is_live, session.claims.are_mounted
        register.alike_queues()
        if self._unsupported:
            register.pod_check(self._why_unsupported, wakes=Cause.ITSELF)
        if not self._topology:
            register.ignore_network()
        if self._has_claims:
            self._register_volumes(session, register)
        register.node_filter(self._unschedulable, by_rules=True, wakes=Cause.NODES)
        if self._affinity:
            register.node_filter(self._node_affinity, by_rules=True, wakes=Cause.NODES)
        if self._taints:
            register.node_filter(self._untolerated, by_rules=True, wakes=Cause.NODES)
        if self._ports:
            register.node_filter(self._port_conflicts, scope="row", wakes=Cause.NODES)
        if self._pod_affinity and self._has_peers:
            register.domain_filter(self._by_pods, wakes=_OF_PEERS)
        if self._spread and self._has_peers:
            register.domain_filter(self._by_spread, wakes=_OF_PEERS)

    @property
    def lasts(self) -> bool:
        """Filters of claims serve one session."""
        return not self._has_claims

    def reopen(self, session: SessionView) -> bool:
        """Begin another session; pods may have rules about others, or claims, now."""
        self._session = session
        return self._has_peers == session.peers.is_live and not session.claims.are_mounted

    def _register_volumes(self, session: SessionView, register: Registrar) -> None:
        volumes = VolumeFilters(session)
        if self._claims:
            register.pod_check(volumes.why_unbound, wakes=Cause.CLAIMS)
            register.node_filter(volumes.out_of_reach, by_rules=True, wakes=_OF_CLAIMS)
            register.node_filter(volumes.unprovisionable, by_rules=True, wakes=_OF_CLAIMS)
            register.node_filter(volumes.unbindable_here, scope="row", wakes=_OF_CLAIMS)
            if session.claims.has_wide_claims():
                register.node_filter(volumes.unbindable, scope="all", wakes=_OF_CLAIMS)
                register.node_filter(volumes.in_use, scope="all", wakes=_OF_CLAIMS)
        if self._zones:
            register.node_filter(volumes.other_zones, by_rules=True, wakes=_OF_CLAIMS)
        if self._limits:
            register.node_filter(volumes.too_many, scope="row", wakes=_OF_CLAIMS)

    def _why_unsupported(self, shape: PodShape) -> Reason | None:
        found = [field for field in shape.hard_rules if field in self._unsupported]
        if not found:
            return None
        words = " and ".join(f"{self._unsupported[field]} (spec.{field})" for field in found)
        message = (
            f"{words} cannot be honoured by this scheduler; remove it or set another schedulerName"
        )
        fields = [f"spec.{field}" for field in found]
        return Reason("UnsupportedRule", message, {"fields": fields}, tuple(fields))

    def _by_pods(self, pods: PodClass) -> DomainFilter | None:
        return affinity_filter(self._session, pods)

    def _by_spread(self, pods: PodClass) -> DomainFilter | None:
        return spread_filter(self._session, pods)

    def _unschedulable(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        cordoned = self._session.facts.unschedulable[rows.index]
        if not cordoned.any() or Tolerance(pods.shape.tolerations).accepts(_CORDON):
            return None
        return FilterResult(cordoned.astype(np.int64), ("node(s) were unschedulable",))

    def _node_affinity(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        shape = pods.shape
        if not shape.node_selector and _required(shape) is None:
            return None
        matches = self._session.facts.cached(
            ("node affinity", shape.key.placement),
            lambda: self._session.matcher.required(shape.node_selector, shape.node_affinity),
        )
        codes: Ints = (~matches[rows.index]).astype(np.int64)
        return FilterResult(codes, ("node(s) didn't match Pod's node affinity/selector",))

    def _untolerated(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        facts = self._session.facts
        if facts.are_all_untainted:
            return None
        texts: dict[str, int] = {}
        answers = np.zeros(len(facts.taint_sets), dtype=np.int64)
        tolerance = Tolerance(pods.shape.tolerations)
        for place, taints in enumerate(facts.taint_sets):
            for taint in taints:
                if taint.effect in _HARD and not tolerance.accepts(taint):
                    text = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
                    answers[place] = texts.setdefault(text, len(texts) + 1)
                    break
        return FilterResult(answers[facts.taint_codes[rows.index]], tuple(texts)) if texts else None

    def _port_conflicts(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        wanted = pods.shape.ports.wanted
        if not wanted:
            return None
        taken = np.zeros(len(rows), dtype=np.int64)
        in_use, all_leaving = self._session.host_ports, self._session.leaving_ports
        few, many = (wanted, in_use) if len(wanted) < len(in_use) else (in_use, wanted)
        found = [block for block in few if block in many]
        nodes = self._names(rows) if found and not isinstance(rows.index, slice) else None
        for block in found:
            users, ports = in_use[block], wanted[block]
            leaving = all_leaving.get(block, _NOBODY) if rows.is_later else _NOBODY
            takes_all = not leaving and is_one_port(block)
            if nodes is None:
                using: Iterable[str] = users
                if not takes_all:
                    using = [
                        node
                        for node, there in users.items()
                        if are_taken(there, leaving.get(node), ports)
                    ]
                used = map(self._session.row_of, using)
                taken[[row for row in used if row >= 0]] = 1
            else:
                for place, node in enumerate(nodes):
                    there = users.get(node)
                    if there and (takes_all or are_taken(there, leaving.get(node), ports)):
                        taken[place] = 1
        return FilterResult(taken, ("node(s) didn't have free ports for the requested pod ports",))

    def _names(self, rows: Rows) -> list[str]:
        """Names of a few rows."""
        assert not isinstance(rows.index, slice)
        names = self._session.node_names
        return [names[row] for row in rows.index.tolist()]


def _required(shape: PodShape) -> NodeSelector | None:
    affinity = shape.node_affinity
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


SPEC = PluginSpec(
    name="predicates",
    summary="Leaves out nodes that a pod may not use: cordons, selectors, affinity, taints, ports, other pods, volumes.",
    build=Predicates,
    bind_timeout=bind_timeout,
    arguments=(
        SchedulerArgument(
            "predicate.NodeAffinityEnable", True, "Look at node selector and node affinity."
        ),
        SchedulerArgument("predicate.NodePortsEnable", True, "Look at host ports."),
        SchedulerArgument("predicate.TaintTolerationEnable", True, "Look at taints."),
        SchedulerArgument(
            "predicate.PodAffinityEnable",
            True,
            "Look at required pod affinity and anti-affinity, of the pod and of those on nodes.",
        ),
        *VOLUME_ARGUMENTS,
        SchedulerArgument(
            "predicate.PodTopologySpreadEnable",
            True,
            "Look at topology spread constraints that say DoNotSchedule.",
        ),
        SchedulerArgument(
            "predicate.DynamicResourceAllocationEnable",
            True,
            "Do not place pods with claims to devices, which are not supported.",
        ),
        SchedulerArgument(
            "predicate.NetworkTopologyEnable",
            True,
            "Read `networkTopology` of gangs; `false` places them as if they had none.",
        ),
        SchedulerArgument(
            "predicate.CacheEnable",
            False,
            "Volcano's cache by template; answers are always kept by shape here.",
        ),
    ),
)
