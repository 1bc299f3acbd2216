"""resource-strategy-fit: fill nodes by some resources and spread by others, and keep pods off nodes with scarce ones.

- The score of a node is the mean, by weight, of `used / allocatable` for resources of type `MostAllocated`, and of what is left in parts of
  what there is for those of type `LeastAllocated`; of what the pod requests, with the pod. A pod may say otherwise in annotations.
- `sra` (scarce resource avoidance) is a score: a node is the better the fewer scarce resources it has.
- `proportional` is a filter: pods that ask for no scarce resource leave so much CPU and memory on a node as its idle scarce units need.

Source: Volcano's documentation of the plugin, and its design of the same name.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from pumice.api import keys
from pumice.api.json_words import quoted
from pumice.api.remembering import remembered
from pumice.scheduler.arguments import Arguments, SchedulerArgument, names_in
from pumice.scheduler.model.axis import CPU, MEMORY, Bools, Floats, Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_LEAST, _MOST = "LeastAllocated", "MostAllocated"
_LARGEST = 2**31 - 1
_UNIT = {CPU: 1000.0, MEMORY: 2.0**30}
"""A core and a GiB in the units of their columns."""


class ResourceStrategy(NamedTuple):
    """How a resource counts: its type, and its weight, 0 if it does not count."""

    kind: str = _LEAST
    weight: int = 0


class PodStrategies(msgspec.Struct, frozen=True):
    """What a pod says about how nodes are scored for it.

    Attributes:
        kinds: Strategies by resource.
        weights: Weights of the only resources that count; None for those of the arguments.
        problem: What cannot be read, so that nothing of it counts; otherwise empty.
    """

    kinds: Mapping[str, str] = msgspec.field(default_factory=dict)
    weights: Mapping[str, int] | None = None
    problem: str = ""


class ResourceStrategyFit:
    """Scores nodes by resources, and filters them by what scarce resources need beside them."""

    def __init__(self, arguments: Arguments) -> None:
        self._weight = arguments.integer("resourceStrategyFitWeight")
        types = dict(arguments.texts("resources.", ".type"))
        weights = {name: int(text) for name, text in arguments.texts("resources.", ".weight")}
        self._strategies = {
            name: ResourceStrategy(types.get(name, _LEAST), weights.get(name, 1))
            for name in types | weights
        }
        self._avoided: dict[str, int] = {}
        if arguments.flag("sra.enable"):
            for name in arguments.names("sra.resources"):
                self._avoided[name] = arguments.integer(f"sra.resourceWeight.{name}")
        self._avoidance = arguments.integer("sra.weight")
        self._kept: dict[str, dict[int, float]] = {}
        if arguments.flag("proportional.enable"):
            for name in arguments.names("proportional.resources"):
                of = f"proportional.resourceProportion.{name}"
                ratios = {CPU: f"{of}.cpu", MEMORY: f"{of}.memory"}
                self._kept[name] = {
                    column: arguments.number(key) * _UNIT[column] for column, key in ratios.items()
                }

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the scores and the filter, as far as the arguments ask for them."""
        self._session = session
        register.alike_queues()
        if self._weight:
            register.node_score(self._score, scope="row", amounts_only=True)
            for job in session.waiting:
                self._warn(job)
        if self._avoidance and sum(self._avoided.values()):
            register.node_score(self._avoid, by_rules=True)
        if self._kept:
            register.node_filter(self._judge, scope="row", wakes=Cause.NODES)

    # -- scores ------------------------------------------------------------------------------

    def _score(self, pods: PodClass, rows: Rows) -> Floats | None:
        own = pod_strategies(*pods.shape.key.scoring)
        parts, total = np.zeros(len(rows)), 0
        for need in pods.shape.needs:
            found = self._strategy(need.name, own)
            total += found.weight
            if found.weight:
                used = rows.used[:, need.column] + need.amount
                left = rows.allocatable[:, need.column] - used
                counted = np.where(left >= 0, used if found.kind == _MOST else left, 0)
                parts += counted * float(found.weight) / rows.divisor(need.column)
        return parts * (100.0 * self._weight / total) if total else None

    def _strategy(self, name: str, own: PodStrategies) -> ResourceStrategy:
        """How a resource counts for a pod: as the arguments say, but for what the pod says itself."""
        found = _named(name, self._strategies) or ResourceStrategy(weight=int(name in own.kinds))
        kind = _named(name, own.kinds) or found.kind
        return ResourceStrategy(
            kind, found.weight if own.weights is None else own.weights.get(name, 0)
        )

    def _avoid(self, _: PodClass, rows: Rows) -> Floats | None:
        """Parts of the scarce resources, by weight, that a node does not have."""
        parts = np.zeros(len(rows))
        for name, weight in self._avoided.items():
            column = self._session.column(name)
            parts += weight * (1.0 if column is None else rows.allocatable[:, column] == 0)
        return parts * (100.0 * self._avoidance / sum(self._avoided.values()))

    def _warn(self, job: JobInfo) -> None:
        """Tell the owner of a gang of annotations that cannot be read."""
        if job.group is None:
            return
        shapes = {task.shape for task in job.tasks.values()}
        for problem in sorted(
            {pod_strategies(*shape.key.scoring).problem for shape in shapes} - {""}
        ):
            self._session.warn(job, "InvalidScoring", problem)

    # -- filter ------------------------------------------------------------------------------

    def _judge(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        asked = {need.name for need in pods.shape.needs}
        if not asked.isdisjoint(self._kept):
            return None
        free = rows.future_idle if rows.is_later else rows.idle
        codes: Ints = np.zeros(len(rows), dtype=np.int64)
        for code, (name, ratios) in enumerate(self._kept.items(), 1):
            column = self._session.column(name)
            if column is None:
                continue
            scarce = free(column)
            for other, ratio in ratios.items():
                left = free(other) - pods.shape.amounts[other]
                lacks: Bools = (scarce > 0) & (left < scarce * ratio)
                codes[lacks & (codes == 0)] = code
        texts = tuple(f"node(s) keep cpu and memory for their idle {name}" for name in self._kept)
        return FilterResult(codes, texts)


# -- what pods and arguments say -----------------------------------------------------------------


@remembered(64)
def pod_strategies(kinds: str, weights: str) -> PodStrategies:
    """Read the annotations of a pod: a strategy or an object of strategies by resource, and an object of weights."""
    said = {"*": kinds} if kinds in (_LEAST, _MOST) else _object(kinds)
    if said is None or any(map(_kind_problem, said.values())):
        wanted = (
            f'must be {_LEAST}, {_MOST}, or one of them for each resource, as {{"cpu": "{_MOST}"}}'
        )
        problem = f"{keys.SCORING_TYPE} of a pod is ignored: it {wanted}, found {quoted(kinds)}"
        return PodStrategies(problem=problem)
    counts = _object(weights)
    if counts is None or any(map(_count_problem, counts.values())):
        wanted = f'must have an integer from 0 to {_LARGEST} for each resource, as {{"cpu": 2}}'
        key = min(keys.SCORING_WEIGHTS)
        problem = f"{key} of a pod is ignored: it {wanted}, found {quoted(weights)}"
        return PodStrategies(problem=problem)
    return PodStrategies(said, {name: int(each) for name, each in counts.items()} or None)


def _object(text: str) -> dict[str, str] | None:
    """The values of a JSON object, strings or integers, as strings; None if it is not one."""
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, str | int])
    except (msgspec.DecodeError, RecursionError):
        return None
    return {name: str(value) for name, value in found.items()}


T = TypeVar("T")


def _named(name: str, of: Mapping[str, T]) -> T | None:
    """What is said about a resource: by its name, else by its longest beginning that ends with a `*`."""
    if name in of:
        return of[name]
    begins = [each for each in of if each.endswith("*") and name.startswith(each[:-1])]
    return of[max(begins, key=len)] if begins else None


def _names_problem(text: str) -> str | None:
    twice = [name for name, count in Counter(names_in(text)).items() if count > 1]
    return f"must name each resource once, found {quoted(twice[0])} twice" if twice else None


def _kind_problem(text: str) -> str | None:
    return None if text in (_LEAST, _MOST) else f"must be {_LEAST} or {_MOST}, found {quoted(text)}"


_COUNT = re.compile(r"\d{1,10}", re.ASCII)


def _count_problem(text: str) -> str | None:
    if _COUNT.fullmatch(text) and int(text) <= _LARGEST:
        return None
    return f"must be an integer from 0 to {_LARGEST}, found {quoted(text)}"


def _ratio_problem(text: str) -> str | None:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    return (
        None if 0 <= value <= _LARGEST else f"must be a number of 0 or more, found {quoted(text)}"
    )


_count = partial(SchedulerArgument, problem=_count_problem, takes_text=True)
_ratio = partial(SchedulerArgument, is_prefix=True, problem=_ratio_problem, takes_text=True)
_of_names = partial(SchedulerArgument, problem=_names_problem)
_PROPORTION = "proportional.resourceProportion."

SPEC = PluginSpec(
    name="resource-strategy-fit",
    summary="Fills nodes by some resources and spreads by others, and keeps pods that need no scarce resource off nodes that have one.",
    build=ResourceStrategyFit,
    arguments=(
        _count(
            "resourceStrategyFitWeight", 10, "Weight of the score by strategies; 0 turns it off."
        ),
        SchedulerArgument(
            "resources.",
            _LEAST,
            "Strategy of a resource: `MostAllocated` prefers nodes with more of it in use, `LeastAllocated` those with less.",
            is_prefix=True,
            suffix=".type",
            problem=_kind_problem,
        ),
        _count(
            "resources.",
            1,
            "Weight of a resource; 0 leaves it out.",
            is_prefix=True,
            suffix=".weight",
        ),
        SchedulerArgument("sra.enable", False, "Whether nodes with scarce resources are avoided."),
        _of_names("sra.resources", "", "Scarce resources, separated by commas."),
        _count("sra.weight", 1, "Weight of this score."),
        _count("sra.resourceWeight.", 1, "Weight of one of the scarce resources.", is_prefix=True),
        SchedulerArgument(
            "proportional.enable",
            False,
            "Whether pods that need no scarce resource leave CPU and memory for its idle units.",
        ),
        _of_names("proportional.resources", "", "Scarce resources, separated by commas."),
        _ratio(_PROPORTION, 1.0, "Cores that an idle unit needs.", suffix=".cpu"),
        _ratio(_PROPORTION, 1.0, "GiB of memory that an idle unit needs.", suffix=".memory"),
    ),
)
