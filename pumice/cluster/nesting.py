"""Decoding of JSON that is nested more deeply than the decoder can follow.

msgspec stops at a depth that depends on the Python version and on the caller. API servers store objects that are nested up to
10,000 levels deep, for example in a Job's pod template. One such object must not end the watch of its kind, and a list must not
fail because of it. So what is nested too deeply is left out.
"""

import re
from typing import TypeVar

import msgspec

__all__ = ["DEEPEST", "decode"]

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
