"""Regular expressions as Go has them."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.regexes import judge_regex, regex_problem


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
