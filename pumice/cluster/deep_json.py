"""Decoding of JSON that is nested more deeply than Python's recursion limit allows.

An API server stores up to 10,000 levels where a CRD keeps unknown fields, as in the containers of a Job. A decoder that only skips
them needs a level of C stack for each; Python would stop it after 1,000, and one such object would end the watch of all.
"""

import sys
from typing import Generic, TypeVar

import msgspec

__all__ = ["DeepDecoder"]

T = TypeVar("T")

LEVELS = 12_000
"""Levels that are skipped: those of an object, and those of the list or the event around it."""


class DeepDecoder(Generic[T]):
    """Decodes structs whose deep parts are skipped or stay `msgspec.Raw`."""

    def __init__(self, type: type[T]) -> None:  # noqa: A002 - the word that msgspec's decoders use
        self._decoder = msgspec.json.Decoder(type)

    def decode(self, raw: bytes | msgspec.Raw) -> T:
        """Decode JSON.

        Raises:
            msgspec.MsgspecError: It is not what is expected.
        """
        try:
            return self._decoder.decode(raw)
        except RecursionError:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(limit, LEVELS))
            try:
                return self._decoder.decode(raw)
            finally:
                sys.setrecursionlimit(limit)
