"""tdm: nodes that batch work may use at certain times of day only (time-division multiplexing).

A node belongs to the revocable zone that its label `volcano.sh/revocable-zone` names; the configuration names the window of
each zone. While the window is open, the zone is for pods that say that they may lose their node, and they go there
first. When it has closed, they leave it, some of each gang at a time.

Windows are daily, such as 22:00-6:00, in the local time of a zone. A window is open from its start, inclusive, to its end, exclusive. One whose end is not after its start ends on the next day.
A time that the clock skips counts as if it had not skipped it, and of a time that it shows twice the first one counts.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from pumice.api import keys
from pumice.api.durations import parse_seconds
from pumice.api.remembering import remembered
from pumice.api.schedules import time_zone_problem
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.axis import Bools, Floats, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.plugins.gang import vote
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_FORM = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_HOURS, _MINUTES = 24, 60
_DAY = timedelta(days=1)


class Window(msgspec.Struct, frozen=True):
    """A window of every day, which closes on the next day unless its end is after its start."""

    start: time
    end: time

    def is_open(self, now: float, zone: ZoneInfo) -> bool:
        """True if the window is open at a time in UNIX seconds."""
        return any(start <= now < end for start, end in self._around(now, zone))

    def next_change(self, now: float, zone: ZoneInfo) -> float:
        """When it opens or closes next, UNIX seconds."""
        return min(moment for span in self._around(now, zone) for moment in span if moment > now)

    def _around(self, now: float, zone: ZoneInfo) -> Iterator[tuple[float, float]]:
        """When it opens and closes from yesterday to tomorrow."""
        today = datetime.fromtimestamp(now, zone).date()
        for day in (today - _DAY, today, today + _DAY):
            last = day if self.end > self.start else day + _DAY
            yield _moment(day, self.start, zone), _moment(last, self.end, zone)


def _moment(day: date, at: time, zone: ZoneInfo) -> float:
    return datetime.combine(day, at, zone).astimezone(UTC).timestamp()


@remembered(64)
def read_window(text: str) -> Window | None:
    """Read a window, such as `8:30-18:00`; None if the text is not one."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    hour, minute, end_hour, end_minute = (int(part) for part in match.groups())
    if max(hour, end_hour) >= _HOURS or max(minute, end_minute) >= _MINUTES:
        return None
    return Window(time(hour, minute), time(end_hour, end_minute))


def window_problem(text: str) -> str | None:
    """Explain why a string is not a valid window; None if it is."""
    if read_window(text) is not None:
        return None
    return (
        "must be two times of day such as 22:00-6:00, with hours from 0 to 23 and minutes of two digits (an end that is "
        f"not after the start is on the next day; 0:00-0:00 is always open), found {text!r}"
    )


def next_change(windows: Iterable[Window], now: float, zone: ZoneInfo) -> float | None:
    """When the first of several windows opens or closes next, UNIX seconds; None without windows."""
    return min((window.next_change(now, zone) for window in windows), default=None)


_ZONE = "tdm.revocable-zone."
_PERIOD = "tdm.evict.period"
_TIME_ZONE = "tdm.time-zone"
_SCORE = 100.0
_AT_ONCE = 1
"""Pods of a gang that go at once, unless the gang says otherwise."""

_NUMBER = re.compile(r"(\d{1,9})(%?)", re.ASCII)
_TEXTS = (
    "node(s) are in a revocable zone, for which the pod does not ask",
    "node(s) are in a revocable zone whose window is closed",
    "node(s) are in a revocable zone for which no window is configured",
)
_NOT_ASKED, _CLOSED, _UNKNOWN = 1, 2, 3


class Tdm:
    """Opens and closes revocable zones."""

    def __init__(self, arguments: Arguments) -> None:
        self._zone = ZoneInfo(arguments.text(_TIME_ZONE))
        self._every = parse_seconds(arguments.text(_PERIOD)) or 0.0
        self._windows: dict[str, Window] = {
            name: window
            for name, text in arguments.texts(_ZONE)
            if (window := read_window(text)) is not None
        }

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the functions, and have the scheduler wake up when the next window opens or closes."""
        self._session = session
        now = session.now
        self._is_open = {
            name: window.is_open(now, self._zone) for name, window in self._windows.items()
        }
        change = next_change(self._windows.values(), now, self._zone)
        if change is not None:
            session.wake_at(change, changes=Cause.RULES)
        register.alike_queues()
        register.node_filter(self._judge, by_rules=True, wakes=Cause.NODES)
        register.node_score(self._score, by_rules=True)
        register.preemptable(self._may_go, by=_may_use_zones)
        register.victim_tasks(self._leaving, every=self._every)
        register.job_order(_is_preemptable)
        register.job_starving(_is_starving)
        register.job_pipelined(vote, needs_minimum=True)

    # -- nodes -------------------------------------------------------------------------------

    def _by_zone(self, answer: Callable[[str], float]) -> Floats:
        """A number for each node that follows from its zone; 0 for nodes without one."""
        zones = self._session.facts.label(keys.REVOCABLE_ZONE)
        return zones.numbers(lambda zone: answer(zone) if zone else 0.0)

    def _judge(self, pods: PodClass, rows: Rows) -> FilterResult | None:
        def code(zone: str) -> int:
            if zone not in self._is_open:
                return _UNKNOWN
            if not self._is_open[zone]:
                return _CLOSED
            return 0 if pods.shape.is_revocable else _NOT_ASKED

        codes: Ints = self._by_zone(code)[rows.index].astype(np.int64)
        return FilterResult(codes, _TEXTS) if codes.any() else None

    def _score(self, pods: PodClass, rows: Rows) -> Floats | None:
        if not pods.shape.is_revocable:
            return None
        score: Floats = self._by_zone(lambda zone: _SCORE * self._is_open.get(zone, False))
        return score[rows.index]

    # -- victims -----------------------------------------------------------------------------

    def _may_go(self, preemptor: Preemptor, candidates: Candidates) -> Bools:
        """Running pods outside of zones, as many of a gang as may be evicted at once; none for pods that may lose their place."""
        if _may_use_zones(preemptor):
            return np.zeros(len(candidates), dtype=np.bool_)
        in_zone = self._by_zone(lambda _: 1.0)
        rows = {name: self._session.row_of(name) for name in {t.node for t in candidates.tasks}}
        may: Bools = candidates.of_tasks(
            lambda task: (
                task.status is SchedulingStatus.RUNNING
                and task.is_preemptable
                and not in_zone[rows[task.node]]
            )
        ).astype(np.bool_)
        before = candidates.earlier(np.where(may, candidates.gang, -1))
        may &= before < candidates.of_jobs(lambda job: budget(job.gang))
        return may

    def _leaving(self) -> Iterator[TaskInfo]:
        """Running pods on nodes of zones that are closed, as many of a gang as may be evicted at once: the last ones first."""
        closed = self._by_zone(lambda zone: not self._is_open.get(zone, True)).astype(np.bool_)
        running = self._session.running
        count = len(running.tasks)
        node = running.node[:count]
        mask: Bools = running.used[:count] & running.preemptable[:count] & (node >= 0)
        mask[mask] = closed[node[mask]]
        gangs: dict[str, list[TaskInfo]] = {}
        for row in np.flatnonzero(mask).tolist():
            task = running.tasks[row]
            if task is not None and task.status is SchedulingStatus.RUNNING:
                gangs.setdefault(task.job, []).append(task)
        for key in sorted(gangs):
            job = self._session.jobs[key]
            self._warn_about_budget(job)
            tasks = [task for task in gangs[key] if not self._session.is_spared(task)]
            tasks.sort(key=lambda task: task.order, reverse=True)
            tasks.sort(key=lambda task: task.priority)
            yield from tasks[: budget(job)]

    def _warn_about_budget(self, job: JobInfo) -> None:
        for key, text in _said(job):
            if _NUMBER.fullmatch(text) is None:
                message = (
                    f"annotation {key} must be a number of pods such as 2 or a percentage such as 50%, found {text!r}; "
                    f"{_AT_ONCE} pod at a time is evicted when a revocable zone closes"
                )
                self._session.warn(job, "InvalidDisruptionBudget", message)


def _may_use_zones(preemptor: Preemptor) -> bool:
    return preemptor.task.is_preemptable or preemptor.task.shape.is_revocable


def _is_preemptable(job: JobInfo) -> bool:
    """Whether the PodGroup itself says that its pods may be evicted; gangs that do come last."""
    return bool(job.says_preemptable)


def _is_starving(job: JobInfo) -> bool:
    """Whether a gang that is not to be evicted has pods that wait."""
    return not _is_preemptable(job) and job.counts[SchedulingStatus.PENDING] > 0


def _said(job: JobInfo) -> Iterator[tuple[str, str]]:
    """What the PodGroup says about how many of its pods may be evicted."""
    if job.group is not None:
        for key in (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE):
            text = job.group.metadata.annotation(key)
            if text:
                yield key, text


def budget(job: JobInfo) -> int:
    """How many running pods of a gang may be evicted at once: what its first annotation that can be read leaves, otherwise one.

    Percentages are of all pods of the gang, rounded up.
    """
    total, running = len(job.tasks), job.counts[SchedulingStatus.RUNNING]
    done = job.counts[SchedulingStatus.SUCCEEDED] + job.counts[SchedulingStatus.FAILED]
    for key, text in _said(job):
        match = _NUMBER.fullmatch(text)
        if match is None:
            continue
        number = -(-int(match[1]) * total // 100) if match[2] else int(match[1])
        left = (
            running - number if key == keys.JDB_MIN_AVAILABLE else number - (total - done - running)
        )
        return max(left, 0)
    return _AT_ONCE


def _time_zone_problem(text: str) -> str | None:
    return time_zone_problem(text) if text else "must name a time zone, such as Europe/Oslo or UTC"


def _period_problem(text: str) -> str | None:
    if parse_seconds(text):
        return None
    return f"must be a duration above 0, such as 30s or 1m, found {text!r}"


SPEC = PluginSpec(
    name="tdm",
    summary="Opens nodes of revocable zones at certain times of day to pods that may lose them, and evicts those pods afterwards.",
    build=Tdm,
    arguments=(
        SchedulerArgument(
            _ZONE,
            "",
            "When nodes of a revocable zone may be used, such as `22:00-6:00`; the name of the zone follows.",
            is_prefix=True,
            problem=window_problem,
        ),
        SchedulerArgument(
            _TIME_ZONE,
            "UTC",
            "Time zone of these times of day, such as `Europe/Oslo`.",
            problem=_time_zone_problem,
        ),
        SchedulerArgument(
            _PERIOD,
            "1m",
            "Time between two evictions from zones that have closed.",
            problem=_period_problem,
        ),
    ),
)
