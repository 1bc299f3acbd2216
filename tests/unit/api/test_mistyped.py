"""What is said of a value of a wrong type, and what it is taken for."""

from typing import Any

import msgspec
import pytest

from pumice.api.mistyped import another, meant, problem
from tests.kit import tables

ROWS: list[dict[str, Any]] = tables.table("mistyped")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_wrong_type_is_told_with_how_to_mend_it(row: dict[str, Any]) -> None:
    assert problem(row["expected"], row["found"]) == row["says"]
    taken, right = meant(row["expected"], row["found"]), row.get("meant", msgspec.UNSET)
    assert taken == right
    assert type(taken) is type(right), "true is no 1"


def test_only_numbers_can_stand_for_each_other() -> None:
    assert another("integer") == another("int32") == 77
    assert another("quantity") == "77"
    assert {another(each) for each in ("string", "boolean", "array", "object", "time")} == {
        msgspec.UNSET
    }
