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


def test_only_what_is_written_to_is_copied() -> None:
    document = {"spec": {"tasks": [{"name": "a"}, {"name": "b"}], "queue": {"x": 1}}}
    changed = applied(
        document,
        [
            PatchOperation("add", "/spec/tasks/1/name", "c"),
            PatchOperation("add", "/metadata", {}),
            PatchOperation("add", "/metadata/annotations", {}),
            PatchOperation("add", "/metadata/annotations/a~1b~0", "1"),
        ],
    )
    assert changed == {
        "spec": {"tasks": [{"name": "a"}, {"name": "c"}], "queue": {"x": 1}},
        "metadata": {"annotations": {"a/b~": "1"}},
    }
    assert document["spec"]["tasks"] == [{"name": "a"}, {"name": "b"}]
    assert changed["spec"]["queue"] is document["spec"]["queue"]


def test_lists_grow_by_the_letter() -> None:
    document = {"spec": {"list": [1, 2]}}
    ends = [PatchOperation("add", "/spec/list/-", 3), PatchOperation("add", "/spec/list/0", 0)]
    assert applied(document, ends) == {"spec": {"list": [0, 1, 2, 3]}}
    assert document == {"spec": {"list": [1, 2]}}


def test_a_patch_that_does_not_fit_raises() -> None:
    with pytest.raises(KeyError):
        applied({}, [PatchOperation("add", "/spec/a", 1)])
