"""Decoding of what an API server answers: JSON of any depth, and the events of a watch.

msgspec stops at a depth that depends on the Python version and on the caller. API servers store objects that are nested up to
10,000 levels deep, for example in a Job's pod template. One such object must not end the watch of its kind, and a list must not
fail because of it. So what is nested too deeply is left out.

A watch answers with one JSON object on each line. The object inside an event stays undecoded (`msgspec.Raw`), so that the
reader decodes it once, into its own struct.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TypeVar

import msgspec

__all__ = ["DEEPEST", "decode", "frames"]

T = TypeVar("T")

DEEPEST = 100
"""Levels that are kept of a body that cannot be decoded as it is; no valid object has as many."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Decode a body; what is nested too deeply to be decoded is null.

    Raises:
        msgspec.MsgspecError: The body is not what the decoder expects.
    """
    try:
        return decoder.decode(body)
    except RecursionError:
        return decoder.decode(_shallow(bytes(body)))


def _shallow(body: bytes) -> bytes:
    """A body with null in place of every value that is nested deeper than `DEEPEST`."""
    parts: list[bytes] = []
    start = depth = 0
    for token in _TOKEN.finditer(body):
        match body[token.start() : token.start() + 1]:
            case b"{" | b"[":
                depth += 1
                if depth == DEEPEST + 1:
                    parts += (body[start : token.start()], b"null")
            case b"}" | b"]":
                depth -= 1
                if depth == DEEPEST:
                    start = token.end()
    return b"".join([*parts, body[start:]])


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(_Frame)


async def frames(
    chunks: AsyncIterable[bytes],
) -> AsyncGenerator[tuple[str, msgspec.Raw], None]:
    """Split chunks into events.

    A last line without a line end is dropped: the connection broke there, and the watch continues after the event
    before.

    Yields:
        Event type and the object's JSON.

    Raises:
        msgspec.DecodeError: When a complete line is not a watch event.
    """
    rest: list[bytes] = []
    async for chunk in chunks:
        *lines, tail = chunk.split(b"\n")
        if lines:
            # Joining only when a line ends keeps a large event that arrives in many chunks linear.
            lines[0] = b"".join((*rest, lines[0]))
            rest.clear()
        if tail:
            rest.append(tail)
        for line in lines:
            if line:
                frame = decode(_decoder, line)
                yield frame.type, frame.object
