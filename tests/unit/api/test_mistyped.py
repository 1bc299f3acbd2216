"""What is said of a value of a wrong type."""

from typing import Any

import pytest

from pumice.api.json_words import type_problem
from tests.kit import tables

ROWS: list[dict[str, Any]] = tables.table("mistyped")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_wrong_type_is_reported_with_how_to_fix_it(row: dict[str, Any]) -> None:
    assert type_problem(row["expected"], row["found"]) == row["says"]
