"""The page on compatibility gives every difference once, with its reason; the list of stricter rules is generated."""

from __future__ import annotations

import re

import pytest

from pumice.webhook.rules.catalogue import ALL
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs/compatibility.md").read_text()
ADMISSION = TEXT.partition("\n## Admission\n")[2].partition("\n## ")[0]
ROWS = [line for line in ADMISSION.splitlines() if line.startswith("| ")]
CODE = re.compile(r"`([A-Z]{1,4}-[A-Z-]+)`")


def test_every_code_of_the_page_is_one_of_a_rule() -> None:
    assert set(CODE.findall(TEXT)) <= {rule.code for rule in ALL}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:42])
def test_every_difference_has_its_reason(row: str) -> None:
    upstream, ours, why = row.strip("| ").split(" | ")
    assert upstream.strip()
    assert ours.strip()
    assert why.strip()


def test_no_difference_is_reported_twice() -> None:
    told = [row.partition(" | ")[0] for row in ROWS if not row.startswith("| Volcano |")]
    assert len(told) == len(set(told))
