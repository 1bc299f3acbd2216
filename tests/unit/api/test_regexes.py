"""Regular expressions as Go has them."""

import subprocess
import sys

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.api.regexes import judge_regex, regex_problem, searcher


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "node-[0-9]+",
        "^rack-(1|2)-.*$",
        r"\d+\.example\.com",
        "(?i)NODE",
        "(?P<rack>a)",
        "(?<rack>a)",
        "[[:alpha:]]",
        r"\pL",
        r"\p{Greek}",
        "a{1000}",
        r"\Q(\E",
        r"\\C",
        r"\Q\C\E",
        "knoten-ä",
        "(a*)*b",
    ],
)
def test_what_go_takes(pattern: str) -> None:
    assert regex_problem(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "a(b",
        "[a",
        "*a",
        "a**",
        "a++",
        "a{2,1}",
        "a{1001}",
        "(a{100}){100}",
        "node-(?=1)",
        "node-(?!1)",
        "(?<=a)b",
        r"(a)\1",
        "(?P=x)",
        "(?#comment)",
        "(?>a)",
        r"\Z",
        "\\",
        r"\C",
        r"a\C+",
        r"\p{Klingon}",
        "(?P<é>a)",
        "(?<n>a)(?<größe>b)",
    ],
)
def test_what_go_does_not_take(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    problem = regex_problem(pattern)
    assert problem is not None
    assert f'found "{pattern}": ' in problem
    assert capfd.readouterr() == ("", "")


def test_a_large_pattern_is_distinguished_from_an_invalid_one() -> None:
    for text in ("(?:a{1000})(?:a{1000})", "rack-[0-9]+"):
        found = judge_regex(text)
        assert (found.problem, found.large) == (None, False)
        assert 0 < found.instructions < 3000
    for text in ("a" * 16_385, r"(\pL{30}){30}"):
        assert judge_regex(text).large
    assert judge_regex(r"\pL{100}").instructions > 100_000
    assert not judge_regex("(").large


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    problem = regex_problem(text)
    assert problem is None or problem.startswith("must be a regular expression of RE2")


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    script = "import sys, pumice.api.regexes; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_an_endless_pattern_is_not_even_compiled(capfd: pytest.CaptureFixture[str]) -> None:
    assert regex_problem("a" * 3_000_000) == "must have at most 16384 characters, found 3000000"
    assert regex_problem("(a|b){1000}" * 1000) is not None
    assert regex_problem("ab" * 8000) is None
    assert capfd.readouterr().err == ""


_PARTS = st.sampled_from(
    [
        "a",
        "n-1",
        "^",
        "$",
        "*",
        "+",
        "?",
        "{2}",
        "{0,1}",
        "|",
        "(",
        ")",
        "(?i)",
        r"\Q",
        r"\E",
        r"\.",
        "[ab]",
        ".",
        r"\b",
    ]
)


@given(
    st.lists(_PARTS, max_size=6).map("".join),
    st.lists(st.text("an1-.AB", max_size=6), min_size=1, max_size=8),
)
@example(r"a\Q\E*n", ["n", "an"])
@example(r"a\Q.\E?n", ["an", "a.n"])
def test_a_pattern_is_found_where_re2_finds_it(pattern: str, names: list[str]) -> None:
    if regex_problem(pattern) is None:
        search = searcher(pattern)
        expected = [re2.search(pattern, name) is not None for name in names]
        assert [search(name) for name in names] == expected
