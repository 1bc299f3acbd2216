"""network-topology-aware: keep the pods of a gang in one domain of the network, and prefer domains that are in use.

The scores of domains and nodes are those of `docs/scheduler/plugins/network-topology-aware.md`. Inside a domain all nodes score the same, so
that nothing changes for gangs that are placed in one.
"""

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.explain.nearest import amount, nodes_of
from pumice.scheduler.model.axis import PODS, Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import DomainFit, PodClass, Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.results import Reason
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.topology.limits import Limit, limit_of_part
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_FULL = 100.0
_FADING = 0.8
_MOST_DOMAINS = 8
_OF_DOMAINS = Cause.DOMAIN | Cause.SIZES
_MANY = 64
"""Touched rows from which on all scores are computed again."""


class NetworkTopologyAware(LastingPlugin):
    """Gives gangs domains of the network."""

    def __init__(self, arguments: Arguments) -> None:
        weight = arguments.integer("weight")
        self._weight = weight if weight >= 0 else 1
        self._weights = _weights(arguments)
        fading = arguments.number("hypernode.binpack.normal-pod.fading")
        self._fading = fading if fading >= 0 else _FADING
        most = arguments.integer("hypernode.gradient.evict.max-hypernodes")
        self._most_domains = most if most > 0 else _MOST_DOMAINS
        self._is_for_all = arguments.flag("hypernode.binpack.normal-pod.enable")

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the search, and scores unless the weight is 0; those of nodes only where there are HyperNodes."""
        self._has_hyper_nodes = session.levels.tree.has_hyper_nodes
        self.reopen(session)
        register.alike_queues()
        register.domain_search(lambda _: True, most_domains=self._most_domains)
        register.job_enqueueable(self.vote, wakes=_OF_DOMAINS, by=_in_domain, is_about_nodes=True)
        if not self._weight:
            return
        register.domain_order(self.order)
        if self._is_for_all and self._has_hyper_nodes:
            register.domain_score(self.by_domain, is_even=True)

    def reopen(self, session: SessionView) -> bool:
        """Begin a session, with the HyperNodes that there are now."""
        self._table: _DomainTable | None = None
        has_hyper_nodes = session.levels.tree.has_hyper_nodes
        return super().reopen(session) and self._has_hyper_nodes == has_hyper_nodes

    def vote(self, job: JobInfo) -> Vote | Reason:
        """Keep out a gang if it, or a sub-group that it requires, must be in one domain, and none could hold it, not even an empty one."""
        if job.group is None or _in_domain(job) is None or not self._session.reads_network():
            return Vote.ABSTAIN
        spec, levels = job.group.spec, self._session.levels
        whole = self._session.network_limit(job)
        refusal = self._why_not(whole, job.required, "")
        pods = int(job.minimum[PODS])
        for policy in spec.sub_group_policy or ():
            if refusal is not None or not policy.min_sub_groups:
                continue
            limit = limit_of_part(policy.network_topology, whole, levels)
            size = policy.sub_group_size or 1
            is_known = len(job.min_task) == 1 and pods > 0  # pods of one task are equal
            asked = [(column, each * size // pods) for column, each in job.required if is_known]
            refusal = self._why_not(limit, asked, f"each sub-group of {policy.name} ")
        return refusal or Vote.ABSTAIN

    def _why_not(
        self, limit: Limit, asked: Sequence[tuple[int, int]], prefix: str
    ) -> Reason | None:
        """Why no domain could hold amounts of some columns, which must be in one."""
        levels, has = self._session.levels, self._session.rows.allocatable
        root = levels.tree.root
        if limit.problem is not None:
            return limit.problem
        if not limit.is_hard or limit.tier is None or limit.tier >= root.tier or not asked:
            return None
        sets = levels.below(root, limit.tier)
        sums = np.array(
            [np.concatenate([each.sums(has[:, column]) for each in sets]) for column, _ in asked]
        )
        parts = sums / np.array([max(least, 1) for _, least in asked])[:, None]
        covered = parts.min(axis=0)
        if covered.max(initial=0.0) >= 1:
            return None
        place = int(covered.argmax())
        scarcest = int(parts[:, place].argmin())
        column, wanted = asked[scarcest]
        name = self._session.resource(column)
        text = f"{prefix}needs {amount(column, wanted)} {name} in one HyperNode of tier {limit.tier} or lower"
        details: dict[str, Any] = {"highestTier": limit.tier}
        domain = [domain for each in sets for domain in each.domains][place]
        size = int(sums[scarcest, place])
        text += f"; the largest ({domain.name}, {nodes_of(len(levels.rows(domain)))}) has {amount(column, size)} even when empty"
        details |= {"hyperNode": domain.name, "tier": domain.tier}
        return Reason("NotEnoughResources", text, details, ("networkTopology",))

    def _counted(self, asked: Mapping[str, tuple[int, int]]) -> list[tuple[int, int, int]]:
        """Columns, amounts and weights of what is asked for; devices count unless they have a weight of their own."""
        return [
            (column, units, weight)
            for name, (column, units) in asked.items()
            if units and (weight := self._weights.get(name, int("/" in name)))
        ]

    def by_domain(self, pods: PodClass) -> "NodeFullness | None":
        """Scores of nodes by how full the domains around them are; None if nothing counts that the pods ask for."""
        counted = self._counted(
            {each.name: (each.column, each.amount) for each in pods.shape.needs}
        )
        if not counted:
            return None
        if self._table is None:
            self._table = _DomainTable(self._session)
        if not self._table.count:
            return None
        full = _FULL * self._weight
        return NodeFullness(self._table, self._session, counted, self._fading, full)

    def order(self, fit: DomainFit) -> Floats | None:
        """How full domains would be; of the fullest ones, those are better that have more of the pods already."""
        counted = self._counted(fit.asked)
        if not counted:
            return None
        total = sum(weight for _, _, weight in counted)
        found: Floats | None = None
        for column, asked, weight in counted:
            has = fit.allocatable(column)
            filled = fit.used(column) + asked
            part = np.where(filled <= has, weight * filled / np.maximum(has, 1), -np.inf)
            found = part if found is None else found + part
        assert found is not None
        found = np.where(found >= 0, found / total, 0.0)
        best = found == found.max(initial=0.0)
        if np.count_nonzero(best) > 1:
            found = found + best * (fit.held / max(fit.pods, 1))
        return found * (_FULL * self._weight)


class _DomainTable:
    """The domains of all tiers, numbered, the lowest tier first, for sums over their nodes.

    A tier whose only domain has all nodes is left out, as is the root: it counts the same for all of them. After the domains of all tiers
    stands one more for each tier, for nodes that are in no domain of it.

    Attributes:
        tiers: The tiers, ascending; at the end that of the root.
        tier_of: For each domain, the place of its tier among these.
        codes: For each tier that is not left out, and for each row, the domain that has it; the first one if several do.
    """

    def __init__(self, session: SessionView) -> None:
        root = session.levels.tree.root
        nodes = len(session.rows)
        sets = [each for each in session.levels.below(root, root.tier) if len(each)]
        self.tiers = [each.domains[0].tier for each in sets]
        told = [at for at, each in enumerate(sets) if len(each) > 1 or len(each.rows) < nodes]
        self._sets = [sets[at] for at in told]
        sizes = [len(each) for each in self._sets]
        self._firsts = [sum(sizes[:at]) for at in range(len(sizes))]
        self.count = sum(sizes)
        of_domains = [at for at, size in zip(told, sizes, strict=True) for _ in range(size)]
        self.tier_of: Ints = np.array([*of_domains, *told], dtype=np.int64)
        self.codes: Ints = np.zeros((len(told), nodes), dtype=np.int64)
        for at, (first, some) in enumerate(zip(self._firsts, self._sets, strict=True)):
            self.codes[at] = np.where(some.codes < 0, self.count + at, some.codes + first)
        self._beside: dict[int, tuple[Ints, Ints]] = {}

    def sums(self, values: Ints) -> Ints:
        """The sum of a value by row, for each domain."""
        return np.concatenate([some.sums(values) for some in self._sets])

    def around(self, row: int) -> Sequence[int]:
        """The domains that have a row, lower tiers first."""
        sides = zip(self._firsts, self._sets, strict=True)
        return [first + place for first, some in sides for place in some.around[row]]

    def beside(self, domain: int) -> tuple[Ints, Ints]:
        """The rows that share a domain with any row of one, and their codes."""
        found = self._beside.get(domain)
        if found is None:
            at = bisect_right(self._firsts, domain) - 1
            inside = np.zeros(self.codes.shape[1], dtype=np.bool_)
            inside[self._sets[at].rows_of(domain - self._firsts[at])] = True
            touched = np.zeros_like(inside)
            for some in self._sets:
                shares = np.logical_or.reduceat(inside[some.rows], some.starts)
                touched |= np.append(shares, False)[some.codes]  # code -1 is the last one
            rows = np.flatnonzero(touched)
            found = self._beside[domain] = rows, self.codes[:, rows]
        return found


class _Filled:
    """How full domains would be of one resource with one more pod; followed while a session decides.

    Attributes:
        limits: What each domain has.
        amounts: What would be used of each domain.
        seen: What was used of each row when it was looked at last.
    """

    def __init__(self, column: int, asked: int, weight: int, limits: Ints) -> None:
        self.column = column
        self.asked = asked
        self.weight = weight
        self.limits: list[int] = limits.tolist()
        self.amounts: list[int] = []
        self.seen: Ints = limits


def _in_domain(job: JobInfo) -> Hashable:
    """Equal for gangs about which this plugin votes alike: each alone if it may have to be in one domain."""
    spec = job.group.spec if job.group is not None else None
    if spec is None or (spec.network_topology is None and spec.sub_group_policy is None):
        return None
    return job.key


class NodeFullness:
    """Scores of nodes for a class of pods."""

    def __init__(
        self,
        table: _DomainTable,
        session: SessionView,
        counted: Sequence[tuple[int, int, int]],
        fading: float,
        full: float,
    ) -> None:
        """Compute all scores, of at most `full`, for a pod that asks for amounts of columns, each of which has a weight."""
        self._table = table
        self._rows = rows = session.rows
        self._log = session.touched
        self._filled = [
            _Filled(*each, table.sums(rows.allocatable[:, each[0]])) for each in counted
        ]
        self._total = sum(weight for _, _, weight in counted)
        tiers = table.tiers
        base = tiers[0] if fading < 1 else tiers[-1]  # any will do, as only ratios count
        weights = np.array([fading ** (tier - base) for tier in tiers])
        self._values: Floats = (weights * (full / weights.sum()))[table.tier_of]
        self._weights: list[float] = self._values.tolist()
        self._seen = 0
        self._column: Floats = np.zeros(0)
        self._compute()

    def column(self) -> Floats:
        """The score of every node now; to be read only."""
        log, seen = self._log, self._seen
        if len(log) - seen > _MANY:
            self._compute()
        elif seen < len(log):
            self._seen = len(log)
            for row in dict.fromkeys(log[seen:]):
                self._follow(row)
        return self._column

    def _compute(self) -> None:
        self._seen = len(self._log)
        rows = self._rows
        for each in self._filled:
            each.seen = rows.used[:, each.column] + rows.pipelined[:, each.column]
            each.amounts = (self._table.sums(each.seen) + each.asked).tolist()
        for domain in range(self._table.count):
            self._fill(domain)
        self._column = np.add.reduce(self._values.take(self._table.codes))

    def _fill(self, domain: int) -> None:
        """Compute the value of a domain."""
        value = 0.0
        for each in self._filled:
            amount, limit = each.amounts[domain], each.limits[domain]
            if amount > limit:
                value = 0.0
                break
            value += each.weight * amount / limit
        self._values[domain] = self._weights[domain] * (value / self._total)

    def _follow(self, row: int) -> None:
        """Compute the scores again of the nodes that share a domain with one that was touched."""
        around, used, pipelined = self._table.around(row), self._rows.used, self._rows.pipelined
        for each in self._filled:
            now = used.item(row, each.column) + pipelined.item(row, each.column)
            more = now - each.seen.item(row)
            each.seen[row] = now
            for domain in around:
                each.amounts[domain] += more
        for domain in around:
            self._fill(domain)
        if around:
            rows, codes = self._table.beside(around[-1])
            self._column[rows] = np.add.reduce(self._values.take(codes))


def _weights(arguments: Arguments) -> dict[str, int]:
    """Weights of resources by name; a negative one is 1."""
    names = [name.strip() for name in arguments.text("hypernode.binpack.resources").split(",")]
    given = {
        "cpu": arguments.integer("hypernode.binpack.cpu"),
        "memory": arguments.integer("hypernode.binpack.memory"),
        **{
            name: arguments.integer(f"hypernode.binpack.resources.{name}") for name in names if name
        },
    }
    return {name: weight if weight >= 0 else 1 for name, weight in given.items()}


SPEC = PluginSpec(
    name="network-topology-aware",
    summary="Keeps the pods of a gang near to each other in the network, as its `networkTopology` asks.",
    build=NetworkTopologyAware,
    arguments=(
        SchedulerArgument(
            "weight", 1, "Weight of all scores of the plugin; 0 turns these off, not the limits."
        ),
        SchedulerArgument(
            "hypernode.binpack.normal-pod.enable",
            True,
            "Whether other pods prefer HyperNodes that are in use, too.",
        ),
        SchedulerArgument(
            "hypernode.binpack.normal-pod.fading",
            _FADING,
            "How much a tier counts for them, as a part of what the one below counts; 0 counts tier 1 alone.",
        ),
        SchedulerArgument(
            "hypernode.gradient.evict.max-hypernodes",
            _MOST_DOMAINS,
            "HyperNodes at which an eviction for one gang looks at most.",
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
