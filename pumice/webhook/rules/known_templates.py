"""Templates that were in order when they were judged, so that they need not be judged again.

Whether a template is in order depends on nothing but itself and the settings. Jobs are made from the same
manifests over and over, and every change of a Job brings all its templates along; to know one again costs
a quarter of judging it.
"""

from typing import Any

import msgspec

Raw = dict[str, Any]

_MOST = 256
"""Templates that are remembered; with the next one the oldest is forgotten."""

_LONGEST = 8192
"""Bytes of one that is remembered, so that all of them together take 2 MiB at most."""


class KnownTemplates(dict[bytes, None]):
    """Keys of what one set of settings has found nothing wrong with, not even anything doubtful."""

    __slots__ = ("_encode",)

    def __init__(self) -> None:
        super().__init__()
        self._encode = msgspec.msgpack.Encoder().encode

    def key(self, template: Raw) -> bytes:
        """A template to the last bit; empty for one that is not remembered."""
        try:
            key = self._encode(template)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return b""  # it holds numbers without end, or text that is none
        return key if len(key) <= _LONGEST else b""

    def add(self, key: bytes) -> None:
        """Remember a template by its key."""
        if not key:
            return
        if len(self) >= _MOST:
            del self[next(iter(self))]
        self[key] = None
