"""How the words of `spec.plugins` are read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.plugins import (
    BOOLEAN,
    INTEGER,
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    ValueType,
    arguments,
)
from pumice.plugins.arguments import between, parse, shown
from pumice.plugins.upstream_arguments import parse_upstream
from tests.unit.plugins.support import rows

DEFAULTS = {"s": "default", "n": 7, "b": True}
SPEC = ArgumentSpec(
    Argument("s", TEXT, "default", "a text"),
    Argument("n", INTEGER, 7, "an integer"),
    Argument("b", BOOLEAN, True, "a boolean"),
)
FLAGS = ("s", "n", "b")


def values_of(row: dict[str, Any]) -> dict[str, Any]:
    return DEFAULTS | {name: row[name] for name in FLAGS if name in row}


@pytest.mark.parametrize("row", rows("arguments"))
def test_every_word_is_read(row: dict[str, Any]) -> None:
    expected = row.get("pumice", row["upstream"])

    parsed = parse(SPEC, row["words"])

    assert parsed.values.of == values_of(expected)
    problems = expected.get("problems", [])
    assert [problem.used for problem in parsed.problems] == [used for _, used in problems]
    for problem, (fragment, _) in zip(parsed.problems, problems, strict=True):
        assert fragment in problem.message


@pytest.mark.parametrize("row", rows("arguments"))
def test_strict_upstream_stops_where_volcano_stops(row: dict[str, Any]) -> None:
    parsed = parse_upstream(SPEC, row["words"])

    assert parsed.values.of == values_of(row["upstream"])
    assert bool(parsed.problems) == row["upstream"].get("complains", False)


@pytest.mark.parametrize("word", ["9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000])
def test_no_number_is_too_long_to_be_refused(word: str) -> None:
    bounded = ArgumentSpec(Argument("p", PORT, 22, ""), Argument("n", INTEGER, 7, ""))

    parsed = parse(bounded, [f"--p={word}", f"--n={word}"])

    assert parsed.values.of == {"p": 22, "n": 7}
    expected = ["expected a port from 1 to 65535; 22", "expected an integer of 64 bits; 7"]
    found = [each.message.removesuffix(" is used instead") for each in parsed.problems]
    assert [each[-len(end) :] for each, end in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("word", "found", "upstream"),
    [("1", 1, 1), ("9", 9, 9), ("0", 5, 0), ("10", 5, 10), ("x", 5, 0), ("9" * 30, 5, 2**63 - 1)],
)
def test_a_number_has_bounds_that_volcano_does_not_see(
    word: str, found: int, upstream: int
) -> None:
    spec = ArgumentSpec(Argument("n", between("digit", "a digit", 1, 9), 5, ""))

    assert parse(spec, [f"--n={word}"]).values["n"] == found
    assert parse_upstream(spec, [f"--n={word}"]).values["n"] == upstream


def test_a_problem_says_where_what_and_what_instead() -> None:
    (problem,) = parse(SPEC, ["--b=0", "--n", "abc"]).problems

    assert problem.position == 1
    assert problem.message == 'bad value "abc" for --n: expected an integer; 7 is used instead'


def test_an_unknown_flag_suggests_the_one_that_was_meant() -> None:
    spec = ArgumentSpec(Argument("inject-hosts-env", BOOLEAN, True, "help"))

    (problem,) = parse(spec, ["--inject-host-env=0"]).problems

    assert problem.message == (
        'unknown argument --inject-host-env is ignored (did you mean "--inject-hosts-env"?); '
        "--inject-hosts-env is true"
    )
    assert problem.used == "true"


def test_what_is_used_instead_may_stand_behind_the_mistake() -> None:
    (problem,) = parse(SPEC, ["--n=abc", "--n=9"]).problems

    assert problem.message == 'bad value "abc" for --n: expected an integer; 9 is used instead'


def test_an_empty_default_is_said_to_stay_empty() -> None:
    spec = ArgumentSpec(Argument("key", TEXT, "", "help"))

    (problem,) = parse(spec, ["--key"]).problems

    assert problem.message == "--key has no value; --key stays empty"


def test_a_word_behind_a_boolean_is_no_value_of_another() -> None:
    (problem,) = parse(SPEC, ["--b", "--n=3", "false"]).problems

    assert problem.message == '"false" is not a flag and is ignored: flags are written --name=value'


def test_a_plugin_without_flags_says_so() -> None:
    problems = parse(ArgumentSpec(), ["--x", "y"]).problems

    assert [problem.message for problem in problems] == [
        "unknown argument --x is ignored (it takes no arguments)"
    ]


def test_values_know_what_the_job_set() -> None:
    values = parse(SPEC, ["--n=7", "--b=maybe"]).values

    assert values.given == {"n"}
    assert values["n"] == 7


def test_no_words_give_the_defaults() -> None:
    assert parse(SPEC, []).values is SPEC.defaults


@pytest.mark.parametrize("port", ["0", "65536", "-1", "99999999999999999999", "http"])
def test_a_port_is_a_port(port: str) -> None:
    spec = ArgumentSpec(Argument("port", PORT, 2222, "help"))

    parsed = parse(spec, [f"--port={port}"])

    assert parsed.values["port"] == 2222
    assert len(parsed.problems) == 1


def test_volcano_takes_any_integer_for_a_port() -> None:
    spec = ArgumentSpec(Argument("port", PORT, 2222, "help"), Argument("s", TEXT, "", "help"))

    parsed = parse_upstream(spec, ["--port=99999999999", "--s=a"])

    assert (parsed.values["port"], parsed.values["s"]) == (99999999999, "a")
    assert parsed.problems == ()


def test_a_kind_of_ones_own_says_what_it_expected() -> None:
    def read(word: str) -> str:
        if word not in ("red", "blue"):
            raise ValueError("expected red or blue")
        return word

    spec = ArgumentSpec(Argument("colour", ValueType("colour", read), "red", "help"))

    for parsed in (parse(spec, ["--colour=green"]), parse_upstream(spec, ["--colour=green"])):
        assert parsed.values["colour"] == "red"
        assert "expected red or blue" in parsed.problems[0].message


def test_a_flag_is_declared_once() -> None:
    with pytest.raises(ValueError, match="--n is declared twice"):
        ArgumentSpec(Argument("n", INTEGER, 1, ""), Argument("n", INTEGER, 2, ""))


def test_values_are_shown_as_users_write_them() -> None:
    assert [shown(each) for each in (True, 7, (), ("a", "b"), (("a", "b"), ("c",)))] == [
        "true",
        "7",
        "",
        "a,b",
        "a,b;c",
    ]


WORDS = st.lists(
    st.one_of(
        st.sampled_from(["--s", "--n=3", "--n", "--b", "-b=T", "--", "-", "", "junk", "--zz", "5"]),
        st.text(max_size=8),
        st.text(max_size=4).map(lambda text: f"--{text}"),
    ),
    max_size=6,
)


@given(WORDS)
def test_no_words_whatever_stop_the_reader(words: list[str]) -> None:
    for parsed in (parse(SPEC, words), parse_upstream(SPEC, words)):
        assert set(parsed.values.of) == set(FLAGS)
        assert isinstance(parsed.values["n"], int)
        assert isinstance(parsed.values["b"], bool)
        assert parsed.values.given <= set(FLAGS)


@given(WORDS)
def test_a_word_is_used_or_reported(words: list[str]) -> None:
    parsed = parse(SPEC, words)

    assert words == [] or parsed.values.given or parsed.problems
    assert [p.position for p in parsed.problems] == sorted(p.position for p in parsed.problems)


def test_stray_words_cost_nothing_once_there_are_enough_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    positions: list[int] = []
    fault = arguments._Fault

    def noted(position: int, *given: Any) -> Any:
        positions.append(position)
        return fault(position, *given)

    monkeypatch.setattr(arguments, "_Fault", noted)
    problems = parse(SPEC, ["x"] * 1000).problems
    assert len(positions) == len(problems) < 1000
