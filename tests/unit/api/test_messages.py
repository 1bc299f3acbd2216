"""Messages of bounded length."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pumice.api.messages import LONGEST, listed, shortened


def size(text: str) -> int:
    return len(text.encode())


def test_what_fits_is_whole() -> None:
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed([]) == ""
    assert shortened("a" * LONGEST) == "a" * LONGEST


def test_of_many_the_first_and_the_number_of_the_others() -> None:
    assert listed(["a" * 20] * 10, most=70) == f"{'a' * 20}, {'a' * 20}, and 8 more"
    assert listed(["a" * 20] * 10, " and ", most=70) == f"{'a' * 20} and {'a' * 20} and 8 more"
    assert listed(["a" * 20] * 10, "; ", most=70) == f"{'a' * 20}; {'a' * 20}; and 8 more"


def test_a_long_first_part_is_cut() -> None:
    assert listed(["ä" * 100], most=64) == f"{'ä' * 30}…"
    assert listed(["a" * 100, "b"], most=64) == f"{'a' * 49}…, and 1 more"


@given(
    st.lists(st.text("aä😀", min_size=1, max_size=40), max_size=60),
    st.sampled_from((", ", "; ", " and ")),
    st.integers(64, 300),
)
def test_any_list(parts: list[str], separator: str, most: int) -> None:
    text = listed(parts, separator, most)
    assert size(text) <= most
    if text == separator.join(parts):
        return
    end = re.search(r"^(.*?)(?:; |, | )and (\d+) more$", text, re.DOTALL)
    if end is None:
        assert len(parts) == 1
        assert text.endswith("…")
        return
    shown = end[1].split(separator)
    assert len(shown) + int(end[2]) == len(parts)
    assert shown[1:] == parts[1 : len(shown)]
    assert shown[0] == parts[0] or shown[0].endswith("…")


@given(st.text(max_size=200), st.integers(8, 100))
def test_any_text(text: str, most: int) -> None:
    cut = shortened(text, most)
    assert len(cut.encode(errors="replace")) <= max(most, 0)
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
