"""A gang that is not tried again would not have been placed, whatever happens meanwhile."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.examples import examples
from tests.unit.scheduler.events import changes, in_turns
from tests.unit.scheduler.scenarios import Scenario, node, pod, pod_group, queue
from tests.unit.scheduler.test_properties import EXAMPLES, clusters


@EXAMPLES
@given(st.data(), clusters(), clusters(), st.randoms(use_true_random=False))
def test_gangs_that_are_not_tried_again_would_not_have_been_placed(
    data: st.DataObject, first: dict[str, Any], second: dict[str, Any], dice: Any
) -> None:
    """Whatever happens, a scheduler that tries every waiting gang in each cycle decides the same."""
    thrifty, eager = Scenario(first), Scenario(first)
    events = changes(first, second)
    events += [
        lambda state, row=row: state.remove_pod_group(*row[:2])  # type: ignore[misc]
        for row in first["podgroups"]
    ]
    for _ in in_turns(data, dice, events, thrifty, eager):
        _try_all(eager)
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert seen.binds == wanted.binds
        assert seen.pipelined == wanted.pipelined
        assert sorted(seen.pending) == sorted(wanted.pending)
        phases = {key: status.phase for key, status in wanted.all_pod_groups.items()}
        assert {key: status.phase for key, status in seen.all_pod_groups.items()} == phases


def _try_all(scenario: Scenario) -> None:
    """Have the next cycle try every gang that waits, whatever earlier cycles found out."""
    scenario.state.settled = None
    scenario.state.gains.any_gang = True
    for job in scenario.state.jobs.values():
        job.shortage = job.asks = None


@st.composite
def crowds(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any]]:
    """A few nodes and gangs that compete for them, the pods of a gang equal, and what happens then."""
    names = [f"n{index}" for index in range(draw(st.integers(1, 4)))]
    ports: dict[str, Any] = {"ports": [80]} if draw(st.integers(0, 3)) == 0 else {}
    running = [
        ["ns", f"r-{name}-{number}", name, "Running", draw(CORES), "1Gi", "", ports]
        for name in names
        for number in range(draw(st.integers(0, 3)))
    ]
    groups, pods = [], []
    is_equal = draw(st.booleans())
    kind = draw(kinds())
    for index in range(draw(st.integers(1, 5))):
        count = draw(st.integers(1, 5))
        groups.append(["ns", f"g{index}", "default", draw(st.integers(1, count)), "Inqueue"])
        cpu, memory, options = kind if is_equal else draw(kinds())
        for number in range(count):
            gates = {"gates": ["hold"]} if draw(st.integers(0, 9)) == 0 else {}
            row = ["ns", f"g{index}-{number}", "", "Pending", cpu, memory, f"g{index}"]
            pods.append([*row, {**options, **ports, **gates}])
    cluster = {
        "nodes": [draw(hosts(name)) for name in names],
        "podgroups": groups,
        "pods": [*running, *pods],
    }
    return cluster, draw(histories(names, running, [*pods, *groups]))


CORES = st.sampled_from(["1", "1", "500m", "2"])


@st.composite
def kinds(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """What the pods of a gang ask for."""
    options: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        options["selector"] = {"pool": draw(st.sampled_from(["a", "b"]))}
    if draw(st.integers(0, 3)) == 0:
        options["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return draw(CORES), draw(st.sampled_from(["1Gi", "1Gi", "3Gi"])), options


@st.composite
def hosts(draw: st.DrawFn, name: str) -> list[Any]:
    """A node as it is, or as it becomes."""
    options: dict[str, Any] = {"pods": draw(st.sampled_from([3, 110]))}
    options["labels"] = {"pool": draw(st.sampled_from(["a", "a", "b"]))}
    if draw(st.integers(0, 4)) == 0:
        options["taints"] = [{"key": "t", "effect": "NoSchedule"}]
    options["unschedulable"] = draw(st.integers(0, 4)) == 0
    options["ready"] = draw(st.integers(0, 4)) > 0
    return [name, draw(st.integers(1, 4)), draw(st.sampled_from(["4Gi", "8Gi"])), options]


@st.composite
def histories(
    draw: st.DrawFn, names: list[str], running: list[Any], waiting: list[Any]
) -> list[Any]:
    """Events: pods that end or begin to, nodes that come, change and go, gates that open, gangs that change."""
    first: list[Any] = []
    later: list[Any] = []  # a pod goes after it has begun to
    for row in running:
        going = ("pod", [*row[:7], {**row[7], "deleting": True}])
        what = draw(st.integers(0, 3))
        first += [going] if what in (1, 2) else []
        later += [("gone", row)] if what in (2, 3) else []
    for row in waiting:
        if len(row) == 5:
            if draw(st.integers(0, 4)) == 0:
                first.append(("group", [*row[:3], max(1, row[3] - 1), row[4]]))
        elif "gates" in row[7] and draw(st.booleans()):
            first.append(("pod", [*row[:7], {k: v for k, v in row[7].items() if k != "gates"}]))
    for _ in range(draw(st.integers(0, 4))):
        first.append(("node", draw(hosts(draw(st.sampled_from([*names, "n8", "n9"]))))))
    if draw(st.integers(0, 3)) == 0:
        first.append(("node gone", [draw(st.sampled_from(names))]))
    if draw(st.integers(0, 3)) == 0:
        first.append(("queue", ["default", {"weight": 2}]))
    return [*draw(st.permutations(first)), *draw(st.permutations(later))]


def _happen(scenario: Scenario, event: tuple[str, list[Any]]) -> None:
    kind, row = event
    if kind == "node":
        scenario.state.set_node(node(row))
    elif kind == "node gone":
        scenario.state.remove_node(row[0])
    elif kind == "gone":
        scenario.state.remove_pod(*row[:2])
    elif kind == "group":
        scenario.state.set_pod_group(pod_group(row))
    elif kind == "queue":
        scenario.state.set_queue(queue(row))
    else:
        scenario.state.set_pod(pod(row))


@examples(120)
@given(crowds())
def test_no_gang_waits_for_what_it_could_have(drawn: tuple[dict[str, Any], list[Any]]) -> None:
    """Event by event: what is placed is what is placed when every waiting gang is tried in each cycle."""
    cluster, events = drawn
    thrifty, eager = Scenario(cluster), Scenario(cluster)
    for event in [None, None, *events, None]:
        if event is not None:
            _happen(thrifty, event)
            _happen(eager, event)
        _try_all(eager)
        thrifty.state.settled = None  # a settled state does not repeat what it has promised
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert (seen.binds, seen.pipelined) == (wanted.binds, wanted.pipelined)
