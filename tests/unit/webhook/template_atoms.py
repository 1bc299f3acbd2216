"""Hypothesis strategies for single values of pod templates: mostly good, sometimes at the edge or beyond."""

from typing import Any

from hypothesis import strategies as st

Raw = dict[str, Any]
Strategy = st.SearchStrategy[Any]

_ODD_NAMES = (
    "", "A", "a_b", "a.b", "-a", "a-", "a/b", "a b", ".", "..", "0", "a" * 63, "a" * 64, "a." * 126 + "a",
    "a" * 254, "é", "a\n",
)  # fmt: skip
_ODD_KEYS = (
    "", "a", "A.b_c", "example.com/a", "Example.com/a", "/a", "a/", "a/b/c", "a b", "-a", "a" * 63, "a" * 64,
    "e" * 253 + "/a", "e" * 254 + "/a",
)  # fmt: skip
_ODD_NUMBERS = (-(2**31), -1, 0, 1, 100, 101, 511, 512, 65535, 65536, 2**31 - 1)
_ANYTHING: tuple[Any, ...] = (None, "", 0, 1, True, [], {}, "true", 1.5)


def mostly(good: Strategy, odd: Strategy) -> Strategy:
    """The one, and now and then the other: too many mistakes in a template hide each other."""
    return sampled(*range(8)).flatmap(lambda drawn: odd if drawn == 7 else good)


def sampled(*values: Any) -> Strategy:
    return st.sampled_from(values)


def fields(required: dict[str, Strategy] | None = None, **optional: Strategy) -> Strategy:
    """Objects with these members; an optional one is there every other time."""
    return st.fixed_dictionaries(required or {}, optional=optional)


def listed(item: Strategy, most: int = 2) -> Strategy:
    return st.lists(item, min_size=1, max_size=most)


def choice(*known: str) -> Strategy:
    """One of the words that exist; or one that does not."""
    return mostly(sampled(*known), sampled("", known[0].lower(), "Sometimes"))


LABEL_NAMES = mostly(sampled("a", "b", "main", "c-1", "0d"), sampled(*_ODD_NAMES))
SUBDOMAINS = mostly(sampled("a", "b.c", "x-1.y"), sampled(*_ODD_NAMES))
KEYS = mostly(sampled("a", "app", "b.c/d", "X_y", "rev"), sampled(*_ODD_KEYS))
VALUES = mostly(sampled("a", "t", "", "B.c_d"), sampled("a b", "-", "a" * 63, "a" * 64, "é"))
LABELS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=2)
TEXTS = sampled("a", "", "b c", "/d/e", "$(X)")
BOOLEANS = st.booleans()
PATHS = mostly(
    sampled("a", "b/c", "/d", "e.f"), sampled("", ".", "..", "../a", "a/../b", "..a", "/", "a/..")
)
IDS = mostly(sampled(0, 1000, 2**31 - 1), sampled(-1, 2**31))
ADDRESSES = mostly(
    sampled("10.0.0.1", "::1", "2001:db8::1"),
    sampled(
        "", "1.2.3", "1.2.3.256", "01.2.3.4", "::ffff:1.2.3.4", "fe80::1%0", "a.b", "::1.2.3.4"
    ),
)


def numbers(*good: int) -> Strategy:
    """Numbers that are fine, or of the edges that Kubernetes has somewhere."""
    return mostly(sampled(*good), sampled(*_ODD_NUMBERS))


def spoilt(good: Strategy) -> Strategy:
    """A value, or very seldom one of any type."""
    return sampled(*range(20)).flatmap(lambda drawn: sampled(*_ANYTHING) if drawn == 19 else good)


CPU = mostly(sampled("1", "500m", 2, 0.25, "1e0"), sampled(0, "-1", "1n", "0.0001", "1k", "x"))
MEMORY = mostly(
    sampled("1Gi", "64Mi", 1024, "1e6", "5M"), sampled("0", "-1Ki", "1m", "1.5", "5.", "1g")
)
COUNTS = mostly(sampled(1, "2", "1k"), sampled("1.5", "500m", 0, -1, "1e-1"))
