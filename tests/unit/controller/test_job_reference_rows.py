"""Every row of `tests/cases/job-reference-rows.yaml` is in a case table, is shown by a test, or is documented as absent."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.kit.tables import CASES, table

Raw = dict[str, Any]

SECTIONS: list[Raw] = table("job-reference-rows")
TESTS = CASES.parent
COMPATIBILITY = TESTS.parent / "docs" / "compatibility.md"


def of_section(test: Any) -> Any:
    names = [f"{section['section']} {section['about']}" for section in SECTIONS]
    return pytest.mark.parametrize("section", SECTIONS, ids=names)(test)


def ids(value: Any) -> Iterator[str]:
    """The ids in a table, wherever they stand in it."""
    if isinstance(value, dict):
        own = value.get("id", ())
        yield from [str(own)] if isinstance(own, str | int) else map(str, own)
        for each in value.values():
            yield from ids(each)
    elif isinstance(value, list):
        for each in value:
            yield from ids(each)


@cache
def known(name: str) -> Counter[str]:
    return Counter(ids(table(name)))


@of_section
def test_no_row_is_forgotten_and_none_is_reported_twice(section: Raw) -> None:
    wanted = [f"{series}-{at + 1}" for series, rows in section["ids"].items() for at in range(rows)]
    told = [row for rows in section.get("tables", {}).values() for row in rows]
    told += [*section.get("as", ()), *section.get("shown", ())]
    told += section.get("absent", {}).get("rows", ())
    assert sorted(told) == sorted(wanted)


def test_all_rows_are_counted() -> None:
    assert [section["section"] for section in SECTIONS] == list(range(1, 23))
    assert sum(sum(section["ids"].values()) for section in SECTIONS) == 406
    series = [each for section in SECTIONS for each in section["ids"]]
    assert len(series) == len(set(series))


@of_section
def test_every_row_is_where_it_is_said_to_be(section: Raw) -> None:
    for name, rows in section.get("tables", {}).items():
        without = {each[:-1] if each[-1:].isalpha() else each for each in known(name)}
        assert [row for row in rows if row not in without] == [], name
    for where in section.get("as", {}).values():
        name, row = where.split()
        assert row in known(name), where


@of_section
def test_every_test_that_shows_a_row_is_there(section: Raw) -> None:
    for where in section.get("shown", {}).values():
        file, name = where.split("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


@of_section
def test_what_is_absent_is_reported_to_users(section: Raw) -> None:
    if "absent" in section:
        page = COMPATIBILITY.read_text(encoding="utf-8")
        _, _, missing = page.partition("## What is not here yet")
        assert section["absent"]["sentence"] in " ".join(missing.split())
        assert section["absent"]["why"]


@pytest.mark.parametrize(
    "name", sorted({name for section in SECTIONS for name in section.get("tables", ())})
)
def test_an_id_stands_for_one_row(name: str) -> None:
    assert [row for row, times in known(name).items() if times > 1] == []
