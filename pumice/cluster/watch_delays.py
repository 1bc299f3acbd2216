"""How long a reflector waits before it lists or watches again; it decides without a clock.

Delays grow from one failure to the next, with their spread, are at least what the server asks for, and end with a watch that
worked: it showed a change or a bookmark, or lasted ten seconds. Until then an answer that says when to ask again counts as a
fifth of a failure, and the first watch that lasted a second makes the delays short again, as a server that starts may end it.
"""

from pumice.cluster.clock import Backoff

LASTING_SECONDS = 10.0
"""After a watch that lasted as long the next one begins at once."""

BRIEF_SECONDS = 1.0
"""After a watch that lasted as long the delays are short again, once."""

_FAILURE, _ASKED = 5, 1
"""What failures count, without and with the time of the next attempt."""


class WatchDelays:
    """Delays between the attempts of one reflector."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._restart()

    def _restart(self) -> None:
        """Forget what failed before."""
        self._failed = 0
        self._was_brief = self._was_told = False

    def ended(self, lasted: float, *, showed: bool, whole: bool) -> bool:
        """Note that a watch ended; return True if the next one begins at once.

        Args:
            lasted: For how many seconds it was there.
            showed: It showed a change or a bookmark.
            whole: The server ended it without an error. kube-apiserver does, if events are not read fast enough,
                while many pods are created; the changes that it did not send must not wait.
        """
        if showed or lasted >= LASTING_SECONDS:
            self._restart()
        elif lasted >= BRIEF_SECONDS and not self._was_brief:
            self._failed, self._was_brief = 0, True
        return lasted >= LASTING_SECONDS or (showed and whole)

    def is_told(self) -> bool:
        """False for the first failure since a watch worked, which is to be logged."""
        was_told, self._was_told = self._was_told, True
        return was_told

    def upcoming(self, asked: float | None = None, *, awaited: bool = False) -> float:
        """Seconds until the next attempt.

        Args:
            asked: What the server asks for.
            awaited: `catch_up` waits for the next attempt, which then comes as soon as after the first failure.
        """
        return self._backoff.delay(0 if awaited else self._failed // _FAILURE, asked)

    def failed(self, asked: float | None = None) -> None:
        """Count a failure, or a watch that ended early."""
        self._failed += _ASKED if asked is not None and asked > 0 else _FAILURE
