"""Every row of the list of Volcano's expected behaviour is in the case tables, with the answer that the list gives.

`tests/cases/reference-rows.yaml` says where each one is. The rows about the server and its flags are no reviews;
`test_registrations.py` and `tests/integration/webhook/test_http.py` have them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import tables
from tests.unit.webhook.reviewing import FOLDER

Raw = dict[str, Any]

REFERENCE: Raw = tables.table("reference-rows")
SECTIONS: list[Raw] = REFERENCE["sections"]
CASES = {
    file.stem: tables.table(f"webhook/{file.stem}")["cases"]
    for file in sorted(FOLDER.glob("*.yaml"))
}


def places(section: Raw) -> Iterator[tuple[str, str, str]]:
    """Table, word of the reference and id of each row of a section."""
    for table in section.keys() & CASES.keys():
        for word, ids in section[table].items():
            for each in ids:
                yield table, word, each


def verdict(case: Raw) -> str:
    return "refused" if "codes" in case or "errored" in case else "admitted"


@pytest.mark.parametrize("section", SECTIONS, ids=[each["section"] for each in SECTIONS])
def test_a_section_is_there(section: Raw) -> None:
    wanted = list(places(section))
    assert len(wanted) == len(set(wanted)) == section["count"]
    for table, word, name in wanted:
        found = [case for case in CASES[table] if str(case["id"]) == name]
        assert [verdict(case) for case in found] == [word], (table, name)


@pytest.mark.parametrize("section", REFERENCE["worth adding"])
def test_what_was_worth_adding_is_there(section: str) -> None:
    for phrase, where in REFERENCE["worth adding"][section].items():
        for table, ids in where.items():
            known = {str(case["id"]) for case in CASES[table]}
            assert set(ids) <= known, phrase


def test_all_rows_are_counted() -> None:
    assert sum(section["count"] for section in SECTIONS) == 160
    assert len({section["section"] for section in SECTIONS}) == len(SECTIONS)


@pytest.mark.parametrize("text", ["cases: [{id: A1}, {id: A2}, {id: A1}]", "[{id: A1}, {id: A1}]"])
def test_an_id_stands_for_one_row(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "CASES", tmp_path)
    (tmp_path / "twice.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"^tests/cases/twice\.yaml: two rows have the id A1$"):
        tables.table("twice")
