"""The page on policies: it follows from the code, and every rule stands on it."""

from pathlib import Path

import pytest

from pumice.webhook.policies.coverage import table
from pumice.webhook.rules.catalogue import ALL
from tests.docs.pages import ROOT
from tools import policies_page
from tools.generate import GENERATORS

PAGE = ROOT / "docs/policies.md"


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert policies_page.main(["--check", str(PAGE)]) == 0, capsys.readouterr().err
    assert ("tools.policies_page", "docs/policies.md") in GENERATORS


def test_a_stale_page_is_named_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "policies.md"
    stale.write_text("old\n")
    assert policies_page.main(["--check", str(stale)]) == 1
    assert str(stale) in capsys.readouterr().err
    assert stale.read_text() == "old\n"
    assert policies_page.main([str(stale)]) == 0
    assert stale.read_text() == PAGE.read_text()


def test_every_rule_has_a_line_that_says_who_sees_to_it() -> None:
    lines = PAGE.read_text().splitlines()
    for found, rule in zip(table(), ALL, strict=True):
        (line,) = (
            each
            for each in lines
            if each.startswith(f"| [`{rule.code}`]") and each.count(" | ") == 3
        )
        for kind in found.kinds:
            assert kind.kind in line
        assert line.count("| yes |") == found.schema
