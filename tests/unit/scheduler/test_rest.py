"""A cluster comes to rest: what was evicted and comes back does not make others go again and again.

Evicted pods terminate for a round or two and are then made again, as a controller does.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler import load_config
from pumice.scheduler.config import DEFAULT
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario, pod

Raw = dict[str, Any]

CONFIGS = {
    "default": load_config(DEFAULT),
    "capacity": load_config(DEFAULT.replace("name: proportion", "name: capacity")),
}
GANGS = DEFAULT.replace("preempt, reclaim", "gangpreempt, gangreclaim")
CONFIGS |= {
    "gangs": load_config(GANGS),
    "gangs, capacity": load_config(GANGS.replace("name: proportion", "name: capacity")),
}
ROUNDS, CALM = 40, 8
"""Rounds in all, and those at the end in which nothing is evicted any more."""


@st.composite
def clusters(draw: st.DrawFn) -> Raw:
    """One to three nodes, two queues, and up to six gangs, of which some run."""
    sizes = draw(st.lists(st.sampled_from((2, 4, 6, 8)), min_size=1, max_size=3))
    free = {f"n{number}": size for number, size in enumerate(sizes)}
    nodes = [[name, size, "100Gi"] for name, size in free.items()]
    queues = [
        [
            name,
            {"weight": draw(st.sampled_from((1, 3))), "deserved": {"cpu": draw(st.integers(1, 8))}},
        ]
        for name in ("q0", "q1")
    ]
    groups, pods = [], []
    for number in range(draw(st.integers(2, 6))):
        size = draw(st.integers(1, 4))
        minimum, cpu = draw(st.integers(1, size)), draw(st.sampled_from((1, 1, 2, 3)))
        priority = draw(st.sampled_from(("", "low", "mid", "high")))
        runs = draw(st.booleans())
        options: Raw = {"created": f"2023-01-01T00:00:0{number}Z"}
        options |= {"prio": priority} if priority else {}
        places = []
        for _ in range(size if runs else 0):
            name = next((each for each, left in free.items() if left >= cpu), None)
            if name is not None:
                free[name] -= cpu
                places.append(name)
        if len(places) < minimum:
            for name in places:
                free[name] += cpu
            places = []
        phase = "Running" if places else "Inqueue"
        queue = draw(st.sampled_from(("q0", "q1")))
        groups.append(["ns", f"g{number}", queue, minimum, phase, options])
        for index in range(size):
            node = places[index] if index < len(places) else ""
            status = "Running" if node else "Pending"
            pods.append(["ns", f"g{number}-{index}", node, status, cpu, 0, f"g{number}"])
    classes = {"low": 1, "mid": 10, "high": 100}
    return {"nodes": nodes, "queues": queues, "classes": classes, "podgroups": groups, "pods": pods}


@st.composite
def full_clusters(draw: st.DrawFn) -> Raw:
    """Nodes without any room, most of whose pods may go, and up to three gangs that want some."""
    cpu = draw(st.sampled_from((1, 2)))
    sizes = draw(st.lists(st.sampled_from((2, 4, 8)), min_size=1, max_size=2))
    nodes = [[f"n{number}", size, "100Gi"] for number, size in enumerate(sizes)]
    free = [f"n{number}" for number, size in enumerate(sizes) for _ in range(size // cpu)]
    queues = [
        [
            name,
            {
                "weight": draw(st.sampled_from((1, 3))),
                "deserved": {"cpu": draw(st.sampled_from((1, 2, 4, 8)))},
                "priority": draw(st.integers(0, 1)),
            },
        ]
        for name in ("q0", "q1")
    ]
    groups, pods = [], []
    for number in range(6):
        is_running = number < 3 or bool(free)
        size = draw(st.integers(1, 8 if is_running else 3))
        places = [free.pop() for _ in range(min(size, len(free)))]
        if is_running and not places:
            continue
        minimum = draw(st.integers(1, 2 if is_running else size))
        options: Raw = {"created": f"2023-01-01T00:00:0{number}Z"}
        options |= {"prio": draw(st.sampled_from(("low", "low", "mid", "high")))}
        minimum = min(minimum, len(places)) if places else minimum
        phase = "Running" if places else "Inqueue"
        queue = draw(st.sampled_from(("q0", "q1")))
        groups.append(["ns", f"g{number}", queue, minimum, phase, options])
        for index, node in enumerate(places or [""] * size):
            status = "Running" if node else "Pending"
            pods.append(["ns", f"g{number}-{index}", node, status, cpu, 0, f"g{number}"])
    classes = {"low": 1, "mid": 10, "high": 100}
    return {"nodes": nodes, "queues": queues, "classes": classes, "podgroups": groups, "pods": pods}


@st.composite
def in_racks(draw: st.DrawFn) -> Raw:
    """The same with each node in one of two racks, and gangs that must or should be in one."""
    cluster: Raw = draw(st.one_of(clusters(), full_clusters()))
    racks: Raw = {f"rack{number}": {"tier": 1, "nodes": []} for number in range(2)}
    for name, *_ in cluster["nodes"]:
        racks[f"rack{draw(st.integers(0, 1))}"]["nodes"].append(name)
    ways: tuple[Raw | None, ...] = (
        None,
        {"mode": "soft"},
        {"mode": "hard", "highestTierAllowed": 1},
    )
    groups = [
        [*row[:5], {**(row[5] if row[5:] else {}), "topology": draw(st.sampled_from(ways))}]
        for row in cluster["podgroups"]
    ]
    used = {name: each for name, each in racks.items() if each["nodes"]}
    return cluster | {"hyper_nodes": used, "podgroups": groups}


def last_eviction(cluster: Raw, config: str, lingering: int, rounds: int = ROUNDS) -> int:
    """The last of the rounds in which a pod is evicted."""
    scenario = Scenario(cluster, CONFIGS[config])
    rows = {f"ns/{row[1]}": row for row in cluster["pods"]}
    leaving: dict[str, int] = {}
    last = -1
    for number in range(rounds):
        result = scenario.cycle(NOW + 2 * number)
        last = number if result.evicted else last
        for key, node in result.binds.items():
            scenario.state.set_pod(pod([*rows[key][:2], node, "Running", *rows[key][4:]]))
        for key in [key for key, until in leaving.items() if until <= number]:
            del leaving[key]
            scenario.state.remove_pod("ns", rows[key][1])
            scenario.state.set_pod(pod([*rows[key][:2], "", "Pending", *rows[key][4:]]))
        leaving |= dict.fromkeys(result.evicted, number + lingering)
    return last


@pytest.mark.parametrize("config", CONFIGS)
@examples(40, always_the_same=False)
@given(cluster=clusters(), lingering=st.integers(1, 2))
def test_a_cluster_comes_to_rest(config: str, cluster: Raw, lingering: int) -> None:
    assert last_eviction(cluster, config, lingering) < ROUNDS - CALM


@pytest.mark.parametrize("config", CONFIGS)
@examples(100, always_the_same=False)
@given(cluster=full_clusters(), lingering=st.integers(1, 2))
def test_a_cluster_without_room_comes_to_rest(config: str, cluster: Raw, lingering: int) -> None:
    assert last_eviction(cluster, config, lingering) < ROUNDS - CALM


@pytest.mark.parametrize("config", CONFIGS)
@examples(60, always_the_same=False)
@given(cluster=in_racks(), lingering=st.integers(1, 2))
def test_a_cluster_of_racks_comes_to_rest(config: str, cluster: Raw, lingering: int) -> None:
    assert last_eviction(cluster, config, lingering) < ROUNDS - CALM


def test_what_was_reclaimed_is_not_taken_back_by_a_more_important_gang() -> None:
    cluster = {
        "nodes": [["n1", 8, "100Gi"]],
        "queues": [["q0", {"priority": 1}], ["q1", {"deserved": {"cpu": 8}}]],
        "classes": {"mid": 10},
        "podgroups": [
            ["ns", "late", "q1", 1, "Inqueue"],
            ["ns", "old", "q0", 1, "Running", {"prio": "mid"}],
        ],
        "pods": [
            ["ns", "late-0", "", "Pending", 2, 0, "late"],
            *(["ns", f"old-{number}", "n1", "Running", 2, 0, "old"] for number in range(4)),
        ],
    }
    assert last_eviction(cluster, "capacity", 1) == 0


@pytest.mark.parametrize("config", CONFIGS)
def test_room_of_a_gang_is_not_for_pods_beyond_the_minimum_of_another(config: str) -> None:
    """One pod goes for the gang `mid`; `high`, which has its minimum and evicts nobody, does not take its place."""
    low = [["ns", f"low{n}", "q", 1, "Running", {"prio": "low"}] for n in range(7)]
    cluster = {
        "nodes": [["n1", 8, "100Gi"]],
        "queues": [["q"]],
        "classes": {"low": 1, "mid": 10, "high": 100},
        "podgroups": [
            ["ns", "high", "q", 1, "Running", {"prio": "high"}],
            ["ns", "mid", "q", 1, "Inqueue", {"prio": "mid"}],
            *low,
        ],
        "pods": [
            ["ns", "high-0", "n1", "Running", 1, 0, "high"],
            *(["ns", f"high-{n}", "", "Pending", 1, 0, "high"] for n in range(1, 7)),
            ["ns", "mid-0", "", "Pending", 1, 0, "mid"],
            *(["ns", f"low{n}-0", "n1", "Running", 1, 0, f"low{n}"] for n in range(7)),
        ],
    }
    scenario = Scenario(cluster, CONFIGS[config])
    evicted: list[str] = []
    for number in range(4):
        result = scenario.cycle(NOW + 2 * number)
        evicted += result.evicted
        scenario.start(result)
    assert len(evicted) == 1
    assert scenario.state.tasks["ns/mid-0"].node == "n1"
