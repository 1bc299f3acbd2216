"""Deletion: preconditions, grace, finalizers, owners, namespaces."""

from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, CRD, NAMESPACE, NODE, POD, Kind
from pumice.embedded import EmbeddedCluster, deletion
from pumice.embedded.deletion import DeleteOptions
from pumice.embedded.resources import Call
from pumice.embedded.statuses import ApiStatusError
from tests.kit.counting import calls
from tests.unit.embedded.support import config_map, offline, pod, widgets


def names(cluster: EmbeddedCluster, kind: Kind = CONFIG_MAP) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.store.list(kind)]


def reference(
    obj: dict[str, Any], *, blocks: bool = False, controller: bool = False
) -> dict[str, Any]:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": controller,
        "blockOwnerDeletion": blocks,
    }


def family(cluster: EmbeddedCluster, *, blocks: bool = True) -> None:
    """A grandmother, a mother and a child, each owned by the one before."""
    grandmother = cluster.store.create(config_map("grandmother"))
    owners = [reference(grandmother, blocks=blocks)]
    mother = cluster.store.create(config_map("mother", ownerReferences=owners))
    cluster.store.create(config_map("child", ownerReferences=[reference(mother, blocks=blocks)]))


def release(cluster: EmbeddedCluster, name: str, field: str) -> None:
    """Take away what holds an object, or what it holds."""
    released = cluster.store.get(CONFIG_MAP, name, "default")
    assert released is not None
    released["metadata"][field] = []
    cluster.store.update(released)
    cluster.settle()


@pytest.mark.parametrize("propagation", ["", "Background", "Foreground"])
def test_dependents_follow_their_owner(propagation: str) -> None:
    cluster = offline()
    family(cluster)
    cluster.store.create(config_map("stranger"))

    cluster.store.delete(CONFIG_MAP, "grandmother", "default", propagation=propagation)
    cluster.settle()

    assert names(cluster) == ["stranger"]


def test_orphans_stay_and_forget_their_owner() -> None:
    cluster = offline()
    family(cluster)

    cluster.store.delete(CONFIG_MAP, "grandmother", "default", propagation="Orphan")
    cluster.settle()

    assert names(cluster) == ["child", "mother"]
    mother = cluster.store.get(CONFIG_MAP, "mother", "default")
    assert mother is not None
    assert "ownerReferences" not in mother["metadata"]


def test_in_the_foreground_the_owner_goes_last() -> None:
    cluster = offline()
    owner = cluster.store.create(config_map("owner"))
    held = config_map("held", ownerReferences=[reference(owner, blocks=True)], finalizers=["a/b"])
    loose = config_map("loose", ownerReferences=[reference(owner)], finalizers=["a/b"])
    cluster.store.create(held)
    cluster.store.create(loose)

    cluster.store.delete(CONFIG_MAP, "owner", "default", propagation="Foreground")
    cluster.settle()
    found = cluster.store.get(CONFIG_MAP, "owner", "default")
    assert found is not None
    assert found["metadata"]["finalizers"] == ["foregroundDeletion"]

    release(cluster, "held", "finalizers")

    assert names(cluster) == ["loose"]


def test_a_dependent_that_is_let_go_no_longer_holds_its_owner() -> None:
    cluster = offline()
    owner = cluster.store.create(config_map("owner"))
    held = config_map("held", ownerReferences=[reference(owner, blocks=True)], finalizers=["a/b"])
    cluster.store.create(held)
    cluster.store.delete(CONFIG_MAP, "owner", "default", propagation="Foreground")
    cluster.settle()

    release(cluster, "held", "ownerReferences")

    assert names(cluster) == ["held"]


def test_an_object_with_another_owner_stays() -> None:
    cluster = offline()
    first, second = (cluster.store.create(config_map(name)) for name in ("first", "second"))
    owners = [reference(first), reference(second)]
    cluster.store.create(config_map("shared", ownerReferences=owners))

    cluster.store.delete(CONFIG_MAP, "first", "default")
    cluster.settle()

    shared = cluster.store.get(CONFIG_MAP, "shared", "default")
    assert shared is not None
    assert [each["name"] for each in shared["metadata"]["ownerReferences"]] == ["second"]


@pytest.mark.parametrize("change", [{"uid": "another"}, {"name": "gone"}])
def test_an_object_whose_owner_never_was_is_collected(change: dict[str, str]) -> None:
    cluster = offline()
    owner = cluster.store.create(config_map("owner"))

    cluster.store.create(config_map("lost", ownerReferences=[reference(owner) | change]))
    cluster.settle()

    assert names(cluster) == ["owner"]


def test_an_owner_of_an_unknown_kind_may_exist_elsewhere() -> None:
    cluster = offline()
    owner = cluster.store.create(config_map("owner"))
    unheard = reference(owner) | {"kind": "Unheard"}

    cluster.store.create(config_map("owned", ownerReferences=[unheard]))
    cluster.settle()

    assert names(cluster) == ["owned", "owner"]


def test_an_owner_outside_of_namespaces_owns_inside_of_them() -> None:
    cluster = offline()
    node = cluster.add_node("n")
    cluster.store.create(config_map("c", ownerReferences=[reference(node)]))
    cluster.settle()
    assert names(cluster) == ["c"]

    cluster.store.delete(NODE, "n")
    cluster.settle()

    assert names(cluster) == []


def test_finalizers_hold_an_object_until_they_are_taken_off() -> None:
    cluster = offline()
    cluster.store.create(config_map("x", finalizers=["a/b", "c/d"]))

    cluster.store.delete(CONFIG_MAP, "x", "default")
    marked = cluster.store.get(CONFIG_MAP, "x", "default")
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"

    marked["metadata"]["finalizers"] = ["a/b", "e/f"]
    with pytest.raises(ApiStatusError, match="no new finalizers can be added"):
        cluster.store.update(marked)
    marked["metadata"]["finalizers"] = ["a/b"]
    marked = cluster.store.update(marked)
    marked["metadata"]["finalizers"] = []
    cluster.store.update(marked)

    assert names(cluster) == []


def test_a_second_deletion_changes_nothing() -> None:
    cluster = offline()
    cluster.store.create(config_map("x", finalizers=["a/b"]))
    cluster.store.delete(CONFIG_MAP, "x", "default")
    revision = cluster.store.storage.revision

    cluster.store.delete(CONFIG_MAP, "x", "default")

    assert cluster.store.storage.revision == revision


def delete(
    cluster: EmbeddedCluster, kind: Kind, name: str, **options: Any
) -> tuple[bool, dict[str, Any]]:
    call = Call(cluster.store.resource(kind), "default", name)
    deleted = deletion.delete(cluster.store.objects, call, DeleteOptions(**options))
    return deleted.gone, deleted.version.obj


def test_preconditions_protect_another_object() -> None:
    cluster = offline()
    made = cluster.store.create(config_map("x"))

    for options in ({"uid": "other"}, {"resource_version": "1"}):
        with pytest.raises(ApiStatusError) as caught:
            delete(cluster, CONFIG_MAP, "x", **options)
        assert caught.value.code == 409
    gone, _ = delete(
        cluster,
        CONFIG_MAP,
        "x",
        uid=made["metadata"]["uid"],
        resource_version=made["metadata"]["resourceVersion"],
    )

    assert gone


def test_a_pod_on_a_node_gets_its_grace() -> None:
    cluster = offline()
    cluster.store.create(pod("bound", nodeName="elsewhere", terminationGracePeriodSeconds=20))
    cluster.store.create(pod("unbound"))

    gone, bound = delete(cluster, POD, "bound")
    assert not gone
    assert bound["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:40Z"
    assert bound["metadata"]["deletionGracePeriodSeconds"] == 20
    assert bound["metadata"]["generation"] == 2

    gone, shortened = delete(cluster, POD, "bound", grace=5)
    assert not gone
    assert shortened["metadata"]["deletionGracePeriodSeconds"] == 5

    gone, last = delete(cluster, POD, "unbound")
    assert gone
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert delete(cluster, POD, "bound", grace=0)[0]
    assert names(cluster, POD) == []


def test_an_ended_pod_goes_at_once() -> None:
    cluster = offline()
    made = cluster.store.create(pod(nodeName="elsewhere"))
    cluster.store.update_status({**made, "status": {"phase": "Succeeded"}})

    assert delete(cluster, POD, "p")[0]


def test_a_deleted_namespace_takes_its_content_along() -> None:
    cluster = offline(crds=[widgets()])
    cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    cluster.store.create(config_map("x", namespace="ns"))
    cluster.store.create(config_map("held", namespace="ns", finalizers=["a/b"]))
    cluster.store.create(config_map("elsewhere"))
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "ns"},
    }
    cluster.store.create(widget)

    cluster.store.delete(NAMESPACE, "ns")
    cluster.settle()
    marked = cluster.store.get(NAMESPACE, "ns")
    assert marked is not None
    assert marked["status"]["phase"] == "Terminating"
    assert names(cluster) == ["elsewhere", "held"]
    with pytest.raises(ApiStatusError) as caught:
        cluster.store.create(config_map("new", namespace="ns"))
    assert caught.value.code == 403
    assert "because it is being terminated" in caught.value.message

    held = cluster.store.get(CONFIG_MAP, "held", "ns")
    assert held is not None
    held["metadata"]["finalizers"] = []
    cluster.store.update(held)
    cluster.settle()

    assert cluster.store.get(NAMESPACE, "ns") is None


def test_a_big_namespace_goes_in_time_that_grows_with_its_content() -> None:
    """105 calls an object were counted; going through what is left after each would take thousands."""
    cluster = offline()
    cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    owner = cluster.store.create(config_map("owner", namespace="ns"))
    for number in range(3000):
        owners = [reference(owner, blocks=True)]
        cluster.store.create(config_map(f"c{number}", namespace="ns", ownerReferences=owners))

    def delete() -> None:
        cluster.store.delete(CONFIG_MAP, "owner", "ns", propagation="Foreground")
        cluster.store.delete(NAMESPACE, "ns")
        cluster.settle()

    assert calls(delete) < 200 * 3000
    assert cluster.store.get(NAMESPACE, "ns") is None


def test_an_empty_namespace_goes() -> None:
    cluster = offline()
    cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})

    cluster.store.delete(NAMESPACE, "ns")
    cluster.settle()

    assert cluster.store.get(NAMESPACE, "ns") is None


@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_some_namespaces_stay(name: str) -> None:
    with pytest.raises(ApiStatusError) as caught:
        offline().store.delete(NAMESPACE, name)

    assert (caught.value.code, caught.value.message) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )


def test_a_definition_waits_for_its_objects() -> None:
    cluster = offline(crds=[widgets()])
    kind = Kind("example.com", "v1", "Widget", "widgets")
    widget: dict[str, Any] = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "finalizers": ["a/b"]},
    }
    cluster.store.create(widget)

    cluster.store.delete(CRD, "widgets.example.com")
    cluster.settle()
    held = cluster.store.get(kind, "w", "default")
    assert held is not None
    held["metadata"]["finalizers"] = []
    cluster.store.update(held)
    cluster.settle()

    assert names(cluster, CRD) == []


@pytest.mark.parametrize(
    ("body", "query", "expected"),
    [
        ({}, {}, DeleteOptions()),
        ({"propagationPolicy": "Orphan"}, {}, DeleteOptions("Orphan")),
        ({}, {"propagationPolicy": "Foreground"}, DeleteOptions("Foreground")),
        ({"orphanDependents": True}, {}, DeleteOptions("Orphan")),
        ({}, {"orphanDependents": "false"}, DeleteOptions("Background")),
        ({}, {"gracePeriodSeconds": "3"}, DeleteOptions(grace=3)),
        (
            {"preconditions": {"uid": "u", "resourceVersion": "7"}, "gracePeriodSeconds": 0},
            {},
            DeleteOptions(uid="u", resource_version="7", grace=0),
        ),
    ],
)
def test_options_are_read_from_body_and_query(
    body: dict[str, Any], query: dict[str, str], expected: DeleteOptions
) -> None:
    assert DeleteOptions.read(body, query) == expected


@pytest.mark.parametrize(
    ("body", "code"), [({"propagationPolicy": "Foo"}, 422), ({"gracePeriodSeconds": "x"}, 400)]
)
def test_options_that_do_not_exist_are_refused(body: dict[str, Any], code: int) -> None:
    with pytest.raises(ApiStatusError) as caught:
        DeleteOptions.read(body, {})

    assert caught.value.code == code
