"""What namespaces have used of a resource in a queue, with a half-life: for plugin `fairshare`.

Usage u grows by what pods hold and decays: du/dt = held − u · ln 2 / half-life. Between two events `held` is constant, so that after a time t

    u(t) = u · 2^(−t / half-life) + held · (1 − 2^(−t / half-life)) · half-life / ln 2

Each entry keeps u and the moment of its last event. Idle cycles therefore cost nothing, and how often cycles run does not matter. Pods
count while the API server shows them on a node and nothing has been decided against them.
"""

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated

import msgspec

from pumice.scheduler.model.axis import CPU, Axis
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.running_pods import RunningTable
from pumice.scheduler.model.tasks import TaskInfo

STATE_KEY = "usage.json"
"""Key of the ConfigMap under which usage is saved."""

_LEAST = 1.0
"""Usage in resource-seconds below which a namespace that holds nothing is forgotten."""

_MANY = 256
"""Namespaces of a queue after which it is looked which of them can be forgotten."""

_MOST_SAVED = 5000
"""Entries that are saved, those with the largest usage first, so that the state fits into a ConfigMap."""

_MILLI = 1000

Key = tuple[str, str]
"""Queue and namespace."""


class UsageRules(msgspec.Struct, frozen=True):
    """What is counted.

    Attributes:
        half_life: Seconds after which usage counts half.
        resource: What is counted in queues that `resources` does not name.
        resources: What is counted instead, by queue.
        queues: The only queues in which it is counted; all if None.
    """

    half_life: float
    resource: str
    resources: Mapping[str, str]
    queues: frozenset[str] | None

    def counted_in(self, queue: str) -> str | None:
        """What is counted in a queue; None for nothing."""
        if self.queues is not None and queue not in self.queues:
            return None
        return self.resources.get(queue, self.resource)


class NamespaceUsage(msgspec.Struct):
    """An entry.

    Attributes:
        used: Usage at `since`, in units of the resource's column times seconds.
        held: What pods hold, in units of the column.
        since: UNIX seconds.
    """

    used: float
    held: int
    since: float

    def at(self, moment: float, half_life: float) -> float:
        """Usage at a moment; no time passes backwards."""
        passed = max(moment - self.since, 0.0)
        return grown(self.used, self.held, passed, half_life)


def grown(used: float, held: float, seconds: float, half_life: float) -> float:
    """Usage after some seconds in which the same amount was held."""
    rate = math.log(2) / half_life
    return used * math.exp2(-seconds / half_life) - held * math.expm1(-rate * seconds) / rate


_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


class _SavedQueue(msgspec.Struct, frozen=True):
    resource: str
    namespaces: dict[str, tuple[_Amount, _Amount]]


class SavedUsage(msgspec.Struct, frozen=True):
    """Usage as it is saved: of each namespace usage and what its pods held, in units of the resource.

    Attributes:
        at: Moment for which it holds, UNIX seconds.
    """

    at: _Amount
    queues: dict[str, _SavedQueue]

    def encoded(self) -> str:
        """As compact JSON."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @staticmethod
    def read(text: str) -> "SavedUsage":
        """Read such JSON.

        Raises:
            msgspec.MsgspecError: It is something else.
        """
        return msgspec.json.decode(text, type=SavedUsage)


class UsageTable:
    """Usage by queue and namespace; it counts only while a plugin asks for it.

    Attributes:
        moment: The present, UNIX seconds; who reports events sets it before.
        rules: What is counted; None while nothing is.
        version: Grows whenever what pods hold has changed.
    """

    def __init__(self, running: RunningTable, axis: Axis, jobs: Mapping[str, JobInfo]) -> None:
        self._running = running
        self._axis = axis
        self._jobs = jobs
        self._entries: dict[str, dict[str, NamespaceUsage]] = {}
        self._counted: dict[str, tuple[Key, int]] = {}
        self._saved: SavedUsage | None = None
        self._began = 0.0
        self._is_asked = False
        self.moment = 0.0
        self.rules: UsageRules | None = None
        self.version = 0

    # -- counting ----------------------------------------------------------------------------

    def begin_session(self) -> None:
        """A session begins, in which a plugin may ask again."""
        self._is_asked = False

    def stop_unless_asked(self) -> None:
        """Stop counting if no plugin of the session has asked for it."""
        if self.rules is not None and not self._is_asked:
            self.rules = self._running.told = self._saved = None
            self._entries.clear()
            self._counted.clear()

    def follow(self, rules: UsageRules) -> None:
        """Count by these rules from now on; what was counted so far stays where the same resource is counted."""
        self._is_asked = True
        before = self.rules
        if rules == before:
            return
        if before is None:
            self._began = self.moment
        for queue, entries in list(self._entries.items()):
            if before is None or rules.counted_in(queue) != before.counted_in(queue):
                del self._entries[queue]
                continue
            for entry in entries.values():
                entry.used, entry.since = entry.at(self.moment, before.half_life), self.moment
                entry.held = 0
        self.rules = rules
        self._counted.clear()
        self._running.told = self._changed
        for task in self._running.tasks:
            if task is not None:
                self._changed(task, self._jobs[task.job].holder(task), 1)
        if self._saved is not None:
            self.restore(self._saved)

    def _changed(self, task: TaskInfo, holder: JobInfo, step: int) -> None:
        """Count a pod that has come to hold a place (1), or holds it no more (-1)."""
        assert self.rules is not None
        if step < 0:
            counted = self._counted.pop(task.key, None)
            if counted is None:
                return
            key, amount = counted
        else:
            resource = self.rules.counted_in(holder.queue)
            column = self._axis.find(resource) if resource is not None else None
            amount = task.shape.amounts[column] if column is not None else 0
            if not amount:
                return
            key = holder.queue, task.namespace
            self._counted[task.key] = key, amount
        entry = self._entry(*key)
        entry.used = entry.at(self.moment, self.rules.half_life)
        entry.since = self.moment
        entry.held += step * amount
        self.version += 1

    def _entry(self, queue: str, namespace: str) -> NamespaceUsage:
        entries = self._entries.setdefault(queue, {})
        entry = entries.get(namespace)
        if entry is None:
            if len(entries) % _MANY == 0:
                self._forget(entries, self._unit(queue))
            entry = entries[namespace] = NamespaceUsage(0.0, 0, self.moment)
        return entry

    def _forget(self, entries: dict[str, NamespaceUsage], unit: int) -> None:
        """Forget namespaces that hold nothing and have used too little to matter."""
        assert self.rules is not None
        for namespace, entry in list(entries.items()):
            if not entry.held and entry.at(self.moment, self.rules.half_life) < _LEAST * unit:
                del entries[namespace]

    # -- reading -----------------------------------------------------------------------------

    def of(self, queue: str, moment: float) -> dict[str, tuple[float, float]]:
        """Usage of each namespace of a queue at a moment, and what it holds, in units of the resource."""
        if self.rules is None:
            return {}
        unit, half_life = self._unit(queue), self.rules.half_life
        return {
            namespace: (entry.at(moment, half_life) / unit, entry.held / unit)
            for namespace, entry in sorted(self._entries.get(queue, {}).items())
        }

    def _unit(self, queue: str) -> int:
        resource = self.rules.counted_in(queue) if self.rules is not None else None
        return _MILLI if resource is not None and self._axis.find(resource) == CPU else 1

    # -- saving ------------------------------------------------------------------------------

    @property
    def changes_by_itself(self) -> bool:
        """Whether usage grows at the moment; otherwise it only decays, which follows from what is saved."""
        return bool(self._counted)

    def saved(self) -> SavedUsage:
        """Usage now, without what is too little to matter; that is forgotten."""
        assert self.rules is not None
        found: list[tuple[float, Key, float]] = []
        for queue, entries in self._entries.items():
            unit = self._unit(queue)
            self._forget(entries, unit)
            for namespace, entry in entries.items():
                used, held = entry.at(self.moment, self.rules.half_life) / unit, entry.held / unit
                found.append((-round(used, 3), (queue, namespace), held))
        queues: dict[str, _SavedQueue] = {}
        for used, (queue, namespace), held in sorted(
            sorted(found)[:_MOST_SAVED], key=itemgetter(1)
        ):
            resource = self.rules.counted_in(queue)
            assert resource is not None
            into = queues.setdefault(queue, _SavedQueue(resource, {}))
            into.namespaces[namespace] = -used, held
        return SavedUsage(self.moment, queues)

    def restore(self, saved: SavedUsage) -> None:
        """Add what was used before counting began.

        For the time since it was saved, as much counts as a namespace held then and holds now.
        """
        self._saved = saved
        if self.rules is None:
            return
        self._saved = None
        half_life = self.rules.half_life
        gap, since = max(self._began - saved.at, 0.0), max(self.moment - self._began, 0.0)
        for queue, each in saved.queues.items():
            if self.rules.counted_in(queue) != each.resource:
                continue
            unit = self._unit(queue)
            for namespace, (used, held) in each.namespaces.items():
                entry = self._entry(queue, namespace)
                went_on = min(held * unit, entry.held)
                before = grown(used * unit, went_on, gap, half_life)
                entry.used = entry.at(self.moment, half_life) + grown(before, 0, since, half_life)
                entry.since = self.moment
