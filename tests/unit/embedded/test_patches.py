"""JSON patches, merge patches and strategic merge patches."""

import copy
from typing import Any

import pytest

from pumice.embedded import patches
from pumice.embedded.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.strategic import strategic_merge
from tests.unit.embedded.support import cases


@pytest.mark.parametrize("row", cases("strategic-merge"), ids=lambda row: row["name"])
def test_strategic_merge(row: dict[str, Any]) -> None:
    assert strategic_merge(copy.deepcopy(row["object"]), row["patch"]) == row["result"]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"$patch": "shuffle"}},
        {"spec": {"containers": [{"image": "without a name"}]}},
        {"spec": {"containers": ["no map"]}},
    ],
)
def test_a_strategic_merge_that_makes_no_sense_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(ApiStatusError) as caught:
        strategic_merge({"spec": {"containers": [{"name": "a"}]}}, patch)

    assert caught.value.code == 400


def test_merge_patches_follow_rfc_7386() -> None:
    obj = {"a": {"b": 1, "c": [1, 2]}, "d": "text"}

    result = patches.patched(
        MERGE_PATCH, obj, {"a": {"b": None, "c": [3]}, "d": {"e": None, "f": 1}}
    )

    assert result == {"a": {"c": [3]}, "d": {"f": 1}}


def test_json_patches_are_applied_in_order() -> None:
    obj = {"a": [1]}
    operations = [
        {"op": "test", "path": "/a/0", "value": 1},
        {"op": "add", "path": "/a/-", "value": 2},
        {"op": "remove", "path": "/a/0"},
    ]

    assert patches.patched(JSON_PATCH, obj, operations) == {"a": [2]}


@pytest.mark.parametrize(
    ("media", "patch", "code"),
    [
        (JSON_PATCH, [{"op": "test", "path": "/a", "value": 2}], 422),
        (JSON_PATCH, [{"op": "remove", "path": "/b/c"}], 422),
        (JSON_PATCH, [{"op": "shuffle", "path": "/a"}], 422),
        (JSON_PATCH, ["no operation"], 422),
        (JSON_PATCH, [{"op": "replace", "path": "", "value": 1}], 400),
        (JSON_PATCH, {"a": 1}, 400),
        (JSON_PATCH, [{"op": "remove", "path": "/a"}] * 10_001, 413),
        (MERGE_PATCH, [1], 400),
        (STRATEGIC_PATCH, "text", 400),
    ],
)
def test_patches_that_do_not_fit_are_refused(media: str, patch: Any, code: int) -> None:
    with pytest.raises(ApiStatusError) as caught:
        patches.patched(media, {"a": 1}, patch)

    assert caught.value.code == code
