from typing import Any

import pytest

from pumice.api import kinds
from pumice.api.meta import ObjectMeta
from pumice.api.queues import Queue, QueueSpec
from pumice.plugins.other_owners import OwnerKey
from pumice.webhook.view import AdmissionView, Overlay, Snapshot
from tests.kit.builders import job, pod_group, queue

Raw = dict[str, Any]


def made(name: str, parent: str = "") -> Queue:
    return Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(parent=parent))


def laid(*queues: Queue) -> dict[OwnerKey, Queue]:
    return {(kinds.QUEUE, "", each.metadata.name): each for each in queues}


def names(view: AdmissionView) -> list[str]:
    return [each.metadata.name for each in view.queues()]


def test_a_snapshot_has_the_queues_that_every_cluster_has() -> None:
    view = Snapshot.of([])
    assert names(view) == ["root", "default"]
    found = view.queue("default")
    assert found is not None
    assert found.is_open


def test_of_two_manifests_of_one_name_the_later_counts() -> None:
    view = Snapshot.of([queue("default", state="Closed"), queue("a"), queue("a", weight=7), job()])
    assert names(view) == ["root", "default", "a"]
    found = view.queue("a")
    assert found is not None
    assert found.spec.weight == 7
    closed = view.queue("default")
    assert closed is not None
    assert not closed.is_open


def test_children_are_those_that_name_the_parent() -> None:
    view = Snapshot([made("a"), made("b", "a"), made("c", "a")])
    assert [each.metadata.name for each in view.children("a")] == ["b", "c"]
    assert view.children("b") == ()


def test_a_namespace_is_found_by_name() -> None:
    view = Snapshot.of(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"x": "y"}}}]
    )
    found = view.namespace("a")
    assert found is not None
    assert found.metadata.label("x") == "y"
    assert view.namespace("b") is None


@pytest.mark.parametrize("complete", [True, False])
def test_an_overlay_adds_queues_and_moves_those_that_changed(*, complete: bool) -> None:
    below = Snapshot([made("a"), made("b", "a"), made("c", "a")], complete=complete)
    view = Overlay(below, laid(made("d", "a"), made("b", "c")))
    assert view.knows(kinds.QUEUE) is complete
    assert names(view) == ["a", "b", "c", "d"]
    assert [each.metadata.name for each in view.children("c")] == ["b"]
    assert [each.metadata.name for each in view.children("a")] == ["c", "d"]
    found = view.queue("b")
    assert found is not None
    assert found.spec.parent == "c"
    assert view.queue("e") is None
    assert view.namespace("a") is None


def priority(name: str, value: int = 0, *, default: bool = False) -> Raw:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return head | {"metadata": {"name": name}, "value": value, "globalDefault": default}


def hyper_node(name: str, tier: int, tier_name: str = "") -> Raw:
    head = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
    return head | {"metadata": {"name": name}, "spec": {"tier": tier, "tierName": tier_name}}


def test_what_is_not_given_of_a_kind_is_known_only_where_any_is() -> None:
    view = Snapshot.of([queue("a")])
    assert view.knows(kinds.QUEUE)
    assert view.knows(kinds.POD_GROUP)
    assert not view.knows(kinds.PRIORITY_CLASS)
    assert not view.knows(kinds.HYPER_NODE)
    view = Snapshot.of([priority("high"), hyper_node("rack", 1)], complete=False)
    assert not view.knows(kinds.QUEUE)
    assert view.knows(kinds.PRIORITY_CLASS)
    assert view.knows(kinds.HYPER_NODE)


def test_priority_classes_are_found_by_name_and_those_of_kubernetes_are_always_there() -> None:
    view = Snapshot.of([priority("high", 9), priority("low", 1, default=True)])
    found = view.priority_class("high")
    assert found is not None
    assert found.value == 9
    assert view.priority_class("none") is None
    critical = view.priority_class("system-node-critical")
    assert critical is not None
    assert critical.value == 2_000_001_000
    assert [each.metadata.name for each in view.priority_classes()] == ["high", "low"]


def test_of_several_default_classes_the_lowest_counts() -> None:
    assert Snapshot.of([priority("high", 9)]).default_priority_class() is None
    classes = [priority(name, 5, default=True) for name in ("c", "b")]
    view = Snapshot.of([priority("a", 9, default=True), *classes])
    found = view.default_priority_class()
    assert found is not None
    assert found.metadata.name == "b"


def test_pod_groups_are_counted_by_queue_until_they_are_completed() -> None:
    view = Snapshot.of(
        [
            pod_group("a", queue="research"),
            pod_group("b", queue="research", phase="Running"),
            pod_group("c", queue="research", phase="Completed"),
            pod_group("d", queue="research", phase="Pending", namespace="other"),
            pod_group("d", queue="research", phase="Pending"),
            pod_group("d", queue="other", phase="Inqueue"),
            pod_group("e", queue=""),
        ]
    )
    assert view.pod_groups_in("research") == 3
    assert view.pod_groups_in("other") == 1
    assert view.pod_groups_in("default") == 1
    assert view.pod_groups_in("none") == 0


def test_tiers_are_those_of_hyper_nodes() -> None:
    view = Snapshot.of([hyper_node("a", 1, "rack"), hyper_node("b", 1), hyper_node("c", 2, "row")])
    assert view.tiers() == {1, 2}
    assert view.tier_names() == {"rack", "row"}


def test_an_overlay_is_the_view_below_but_for_queues() -> None:
    below = Snapshot.of([priority("high", default=True), hyper_node("a", 1, "rack"), pod_group()])
    view = Overlay(below, laid(made("new")))
    assert view.knows(kinds.HYPER_NODE)
    assert view.knows(kinds.PRIORITY_CLASS)
    assert view.priority_class("high") == below.priority_class("high")
    assert list(view.priority_classes()) == list(below.priority_classes())
    assert view.default_priority_class() == below.default_priority_class()
    assert view.pod_groups_in("default") == 1
    assert (view.tiers(), view.tier_names()) == ({1}, {"rack"})
