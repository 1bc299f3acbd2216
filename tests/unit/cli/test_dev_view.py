"""Admission's view of the embedded API server's store."""

from typing import Any

from pumice.api.crds import all_crds
from pumice.api.kinds import HYPER_NODE, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from pumice.cli.development.dev_cluster import StoreView
from pumice.embedded import EmbeddedCluster
from tests.kit.builders import pod_group, queue

Raw = dict[str, Any]


def head(kind: Kind, name: str) -> Raw:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}


def test_it_sees_what_is_in_the_store_at_once() -> None:
    store = EmbeddedCluster(all_crds()).store
    view = StoreView(store)
    assert all(map(view.knows, (QUEUE, POD_GROUP, PRIORITY_CLASS, HYPER_NODE)))
    store.create(queue("research", parent="default"))
    store.create(head(PRIORITY_CLASS, "usual") | {"value": 5, "globalDefault": True})
    store.create(pod_group("a", queue="research"))
    store.create(pod_group("b", queue="research", phase="Completed"))
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]
    store.create(
        head(HYPER_NODE, "r") | {"spec": {"tier": 1, "tierName": "rack", "members": members}}
    )

    assert [each.metadata.name for each in view.children("default")] == ["research"]
    usual = view.priority_class("usual")
    assert usual is not None
    assert view.default_priority_class() == usual
    assert view.priority_class("system-cluster-critical") in view.priority_classes()
    assert view.priority_class("none") is None
    assert view.pod_groups_in("research") == 1
    assert (view.tiers(), view.tier_names()) == ({1}, {"rack"})


def test_without_a_store_there_is_nothing() -> None:
    view = StoreView()
    assert view.queue("default") is None
    assert view.namespace("default") is None
    assert view.default_priority_class() is None
    assert view.priority_class("usual") is None
    assert (view.pod_groups_in("default"), view.tiers(), view.tier_names()) == (0, set(), set())
