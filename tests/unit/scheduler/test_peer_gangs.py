"""Gangs with rules about other pods: placed as a whole, tried again when something that matters to them changes, and stable."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.nodes import Namespace
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, node, pod, pod_group
from tests.unit.scheduler.test_peers import rules

Raw = dict[str, Any]

CONFIG = config_text([["priority", "gang"], ["predicates", "nodeorder"]], ["enqueue", "allocate"])
PREEMPTING = config_text(
    [["priority", "gang"], ["predicates", "nodeorder"]], ["enqueue", "allocate", "preempt"]
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(key: str, **labels: str) -> Raw:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def near(key: str, **labels: str) -> Raw:
    return {"affinity": {"podAffinity": {REQUIRED: [term(key, **labels)]}}}


def apart(key: str, **labels: str) -> Raw:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(key, **labels)]}}}


def spread(key: str, skew: int = 1, **labels: str) -> Raw:
    selector = {"matchLabels": labels}
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    }


def nodes(zones: str, cpu: int = 4) -> list[Any]:
    return [
        [f"n{index}", cpu, "64Gi", {"labels": {"zone": zone, "host": f"n{index}"}}]
        for index, zone in enumerate(zones)
    ]


def gang(name: str, specs: list[Raw], **labels: str) -> list[Any]:
    return [
        ["ns", f"{name}-{index}", "", "Pending", 1, "1Gi", name, {"labels": labels, "spec": spec}]
        for index, spec in enumerate(specs)
    ]


def scenario_of(place: list[Any], pods: list[Any], minimum: int, config: str = CONFIG) -> Scenario:
    names = sorted({row[6] for row in pods if row[6]})
    groups = [["ns", name, "default", minimum, "Inqueue"] for name in names]
    return Scenario({"nodes": place, "podgroups": groups, "pods": pods}, config)


def zones_of(scenario: Scenario, binds: Any) -> list[str]:
    found = [scenario.state.nodes.records[name].node for name in binds.values()]
    return sorted((each.metadata.labels or {})["zone"] for each in found if each is not None)


def rest_changes_nothing(scenario: Scenario) -> None:
    """Five rounds."""
    for round_ in range(1, 6):
        result = scenario.cycle(NOW + round_)
        assert (result.binds, result.evicted, result.pipelined) == ({}, [], {})
        assert result.decided == 0


def test_a_pod_is_kept_apart_from_one_that_got_its_node_after_another_pod_like_it() -> None:
    full = ["ns", "held", "n0", "Running", 1, "1Gi", ""]
    pods = [
        full,
        *gang("a", [{}], app="x"),
        *gang("b", [apart("host", app="x")]),
        *gang("c", [{}], app="x"),
    ]
    fullest = config_text(
        [["priority", "gang"], ["predicates", "binpack"]], ["enqueue", "allocate"]
    )
    scenario = scenario_of(nodes("ab", cpu=2), pods, 1, fullest)
    assert scenario.cycle().binds == {"ns/a-0": "n0", "ns/b-0": "n1"}


# -- gangs as a whole ----------------------------------------------------------------------------


def test_a_gang_that_wants_itself_is_kept_together() -> None:
    scenario = scenario_of(nodes("aabb"), gang("g", [near("zone", app="g")] * 6, app="g"), 6)
    result = scenario.cycle()
    assert len(result.binds) == 6
    assert len(set(zones_of(scenario, result.binds))) == 1
    scenario.start(result)
    rest_changes_nothing(scenario)


def test_a_gang_that_wants_itself_starts_where_there_is_room_for_all_of_it() -> None:
    """Six pods of 1 cpu: the nodes of zones a and c, of 4 cpu, have too little; all nodes score alike."""
    scenario = scenario_of(nodes("abbc"), gang("g", [near("zone", app="g")] * 6, app="g"), 6)
    result = scenario.cycle()
    assert zones_of(scenario, result.binds) == list("bbbbbb")


def test_a_gang_in_one_zone_on_nodes_of_its_own_starts_where_there_are_nodes_enough() -> None:
    spec = near("zone", app="g")
    spec["affinity"] |= apart("host", app="g")["affinity"]
    scenario = scenario_of(nodes("abb"), gang("g", [spec] * 2, app="g"), 2)
    assert zones_of(scenario, scenario.cycle().binds) == ["b", "b"]


def test_a_gang_that_wants_itself_and_fits_nowhere_as_a_whole_waits() -> None:
    scenario = scenario_of(nodes("ab"), gang("g", [near("zone", app="g")] * 5, app="g"), 5)
    result = scenario.cycle()
    assert result.binds == {}
    assert "1 node(s) didn't match pod affinity rules" in result.pending["ns/g"].message
    rest_changes_nothing(scenario)


def test_a_gang_is_spread_over_zones() -> None:
    scenario = scenario_of(nodes("aaaabc"), gang("g", [spread("zone", app="g")] * 6, app="g"), 6)
    result = scenario.cycle()
    assert zones_of(scenario, result.binds) == list("aabbcc")
    scenario.start(result)
    rest_changes_nothing(scenario)


def test_no_two_pods_of_a_gang_share_a_node() -> None:
    scenario = scenario_of(nodes("aaa"), gang("g", [apart("host", app="g")] * 3, app="g"), 3)
    result = scenario.cycle()
    assert sorted(result.binds.values()) == ["n0", "n1", "n2"]
    scenario.start(result)
    rest_changes_nothing(scenario)


def test_a_gang_that_does_not_fit_leaves_nothing_behind() -> None:
    """Four pods apart from each other on three nodes; afterwards another gang finds all nodes free for its rules."""
    first = gang("g", [apart("host", app="g")] * 4, app="g")
    second = gang("h", [apart("host", app="g")] * 3)
    scenario = scenario_of(nodes("aaa"), [*first, *second], 3)
    scenario.state.set_pod_group(pod_group(["ns", "g", "default", 4, "Inqueue"]))
    result = scenario.cycle()
    assert sorted(result.binds) == ["ns/h-0", "ns/h-1", "ns/h-2"]
    message = result.pending["ns/g"].message
    assert "3 node(s) didn't match pod anti-affinity rules" in message
    scenario.start(result)
    scenario.cycle(NOW)  # other pods that matter to it have come
    rest_changes_nothing(scenario)


def test_a_pod_that_others_of_its_gang_give_a_node_waits_for_them() -> None:
    """The first pod wants to be near to the second one; it is tried again when that has its place."""
    pods = gang("g", [near("zone", role="chief"), {}])
    pods[1][7]["labels"] = {"role": "chief"}
    scenario = scenario_of(nodes("ab"), pods, 2)
    result = scenario.cycle()
    assert len(result.binds) == 2
    assert len(set(zones_of(scenario, result.binds))) == 1


def test_a_gang_of_which_two_pods_wait_for_each_other_fails() -> None:
    pods = gang("g", [near("zone", role="a"), near("zone", role="b")])
    pods[0][7]["labels"], pods[1][7]["labels"] = {"role": "b"}, {"role": "a"}
    scenario = scenario_of(nodes("ab"), pods, 2)
    result = scenario.cycle()
    assert result.binds == {}
    assert "2 node(s) didn't match pod affinity rules" in result.pending["ns/g"].message
    rest_changes_nothing(scenario)


def test_pods_of_equal_requests_with_other_labels_are_distinguished() -> None:
    guard = ["ns", "guard", "n0", "Running", 0, 0, "", {"spec": apart("host", app="a")}]
    pods = [*gang("g", [{}], app="a"), *gang("h", [{}], app="b"), guard]
    scenario = scenario_of(nodes("a"), pods, 1)
    assert scenario.cycle().binds == {"ns/h-0": "n0"}


# -- promises and victims --------------------------------------------------------------------------


def test_affinity_is_not_fulfilled_by_a_promise() -> None:
    """The pod that a gang wants to be near to is only promised a place: the gang waits for it there, and is not placed now."""
    leaving = ["ns", "old", "n0", "Running", 4, "1Gi", "", {"deleting": True}]
    big = ["ns", "big-0", "", "Pending", 4, "1Gi", "big", {"labels": {"app": "big"}}]
    follower = gang("small", [near("zone", app="big")])
    scenario = scenario_of([*nodes("a"), *nodes("bb")[1:]], [leaving, big, *follower], 1)
    scenario.state.remove_node("n1")
    scenario.state.set_node(node(["n1", 1, "64Gi", {"labels": {"zone": "a"}}]))
    result = scenario.cycle()
    assert result.pipelined.keys() >= {"ns/big-0"}
    assert "ns/small-0" not in result.binds
    scenario.start(result)
    result = scenario.cycle(NOW + 1)
    assert result.binds == {"ns/big-0": "n0", "ns/small-0": "n1"}


def test_a_pod_goes_whose_anti_affinity_is_in_the_way() -> None:
    guard = ["ns", "low-0", "n0", "Running", 1, "1Gi", "low", {"spec": apart("zone", app="g")}]
    other = ["ns", "low-1", "n0", "Running", 1, "1Gi", "low"]
    scenario = Scenario(
        {
            "nodes": nodes("a"),
            "classes": {"high": 100},
            "podgroups": [
                ["ns", "low", "default", 0, "Running"],
                ["ns", "g", "default", 1, "Inqueue", {"prio": "high"}],
            ],
            "pods": [guard, other, *gang("g", [{}], app="g")],
        },
        PREEMPTING,
    )
    result = scenario.cycle()
    assert result.evicted == ["ns/low-0"]
    scenario.start(result)
    assert scenario.cycle(NOW + 1).binds == {"ns/g-0": "n0"}
    rest_changes_nothing(scenario)


# -- tried again ---------------------------------------------------------------------------------

Happens = Callable[[Scenario], object]

FRIEND = ["ns", "friend", "n1", "Running", 0, 0, "", {"labels": {"app": "friend"}}]
ENEMY = ["ns", "enemy", "n0", "Running", 0, 0, "", {"labels": {"app": "enemy"}}]
GUARD = ["ns", "guard", "n0", "Running", 0, 0, "", {"spec": apart("zone", app="g")}]
ELSEWHERE: Raw = {
    "affinity": {
        "podAntiAffinity": {
            REQUIRED: [
                {
                    "topologyKey": "zone",
                    "labelSelector": {},
                    "namespaceSelector": {"matchLabels": {"team": "x"}},
                }
            ]
        }
    }
}


def _namespace(scenario: Scenario, labels: dict[str, str]) -> object:
    manifest = {"metadata": {"name": "other", "labels": labels}}
    return scenario.state.set_namespace(msgspec.convert(manifest, Namespace))


HELPS: dict[str, tuple[Raw, list[Any], Happens]] = {
    "a pod comes to a full node of the domain": (
        near("zone", app="friend"),
        [],
        lambda scenario: scenario.add_pod(FRIEND),
    ),
    "a pod on a full node of the domain gets the label": (
        near("zone", app="friend"),
        [[*FRIEND[:7], {"labels": {"app": "no"}}]],
        lambda scenario: scenario.add_pod(FRIEND),
    ),
    "a pod of the domain ends": (
        apart("zone", app="enemy"),
        [ENEMY],
        lambda scenario: scenario.state.remove_pod("ns", "enemy"),
    ),
    "a pod with anti-affinity ends": (
        {},
        [GUARD],
        lambda scenario: scenario.state.remove_pod("ns", "guard"),
    ),
    "a pod with anti-affinity loses it": (
        {},
        [GUARD],
        lambda scenario: scenario.add_pod([*GUARD[:7], {}]),
    ),
    "a node of the domain gets another label": (
        apart("zone", app="enemy"),
        [[*ENEMY[:2], "n1", *ENEMY[3:]]],
        lambda scenario: scenario.state.set_node(node(["n1", 0, "1Gi", {"labels": {"zone": "b"}}])),
    ),
    "a node with the fewest pods goes": (
        spread("zone", app="enemy") | {"nodeSelector": {"host": "n0"}},
        [[*ENEMY[:7], {"labels": {"app": "enemy"}}]],
        lambda scenario: scenario.state.remove_node("n2"),
    ),
    "the namespace of a pod gets another label": (
        ELSEWHERE,
        [["other", "enemy", "n0", "Running", 0, 0, ""]],
        lambda scenario: _namespace(scenario, {"team": "y"}),
    ),
}


@pytest.mark.parametrize("what", HELPS)
def test_a_gang_is_tried_again_when_that_changes_which_it_waits_for(what: str) -> None:
    """Node n0 has room; n1 of the same zone, and n2 of another, have none."""
    spec, running, happens = HELPS[what]
    place = [
        ["n0", 4, "64Gi", {"labels": {"zone": "a", "host": "n0"}}],
        ["n1", 0, "1Gi", {"labels": {"zone": "a", "host": "n1"}}],
        ["n2", 0, "1Gi", {"labels": {"zone": "c", "host": "n2"}}],
    ]
    if what == "a node with the fewest pods goes":
        spec["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
        spec["topologySpreadConstraints"][0]["labelSelector"] = {
            "matchExpressions": [{"key": "app", "operator": "Exists"}]
        }
    scenario = scenario_of(place, [*running, *gang("g", [spec], app="g")], 1)
    _namespace(scenario, {"team": "x"})
    assert scenario.cycle().binds == {}
    rest_changes_nothing(scenario)
    happens(scenario)
    assert scenario.cycle(NOW + 10).binds == {"ns/g-0": "n0"}


@st.composite
def stories(draw: st.DrawFn) -> tuple[Raw, list[Any]]:
    """A few nodes, running pods and gangs with rules; pods that come, go and change labels, nodes that change theirs."""
    place = [
        [f"n{index}", draw(st.integers(1, 3)), "64Gi", {"labels": draw(_labels(index))}]
        for index in range(draw(st.integers(1, 4)))
    ]
    names: list[str] = [str(row[0]) for row in place]
    running = [draw(_runner(f"r{index}", names)) for index in range(draw(st.integers(0, 4)))]
    groups, waiting = [], []
    for index in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 3))
        groups.append(["ns", f"g{index}", "default", draw(st.integers(1, count)), "Inqueue"])
        spec, app = draw(rules()), draw(st.sampled_from("ab"))
        for number in range(count):
            options = {"labels": {"app": app}, "spec": spec}
            waiting.append(
                ["ns", f"g{index}-{number}", "", "Pending", 1, "1Gi", f"g{index}", options]
            )
    events: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        what = draw(st.integers(0, 3))
        if what == 0 and running:
            events.append(("gone", draw(st.sampled_from(running))))
        elif what == 1:
            place_of = draw(st.sampled_from(place))
            events.append(("node", [*place_of[:3], {"labels": draw(_labels(0))}]))
        else:
            events.append(("pod", draw(_runner(f"r{draw(st.integers(0, 5))}", names))))
    cluster = {"nodes": place, "podgroups": groups, "pods": [*running, *waiting]}
    return cluster, events


@st.composite
def _labels(draw: st.DrawFn, index: int) -> dict[str, str]:
    return {"zone": draw(st.sampled_from(["z1", "z2"])), "host": f"h{index}", "rack": "r"}


@st.composite
def _runner(draw: st.DrawFn, name: str, names: list[str]) -> list[Any]:
    options: Raw = {"labels": {"app": draw(st.sampled_from("ab"))}, "spec": draw(rules())}
    if draw(st.integers(0, 4)) == 0:
        options["deleting"] = True
    place = draw(st.sampled_from(names))
    return ["ns", name, place, "Running", draw(st.integers(0, 1)), "1Gi", "", options]


@examples(60)
@given(stories())
def test_no_gang_waits_for_what_it_could_have(drawn: tuple[Raw, list[Any]]) -> None:
    """Event by event: what is placed is what is placed when every waiting gang is tried in each cycle."""
    cluster, events = drawn
    thrifty, eager = Scenario(cluster, CONFIG), Scenario(cluster, CONFIG)
    for event in [None, None, *events, None]:
        for scenario in (thrifty, eager):
            if event is not None:
                kind, row = event
                if kind == "gone":
                    scenario.state.remove_pod(*row[:2])
                elif kind == "node":
                    scenario.state.set_node(node(row))
                else:
                    scenario.state.set_pod(pod(row))
            scenario.state.settled = None
        eager.wake_all()
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert (seen.binds, seen.pipelined) == (wanted.binds, wanted.pipelined)
