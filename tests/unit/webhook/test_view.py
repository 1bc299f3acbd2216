import pytest

from pumice.api.meta import ObjectMeta
from pumice.api.queues import Queue, QueueSpec
from pumice.webhook.view import AdmissionView, Overlay, Snapshot
from tests.builders import job, queue


def made(name: str, parent: str = "") -> Queue:
    return Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(parent=parent))


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
    view = Overlay(below, [made("d", "a"), made("b", "c")])
    assert view.complete is complete
    assert names(view) == ["a", "b", "c", "d"]
    assert [each.metadata.name for each in view.children("c")] == ["b"]
    assert [each.metadata.name for each in view.children("a")] == ["c", "d"]
    found = view.queue("b")
    assert found is not None
    assert found.spec.parent == "c"
    assert view.queue("e") is None
    assert view.namespace("a") is None
