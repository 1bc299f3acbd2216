"""Waiting for what comes about by itself: `until` inside an event loop, `wait_until` outside of one.

Both ask again and again, soon at first and then less often, and give up after a time that only what never
comes about takes. What they raise then says what was waited for and what was seen last.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol, cast

from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.collection import Collection
from pumice.cluster.transport import Transport

NO_CLIENT: Any = SimpleNamespace(collection=partial(Collection, cast("Transport", None)))
"""Client of caches that do not run."""

SECONDS = 60.0
"""How long anything may take, on a machine that has much else to do."""

_LINES, _LEAST_LINES, _CHARACTERS = 30, 6, 300
"""How many last lines of processes are shown, of all together, and of each at least, and how much of a line."""


class NotReadyError(AssertionError):
    """What was waited for did not come about."""


class _Process(Protocol):
    """What `tests.support.controlplane.processes.Process` is to those who wait for it."""

    name: str

    @property
    def running(self) -> bool: ...

    def tail(self, lines: int) -> str: ...


async def until(
    holds: Callable[[], Any],
    what: str = "",
    seconds: float = SECONDS,
    *,
    around: Callable[[], object] | None = None,
) -> Any:
    """Wait until something holds.

    Args:
        holds: A function, or a coroutine function, that answers something true when it does.
        what: What is waited for; the source of `holds` when empty.
        seconds: How long to wait.
        around: Says what else is worth knowing when it does not come about.

    Returns:
        The true answer.

    Raises:
        NotReadyError: It took longer.
    """
    seen: Any = None
    try:
        async with asyncio.timeout(seconds) as limit:
            pauses = _pauses(0.02)
            while True:
                answer = holds()
                seen = await answer if inspect.isawaitable(answer) else answer
                if seen:
                    return seen
                await asyncio.sleep(next(pauses))
    except TimeoutError:
        if not limit.expired():
            raise  # of `holds`
        also = "" if around is None else str(around())
        raise _late(what or _source(holds), seconds, seen, also) from None


def wait_until(
    holds: Callable[[], Any],
    what: str = "",
    seconds: float = SECONDS,
    processes: Sequence[_Process] = (),
    *,
    around: Callable[[], str] = str,
) -> Any:
    """Wait until something holds, outside of an event loop.

    Args:
        holds: Answers something true when it does.
        what: What is waited for; the source of `holds` when empty.
        seconds: How long to wait.
        processes: Must all run meanwhile.
        around: Says what else is worth knowing when it does not come about.

    Returns:
        The true answer.

    Raises:
        NotReadyError: It took longer, or one of `processes` ended meanwhile.
    """
    __tracebackhide__ = True
    wanted = what or _source(holds)
    deadline = time.monotonic() + seconds
    pauses = _pauses(0.1)
    while True:
        if seen := holds():
            return seen
        for each in processes:
            if not each.running:
                ended = f"{each.name} ended while waiting for {wanted}:"
                raise NotReadyError(f"{ended}\n{each.tail(_LINES)}")
        if time.monotonic() > deadline:
            also = "\n".join(filter(None, (around(), *_tails(processes))))
            raise _late(wanted, seconds, seen, also)
        time.sleep(next(pauses))


@asynccontextmanager
async def followed(*caches: WatchCache[Any]) -> AsyncIterator[None]:
    """Keep caches current for as long as the block lasts, which begins when they are filled."""
    running = [asyncio.create_task(cache.run()) for cache in caches]
    try:
        await wait_synced(*caches)
        yield
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _pauses(longest: float) -> Iterator[float]:
    pause = 0.001
    while True:
        yield pause
        pause = min(pause * 1.3, longest)


def _tails(processes: Sequence[_Process]) -> Iterator[str]:
    """What processes logged last, each briefly if they are many."""
    lines = max(_LEAST_LINES, _LINES // max(1, len(processes)))
    for each in processes:
        yield f"--- {each.name}"
        yield from (line[:_CHARACTERS] for line in each.tail(lines).splitlines())


def _late(what: str, seconds: float, seen: object, also: str) -> NotReadyError:
    # Of a comparison that is false there is nothing to see.
    last = "" if isinstance(seen, bool) else f"; last seen: {seen!r}"
    return NotReadyError(
        "\n".join(filter(None, (f"{what}: not after {seconds:.0f} s{last}", also)))
    )


def _source(holds: Callable[[], Any]) -> str:
    try:
        return " ".join(inspect.getsource(holds).split())[:200]
    except (OSError, TypeError):  # of a builtin, or of a bound method of one
        return repr(holds)
