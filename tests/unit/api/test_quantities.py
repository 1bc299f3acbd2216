"""Quantities are exact integers in milli-units."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.quantities import QuantityError, format_milli, is_whole_milli, parse_milli


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("0", 0),
        ("1", 1000),
        ("500m", 500),
        ("1.5", 1500),
        (".5", 500),
        ("2.", 2000),
        ("+3", 3000),
        ("-250m", -250),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        ("1Gi", 1_073_741_824_000),
        ("1E", 10**21),
        ("1Ei", 2**60 * 1000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("12e-1", 1200),
        (2, 2000),
        (0.1, 100),
    ],
)
def test_a_quantity_is_read_exactly(text: object, milli: int) -> None:
    assert parse_milli(text) == milli


@pytest.mark.parametrize(
    ("text", "milli"), [("1n", 1), ("1u", 1), ("1001u", 2), ("-1u", -1), ("-1001u", -2)]
)
def test_what_is_finer_than_a_milli_is_rounded_away_from_zero(text: str, milli: int) -> None:
    assert parse_milli(text) == milli


def test_it_can_be_told_whether_something_was_rounded() -> None:
    assert is_whole_milli("1.5")
    assert is_whole_milli("-2Ki")
    assert not is_whole_milli("1u")
    assert not is_whole_milli("1.0001")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1GB",
        "one",
        "1.2.3",
        "--1",
        "0x10",
        "1e",
        "1_000",
        "١",
        None,
        True,
        [],
        "1e400",
        "1" * 5000,
    ],
)
def test_what_is_no_quantity_is_refused_with_the_text_in_the_message(text: object) -> None:
    with pytest.raises(QuantityError, match=r"quantit(ies must match|y's suffix)|exponents must"):
        parse_milli(text)


@given(st.integers(min_value=-(10**18), max_value=10**18))
def test_what_is_written_reads_back_the_same(milli: int) -> None:
    assert parse_milli(format_milli(milli)) == milli


@given(
    st.decimals(min_value=0, max_value=10**9, places=6),
    st.sampled_from(["", "k", "Ki", "m", "M", "Mi"]),
)
def test_reading_never_loses_more_than_a_milli(number: object, suffix: str) -> None:
    scales: dict[str, int | Fraction] = {
        "": 1,
        "k": 1000,
        "Ki": 1024,
        "m": Fraction(1, 1000),
        "M": 10**6,
        "Mi": 2**20,
    }
    exact = Fraction(str(number)) * scales[suffix] * 1000
    assert 0 <= parse_milli(f"{number}{suffix}") - exact < 1


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (0, "0"),
        (500, "500m"),
        (3000, "3"),
        (1_024_000, "1Ki"),
        (1_073_741_824_000, "1Gi"),
        (1_500_000, "1500"),
    ],
)
def test_the_shortest_usual_form_is_written(milli: int, text: str) -> None:
    assert format_milli(milli) == text
