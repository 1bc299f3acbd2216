"""A watch's answer: one JSON object a line, cut from whatever chunks the network delivers.

The object inside an event stays undecoded (`msgspec.Raw`), so that its reader decodes it once, into
the struct that it wants.
"""

from collections.abc import AsyncGenerator, AsyncIterable

import msgspec

__all__ = ["frames"]


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(_Frame)


async def frames(
    chunks: AsyncIterable[bytes],
) -> AsyncGenerator[tuple[str, msgspec.Raw], None]:
    """Split chunks into events.

    A last line without its end is dropped: the connection broke in the middle of it, and the
    watch goes on from the event before.

    Yields:
        Event type and the object's JSON.

    Raises:
        msgspec.DecodeError: When a whole line is no watch event.
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
                frame = _decoder.decode(line)
                yield frame.type, frame.object
