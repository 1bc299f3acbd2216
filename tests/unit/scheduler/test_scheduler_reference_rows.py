"""Every row of `tests/cases/scheduler-reference-rows.yaml` is in a case table, is shown by a test, or is left out for a reason."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.tables import CASES, table
from tests.unit.scheduler.scenarios import Raw, load_document

SECTIONS: list[Raw] = table("scheduler-reference-rows")
ROWS = 148


def of_section(test: Any) -> Any:
    names = [f"{section['section']} {section['about']}" for section in SECTIONS]
    return pytest.mark.parametrize("section", SECTIONS, ids=names)(test)


def ids(value: Any) -> Iterator[str]:
    """The ids in a table, wherever they stand in it."""
    if isinstance(value, dict):
        if "id" in value:
            yield str(value["id"])
        for each in value.values():
            yield from ids(each)
    elif isinstance(value, list):
        for each in value:
            yield from ids(each)


def test_no_row_is_reported_twice() -> None:
    rows: list[str] = []
    for section in SECTIONS:
        rows += [row for each in section.get("tables", {}).values() for row in each]
        rows += section.get("shown", ())
        rows += [row for each in section.get("left out", {}).values() for row in each]
    assert len(rows) == len(set(rows)) == ROWS


@of_section
def test_every_row_is_where_it_is_said_to_be(section: Raw) -> None:
    for name, rows in section.get("tables", {}).items():
        known = list(ids(load_document(name)))
        for row in rows:
            form = re.compile(re.escape(row) + r"([a-z]|-.+)?")
            assert any(form.fullmatch(each) for each in known), (name, row)


@of_section
def test_every_test_that_shows_a_row_is_there(section: Raw) -> None:
    for where in section.get("shown", {}).values():
        file, name = where.split("::")
        assert f"def {name}(" in (CASES.parent / file).read_text(encoding="utf-8")
