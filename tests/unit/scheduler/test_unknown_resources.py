"""Resources that only pods name: however many a tenant invents, what nodes have is found in any order of events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.model import axis
from pumice.scheduler.model.axis import MOST_OF_PODS
from tests.kit.counting import calls
from tests.kit.examples import examples
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import Scenario, config_text, node

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
PLUGINS = config_text([["gang"], ["drf", "predicates", "proportion", "nodeorder"]])


def asking(name: str, gang: str, resources: Raw, where: str = "") -> list[Any]:
    state = "Running" if where else "Pending"
    return ["ns", name, where, state, 1, "1Gi", gang, {"resources": resources}]


def hostile(scenario: Scenario, count: int = MOST_OF_PODS) -> None:
    many = {f"example.com/r{place}": 1 for place in range(count)}
    scenario.add_pod(asking("hostile", "bad", many))


def cluster() -> Scenario:
    groups = [["ns", gang, "default", 1, "Inqueue"] for gang in ("good", "bad")]
    return Scenario({"nodes": [["n1", 4, "8Gi"]], "podgroups": groups}, PLUGINS)


def add_gpu_node(scenario: Scenario) -> None:
    scenario.state.set_node(node(["gpu", 4, "8Gi", {"resources": {GPU: 2}}]))


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_pod_that_waits_for_a_resource_is_bound_when_a_node_brings_it(*, is_gone: bool) -> None:
    """Another pod has asked for as many other resources as have columns, and is gone or still waits."""
    scenario = cluster()
    hostile(scenario)
    if is_gone:
        scenario.state.remove_pod("ns", "hostile")
    scenario.add_pod(asking("waits", "good", {GPU: 1}))
    assert scenario.cycle().binds == {}
    add_gpu_node(scenario)
    result = scenario.cycle()
    assert result.binds == {"ns/waits": "gpu"}
    assert "ns/good" not in result.pending


def test_a_pod_that_comes_after_the_node_is_bound_to_it() -> None:
    scenario = cluster()
    hostile(scenario)
    scenario.state.remove_pod("ns", "hostile")
    add_gpu_node(scenario)
    scenario.add_pod(asking("late", "good", {GPU: 1}))
    assert scenario.cycle().binds == {"ns/late": "gpu"}


def test_running_pods_are_counted_in_the_column_that_a_node_brings() -> None:
    """The node reports its devices after pods were started on it, for example by its own device plugin."""
    scenario = cluster()
    hostile(scenario)
    scenario.add_pod(asking("runs", "good", {GPU: 1}, where="gpu"))
    scenario.state.set_node(node(["gpu", 4, "8Gi"]))
    add_gpu_node(scenario)
    scenario.add_pod(asking("second", "good", {GPU: 1}))
    scenario.add_pod(asking("third", "good", {GPU: 1}))
    result = scenario.cycle()
    assert len(result.binds) == 1
    assert set(result.binds.values()) == {"gpu"}
    assert dump(scenario.state)["nodes"]["gpu"]["used"][GPU] == 2


def test_an_event_of_a_node_costs_nothing_for_names_that_no_node_has() -> None:
    def update(count: int) -> int:
        scenario = cluster()
        hostile(scenario, count)
        return calls(lambda: scenario.state.set_node(node(["n1", 5, "8Gi"])))

    update(100)
    assert update(3000) == update(100)


NAMES = [f"example.com/{letter}" for letter in "abcd"]
NODES = ["n1", "n2"]
ASKED = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2), max_size=4)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NODES), ASKED),
        st.tuples(st.just("gone"), st.sampled_from(NODES), st.just({})),
        st.tuples(st.just("pod"), st.sampled_from("uvwxyz"), ASKED),
        st.tuples(st.just("runs"), st.sampled_from("uvwxyz"), ASKED),
        st.tuples(st.just("left"), st.sampled_from("uvwxyz"), st.just({})),
        st.tuples(st.just("cycle"), st.just(""), st.just({})),
    ),
    max_size=16,
)


@examples(200)
@given(events=EVENTS, most=st.integers(0, 3))
def test_decisions_do_not_depend_on_the_order_of_events(
    events: list[tuple[str, str, Raw]], most: int
) -> None:
    """The reference is a state that is made of the final objects, nodes first, with room for all names."""
    groups = [["ns", name, "default", 1, "Inqueue"] for name in "uvwxyz"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(axis, "MOST_OF_PODS", most)
        scenario = Scenario({"podgroups": groups}, PLUGINS)
        nodes: dict[str, Raw] = {}
        pods: dict[str, list[Any]] = {}
        for event, name, resources in events:
            if event == "node":
                nodes[name] = resources
                scenario.state.set_node(node([name, 4, "8Gi", {"resources": resources}]))
            elif event == "gone":
                nodes.pop(name, None)
                scenario.state.remove_node(name)
            elif event in ("pod", "runs"):
                scenario.state.remove_pod("ns", name)
                pods[name] = asking(name, name, resources, "n1" if event == "runs" else "")
                scenario.add_pod(pods[name])
            elif event == "left":
                pods.pop(name, None)
                scenario.state.remove_pod("ns", name)
            else:
                found = scenario.cycle()
                for key, where in found.binds.items():
                    bound = pods[key.removeprefix("ns/")]
                    bound[2:4] = [where, "Running"]
                    scenario.add_pod(bound)
        found = scenario.cycle()
        assert len(scenario.state.axis) <= 5 + 4 + 1
    listed = [[name, 4, "8Gi", {"resources": nodes[name]}] for name in sorted(nodes)]
    rebuilt = Scenario({"nodes": listed, "podgroups": groups, "pods": list(pods.values())}, PLUGINS)
    wanted = rebuilt.cycle()
    assert (found.binds, found.pipelined, found.evicted) == (
        wanted.binds,
        wanted.pipelined,
        wanted.evicted,
    )
    assert {key: why.reason for key, why in found.pending.items()} == {
        key: why.reason for key, why in wanted.pending.items()
    }
