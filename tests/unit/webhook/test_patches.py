import jsonpointer
import pytest

from pumice.api.reviews import PatchOperation
from pumice.webhook.patches import Patch, applied, escape


def test_keys_are_escaped_as_in_json_pointers() -> None:
    assert escape("volcano.sh/hierarchy~x") == "volcano.sh~1hierarchy~0x"


def test_a_missing_parent_is_made_once_and_only_when_needed() -> None:
    patch = Patch()
    patch.missing("/metadata")
    patch.missing("/metadata/annotations")
    patch.missing("/spec")
    patch.set("/metadata/annotations/a", "1")
    patch.set("/metadata/annotations/b", "2")
    assert [each.path for each in patch.operations] == [
        "/metadata",
        "/metadata/annotations",
        "/metadata/annotations/a",
        "/metadata/annotations/b",
    ]
    assert applied({}, patch.operations) == {"metadata": {"annotations": {"a": "1", "b": "2"}}}


def test_a_parent_with_a_longer_name_is_another_one() -> None:
    patch = Patch()
    patch.missing("/spec")
    patch.set("/specification/a", 1)
    assert [each.path for each in patch.operations] == ["/specification/a"]


def test_the_document_given_is_not_touched() -> None:
    document = {"spec": {"a": None}}
    assert applied(document, [PatchOperation("add", "/spec/a", 1)]) == {"spec": {"a": 1}}
    assert document == {"spec": {"a": None}}


def test_a_patch_that_does_not_fit_raises() -> None:
    with pytest.raises(jsonpointer.JsonPointerException):
        applied({}, [PatchOperation("add", "/spec/a", 1)])
