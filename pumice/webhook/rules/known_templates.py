"""Cache of templates without problems, so that they are not checked again.

The result of a check depends only on the template and the settings. Jobs are often created from the same manifests, and
every update of a Job contains all its templates. Finding a template in the cache takes a quarter of the time of
checking it.
"""

from typing import Any

import msgspec

Raw = dict[str, Any]

_MOST = 256
"""Maximum number of cached templates; the oldest is removed first."""

_LONGEST = 8192
"""Maximum size of a cached template in bytes, so that the cache takes 2 MiB at most."""


class KnownTemplates(dict[bytes, None]):
    """Keys of templates without problems and warnings, for one set of settings."""

    __slots__ = ("_encode",)

    def __init__(self) -> None:
        super().__init__()
        self._encode = msgspec.msgpack.Encoder().encode

    def key(self, template: Raw) -> bytes:
        """Key of a template, computed from all its bytes; empty if it is not cached."""
        try:
            key = self._encode(template)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return b""  # it has excessive numbers, or invalid text
        return key if len(key) <= _LONGEST else b""

    def add(self, key: bytes) -> None:
        """Add a template by its key."""
        if not key:
            return
        if len(self) >= _MOST:
            del self[next(iter(self))]
        self[key] = None
