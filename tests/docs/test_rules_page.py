"""The page of rules: every code has an address, and the page stays one that can be found through."""

from __future__ import annotations

import re

import pytest

from pumice.webhook.rules.catalogue import ALL, section_of
from pumice.webhook.rules.rule import Rule
from tests.docs.pages import ROOT, blocks, commands
from tools import rules_page

MISTAKES = ROOT / "docs/mistakes.md"


def test_the_contents_lead_to_every_section() -> None:
    text = rules_page.page()
    contents = text.partition("## Contents\n")[2].partition("\n## ")[0]
    titles = [section_of(rule.code).title for rule in ALL]
    for title in dict.fromkeys(titles):
        anchor = title.lower().replace(" ", "-")
        assert f"- [{title}](#{anchor})\n" in contents
        assert f"\n## {title}\n" in text


def test_a_code_stands_under_a_heading_of_its_own_with_all_that_the_rule_says() -> None:
    parts = re.split(r"^### ", rules_page.page(), flags=re.MULTILINE)
    by_code = {part.partition("\n")[0]: part for part in parts}
    for rule in ALL:
        text = by_code[rule.code]
        assert (" ".join(rule.why.split()) in text) == (rule.why != rules_page.USUAL)
        assert " ".join(rule.example.replace("`", "").split()) in text
        assert rule.title[1:] in " ".join(text.split())


def test_a_section_without_a_name_is_shown_too(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Rule("NEW-THING", "things are new", "Old ones break.", "thing: old | older", since="9.9")
    monkeypatch.setattr(rules_page, "ALL", (*ALL, new))
    text = rules_page.page()
    assert "- [NEW](#new)\n" in text
    assert "Things are new. Old ones break.\n\nRefuses since 9.9: `thing: old | older`" in text


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        (Rule("A", "a", "b.", "c"), "refuses"),
        (Rule("A", "a", "b.", "c", stricter=True), "refuses, stricter"),
        (Rule("A", "a", "b.", "c", level="warn"), "warns"),
        (Rule("A", "a", "b.", "c", level="off"), "off"),
    ],
)
def test_the_answer_of_a_rule_is_its_own_level(rule: Rule, answer: str) -> None:
    assert rules_page.answer(rule) == answer


def test_there_are_ten_mistakes_and_each_is_shown() -> None:
    headings = re.findall(r"^## (\d+)\. ", MISTAKES.read_text(), flags=re.MULTILINE)
    assert headings == [str(number) for number in range(1, 11)]
    run = "\n".join(
        command.text for block in blocks(MISTAKES) if block.is_run for command in commands(block)
    )
    for file in (ROOT / "examples/mistakes").iterdir():
        assert f"examples/mistakes/{file.name}" in run


def test_the_codes_of_the_mistakes_are_rules() -> None:
    shown = set(re.findall(r"\[([A-Z]+-[A-Z-]+)\]$", MISTAKES.read_text(), flags=re.MULTILINE))
    assert len(shown) >= 12
    assert shown <= {rule.code for rule in ALL}
