"""How Volcano spells integers on a plugin's command line.

Volcano's plugins read their arguments with Go's flag package, and manifests rely on its spellings:
`0x16` and `1_000` are integers, `1e3` is none.
"""

import re

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
