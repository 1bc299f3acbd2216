"""nodeorder: kube-scheduler's scores, each 0 to 100, weighted and summed."""

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import CPU, MEMORY, SCORED_CPU, SCORED_MEMORY, Floats, Ints
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.selectors import Tolerance
from pumice.scheduler.plugins.pod_affinity import affinity_score
from pumice.scheduler.plugins.topology_spread import spread_score
from pumice.scheduler.points import DomainScore, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView

_FULL = 100
_GPU = "nvidia.com/gpu"


class NodeOrder(LastingPlugin):
    """Scores by load, balance, preferred node affinity, preferred taints, other pods and topology spread."""

    def __init__(self, arguments: Arguments) -> None:
        self._least = arguments.integer("leastrequested.weight")
        self._most = arguments.integer("mostrequested.weight")
        self._balanced = arguments.integer("balancedresource.weight")
        self._affinity = arguments.integer("nodeaffinity.weight")
        self._taints = arguments.integer("tainttoleration.weight")
        self._pods = arguments.integer("podaffinity.weight")
        self._spread = arguments.integer("podtopologyspread.weight")

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the scorers whose weight is not 0."""
        self._session = session
        self._has_peers = session.peers.is_live
        register.alike_queues()
        if self._affinity:
            register.node_score(self._node_affinity, by_rules=True)
        if self._taints:
            register.node_score(self._taint_toleration, by_rules=True)
        if self._least or self._most or self._balanced:
            register.node_score(self._load, scope="row", amounts_only=True)
        if self._pods and self._has_peers:
            register.domain_score(self._by_pods)
        if self._spread and self._has_peers:
            register.domain_score(self._by_spread)

    def reopen(self, session: SessionView) -> bool:
        """Begin another session; pods may have rules about others now."""
        return super().reopen(session) and self._has_peers == session.peers.is_live

    def _by_pods(self, pods: PodClass) -> DomainScore | None:
        return affinity_score(self._session, pods, self._pods)

    def _by_spread(self, pods: PodClass) -> DomainScore | None:
        return spread_score(self._session, pods, self._spread)

    def _load(self, pods: PodClass, rows: Rows) -> Floats:
        parts = (
            (self._least, least_allocated),
            (self._most, most_allocated),
            (self._balanced, balanced),
        )
        total: Floats | None = None
        for weight, score in parts:
            if not weight:
                continue
            part = score(pods, rows)
            if weight != 1:
                part *= weight
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        return total

    def _node_affinity(self, pods: PodClass, _rows: Rows) -> Floats | None:
        affinity = pods.shape.node_affinity
        terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else None
        if not terms:
            return None
        sums = np.zeros(len(self._session.node_names), dtype=np.int64)
        for term in terms:
            sums += term.weight * self._session.matcher.term(term.preference)
        most = int(np.where(pods.allowed, sums, 0).max(initial=0))
        if most <= 0:
            return None
        return self._affinity * (sums * _FULL // most).astype(np.float64)

    def _taint_toleration(self, pods: PodClass, _rows: Rows) -> Floats | None:
        facts = self._session.facts
        if facts.are_all_untainted:
            return None
        tolerance = Tolerance(pods.shape.tolerations)
        counts = np.array(
            [
                sum(
                    taint.effect == "PreferNoSchedule" and not tolerance.accepts(taint)
                    for taint in taints
                )
                for taints in facts.taint_sets
            ],
            dtype=np.int64,
        )
        by_row = counts[facts.taint_codes]
        most = int(np.where(pods.allowed, by_row, 0).max(initial=0))
        if most == 0:
            return None
        return self._taints * (_FULL - by_row * _FULL // most).astype(np.float64)


def least_allocated(pods: PodClass, rows: Rows) -> Floats:
    """0 to 100, more for nodes with more left."""
    return _mean(_left(pods, rows, SCORED_CPU), _left(pods, rows, SCORED_MEMORY))


def most_allocated(pods: PodClass, rows: Rows) -> Floats:
    """0 to 100, more for fuller nodes."""
    return _mean(_full(pods, rows, SCORED_CPU), _full(pods, rows, SCORED_MEMORY))


def _mean(cpu: Floats, memory: Floats) -> Floats:
    """Rounded down; both are whole numbers."""
    cpu += memory
    cpu *= 0.5
    return np.floor(cpu, out=cpu)


def balanced(pods: PodClass, rows: Rows) -> Floats:
    """0 to 100, more where CPU and memory (and GPUs, for pods that ask for them) are used evenly."""
    cpu = _fraction(pods, rows, CPU)
    memory = _fraction(pods, rows, MEMORY)
    gpu = next((need.column for need in pods.shape.needs if need.name == _GPU), None)
    if gpu is None:
        deviation = cpu - memory
        np.abs(deviation, out=deviation)
        deviation /= 2
    else:
        third = _fraction(pods, rows, gpu)
        mean = (cpu + memory + third) / 3
        squares = (cpu - mean) ** 2 + (memory - mean) ** 2 + (third - mean) ** 2
        deviation = np.sqrt(squares / 3)
    np.subtract(1, deviation, out=deviation)
    deviation *= _FULL
    return np.floor(deviation, out=deviation)


def _left(pods: PodClass, rows: Rows, column: int) -> Floats:
    left = rows.allocatable[:, column] - rows.used[:, column]
    left -= pods.shape.amounts[column]
    return percent(np.maximum(left, 0, out=left), rows, column)


def _full(pods: PodClass, rows: Rows, column: int) -> Floats:
    allocatable = rows.allocatable[:, column]
    used = rows.used[:, column] + pods.shape.amounts[column]
    return percent(np.where(used > allocatable, 0, used), rows, column)


def percent(part: Ints, rows: Rows, column: int) -> Floats:
    """Whole percent of what nodes have, rounded down; exact below 2**46, which is 64 TiB, and faster than with integers."""
    percent: Floats = part * _FULL / rows.divisor(column)
    return np.floor(percent, out=percent)


def _fraction(pods: PodClass, rows: Rows, column: int) -> Floats:
    fraction: Floats = np.minimum(rows.filled(column, pods.shape.amounts[column]), 1.0)
    return fraction


SPEC = PluginSpec(
    name="nodeorder",
    summary="Scores nodes as kube-scheduler does: load, balance, preferred affinity, preferred taints, topology spread.",
    build=NodeOrder,
    arguments=(
        SchedulerArgument("leastrequested.weight", 1, "Prefer nodes with more left."),
        SchedulerArgument("mostrequested.weight", 0, "Prefer fuller nodes."),
        SchedulerArgument(
            "balancedresource.weight", 1, "Prefer nodes whose resources are used evenly."
        ),
        SchedulerArgument("nodeaffinity.weight", 2, "Weight of preferred node affinity."),
        SchedulerArgument("tainttoleration.weight", 3, "Avoid nodes with PreferNoSchedule taints."),
        SchedulerArgument("podaffinity.weight", 2, "Weight of preferred affinity between pods."),
        SchedulerArgument("imagelocality.weight", 1, "Nodes that have the image.", is_absent=True),
        SchedulerArgument(
            "podtopologyspread.weight", 2, "Weight of topology spread that schedules anyway."
        ),
    ),
)
