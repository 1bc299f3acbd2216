"""Logs of containers: files in the format of kubelet's, with a limit on what is kept.

A line is `TIME stdout F TEXT`, or `P` for a part of a long line. Both outputs of a container share one pipe, so that their order stays. A
container that writes faster than the limit waits, as for a slow disk; the other pods and the API server, which share this process, do not.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pumice.embedded.pod_streams import ContainerLogRequest

Line = Callable[[bytes], None]
"""Called with each line, without its end."""

_MOST_BYTES = 8 * 1024 * 1024
"""Bytes of a file; when it is full, it takes the place of the one before it."""
_LONGEST = 16_384
"""Bytes of a line before it is written in parts, as container runtimes do."""
_CHUNK = 32_768
_BYTES_PER_SECOND = 4 * 1024 * 1024
_GAP = b"(lines are missing here: more was written than is kept, faster than it was read)"


class ContainerLog:
    """The log of one run of a container.

    Args:
        file: Where it lies; there is at most one more file beside it.
        on_line: Called with each line.
    """

    def __init__(self, file: Path, on_line: Line) -> None:
        self._file = file
        self._on_line = on_line
        self._rest = b""
        self._size = 0
        self._reading = -1
        self._lost = 0
        file.parent.mkdir(parents=True, exist_ok=True)
        self._stream = file.open("ab")
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.drained: asyncio.Future[None] = self._loop.create_future()

    def follow(self, reading: int) -> None:
        """Take what comes out of a pipe until its last writer has closed it."""
        os.set_blocking(reading, False)
        self._reading = reading
        self._loop.add_reader(reading, self._read)

    def close(self) -> None:
        """Take nothing more."""
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1
        if self._rest:
            self._write(self._rest, "F")
            self._rest = b""
        self._stream.close()
        self._wake()
        if not self.drained.done():
            self.drained.set_result(None)

    def remove(self) -> None:
        """Remove its files."""
        for file in (self._file, self._former()):
            file.unlink(missing_ok=True)

    def tail(self, number: int) -> list[str]:
        """The last lines, as text."""
        return [
            line.partition(b" F ")[2].rstrip(b"\n").decode(errors="replace")
            for line in list(self._lines())[-number:]
        ]

    async def read(self, asked: ContainerLogRequest) -> AsyncIterator[bytes]:
        """What was written, as `kubectl logs` shows it; with `follow` it goes on until the container has ended."""
        since = asked.since_time
        if asked.since_seconds is not None:
            since = time.time() - asked.since_seconds
        left = asked.limit if asked.limit is not None else 1 << 62
        position, lost = self._size, self._lost
        lines = list(self._lines())
        if asked.tail is not None:
            lines = lines[-asked.tail :] if asked.tail else []
        while True:
            for line in lines:
                shown = _shown(line, since, timestamps=asked.timestamps)[:left]
                left -= len(shown)
                if shown:
                    yield shown
            if not asked.follow or left <= 0:
                return
            while self._size == position and self._lost == lost:
                if self._stream.closed:
                    return
                await self._changed.wait()
            lines = list(self._lines_since(position, lost))
            position, lost = self._size, self._lost

    def _lines_since(self, position: int, lost: int) -> Iterator[bytes]:
        """Lines beyond a position in the file that was written after so many had been lost."""
        if self._lost == lost:
            yield from _lines_of(self._file, position)
        elif self._lost == lost + 1:
            yield from _lines_of(self._former(), position)
            yield from _lines_of(self._file)
        else:
            yield _line_of(_GAP, "F")
            yield from self._lines()

    def _read(self) -> None:
        try:
            chunk = os.read(self._reading, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._write(line, "F")
        while len(self._rest) > _LONGEST:
            self._write(self._rest[:_LONGEST], "P")
            self._rest = self._rest[_LONGEST:]
        self._stream.flush()
        self._wake()
        if len(chunk) == _CHUNK:
            self._loop.remove_reader(self._reading)
            self._loop.call_later(_CHUNK / _BYTES_PER_SECOND, self._resume)

    def _resume(self) -> None:
        if self._reading >= 0:
            self._loop.add_reader(self._reading, self._read)

    def _write(self, text: bytes, kind: str) -> None:
        if self._size > _MOST_BYTES:
            self._stream.close()
            self._file.replace(self._former())
            self._stream = self._file.open("wb")
            self._size = 0
            self._lost += 1
        self._size += self._stream.write(_line_of(text, kind))
        self._on_line(text)

    def _former(self) -> Path:
        return self._file.with_name(f"{self._file.name}.1")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _lines(self) -> Iterator[bytes]:
        if not self._stream.closed:
            self._stream.flush()
        yield from _lines_of(self._former())
        yield from _lines_of(self._file)


def _lines_of(file: Path, position: int = 0) -> Iterator[bytes]:
    with suppress(FileNotFoundError), file.open("rb") as stream:
        stream.seek(position)
        yield from stream


def _line_of(text: bytes, kind: str) -> bytes:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    return b"%s stdout %s %s\n" % (moment.encode(), kind.encode(), text)


def _shown(line: bytes, since: float | None, *, timestamps: bool) -> bytes:
    """A line of the file as a reader sees it."""
    moment, _, rest = line.partition(b" ")
    _, kind, text = rest.split(b" ", 2)
    if (
        since is not None
        and datetime.fromisoformat(moment[:26].decode() + "+00:00").timestamp() < since
    ):
        return b""
    if kind == b"P":
        text = text.rstrip(b"\n")
    return moment + b" " + text if timestamps else text
