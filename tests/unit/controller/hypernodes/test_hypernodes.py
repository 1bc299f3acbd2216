"""HyperNodes by labels: the cases, and what holds whatever Nodes come and go."""

import copy
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.hypernodes import HyperNode
from pumice.controller.hypernodes import OFF, Discovery, NodeCounter, plan_discovery
from pumice.controller.hypernodes.reading import read
from pumice.controller.hypernodes.settings import TopologyType
from pumice.controller.plan import CreateObject, DeleteObject, Plan, RecordEvent, UpdateObject
from tests.kit.tables import table

Raw = dict[str, Any]
Nodes = dict[str, dict[str, str]]

RACK, CLUSTER = "net/rack", "net/cluster"
SOURCE = "volcano.sh/network-topology-source"
DISCOVERY = Discovery(
    enabled=True, types=(TopologyType("topologyA", (RACK, CLUSTER)),), complete=True
)


def fixture_nodes() -> Nodes:
    return {f"n{index}": {RACK: f"r{index // 2}", CLUSTER: f"c{index // 4}"} for index in range(8)}


class World:
    """HyperNodes as an API server keeps them."""

    def __init__(self) -> None:
        self.objects: dict[str, Raw] = {}
        self.made = 0

    def add(self, manifest: Raw) -> None:
        self.made += 1
        stored = copy.deepcopy(manifest)
        stored["metadata"]["uid"] = f"u{self.made}"
        assert self.objects.setdefault(stored["metadata"]["name"], stored) is stored

    def carry_out(self, plan: Plan) -> list[int]:
        """How many were created, updated and deleted."""
        writes = [0, 0, 0]
        for step in plan.steps:
            match step:
                case CreateObject():
                    self.add(step.manifest)
                    writes[0] += 1
                case UpdateObject():
                    stored = self.objects[step.name]
                    assert stored["metadata"]["uid"] == step.patch["metadata"]["uid"]
                    stored["metadata"].setdefault("labels", {}).update(
                        step.patch["metadata"].get("labels", {})
                    )
                    stored["spec"] |= step.patch.get("spec", {})
                    writes[1] += 1
                case DeleteObject():
                    assert self.objects.pop(step.name)["metadata"]["uid"] == step.uid
                    writes[2] += 1
        return writes

    def sync(self, nodes: Nodes, discovery: Discovery = DISCOVERY) -> Plan:
        plan = plan_discovery(discovery, nodes, self.objects.values())
        self.writes = self.carry_out(plan)
        return plan

    @property
    def discovered(self) -> dict[str, Raw]:
        return {
            name: each
            for name, each in self.objects.items()
            if each["metadata"].get("labels", {}).get(SOURCE) == "label"
        }

    def paths(self) -> dict[str, str]:
        """Where each discovered HyperNode is: `cluster`, or `cluster/rack`."""
        values = {
            name: next(value for key, value in each["metadata"]["labels"].items() if key != SOURCE)
            for name, each in self.discovered.items()
        }
        above = {
            member: values[name]
            for name, each in self.discovered.items()
            if each["spec"]["tier"] == 2
            for member in members(each)
        }
        return {
            name: f"{above[name]}/{value}" if name in above else value
            for name, value in values.items()
        }

    def tree(self) -> dict[str, list[str]]:
        """Members by path, HyperNodes by their path."""
        paths = self.paths()
        return {
            path: sorted(paths.get(each, each) for each in members(self.objects[name]))
            for name, path in paths.items()
        }

    def named(self, value: str) -> Raw:
        [found] = [
            each
            for each in self.discovered.values()
            if each["metadata"]["labels"].get(RACK) == value
        ]
        return found


def members(hyper_node: Raw) -> list[str]:
    return [each["selector"]["exactMatch"]["name"] for each in hyper_node["spec"]["members"]]


def changed(nodes: Nodes, labels: dict[str, dict[str, str | None]]) -> Nodes:
    found = {name: dict(each) for name, each in nodes.items()}
    for name, changes in labels.items():
        for key, value in changes.items():
            if value is None:
                found[name].pop(key, None)
            else:
                found[name][key] = value
    return found


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


def prepared(case: Raw) -> World:
    """The world before the change."""
    world = World()
    if not case.get("fresh"):
        world.sync(changed(fixture_nodes(), case.get("first", {})))
    for value in case.get("deleted", ()):
        del world.objects[world.named(value)["metadata"]["name"]]
    for value, name in case.get("older", {}).items():
        stored: Raw = (
            world.objects.pop(world.named(value)["metadata"]["name"])
            if world.objects
            else {"metadata": {"labels": {SOURCE: "label", RACK: value}}, "spec": {}}
        )
        if not stored["spec"]:
            stored["spec"] = {"tier": 1, "members": named_members("n0", "n1", "n4")}
        else:
            for parent in world.discovered.values():
                for each in parent["spec"]["members"]:
                    exact = each["selector"]["exactMatch"]
                    if exact["name"] == stored["metadata"]["name"]:
                        exact["name"] = name
                parent["spec"]["members"].sort(
                    key=lambda each: each["selector"]["exactMatch"]["name"]
                )
        stored["metadata"]["name"] = name
        stored["spec"].pop("tierName", None)
        world.add(stored)
    if "edited" in case:
        stored = world.named(case["edited"])
        stored["metadata"]["labels"]["team"] = "a"
        stored["metadata"]["annotations"] = {"note": "kept"}
        stored["spec"] |= {"tier": 3, "members": named_members("n7")}
    if case.get("foreign"):
        world.add(
            {"metadata": {"name": "by-hand"}, "spec": {"tier": 1, "members": named_members("n0")}}
        )
    return world


def named_members(*names: str) -> list[Raw]:
    return [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in names]


@pytest.mark.parametrize("case", table("hypernodes/discovery"), ids=lambda case: case["id"])
def test_what_is_discovered(case: Raw) -> None:
    world = prepared(case)
    before = copy.deepcopy(world.objects)
    nodes = changed(changed(fixture_nodes(), case.get("first", {})), case.get("labels", {}))
    for name in case.get("gone", ()):
        del nodes[name]
    if case.get("unseen"):
        again = World()
        again.sync(nodes)
        assert again.objects.keys() == world.objects.keys()
    plan = world.sync(nodes)
    events = [step.message for step in plan.steps if isinstance(step, RecordEvent)]
    assert events == ([case["event"]] if "event" in case else [])
    assert world.writes == case["writes"]
    assert world.tree() == expected(case["then"])
    for name, found in world.discovered.items():
        _assert_whole(name, found)
        if name in before:
            kept = before[name]["metadata"]
            assert found["metadata"] == kept | {"labels": found["metadata"]["labels"]}
            assert kept["labels"].items() <= found["metadata"]["labels"].items()
    if case.get("foreign"):
        assert world.objects["by-hand"] == before["by-hand"]
    world.sync(nodes)
    assert world.writes == [0, 0, 0]


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


@pytest.mark.parametrize("case", table("hypernodes/configuration"), ids=lambda case: case["id"])
def test_what_is_read(case: Raw) -> None:
    before = read(_text(case["before"])) if "before" in case else OFF
    found = read(_text(case["text"]), before)
    enabled = case.get("enabled", True)
    assert found.enabled is enabled
    assert {each.name: list(each.keys) for each in found.types} == case.get("types", {})
    assert list(found.problems) == case.get("problems", [])
    assert list(found.not_built) == case.get("not_built", [])
    assert found.complete is case.get("complete", enabled)
    assert found.keep_when_empty is case.get("keep_when_empty", False)
    assert found.delete_when_disabled is case.get("delete_when_disabled", False)
    if "prefix" in case:
        assert found.types[0].prefix(1) == case["prefix"]
    assert read(_text(case["text"]), found) == found
    _assert_reported(found)


def _assert_reported(found: Discovery) -> None:
    """Problems are events, and nothing is deleted for a type that is not known."""
    world = World()
    world.sync(fixture_nodes())
    before = set(world.objects)
    plan = world.sync({}, found)
    goes = found.delete_when_disabled or (found.complete and not found.keep_when_empty)
    assert (set(world.objects) == before) is not goes
    events = [(step.reason, step.message) for step in plan.steps if isinstance(step, RecordEvent)]
    assert [text for reason, text in events if reason == "DiscoverySourceNotBuilt"] == list(
        found.not_built
    )
    told = [text for reason, text in events if reason == "InvalidDiscovery"]
    assert all(each in told[0] for each in found.problems)
    assert len(told) == bool(found.problems)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else yaml.safe_dump(value)


@pytest.mark.parametrize("case", table("hypernodes/node-counts"), ids=lambda case: case["id"])
def test_how_many_nodes_there_are(case: Raw) -> None:
    nodes: Nodes = {f"n{index}": {"rack": "r1"} if index in (2, 3) else {} for index in range(8)}
    nodes |= {name: {} for name in case.get("nodes", ())}
    hyper_nodes = {
        name: msgspec.convert(
            {"metadata": {"name": name}, "spec": {"members": [_member(each) for each in found]}},
            HyperNode,
        )
        for name, found in case["members"].items()
    }
    counter = NodeCounter()
    later = nodes.pop("n1")
    counter.count(hyper_nodes, nodes | {"n1x": {}})
    assert counter.count(hyper_nodes, nodes | {"n1": later}) == case["counts"]
    assert NodeCounter().count(hyper_nodes, nodes | {"n1": later}) == case["counts"]


def _member(each: Raw) -> Raw:
    selector = {
        "exactMatch": {"name": each["exact"]} if "exact" in each else None,
        "regexMatch": {"pattern": each["regex"]} if "regex" in each else None,
        "labelMatch": {"matchLabels": each["labels"]} if "labels" in each else None,
    }
    return {"type": each.get("of", "Node"), "selector": selector}


def test_a_name_that_another_object_has_is_not_taken() -> None:
    world = World()
    world.sync(fixture_nodes())
    taken = world.named("r0")["metadata"]["name"]
    again = World()
    again.add({"metadata": {"name": taken}, "spec": {"tier": 9}})
    again.sync(fixture_nodes())
    assert again.objects[taken]["spec"] == {"tier": 9}
    assert again.tree() == world.tree()
    again.sync(fixture_nodes())
    assert again.writes == [0, 0, 0]


def test_types_do_not_share_hyper_nodes() -> None:
    types = (TopologyType("a", (RACK,)), TopologyType("b", (CLUSTER, RACK)))
    world = World()
    world.sync(fixture_nodes(), Discovery(enabled=True, types=types, complete=True))
    tiers = sorted(
        (name.split("-")[1], each["spec"]["tier"]) for name, each in world.objects.items()
    )
    assert tiers == [("a", 1)] * 4 + [("b", 1)] * 4 + [("b", 2)] * 4


def test_a_type_that_becomes_empty_can_be_kept() -> None:
    """Only as a whole: what is empty in it goes, and so does all that another type no longer has."""
    types = (TopologyType("a", (RACK,)), TopologyType("b", (CLUSTER,)))
    found = Discovery(enabled=True, types=types, complete=True, keep_when_empty=True)
    world = World()
    world.sync(fixture_nodes(), found)
    without: dict[str, dict[str, str | None]] = {name: {RACK: None} for name in fixture_nodes()}
    world.sync(changed(fixture_nodes(), without), found)
    assert world.writes == [0, 0, 0]
    nodes = {name: each for name, each in changed(fixture_nodes(), without).items() if name < "n4"}
    plan = world.sync(nodes, found)
    assert sorted(name.split("-")[1] for name in world.objects) == ["a"] * 4 + ["b"]
    [event] = [step for step in plan.steps if isinstance(step, RecordEvent)]
    assert event.reason == "TopologyEmpty"
    assert "its 4 HyperNodes stay" in event.message
    world.sync(nodes, replace(found, keep_when_empty=False))
    assert sorted(name.split("-")[1] for name in world.objects) == ["b"]


def test_what_was_discovered_goes_with_its_source_if_asked() -> None:
    world = World()
    world.sync(fixture_nodes())
    world.add({"metadata": {"name": "by-hand"}, "spec": {"tier": 1}})
    world.sync(fixture_nodes(), OFF)
    assert len(world.objects) == 7
    world.sync(fixture_nodes(), Discovery(delete_when_disabled=True))
    assert list(world.objects) == ["by-hand"]
    world.sync(fixture_nodes(), Discovery(delete_when_disabled=True))
    assert world.writes == [0, 0, 0]


def test_names_differ_where_their_hashes_collide() -> None:
    """Ten thousand racks: of 14 million names, some are wanted twice."""
    nodes = {f"n{index}": {RACK: f"r{index}"} for index in range(10_000)}
    world = World()
    world.sync(nodes)
    assert world.writes == [10_000, 0, 0]
    world.sync(nodes)
    assert world.writes == [0, 0, 0]


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
    world = World()
    for nodes in history:
        world.sync(nodes, THREE)
        fresh = World()
        fresh.sync(nodes, THREE)
        assert _shapes(world) == _shapes(fresh)
        world.sync(nodes, THREE)
        assert world.writes == [0, 0, 0]
    listed = [
        each
        for found in world.objects.values()
        if found["spec"]["tier"] == 1
        for each in members(found)
    ]
    assert len(listed) == len(set(listed))
    assert all(RACK in history[-1][each] for each in listed)


def _shapes(world: World) -> list[str]:
    """Each HyperNode with all that is below it, without names."""

    def shape(name: str) -> str:
        found = world.objects.get(name)
        if found is None:
            return name
        labels = sorted(found["metadata"]["labels"].items())
        return f"{labels} {sorted(map(shape, members(found)))}"

    return sorted(map(shape, world.objects))
