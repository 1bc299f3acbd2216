"""What must hold for every cluster."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler import ClusterState, CycleResult
from pumice.scheduler.model.tasks import READY
from tests.kit.examples import examples
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenes import Scene, node, pod, pod_group, queue

EXAMPLES = examples(40)

CPUS = st.sampled_from(["0", "250m", "500m", "1", "1500m", "3"])
MEMORIES = st.sampled_from(["0", "512Mi", "1Gi", "3Gi"])
PLACES = st.sampled_from(["", "", "", "n0", "n1", "gone"])
PHASES = st.sampled_from(["Pending", "Running", "Running", "Succeeded", "Failed"])
PARENTS = st.sampled_from(["", "root", "q1", "q2", "q3", "gone"])
TOPOLOGIES = st.sampled_from(
    [
        {},
        {"volcano.sh/task-topology-affinity": "a,b"},
        {"volcano.sh/task-topology-affinity": "a,b", "volcano.sh/task-topology-anti-affinity": "a"},
    ]
)


@st.composite
def nodes(draw: st.DrawFn, index: int) -> list[Any]:
    """A node, some of them tainted, cordoned or with GPUs."""
    options: dict[str, Any] = {"pods": draw(st.sampled_from([2, 4, 110]))}
    if draw(st.integers(0, 5)) == 0:
        options["taints"] = [{"key": "t", "effect": "NoSchedule"}]
    if draw(st.integers(0, 5)) == 0:
        options["unschedulable"] = True
    if draw(st.booleans()):
        options["resources"] = {"nvidia.com/gpu": draw(st.integers(0, 3))}
    return [
        f"n{index}",
        draw(st.sampled_from([1, 2, 4])),
        draw(st.sampled_from(["2Gi", "8Gi"])),
        options,
    ]


@st.composite
def gangs(draw: st.DrawFn, index: int) -> tuple[list[Any], list[list[Any]]]:
    """A gang and its pods, some of them placed, done or terminating already."""
    name = f"g{index}"
    pods = []
    for number in range(draw(st.integers(0, 5))):
        role = draw(st.sampled_from(["a", "b"]))
        place = draw(PLACES)
        options: dict[str, Any] = {"role": role, "prio": draw(st.integers(0, 2))}
        if draw(st.integers(0, 6)) == 0:
            options["ports"] = [80]
        if draw(st.integers(0, 6)) == 0:
            options["resources"] = {"nvidia.com/gpu": 1}
        if draw(st.integers(0, 8)) == 0:
            options["gates"] = ["g"]
        if place and draw(st.integers(0, 4)) == 0:
            options["deleting"] = True
        phase = draw(PHASES) if place else "Pending"
        row = [
            "ns",
            f"{name}-{role}-{number}",
            place,
            phase,
            draw(CPUS),
            draw(MEMORIES),
            name,
            options,
        ]
        pods.append(row)
    settings_of_gang: dict[str, Any] = {"annotations": draw(TOPOLOGIES)}
    if draw(st.booleans()):
        settings_of_gang["minRes"] = {"cpu": draw(CPUS), "memory": draw(MEMORIES)}
    phase = draw(st.sampled_from(["Pending", "Inqueue", "Running"]))
    queue = draw(st.sampled_from(["default", "default", "q1", "q2", "missing"]))
    return ["ns", name, queue, draw(st.integers(0, 4)), phase, settings_of_gang], pods


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    """A cluster of a few nodes and gangs."""
    drawn = [draw(gangs(index)) for index in range(draw(st.integers(1, 4)))]
    return {
        "nodes": [draw(nodes(index)) for index in range(draw(st.integers(0, 4)))],
        "queues": [[f"q{number}", {"parent": draw(PARENTS)}] for number in (1, 2, 3)],
        "podgroups": [group for group, _ in drawn],
        "pods": [row for _, pods in drawn for row in pods],
    }


def _used_by_binds(state: ClusterState) -> None:
    """No node on which something was placed has less than nothing left of what was asked for."""
    rows = state.nodes.rows()
    for task in state.tasks.values():
        if task.status.name == "BINDING" and task.node:
            for need in task.shape.needs:
                row = state.nodes.records[task.node].row
                assert rows.idle(need.column)[row] >= 0


@EXAMPLES
@given(clusters())
def test_no_node_gets_more_than_it_has(cluster: dict[str, Any]) -> None:
    scene = Scene(cluster)
    scene.cycle()
    _used_by_binds(scene.state)


@EXAMPLES
@given(clusters())
def test_gangs_get_their_minimum_or_nothing(cluster: dict[str, Any]) -> None:
    scene = Scene(cluster)
    result = scene.cycle()
    for job in scene.state.jobs.values():
        bound = [key for key in job.tasks if key in result.binds]
        if bound:
            ready = sum(task.status in READY for task in job.tasks.values())
            assert ready >= job.min_member


@EXAMPLES
@given(clusters())
def test_everything_that_waits_has_a_reason(cluster: dict[str, Any]) -> None:
    scene = Scene(cluster)
    result = scene.cycle()
    for job in scene.state.jobs.values():
        if any(task.status.name == "PENDING" for task in job.tasks.values()):
            assert result.pending[job.key].message


@EXAMPLES
@given(clusters())
def test_a_cycle_leaves_nothing_tentative(cluster: dict[str, Any]) -> None:
    """Whatever is not bound is as it was before."""
    scene = Scene(cluster)
    before = dump(scene.state)
    result = scene.cycle()
    for key in result.binds:
        scene.state.forget(key, "")
    after = dump(scene.state)
    after["waiting"] = before["waiting"] = None
    assert after == before


@EXAMPLES
@given(clusters())
def test_a_discarded_statement_restores_every_bit(cluster: dict[str, Any]) -> None:
    scene = Scene(cluster)
    before = dump(scene.state)
    session = open_session(scene)
    statement = session.statement()
    for index, task in enumerate(list(scene.state.tasks.values())):
        records = scene.state.nodes.order
        if task.status.name == "PENDING" and records:
            place = statement.pipeline if index % 2 else statement.allocate
            place(task, records[index % len(records)])
        elif task.status.name == "RUNNING" and session.view.row_of(task.node) >= 0:
            statement.evict(task)
    statement.discard()
    assert dump(scene.state) == before


@EXAMPLES
@given(
    clusters(),
    st.lists(st.tuples(st.sampled_from(("place", "evict", "save", "return")), st.integers(0, 50))),
)
def test_whatever_was_decided_a_savepoint_restores_every_bit(
    cluster: dict[str, Any], steps: list[tuple[str, int]]
) -> None:
    """Decisions in any order, savepoints in between, and returns to any of those that still hold."""
    scene = Scene(cluster)
    session = open_session(scene)
    statement = session.statement()
    tasks, records = list(scene.state.tasks.values()), scene.state.nodes.order
    saved = [(statement.savepoint(), dump(scene.state))]
    for step, number in steps:
        waiting = [task for task in tasks if task.status.name == "PENDING"]
        placed = [task for task in tasks if task.row >= 0 and session.view.row_of(task.node) >= 0]
        if step == "place" and waiting and records:
            place = statement.pipeline if number % 2 else statement.allocate
            place(waiting[number % len(waiting)], records[number % len(records)])
        elif step == "evict" and placed:
            statement.evict(placed[number % len(placed)])
        elif step == "save":
            saved.append((statement.savepoint(), dump(scene.state)))
        elif step == "return":
            del saved[number % len(saved) + 1 :]
            statement.roll_back(saved[-1][0])
            assert dump(scene.state) == saved[-1][1]
    statement.discard()
    assert dump(scene.state) == saved[0][1]


def _facts(result: CycleResult) -> Any:
    return (
        sorted(result.binds.items()),
        sorted(result.pipelined.items()),
        {key: (reason.reason, reason.message) for key, reason in result.pending.items()},
        dict(result.all_pod_groups),
        result.pods,
        result.events,
    )


@EXAMPLES
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(cluster: dict[str, Any], dice: Any) -> None:
    shuffled = {key: dice.sample(rows, len(rows)) for key, rows in cluster.items()}
    names = list(shuffled)
    dice.shuffle(names)
    one, other = Scene(cluster), Scene({name: shuffled[name] for name in names})
    assert dump(one.state) == dump(other.state)
    assert _facts(one.cycle()) == _facts(other.cycle())


@EXAMPLES
@given(clusters(), clusters(), st.randoms(use_true_random=False))
def test_a_state_that_lived_equals_one_built_anew(
    first: dict[str, Any], second: dict[str, Any], dice: Any
) -> None:
    """From one cluster, event by event, to another, with a cycle in between: nothing of the past is left."""
    scene = Scene(first)
    scene.cycle()
    state = scene.state
    names = {row[0] for row in second["nodes"]}
    groups = {row[1] for row in second["podgroups"]}
    pods = {row[1] for row in second["pods"]}
    events: list[Any] = [
        *(lambda row=row: state.set_node(node(row)) for row in second["nodes"]),
        *(lambda row=row: state.set_queue(queue(row)) for row in second["queues"]),
        *(lambda row=row: state.set_pod_group(pod_group(row)) for row in second["podgroups"]),
        *(lambda row=row: state.set_pod(pod(row)) for row in second["pods"]),
        *(
            lambda row=row: state.remove_node(row[0])
            for row in first["nodes"]
            if row[0] not in names
        ),
        *(
            lambda row=row: state.remove_pod_group(row[0], row[1])
            for row in first["podgroups"]
            if row[1] not in groups
        ),
        *(
            lambda row=row: state.remove_pod(*row[:2])
            for row in first["pods"]
            if row[1] not in pods
        ),
    ]
    dice.shuffle(events)
    for task in list(state.tasks.values()):
        state.forget(task.key, task.uid)
    for event in events:
        event()
    assert dump(state) == dump(Scene(second).state)


@EXAMPLES
@given(st.data(), clusters(), clusters(), st.randoms(use_true_random=False))
def test_gangs_that_are_not_tried_again_would_not_have_been_placed(
    data: st.DataObject, first: dict[str, Any], second: dict[str, Any], dice: Any
) -> None:
    """Whatever happens, a scheduler that tries every waiting gang in each cycle decides the same."""
    thrifty, eager = Scene(first), Scene(first)
    events: list[Any] = [
        *(lambda state, row=row: state.set_node(node(row)) for row in second["nodes"]),
        *(
            lambda state, row=row: state.set_pod_group(pod_group(row))
            for row in second["podgroups"]
        ),
        *(lambda state, row=row: state.set_pod(pod(row)) for row in second["pods"]),
        *(lambda state, row=row: state.remove_node(row[0]) for row in first["nodes"]),
        *(lambda state, row=row: state.remove_pod_group(*row[:2]) for row in first["podgroups"]),
        *(lambda state, row=row: state.remove_pod(*row[:2]) for row in first["pods"]),
    ]
    dice.shuffle(events)
    while events:
        for _ in range(data.draw(st.integers(1, 4))):
            if events:
                event = events.pop()
                event(thrifty.state)
                event(eager.state)
        _try_all(eager)
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert seen.binds == wanted.binds
        assert seen.pipelined == wanted.pipelined
        assert sorted(seen.pending) == sorted(wanted.pending)
        phases = {key: status.phase for key, status in wanted.all_pod_groups.items()}
        assert {key: status.phase for key, status in seen.all_pod_groups.items()} == phases


def _try_all(scene: Scene) -> None:
    """Have the next cycle try every gang that waits, whatever earlier cycles found out."""
    scene.state.settled = None
    scene.state.gains.any_gang = True
    for job in scene.state.jobs.values():
        job.shortage = None


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


def _happen(scene: Scene, event: tuple[str, list[Any]]) -> None:
    kind, row = event
    if kind == "node":
        scene.state.set_node(node(row))
    elif kind == "node gone":
        scene.state.remove_node(row[0])
    elif kind == "gone":
        scene.state.remove_pod(*row[:2])
    elif kind == "group":
        scene.state.set_pod_group(pod_group(row))
    elif kind == "queue":
        scene.state.set_queue(queue(row))
    else:
        scene.state.set_pod(pod(row))


@examples(120)
@given(crowds())
def test_no_gang_waits_for_what_it_could_have(drawn: tuple[dict[str, Any], list[Any]]) -> None:
    """Event by event: what is placed is what is placed when every waiting gang is tried in each cycle."""
    cluster, events = drawn
    thrifty, eager = Scene(cluster), Scene(cluster)
    for event in [None, None, *events, None]:
        if event is not None:
            _happen(thrifty, event)
            _happen(eager, event)
        _try_all(eager)
        thrifty.state.settled = None  # a settled state does not repeat what it has promised
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert (seen.binds, seen.pipelined) == (wanted.binds, wanted.pipelined)
