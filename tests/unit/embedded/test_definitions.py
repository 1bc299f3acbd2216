"""CustomResourceDefinitions: refused when they are bad, served as soon as they are there."""

from typing import Any

import pytest

from pumice.api.kinds import (
    Kind,
)
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import WIDGET, causes, offline, widget, widgets


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"group": ""}, ["spec.group"]),
        ({"group": "other.example.com"}, ["metadata.name"]),
        ({"scope": "Somewhere"}, ["spec.scope"]),
        ({"versions": []}, ["spec.versions"]),
        (
            {"versions": [{"name": "v1", "served": True, "storage": False}]},
            ["spec.versions", "spec.versions[0].schema.openAPIV3Schema"],
        ),
    ],
)
def test_bad_definitions_are_refused(change: dict[str, Any], fields: list[str]) -> None:
    crd = widgets()
    crd["spec"] |= change

    with pytest.raises(ApiStatusError) as caught:
        offline().store.create(crd)

    assert causes(caught.value) == fields


def test_a_definition_serves_its_kind_at_once_and_until_it_goes() -> None:
    cluster = offline()
    store = cluster.store
    with pytest.raises(ApiStatusError, match='no matches for kind "Widget"'):
        store.create(widget())
    made = store.create(widgets())
    established = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    store.create(widget())

    store.delete(Kind(**_crd_kind()), "widgets.example.com")
    cluster.settle()

    assert established == {"NamesAccepted": "True", "Established": "True"}
    with pytest.raises(ApiStatusError) as caught:
        store.list(WIDGET)
    assert caught.value.code == 404


def _crd_kind() -> dict[str, Any]:
    return {
        "group": "apiextensions.k8s.io",
        "version": "v1",
        "kind": "CustomResourceDefinition",
        "plural": "customresourcedefinitions",
    }


def test_a_changed_definition_changes_the_schema() -> None:
    store = offline().store
    made = store.create(widgets({"type": "object", "properties": {"a": {"type": "string"}}}))
    version = made["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["b"] = {"type": "string"}

    store.update(made)

    assert store.create(widget(a="1", b="2"))["b"] == "2"


def test_versions_of_one_kind_share_their_objects() -> None:
    crd = widgets()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    store = offline(crds=[crd]).store
    store.create(widget())

    later = Kind("example.com", "v2", "Widget", "widgets")

    assert [each["metadata"]["name"] for each in store.list(later)] == ["w"]
