"""Creating and changing objects: the steps of a request without HTTP."""

from typing import Any

import pytest

from pumice.api.kinds import (
    CONFIG_MAP,
    LEASE,
    POD,
    SERVICE,
    Kind,
)
from pumice.embedded import EmbeddedCluster
from pumice.embedded.resources import Call
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import (
    WIDGET,
    Clock,
    causes,
    config_map,
    offline,
    pod,
    widget,
    widgets,
)

OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_a_new_object_gets_what_only_the_server_gives() -> None:
    made = offline().store.create(
        config_map("x", uid="mine", creationTimestamp="1999-01-01T00:00:00Z", generation=7)
    )

    metadata = made["metadata"]
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert len(metadata["uid"]) == 36
    assert int(metadata["resourceVersion"]) > 1
    assert "generation" not in metadata


def test_two_clusters_give_the_same_uids_in_every_run() -> None:
    first, second = (offline().store.create(config_map("x")) for _ in range(2))

    assert first["metadata"]["uid"] == second["metadata"]["uid"]


def test_names_are_generated_from_a_prefix() -> None:
    store = offline().store
    nameless = config_map("", generateName="y" * 80)
    del nameless["metadata"]["name"]

    first, second = store.create(nameless), store.create(nameless)

    names = [each["metadata"]["name"] for each in (first, second)]
    assert names[0] != names[1]
    assert all(len(name) == 63 and name.startswith("y" * 58) for name in names)


@pytest.mark.parametrize(
    ("obj", "code", "reason"),
    [
        (config_map(""), 422, "Invalid"),
        (config_map("UPPER"), 422, "Invalid"),
        (config_map("x", labels={"a b": "c"}), 422, "Invalid"),
        (config_map("x", labels={"a": "-"}), 422, "Invalid"),
        (config_map("x", annotations={"/a": "b"}), 422, "Invalid"),
        (config_map("x", finalizers=["unqualified"]), 422, "Invalid"),
        (config_map("x", ownerReferences=[{"name": "y"}]), 422, "Invalid"),
        (config_map("x", labels={"a": 1}), 400, "BadRequest"),
        (config_map("x", labels=["a"]), 400, "BadRequest"),
        (config_map("x", ownerReferences=["a"]), 400, "BadRequest"),
        (config_map("x", finalizers="a"), 400, "BadRequest"),
        (config_map("x", resourceVersion="5"), 500, ""),
        (config_map("x", namespace="elsewhere"), 404, "NotFound"),
        (config_map("taken"), 409, "AlreadyExists"),
        (config_map("x", {"a": 1}), 400, "BadRequest"),  # type: ignore[dict-item]
        (config_map("x") | {"metadata": "text"}, 400, "BadRequest"),
    ],
)
def test_what_cannot_be_created_is_refused(obj: dict[str, Any], code: int, reason: str) -> None:
    store = offline().store
    store.create(config_map("taken"))
    call = Call(store.resource(CONFIG_MAP), "default")
    if isinstance(obj["metadata"], dict):
        call.namespace = obj["metadata"].get("namespace", "default")

    with pytest.raises(ApiStatusError) as caught:
        store.objects.create(call, obj)

    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert len(store.list(CONFIG_MAP)) == 1


def test_two_controllers_of_one_object_are_refused() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
        for name in "ab"
    ]

    with pytest.raises(ApiStatusError, match="Only one reference can have Controller set to true"):
        offline().store.create(config_map("x", ownerReferences=owners))


def test_an_update_that_changes_nothing_writes_nothing() -> None:
    store = offline().store
    made = store.create(config_map("x", {"a": "b"}))
    revision = store.storage.revision

    again = store.update(made)

    assert again == made
    assert store.storage.revision == revision


def test_an_update_needs_the_version_that_it_has_seen() -> None:
    store = offline().store
    made = store.create(config_map("x", {"a": "1"}))
    store.update(made | {"data": {"a": "2"}})

    with pytest.raises(ApiStatusError) as caught:
        store.update(made | {"data": {"a": "3"}})

    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == (
        'Operation cannot be fulfilled on configmaps "x": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )
    found = store.get(CONFIG_MAP, "x", "default")
    assert found is not None
    assert found["data"] == {"a": "2"}


@pytest.mark.parametrize(("kind", "insists"), [(CONFIG_MAP, False), (LEASE, True), (WIDGET, True)])
def test_some_kinds_insist_on_a_version(kind: Kind, insists: bool) -> None:
    store = offline(crds=[widgets()]).store
    obj = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x", "namespace": "default"},
    }
    store.create(obj)
    call = Call(store.resource(kind), "default", "x")

    if insists:
        with pytest.raises(ApiStatusError, match="must be specified for an update"):
            store.objects.update(call, obj)
    else:
        store.objects.update(call, obj)


def test_an_update_of_another_uid_or_name_is_refused() -> None:
    store = offline().store
    made = store.create(config_map("x"))
    call = Call(store.resource(CONFIG_MAP), "default", "x")

    for change, code in (({"uid": "other"}, 409), ({"name": "y"}, 400), ({"name": ""}, 400)):
        other = {**made, "metadata": {**made["metadata"], **change}}
        with pytest.raises(ApiStatusError) as caught:
            store.objects.update(call, other)
        assert caught.value.code == code


def test_what_the_server_gives_cannot_be_changed() -> None:
    store = offline().store
    made = store.create(config_map("x"))
    forged = {**made["metadata"], "creationTimestamp": "1999-01-01T00:00:00Z", "generation": 9}

    changed = store.update({**made, "metadata": forged, "data": {"a": "b"}})

    assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert "generation" not in changed["metadata"]


def test_generation_counts_changes_of_what_is_wanted() -> None:
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    store = offline(crds=[widgets(schema, subresources={"status": {}})]).store
    made = store.create(widget(spec={"a": 1}, status={"x": 1}))
    assert "status" not in made

    labelled = store.update({**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
    with_status = store.update_status({**labelled, "status": {"x": 1}, "spec": {"a": 5}})
    wanted = store.update({**with_status, "spec": {"a": 2}, "status": {"x": 9}})

    generations = [each["metadata"]["generation"] for each in (made, labelled, with_status, wanted)]
    assert generations == [1, 1, 1, 2]
    assert (with_status["spec"], with_status["status"]) == ({"a": 1}, {"x": 1})
    assert wanted["status"] == {"x": 1}


def test_a_crd_without_status_subresource_keeps_status_like_any_field() -> None:
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    store = offline(crds=[widgets(schema)]).store

    made = store.create(widget(status={"x": 1}))
    changed = store.update({**made, "status": {"x": 2}})

    assert (made["status"], changed["status"]) == ({"x": 1}, {"x": 2})
    assert changed["metadata"]["generation"] == 2


def test_schemas_are_enforced() -> None:
    spec = {
        "type": "object",
        "required": ["n"],
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "d": {"type": "string", "default": "x"},
        },
    }
    store = offline(crds=[widgets({"type": "object", "properties": {"spec": spec}})]).store

    made = store.create(widget(spec={"n": 1, "unknown": 2}))
    with pytest.raises(ApiStatusError) as caught:
        store.create(widget("bad", spec={"n": 0, "d": 5}))

    assert made["spec"] == {"n": 1, "d": "x"}
    assert caught.value.code == 422
    assert caught.value.message.startswith('Widget.example.com "bad" is invalid: [spec.n: ')
    assert causes(caught.value) == ["spec.n", "spec.d"]


def test_unknown_fields_warn_or_are_refused() -> None:
    store = offline(crds=[widgets({"type": "object", "properties": {"spec": OPEN}})]).store
    warned = Call(store.resource(WIDGET), "default")
    strict = Call(store.resource(WIDGET), "default", validation="Strict")
    ignored = Call(store.resource(WIDGET), "default", validation="Ignore")

    store.objects.create(warned, widget("a", typo=1))
    store.objects.create(ignored, widget("b", typo=1))
    with pytest.raises(ApiStatusError) as caught:
        store.objects.create(strict, widget("c", typo=1))

    assert warned.warnings == ['unknown field "typo"']
    assert ignored.warnings == []
    assert caught.value.code == 400
    assert caught.value.message.endswith('strict decoding error: unknown field "typo"')


@pytest.mark.parametrize(
    ("change", "code"),
    [({"kind": "Gadget"}, 422), ({"apiVersion": "example.com/v2"}, 422), ({"kind": ""}, 400)],
)
def test_a_body_of_another_kind_is_refused(change: dict[str, str], code: int) -> None:
    store = offline(crds=[widgets()]).store

    with pytest.raises(ApiStatusError) as caught:
        store.objects.create(Call(store.resource(WIDGET), "default"), widget() | change)

    assert caught.value.code == code


def test_a_dry_run_leaves_no_trace() -> None:
    store = offline().store
    revision = store.storage.revision
    call = Call(store.resource(CONFIG_MAP), "default", dry_run=True)

    version = store.objects.create(call, config_map("x"))

    assert version.obj["metadata"]["uid"]
    assert store.storage.revision == revision
    assert store.get(CONFIG_MAP, "x", "default") is None


def test_direct_writes_default_to_the_namespace_default_and_copy() -> None:
    clock = Clock()
    store = EmbeddedCluster(clock=clock).store
    given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod()["spec"]}

    made = store.create(given)
    made["spec"]["containers"].clear()

    assert "namespace" not in given["metadata"]
    found = store.get(POD, "p", "default")
    assert found is not None
    assert len(found["spec"]["containers"]) == 1
    assert store.get(SERVICE, "p", "default") is None
