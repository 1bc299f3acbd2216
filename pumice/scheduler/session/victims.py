"""Candidates for eviction that the plugins allow, and the plugins that protect the others."""

from collections.abc import Mapping, Sequence
from functools import total_ordering
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from pumice.api.messages import counted
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor, VictimCheck
from pumice.scheduler.points import Extension, SortKey


class EvictionFailure(msgspec.Struct, frozen=True):
    """Why no evictions make room for a gang.

    Attributes:
        action: Name of the action.
        candidates: Running pods that the action looked at: of the gangs that it may evict, on nodes that the pod may use.
        allowed: How many of them may be evicted if no other goes before.
        protected: How many are marked as not preemptable, or were refused by the API server a moment ago.
        because: What plugins say about the candidates that they spare.
        by: Number of candidates that each plugin spares, counted for the first such plugin; an empty name if no plugin allows evictions.
        never: The pods of the gang never preempt others.
        refused: Why the queue of the gang may not reclaim resources.
        gangs: Number of gangs to which the candidates belong, if whole gangs may go; otherwise 0.
        lacks: What would still be missing without those that may go, if it was looked at.
    """

    action: str = ""
    candidates: int = 0
    allowed: int = 0
    protected: int = 0
    by: Mapping[str, int] = msgspec.field(default_factory=dict)
    because: Mapping[str, str] = msgspec.field(default_factory=dict)
    never: bool = False
    refused: str = ""
    gangs: int = 0
    lacks: str = ""

    @property
    def summary(self) -> str:
        """A summary for messages: `preempt: none of 5 running pods may go (3 spared by priority, 2 by gang)`."""
        if self.never:
            return f"{self.action}: its pods never preempt others (preemptionPolicy)"
        if self.refused:
            return f"{self.action}: {self.refused}"
        pods = counted(self.candidates, "running pod")
        if self.gangs:
            pods += f" of {counted(self.gangs, 'gang')}"
        which = f"{self.allowed} of {pods} may go, which is not enough"
        if not self.allowed:
            which = "the only running pod may not go"
            if self.candidates > 1:
                which = f"none of {pods} may go"
        parts = [f"{count} not preemptable" for count in (self.protected,) if count]
        for name, count in self.by.items():
            why = f": {self.because[name]}" if name in self.because else ""
            parts.append(
                f"{count} spared by {name}{why}" if name else f"{count} that no plugin allows"
            )
        lacks = f"; {self.lacks}" if self.lacks else ""
        return f"{self.action}: {which}" + (f" ({', '.join(parts)})" if parts else "") + lacks

    @property
    def details(self) -> dict[str, Any]:
        """The values ready for JSON."""
        said = {"refused": self.refused, "lacks": self.lacks, "gangs": self.gangs}
        said |= {"sparedBecause": dict(self.because)}
        return {key: value for key, value in said.items() if value} | {
            "action": self.action,
            "candidates": self.candidates,
            "allowed": self.allowed,
            "notPreemptable": self.protected,
            "sparedBy": dict(self.by),
            "neverPreempts": self.never,
        }


@total_ordering
class Reversed:
    """A sort key in the opposite order."""

    __slots__ = ("_key",)

    def __init__(self, key: SortKey) -> None:
        self._key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and bool(self._key == other._key)

    def __lt__(self, other: "Reversed") -> bool:
        return bool(other._key < self._key)

    __hash__ = None  # type: ignore[assignment]


class VictimAnswers(msgspec.Struct, frozen=True):
    """The plugins' answers about candidates.

    Attributes:
        may: Those that may be evicted.
        refused_by: Place in `plugins` of the first plugin that refuses it; -1 where none does.
        plugins: Plugins that have an answer.
    """

    may: Bools
    refused_by: Ints
    plugins: tuple[str, ...]


def judge(
    checks: Sequence[Extension[VictimCheck]],
    preemptor: Preemptor,
    candidates: Candidates,
    *,
    every: bool = False,
) -> VictimAnswers:
    """The plugins' answers about candidates.

    Plugins of a tier must agree. Tiers are alternatives, node by node: the first one that allows anyone on a node
    decides about that node. With `every`, all plugins must agree, whatever their tiers are.
    """
    answers = _answers(checks, preemptor, candidates)
    plugins = tuple(dict.fromkeys(each.plugin for each, _ in answers))
    refused_by = np.full(len(candidates), -1, dtype=np.int64)
    if answers and all(mask.all() for _, mask in answers):
        return VictimAnswers(np.ones(len(candidates), dtype=np.bool_), refused_by, plugins)
    for each, mask in answers:
        refused_by[(refused_by < 0) & ~mask] = plugins.index(each.plugin)
    may = (refused_by < 0) & bool(answers) if every else _agreed(answers, candidates)
    return VictimAnswers(may, refused_by, plugins)


_Answers = Sequence[tuple[Extension[VictimCheck], Bools]]


def _answers(
    checks: Sequence[Extension[VictimCheck]], preemptor: Preemptor, candidates: Candidates
) -> _Answers:
    """What plugins say; those of a tier that come after one that refuses all candidates are not asked."""
    answers: list[tuple[Extension[VictimCheck], Bools]] = []
    refused_tier: int | None = None
    for each in checks:
        if each.tier == refused_tier:
            continue
        mask = each.call(preemptor, candidates)
        if mask is not None:
            answers.append((each, mask))
            refused_tier = refused_tier if mask.any() else each.tier
    return answers


def _agreed(answers: _Answers, candidates: Candidates) -> Bools:
    chosen = np.zeros(len(candidates), dtype=np.bool_)
    is_open = np.ones(len(candidates), dtype=np.bool_)
    last = answers[-1][0].tier if answers else 0
    for number, tier in groupby(answers, key=lambda answer: answer[0].tier):
        agreed = np.logical_and.reduce([mask for _, mask in tier]) & is_open
        chosen |= agreed
        if number != last:
            is_open &= ~np.isin(candidates.node, candidates.node[agreed])
    return chosen
