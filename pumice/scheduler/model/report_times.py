"""When a reason is written: once for each cause, not for each changed number.

The cause is the kind of the reason and what it names (a resource, a rule, a queue), without numbers. A reason is due
when its cause has lasted for some time, so that short-lived causes are never written; a changed number waits longer.
All functions get the time as an argument.
"""

import msgspec

Cause = tuple[str, ...]
"""One word, and what the reason names; equal for reasons that differ in numbers only."""

NEVER = float("inf")


class ReportDelays(msgspec.Struct, frozen=True):
    """How long to wait before something is written, in seconds; zero writes at once.

    Attributes:
        cause: Seconds for which a cause must last before it is written to the PodGroup and recorded as an event.
        pods: Seconds for which a cause must last before it is written to pods.
        numbers: Seconds between two writes of reasons that differ only in numbers.
        arrival: Seconds after the newest pod of a gang arrived, before missing pods are reported.
        counts: Delay of PodGroup statuses whose changes no other program waits for: numbers of pods, the condition
            `Scheduled`, the phase `Completed`.
        renewals: Seconds between two cycles that try gangs only because their reasons may be out of date.
    """

    cause: float = 0.0
    pods: float = 0.0
    numbers: float = 0.0
    arrival: float = 0.0
    counts: float = 0.0
    renewals: float = 0.0


class Report:
    """The current cause of an object, and what was last written about it.

    Attributes:
        cause: The current cause.
        since: Since when it lasts, UNIX seconds.
        written: When something was last written, UNIX seconds.
    """

    __slots__ = ("_told", "cause", "since", "written")

    def __init__(self, cause: Cause, now: float, *, told: bool = False) -> None:
        """Begin with a cause at a moment, UNIX seconds; `told` if an earlier scheduler has already reported it."""
        self.cause = cause
        self.since = now
        self._told: Cause | None = cause if told else None
        self.written = now

    def stand(self, cause: Cause, now: float) -> None:
        """Record the current cause."""
        if cause != self.cause:
            self.cause, self.since = cause, now

    def due(self, message: str, standing: str | None, patience: float, numbers: float) -> float:
        """Time at which a message is to be written, in UNIX seconds; `NEVER` if it is the one that the object has (None if it has none).

        The cause must have lasted for `patience` seconds; between two messages of one cause there are `numbers` seconds.
        """
        if standing is None or self._told != self.cause:
            return self.since + patience
        return NEVER if message == standing else self.written + numbers

    def tell(self, now: float) -> bool:
        """Record that the reason is written; True if its cause differs from the one written before."""
        is_new = self._told != self.cause
        self._told, self.written = self.cause, now
        return is_new
