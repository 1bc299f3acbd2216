"""Every row of the job reference that is about plugins stands in the case tables, or is shown by a test."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.tables import CASES, table

Raw = dict[str, Any]

SECTIONS: list[Raw] = table("plugins/reference")
TESTS = CASES.parent


def ids(value: Any) -> Iterator[str]:
    """The ids in a table, wherever they stand in it."""
    if isinstance(value, dict):
        own = value.get("id", ())
        yield from [own] if isinstance(own, str) else own
        for each in value.values():
            yield from ids(each)
    elif isinstance(value, list):
        for each in value:
            yield from ids(each)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section["about"])
def test_every_row_is_there(section: Raw) -> None:
    wanted = [row for rows in section["tables"].values() for row in rows]
    elsewhere = [*section.get("shown", ()), *section.get("webhook", ())]
    assert len({*wanted, *elsewhere}) == len(wanted) + len(elsewhere) == section["count"]
    for name, rows in section["tables"].items():
        assert set(rows) <= set(ids(table(f"plugins/{name}"))), name
    for name, row in section.get("webhook", {}).values():
        assert row in set(ids(table(f"webhook/{name}")))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section["about"])
def test_every_test_that_shows_a_row_is_there(section: Raw) -> None:
    for where in section.get("shown", {}).values():
        file, name = where.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", sorted({name for section in SECTIONS for name in section["tables"]})
)
def test_an_id_stands_for_one_row(name: str) -> None:
    found = list(ids(table(f"plugins/{name}")))
    assert [each for each in found if found.count(each) > 1] == []
