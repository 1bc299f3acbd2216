"""What must hold for every cluster."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from pumice.scheduler import ClusterState, CycleResult
from pumice.scheduler.model.tasks import READY
from tests.kit.examples import examples
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import Scenario, node, pod, pod_group, queue

EXAMPLES = examples(40)

CPUS = st.sampled_from(["0", "250m", "500m", "1", "1500m", "3"])
MEMORIES = st.sampled_from(["0", "512Mi", "1Gi", "3Gi"])
PLACES = st.sampled_from(["", "", "", "n0", "n1", "gone"])
PHASES = st.sampled_from(["Pending", "Running", "Running", "Succeeded", "Failed"])
CHARGES = st.sampled_from(["default", "q1", "q2", "gone"])
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
        if place and draw(st.integers(0, 3)) == 0:
            options["annotations"] = {"pumice.dev/queue": draw(CHARGES)}
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
    scenario = Scenario(cluster)
    scenario.cycle()
    _used_by_binds(scenario.state)


@EXAMPLES
@given(clusters())
def test_gangs_get_their_minimum_or_nothing(cluster: dict[str, Any]) -> None:
    scenario = Scenario(cluster)
    result = scenario.cycle()
    for job in scenario.state.jobs.values():
        bound = [key for key in job.tasks if key in result.binds]
        if bound:
            ready = sum(task.status in READY for task in job.tasks.values())
            assert ready >= job.min_member


@EXAMPLES
@given(clusters())
def test_everything_that_waits_has_a_reason(cluster: dict[str, Any]) -> None:
    scenario = Scenario(cluster)
    result = scenario.cycle()
    for job in scenario.state.jobs.values():
        if any(task.status.name == "PENDING" for task in job.tasks.values()):
            assert result.pending[job.key].message


@EXAMPLES
@given(clusters())
def test_a_cycle_leaves_nothing_tentative(cluster: dict[str, Any]) -> None:
    """Whatever is neither bound nor evicted is as it was before."""
    scenario = Scenario(cluster)
    before = dump(scenario.state)
    result = scenario.cycle()
    assume(not result.evicted)
    for key in result.binds:
        scenario.state.pods.forget(key, "")
    after = dump(scenario.state)
    after["waiting"] = before["waiting"] = None
    assert after == before


@EXAMPLES
@given(clusters())
def test_a_discarded_statement_restores_every_bit(cluster: dict[str, Any]) -> None:
    scenario = Scenario(cluster)
    before = dump(scenario.state)
    session = open_session(scenario)
    statement = session.statement()
    for index, task in enumerate(list(scenario.state.tasks.values())):
        records = scenario.state.nodes.order
        if task.status.name == "PENDING" and records:
            place = statement.pipeline if index % 2 else statement.allocate
            place(task, records[index % len(records)])
        elif task.status.name == "RUNNING" and session.view.row_of(task.node) >= 0:
            statement.evict(task)
    statement.discard()
    assert dump(scenario.state) == before


@EXAMPLES
@given(
    clusters(),
    st.lists(st.tuples(st.sampled_from(("place", "evict", "save", "return")), st.integers(0, 50))),
)
def test_whatever_was_decided_a_savepoint_restores_every_bit(
    cluster: dict[str, Any], steps: list[tuple[str, int]]
) -> None:
    """Decisions in any order, savepoints in between, and returns to any of those that still hold."""
    scenario = Scenario(cluster)
    session = open_session(scenario)
    statement = session.statement()
    tasks, records = list(scenario.state.tasks.values()), scenario.state.nodes.order
    saved = [(statement.savepoint(), dump(scenario.state))]

    def has_queue(gang: str) -> bool:
        job = scenario.state.jobs.get(gang)
        return job is not None and job.group is not None and job.queue in scenario.state.queues

    for step, number in steps:
        waiting = [task for task in tasks if task.status.name == "PENDING" and has_queue(task.job)]
        placed = [task for task in tasks if task.row >= 0 and session.view.row_of(task.node) >= 0]
        if step == "place" and waiting and records:
            place = statement.pipeline if number % 2 else statement.allocate
            place(waiting[number % len(waiting)], records[number % len(records)])
        elif step == "evict" and placed:
            statement.evict(placed[number % len(placed)])
        elif step == "save":
            saved.append((statement.savepoint(), dump(scenario.state)))
        elif step == "return":
            del saved[number % len(saved) + 1 :]
            statement.roll_back(saved[-1][0])
            assert dump(scenario.state) == saved[-1][1]
    statement.discard()
    assert dump(scenario.state) == saved[0][1]


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
    one, other = Scenario(cluster), Scenario({name: shuffled[name] for name in names})
    assert dump(one.state) == dump(other.state)
    assert _facts(one.cycle()) == _facts(other.cycle())


@EXAMPLES
@given(clusters(), clusters(), st.randoms(use_true_random=False))
def test_a_state_that_lived_equals_one_built_from_its_objects(
    first: dict[str, Any], second: dict[str, Any], dice: Any
) -> None:
    """From one cluster, event by event, to another, with a cycle in between: nothing of the past is left."""
    scenario = Scenario(first)
    scenario.cycle()
    state = scenario.state
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
        state.pods.forget(task.key, task.uid)
    for event in events:
        event()
    assert dump(state) == dump(Scenario(second).state)
