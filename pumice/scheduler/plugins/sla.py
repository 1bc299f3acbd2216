"""sla: a gang that has waited for too long is let in, and keeps the places that it finds.

The waiting time of a gang counts from its creation. Until it has passed, the gang only goes before others; afterwards
this plugin votes for it: it enters its queue, and places that are too few for its minimum stay its own until the end of the
session, so that others do not take them.
"""

from pumice.api import keys
from pumice.api.durations import parse_nanoseconds
from pumice.api.json_words import quoted
from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import SortKey, Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause

_ARGUMENT = "sla-waiting-time"
_ANNOTATIONS = (keys.SLA_WAITING_TIME, _ARGUMENT)
_SECOND = 10**9


class Sla:
    """Orders gangs by the end of their waiting time, and votes for those for which it has come."""

    def __init__(self, arguments: Arguments) -> None:
        self._default = _seconds(arguments.text(_ARGUMENT))

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the order and the votes, and have the scheduler wake up when the next waiting time ends."""
        self._now = session.now
        register.job_order(self._key)
        register.job_enqueueable(self._vote, wakes=Cause.ITSELF, by=self._end)
        register.job_pipelined(self._vote)
        for job in list(session.unplaced):
            end = self._end(job)
            if end is None:
                continue
            if end > session.now:
                session.wake_at(end)
            else:
                session.try_again(job)

    def _end(self, job: JobInfo) -> float | None:
        """When the waiting time of a gang ends, UNIX seconds; None when it has none."""
        if job.group is None:
            return None
        waiting = self._default
        for name in _ANNOTATIONS:
            own = _seconds(job.group.metadata.annotation(name))
            if own is not None:
                waiting = own
                break
        return None if waiting is None else job.created + waiting

    def _key(self, job: JobInfo) -> SortKey:
        end = self._end(job)
        return (0, end) if end is not None else (1, 0.0)

    def _vote(self, job: JobInfo) -> Vote:
        end = self._end(job)
        return Vote.PERMIT if end is not None and end <= self._now else Vote.ABSTAIN


def _seconds(text: str) -> float | None:
    """A waiting time in seconds; None if the string is not a duration above 0."""
    found = parse_nanoseconds(text) if text else None
    return found / _SECOND if found is not None and found > 0 else None


def _problem(text: str) -> str | None:
    if not text or _seconds(text):
        return None
    return f"must be a duration above 0, such as 30s or 1h30m, found {quoted(text)}"


SPEC = PluginSpec(
    name="sla",
    summary="Gangs that have waited longer than a given time are let in and keep the places that they find.",
    build=Sla,
    arguments=(
        SchedulerArgument(
            _ARGUMENT,
            "",
            "How long gangs wait at most, such as `1h30m`; the annotation `sla-waiting-time` of a PodGroup goes before it.",
            problem=_problem,
            falls_back=True,
        ),
    ),
)
