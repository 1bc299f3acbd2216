"""The response of a watch: one JSON object on each line, split from network chunks.

The object inside an event stays undecoded (`msgspec.Raw`), so that the reader decodes it once, into its own struct.
"""

from collections.abc import AsyncGenerator, AsyncIterable

import msgspec

from pumice.cluster.nesting import decode

__all__ = ["frames"]


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
