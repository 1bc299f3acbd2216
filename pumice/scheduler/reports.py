"""When a reason is written: once for each cause, not for each number that moves.

The cause is the kind of the reason and what it names (a resource, a rule, a queue), without numbers. A reason is due when
its cause has stood for a moment, so that what passes by itself is never written; a changed number waits longer.
Everything here is a function of the moments that it is given.
"""

from dataclasses import dataclass

__all__ = ["NEVER", "Cause", "Report", "ReportDelays"]

Cause = tuple[str, ...]
"""One word, and what the reason names; equal for reasons that differ in numbers only."""

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class ReportDelays:
    """How long to wait before something is written, in seconds; zero writes at once.

    Attributes:
        cause: Seconds for which a cause must last before it is written to the PodGroup and recorded as an event.
        pods: For which it must stand before it is written on pods.
        numbers: Between two writes of reasons that differ in numbers only.
        arrival: Since the newest pod of a gang arrived, before it is said that the gang lacks pods.
        counts: Before a PodGroup's status is written that differs in nothing that other programs wait for: numbers of
            pods, the condition `Scheduled`, the phase `Completed`.
    """

    cause: float = 0.0
    pods: float = 0.0
    numbers: float = 0.0
    arrival: float = 0.0
    counts: float = 0.0


class Report:
    """What stands about one object, and what was last written about it.

    Attributes:
        cause: The cause that stands.
        since: Since when it stands, UNIX seconds.
    """

    __slots__ = ("_at", "_told", "cause", "since")

    def __init__(self, cause: Cause, now: float, *, told: bool = False) -> None:
        """Begin with a cause.

        Args:
            cause: The cause.
            now: The moment, UNIX seconds.
            told: An earlier scheduler has already reported it.
        """
        self.cause = cause
        self.since = now
        self._told: Cause | None = cause if told else None
        self._at = now

    def stand(self, cause: Cause, now: float) -> None:
        """Note the cause that stands now."""
        if cause != self.cause:
            self.cause, self.since = cause, now

    def due(self, message: str, standing: str | None, patience: float, numbers: float) -> float:
        """Time at which a message is to be written, in UNIX seconds; `NEVER` if the object already has it.

        Args:
            message: The message.
            standing: The message that the object has; None if it has none.
            patience: Seconds for which the cause must have lasted.
            numbers: Seconds between two messages of one cause.
        """
        if standing is None or self._told != self.cause:
            return self.since + patience
        return NEVER if message == standing else self._at + numbers

    def tell(self, now: float) -> bool:
        """Note that the reason is written; True when its cause is another than the one written before."""
        is_new = self._told != self.cause
        self._told, self._at = self.cause, now
        return is_new
