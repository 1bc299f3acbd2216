"""Queues that deserve several resources come to rest under plugin `capacity`, and gangs of a queue are judged each for itself."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, pod_group
from tests.unit.scheduler.test_rest import CALM, CONFIGS, ROUNDS, last_eviction

Raw = dict[str, Any]
SIZES = (1, 2, 4, 6)


@st.composite
def clusters(draw: st.DrawFn) -> Raw:
    """A node, two or three queues that deserve cpu, memory, both or neither, and up to six pods, of which some run."""
    deserved = st.fixed_dictionaries(
        {},
        optional={
            "cpu": st.sampled_from(SIZES),
            "memory": st.sampled_from([f"{size}Gi" for size in SIZES]),
        },
    )
    queues = [
        [f"q{number}", {"deserved": draw(deserved)}] for number in range(draw(st.integers(2, 3)))
    ]
    groups, pods = [], []
    cpus = memory = 6
    asked = st.tuples(st.sampled_from((0, 1, 2, 4)), st.sampled_from((0, 1, 2, 4))).filter(any)
    for number in range(draw(st.integers(2, 6))):
        queue = draw(st.sampled_from(queues))[0]
        cpu, size = draw(asked)
        runs = cpus >= cpu and memory >= size and draw(st.booleans())
        if runs:
            cpus, memory = cpus - cpu, memory - size
        options = {"created": f"2023-01-01T00:00:0{number}Z"}
        groups.append(["ns", f"g{number}", queue, 1, "Running" if runs else "Inqueue", options])
        node, phase = ("n1", "Running") if runs else ("", "Pending")
        pods.append(["ns", f"g{number}-0", node, phase, cpu, f"{size}Gi", f"g{number}"])
    return {"nodes": [["n1", 6, "6Gi"]], "queues": queues, "podgroups": groups, "pods": pods}


@examples(60)
@given(cluster=clusters())
def test_queues_do_not_evict_each_other_for_ever(cluster: Raw) -> None:
    assert last_eviction(cluster, "capacity", 1) < ROUNDS - CALM


def _two_queues(pods: list[Raw], deserved: dict[str, Raw]) -> Raw:
    return {
        "nodes": [["n1", 8, "8Gi"]],
        "queues": [[name, {"deserved": each}] for name, each in deserved.items()],
        "podgroups": [
            ["ns", each["name"], each["queue"], 1, each["phase"], {"created": each["created"]}]
            for each in pods
        ],
        "pods": [
            [
                "ns",
                f"{each['name']}-0",
                "n1" if each["phase"] == "Running" else "",
                "Running" if each["phase"] == "Running" else "Pending",
                each["cpu"],
                each["memory"],
                each["name"],
            ]
            for each in pods
        ],
    }


def _gang(name: str, phase: str, cpu: int, memory: str) -> Raw:
    created = f"2023-01-01T00:00:0{name[-1]}Z"
    queue = name[0]
    return {
        "name": name,
        "queue": queue,
        "phase": phase,
        "cpu": cpu,
        "memory": memory,
        "created": created,
    }


def test_a_pod_stays_if_its_queue_could_take_its_place_back() -> None:
    """Queue `a` deserves all cpu and `b` all memory; a pod of either takes the whole node."""
    deserved = {"a": {"cpu": 8, "memory": "1Gi"}, "b": {"cpu": 1, "memory": "8Gi"}}
    pods = [_gang("b0", "Running", 8, "8Gi"), _gang("a1", "Inqueue", 8, "8Gi")]
    assert last_eviction(_two_queues(pods, deserved), "capacity", 1) == -1


def test_a_pod_goes_if_its_queue_could_not() -> None:
    deserved = {"a": {"cpu": 8, "memory": "1Gi"}, "b": {"cpu": 1, "memory": "4Gi"}}
    pods = [_gang("b0", "Running", 8, "8Gi"), _gang("a1", "Inqueue", 8, "8Gi")]
    assert last_eviction(_two_queues(pods, deserved), "capacity", 1) == 0


def test_a_gang_reclaims_what_an_earlier_one_of_its_queue_could_not() -> None:
    """Queue `b` holds more memory than it deserves, but no more cpu: the first gang asks for cpu, the second for memory."""
    deserved = {"a": {"cpu": 8, "memory": "8Gi"}, "b": {"cpu": 8, "memory": "1Gi"}}
    pods = [
        _gang("b0", "Running", 8, "8Gi"),
        _gang("a1", "Inqueue", 1, "0"),
        _gang("a2", "Inqueue", 0, "2Gi"),
    ]
    result = Scenario(_two_queues(pods, deserved), CONFIGS["capacity"]).cycle(NOW)
    assert result.evicted == ["ns/b0-0"]
    assert result.pipelined == {"ns/a2-0": "n1"}


def test_a_queue_takes_back_what_an_earlier_one_of_the_same_action_makes_it_lack() -> None:
    """Queue `c` holds all that it deserves until `a` takes back pods of it; the reasons of other gangs are renewed in that cycle."""
    waiting = [f"c{number}" for number in range(5)]
    cluster: Raw = {
        "nodes": [[f"n-{pool}", 8, "8Gi", {"labels": {"pool": pool}}] for pool in "bc"],
        "queues": [["a"], ["b"], ["c"]],
        "podgroups": [
            *(["ns", name, "c", 1, "Inqueue"] for name in waiting),
            *(["ns", queue, queue, 1, "Running"] for queue in "bc"),
        ],
        "pods": [
            *(["ns", f"{each}-0", "", "Pending", 4, 0, each] for each in waiting[:-1]),
            ["ns", "c4-0", "", "Pending", 1, 0, "c4", {"selector": {"pool": "b"}}],
            *(
                ["ns", f"{pool}-{number}", f"n-{pool}", "Running", 1, 0, pool]
                for pool in "bc"
                for number in range(8)
            ),
        ],
    }
    tiers = [["priority", "gang"], ["proportion", "predicates"]]
    scenario = Scenario(cluster, config_text(tiers, ["allocate", "reclaim"]))
    assert not any(scenario.cycle(NOW + 10 * number).evicted for number in range(3))
    scenario.state.set_pod_group(pod_group(["ns", "a", "a", 1, "Inqueue"]))
    scenario.add_pod(["ns", "a-0", "", "Pending", 5, 0, "a", {"selector": {"pool": "c"}}])
    result = scenario.cycle(NOW + 30)
    assert sorted(result.evicted) == ["ns/b-7", *(f"ns/c-{number}" for number in range(3, 8))]
    assert result.pipelined == {"ns/a-0": "n-c", "ns/c4-0": "n-b"}
