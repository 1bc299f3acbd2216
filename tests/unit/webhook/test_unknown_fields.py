"""What is said of fields that a kind does not have."""

from typing import Any

import pytest

from pumice.api import kinds
from pumice.webhook.schema_problems import schema, unknown_fields
from tests.kit import tables
from tests.unit.webhook.reviewing import merged

KINDS = {each.kind: each for each in kinds.VOLCANO}
SAID = "is not a field of this kind and is dropped"


@pytest.mark.parametrize("row", tables.table("unknown-fields"), ids=lambda row: row["title"])
def test_a_field_that_is_dropped_is_reported_with_what_was_meant(row: dict[str, Any]) -> None:
    kind = KINDS[row["kind"]]
    bare = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
    known = schema(kind)
    assert known is not None
    found = unknown_fields(known, known.prune_paths(merged(bare, row["merge"])))
    assert {each.path: each.message for each in found} == {
        path: f"{SAID} ({hint})" if hint else SAID for path, hint in row["told"].items()
    }
