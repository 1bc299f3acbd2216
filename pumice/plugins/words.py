"""How Volcano spells booleans and integers on a plugin's command line.

Volcano's plugins read their arguments with Go's flag package, and manifests rely on its spellings:
`T` is a boolean, `0x16` and `1_000` are integers, `yes` and `1e3` are neither.
"""

import re

from pumice.api.booleans import parse_bool

__all__ = ["MAX_INT64", "MIN_INT64", "boolean", "integer"]

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

_DECIMAL = 10
_ENOUGH = 40

_INTEGERS = (
    (re.compile(r"[+-]?0[xX](_?[0-9a-fA-F])+"), 16),
    (re.compile(r"[+-]?0[bB](_?[01])+"), 2),
    (re.compile(r"[+-]?0[oO](_?[0-7])+"), 8),
    (re.compile(r"[+-]?0(_?[0-7])+"), 8),
    (re.compile(r"[+-]?(0|[1-9](_?[0-9])*)"), _DECIMAL),
)


def boolean(word: str) -> bool | None:
    """Read a boolean; None if the word is not a boolean."""
    return parse_bool(word)


def integer(word: str) -> int | None:
    """Read an integer, with optional base prefix and `_` separators; None if the word is not an integer.

    Decimal numbers outside 64 bits are not returned exactly; they stay outside 64 bits.
    """
    for pattern, base in _INTEGERS:
        if pattern.fullmatch(word):
            digits = word.replace("_", "")
            # Python reads no decimal of thousands of digits; far fewer are beyond 64 bits, whichever follow.
            return int(digits[:_ENOUGH] if base == _DECIMAL else digits, base)
    return None
