"""Links within the repository lead somewhere, and tests that pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages

_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    headings = _HEADING.findall(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def links(page: Path) -> list[str]:
    """Targets of a page's links, but for those that lead out of the repository."""
    targets = _LINK.findall(_CODE.sub("", page.read_text()))
    return [each for each in targets if not re.match(r"[a-z]+:", each)]


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT):
            broken.append(f"{link}: there is no {target}")
        elif anchor and anchor not in anchors(target):
            broken.append(f"{link}: {target.name} has no such heading")
    assert broken == []


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    missing = []
    for file, name in _TEST.findall(page.read_text()):
        found = (ROOT / file).read_text() if (ROOT / file).exists() else None
        if found is None or (name and not re.search(rf"^(async )?def {name}\(", found, re.M)):
            missing.append(f"{file}::{name}" if name else file)
    assert missing == []


def test_every_line_about_tenants_is_shown_by_a_test() -> None:
    text = (ROOT / "docs/operations.md").read_text()
    (table,) = re.findall(
        r"^\| a tenant \| what happens \| test \|\n\|.*\n((?:\|.*\n)+)", text, re.M
    )
    rows = table.splitlines()
    assert len(rows) > 10
    assert [row for row in rows if not _TEST.search(row.split(" | ")[-1])] == []


def test_every_page_can_be_reached_from_the_first() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
            waiting += [each for each in targets if each.suffix == ".md" and each.exists()]
    assert [page.name for page in all_pages() if page not in reached] == []
