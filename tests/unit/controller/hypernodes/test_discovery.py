"""HyperNodes by labels: the cases, and what holds for every change of Nodes."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.controller.hypernodes import OFF, Discovery
from pumice.controller.hypernodes.domains import TopologyType
from pumice.controller.plan import RecordEvent
from tests.kit.tables import table
from tests.unit.controller.hypernodes.fake_cluster import (
    CLUSTER,
    RACK,
    SOURCE,
    FakeCluster,
    Nodes,
    Raw,
    changed,
    fixture_nodes,
    members,
)


def expected(then: dict[str, list[str] | None]) -> dict[str, list[str]]:
    tree: dict[str, list[str] | None] = {
        "c0": ["r0", "r1"],
        "c1": ["r2", "r3"],
        **{f"c{rack // 2}/r{rack}": [f"n{2 * rack}", f"n{2 * rack + 1}"] for rack in range(4)},
    }
    tree |= then
    whole = {}
    for path, found in tree.items():
        if found is not None:
            below = "/" not in path and path.startswith("c")
            whole[path] = sorted(
                f"{path}/{each}" if below and "/" not in each else each for each in found
            )
    return whole


def prepared(case: Raw) -> FakeCluster:
    """The cluster before the change."""
    cluster = FakeCluster()
    if not case.get("fresh"):
        cluster.sync(changed(fixture_nodes(), case.get("first", {})))
    for value in case.get("deleted", ()):
        del cluster.objects[cluster.named(value)["metadata"]["name"]]
    for value, name in case.get("older", {}).items():
        stored: Raw = (
            cluster.objects.pop(cluster.named(value)["metadata"]["name"])
            if cluster.objects
            else {"metadata": {"labels": {SOURCE: "label", RACK: value}}, "spec": {}}
        )
        if not stored["spec"]:
            stored["spec"] = {"tier": 1, "members": named_members("n0", "n1", "n4")}
        else:
            for parent in cluster.discovered.values():
                for each in parent["spec"]["members"]:
                    exact = each["selector"]["exactMatch"]
                    if exact["name"] == stored["metadata"]["name"]:
                        exact["name"] = name
                parent["spec"]["members"].sort(
                    key=lambda each: each["selector"]["exactMatch"]["name"]
                )
        stored["metadata"]["name"] = name
        stored["spec"].pop("tierName", None)
        cluster.add(stored)
    if "edited" in case:
        stored = cluster.named(case["edited"])
        stored["metadata"]["labels"]["team"] = "a"
        stored["metadata"]["annotations"] = {"note": "kept"}
        stored["spec"] |= {"tier": 3, "members": named_members("n7")}
    if case.get("foreign"):
        cluster.add(
            {"metadata": {"name": "by-hand"}, "spec": {"tier": 1, "members": named_members("n0")}}
        )
    return cluster


def named_members(*names: str) -> list[Raw]:
    return [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in names]


@pytest.mark.parametrize("case", table("hypernodes/discovery"), ids=lambda case: case["id"])
def test_what_is_discovered(case: Raw) -> None:
    cluster = prepared(case)
    before = copy.deepcopy(cluster.objects)
    nodes = changed(changed(fixture_nodes(), case.get("first", {})), case.get("labels", {}))
    for name in case.get("gone", ()):
        del nodes[name]
    if case.get("unseen"):
        again = FakeCluster()
        again.sync(nodes)
        assert again.objects.keys() == cluster.objects.keys()
    plan = cluster.sync(nodes)
    events = [step.message for step in plan.steps if isinstance(step, RecordEvent)]
    assert events == ([case["event"]] if "event" in case else [])
    assert cluster.writes == case["writes"]
    assert cluster.tree() == expected(case["then"])
    for name, found in cluster.discovered.items():
        _assert_whole(name, found)
        if name in before:
            kept = before[name]["metadata"]
            assert found["metadata"] == kept | {"labels": found["metadata"]["labels"]}
            assert kept["labels"].items() <= found["metadata"]["labels"].items()
    if case.get("foreign"):
        assert cluster.objects["by-hand"] == before["by-hand"]
    cluster.sync(nodes)
    assert cluster.writes == [0, 0, 0]


def _assert_whole(name: str, found: Raw) -> None:
    tier = found["spec"]["tier"]
    key = (RACK, CLUSTER)[tier - 1]
    assert name.startswith(f"hypernode-topologya-tier{tier}-")
    suffix = name.rpartition("-")[2]
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert found["spec"]["tierName"] == key
    kind = "Node" if tier == 1 else "HyperNode"
    assert {each["type"] for each in found["spec"]["members"]} == {kind}
    assert members(found) == sorted(set(members(found)))
    assert {SOURCE, key} <= found["metadata"]["labels"].keys()


def test_a_name_that_another_object_has_is_not_taken() -> None:
    cluster = FakeCluster()
    cluster.sync(fixture_nodes())
    taken = cluster.named("r0")["metadata"]["name"]
    again = FakeCluster()
    again.add({"metadata": {"name": taken}, "spec": {"tier": 9}})
    again.sync(fixture_nodes())
    assert again.objects[taken]["spec"] == {"tier": 9}
    assert again.tree() == cluster.tree()
    again.sync(fixture_nodes())
    assert again.writes == [0, 0, 0]


def test_types_do_not_share_hyper_nodes() -> None:
    types = (TopologyType("a", (RACK,)), TopologyType("b", (CLUSTER, RACK)))
    cluster = FakeCluster()
    cluster.sync(fixture_nodes(), Discovery(enabled=True, types=types, complete=True))
    tiers = sorted(
        (name.split("-")[1], each["spec"]["tier"]) for name, each in cluster.objects.items()
    )
    assert tiers == [("a", 1)] * 4 + [("b", 1)] * 4 + [("b", 2)] * 4


def test_a_type_that_becomes_empty_can_be_kept() -> None:
    """Only as a whole: what is empty in it goes, and so does all that another type no longer has."""
    types = (TopologyType("a", (RACK,)), TopologyType("b", (CLUSTER,)))
    found = Discovery(enabled=True, types=types, complete=True, keep_when_empty=True)
    cluster = FakeCluster()
    cluster.sync(fixture_nodes(), found)
    without: dict[str, dict[str, str | None]] = {name: {RACK: None} for name in fixture_nodes()}
    cluster.sync(changed(fixture_nodes(), without), found)
    assert cluster.writes == [0, 0, 0]
    nodes = {name: each for name, each in changed(fixture_nodes(), without).items() if name < "n4"}
    plan = cluster.sync(nodes, found)
    assert sorted(name.split("-")[1] for name in cluster.objects) == ["a"] * 4 + ["b"]
    [event] = [step for step in plan.steps if isinstance(step, RecordEvent)]
    assert event.reason == "TopologyEmpty"
    assert "its 4 HyperNodes stay" in event.message
    cluster.sync(nodes, replace(found, keep_when_empty=False))
    assert sorted(name.split("-")[1] for name in cluster.objects) == ["b"]


def test_what_was_discovered_goes_with_its_source_if_asked() -> None:
    cluster = FakeCluster()
    cluster.sync(fixture_nodes())
    cluster.add({"metadata": {"name": "by-hand"}, "spec": {"tier": 1}})
    cluster.sync(fixture_nodes(), OFF)
    assert len(cluster.objects) == 7
    cluster.sync(fixture_nodes(), Discovery(delete_when_disabled=True))
    assert list(cluster.objects) == ["by-hand"]
    cluster.sync(fixture_nodes(), Discovery(delete_when_disabled=True))
    assert cluster.writes == [0, 0, 0]


def test_names_differ_where_their_hashes_collide() -> None:
    """Ten thousand racks: of 14 million names, some are wanted twice."""
    nodes = {f"n{index}": {RACK: f"r{index}"} for index in range(10_000)}
    cluster = FakeCluster()
    cluster.sync(nodes)
    assert cluster.writes == [10_000, 0, 0]
    cluster.sync(nodes)
    assert cluster.writes == [0, 0, 0]


VALUES = st.sampled_from(["", "x", "y"])
SOME_NODES = st.dictionaries(
    st.sampled_from([f"n{index}" for index in range(6)]),
    st.dictionaries(st.sampled_from([RACK, CLUSTER, "net/spine"]), VALUES),
)
THREE = Discovery(
    enabled=True, types=(TopologyType("t", (RACK, CLUSTER, "net/spine")),), complete=True
)


@given(st.lists(SOME_NODES, min_size=1, max_size=4))
def test_whatever_comes_and_goes_it_ends_as_if_made_at_once(history: list[Nodes]) -> None:
    cluster = FakeCluster()
    for nodes in history:
        cluster.sync(nodes, THREE)
        fresh = FakeCluster()
        fresh.sync(nodes, THREE)
        assert _shapes(cluster) == _shapes(fresh)
        cluster.sync(nodes, THREE)
        assert cluster.writes == [0, 0, 0]
    listed = [
        each
        for found in cluster.objects.values()
        if found["spec"]["tier"] == 1
        for each in members(found)
    ]
    assert len(listed) == len(set(listed))
    assert all(RACK in history[-1][each] for each in listed)


def _shapes(cluster: FakeCluster) -> list[str]:
    """Each HyperNode with all that is below it, without names."""

    def shape(name: str) -> str:
        found = cluster.objects.get(name)
        if found is None:
            return name
        labels = sorted(found["metadata"]["labels"].items())
        return f"{labels} {sorted(map(shape, members(found)))}"

    return sorted(map(shape, cluster.objects))
