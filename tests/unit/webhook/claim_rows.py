"""Rows of `tests/cases/volume-claims.yaml`, for whoever judges claims."""

from collections.abc import Iterator
from typing import Any

from tests.kit import tables
from tests.unit.webhook.reviewing import merged

Raw = dict[str, Any]


def claim_rows() -> Iterator[tuple[Raw, Raw]]:
    """Each row, and its claim's spec."""
    table = tables.table("volume-claims")
    for row in table["cases"]:
        yield row, merged(table["claim"], row["merge"])
