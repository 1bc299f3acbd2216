"""`pumice rules`: what admission checks, in a terminal."""

import re

import pytest

from pumice.webhook.rules.catalogue import ALL
from tests.docs.pages import ROOT
from tests.unit.cli.conftest import Pumice


def test_every_rule_is_listed_under_its_section(pumice: Pumice) -> None:
    ran = pumice("rules")
    assert ran.code == 0
    listed = re.findall(r"^  ([A-Z-]+) +(refuses|warns|off) +(.+)$", ran.out, flags=re.MULTILINE)
    assert sorted(code for code, _, _ in listed) == sorted(rule.code for rule in ALL)
    assert ran.out.startswith("Jobs\n  JOB-NO-TASKS ")
    assert "\n\nPlugins of Jobs\n" in ran.out


@pytest.mark.parametrize("code", ["JOB-PLUGIN-NAME", "job-plugin-name", "[JOB-PLUGIN-NAME]"])
def test_one_rule_is_explained(pumice: Pumice, code: str) -> None:
    ran = pumice("rules", code)
    assert ran.code == 0
    first, *others = ran.out.splitlines()
    assert first == "JOB-PLUGIN-NAME: names that plugins make of the Job's name are valid"
    assert [line.split()[0] for line in others] == ["why", "not", "answer", "setting", "since"]
    assert "Volcano admits it, so with strict-upstream=true it warns" in ran.out
    assert "--set rule.JOB-PLUGIN-NAME=enforce" in ran.out


def test_the_beginning_of_codes_lists_those(pumice: Pumice) -> None:
    ran = pumice("rules", "JOB-QUEUE")
    assert ran.code == 0
    title, *lines = ran.out.splitlines()
    assert title == "Queues of Jobs"
    assert lines
    assert all(line.startswith("  JOB-QUEUE-") for line in lines)
    # A code that others begin with is still a code.
    assert pumice("rules", "JOB-PLUGIN").out.startswith("JOB-PLUGIN: ")


def test_what_the_schema_finds_is_explained_too(pumice: Pumice) -> None:
    """Lint says that the verb explains the code at the end of a line, of whatever kind it is."""
    ran = pumice("rules", "SCHEMA-PATTERN")
    assert ran.code == 0
    assert ran.out.startswith("SCHEMA-PATTERN: a string matches the pattern of its field\n  why ")
    assert "setting  none" in ran.out
    explained = {each["code"] for each in pumice("rules", "SCHEMA", "-o", "json").json}
    source = "".join(file.read_text() for file in (ROOT / "pumice").rglob("*.py"))
    told = set(re.findall(r'"SCHEMA-([A-Z]+)"', source))
    told |= set(re.findall(r'"([A-Z]+)",\s+"FieldValue', source))
    assert {code.removeprefix("SCHEMA-") for code in explained} == told


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("same  name", "JOB-DUP-TASK"),  # the title
        ("duplicated task name", "JOB-DUP-TASK"),  # Volcano's phrase
        (
            "admission webhook denied: duplicated task name w [x]",
            "JOB-DUP-TASK",
        ),  # a message with it
        ("DUP", "JOB-DUP-TASK"),  # within the code
        ("a number is neither too small", "SCHEMA-BOUNDS"),
    ],
)
def test_words_are_looked_for_in_rules_and_messages(pumice: Pumice, words: str, code: str) -> None:
    ran = pumice("rules", words)
    assert ran.code == 0
    assert f"  {code} " in ran.out
    assert len(ran.out.splitlines()) < len(ALL) / 4


def test_rules_as_data(pumice: Pumice) -> None:
    ran = pumice("rules", "-o", "json")
    assert [each["code"] for each in ran.json] == [rule.code for rule in ALL]
    (one,) = pumice("rules", "JOB-DUP-TASK", "-o", "json").json
    assert one == {
        "code": "JOB-DUP-TASK",
        "section": "Jobs",
        "title": "no two tasks of a Job have the same name",
        "why": "Their pods would have the same names.",
        "example": "tasks: [{name: worker}, {name: worker}]",
        "level": "enforce",
        "stricter": False,
        "reason": "FieldValueDuplicate",
        "since": "0.1",
    }


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("JOB-DUPTASK", "there is no rule 'JOB-DUPTASK' (did you mean \"JOB-DUP-TASK\"?)"),
        ("xyz", "there is no rule 'XYZ'; `pumice rules` lists them"),
    ],
)
def test_a_code_that_does_not_exist_is_one_line(pumice: Pumice, code: str, line: str) -> None:
    ran = pumice("rules", code)
    assert (ran.code, ran.out) == (2, "")
    assert line in ran.err
