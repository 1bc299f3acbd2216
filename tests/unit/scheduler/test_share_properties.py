"""Shares and limits of queues for any cluster: against slow references, and after any decisions."""

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import keys
from pumice.api.quantities import parse_milli
from pumice.scheduler.fairness.entitlements import Entitlements
from pumice.scheduler.model.running_pods import Away
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, SchedulingStatus, TaskInfo
from pumice.scheduler.session.victims import judge
from tests.kit.examples import examples
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, config_text
from tests.unit.scheduler.victims import candidates_of, may_go, preemptor_of

EXAMPLES = examples(40)
QUEUES = ("a", "b", "c", "d", "e")
RESOURCES = ("cpu", "memory")
HELD = ALLOCATED_LIKE | {SchedulingStatus.PIPELINED}
CAPACITY: list[Any] = [
    ["gang"],
    [
        {"capacity": ["Allocatable", "JobEnqueued", "QueueOrder", "Hierarchy", "Reclaimable"]},
        "predicates",
    ],
]
FLAT: list[Any] = [["gang"], ["capacity", "predicates"]]
HDRF: list[Any] = [[{"drf": ["Hierarchy", "QueueOrder", "JobOrder", "Reclaimable"]}]]

amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 6), max_size=2)


@st.composite
def trees(draw: st.DrawFn) -> list[list[Any]]:
    """Queues with parents among those before them, limits, and paths."""
    rows: list[list[Any]] = [["root"]]
    for place, name in enumerate(QUEUES):
        spec: dict[str, Any] = {"parent": draw(st.sampled_from(["root", *QUEUES[:place]]))}
        for field in ("capability", "deserved"):
            spec[field] = {key: str(value) for key, value in draw(amounts).items()}
        if draw(st.integers(0, 3)) == 0:
            spec["guarantee"] = {"resource": {"cpu": str(draw(st.integers(1, 3)))}}
        if draw(st.booleans()):
            above = "x/" if draw(st.booleans()) else ""
            weights = f"1/{draw(st.integers(1, 3))}/{draw(st.integers(1, 3))}"
            spec["annotations"] = {
                keys.HIERARCHY: f"root/{above}{name}",
                keys.HIERARCHY_WEIGHTS: weights,
            }
        rows.append([name, spec])
    return rows


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    """A few nodes, queues in a tree, gangs that run and gangs that wait."""
    nodes = [[f"n{index}", draw(st.integers(2, 8)), 8] for index in range(draw(st.integers(1, 2)))]
    groups, pods = [], []
    for index in range(draw(st.integers(1, 6))):
        queue = draw(st.sampled_from([*QUEUES, "default"]))
        count = draw(st.integers(1, 4))
        needs = {"minRes": {"cpu": str(draw(st.integers(1, 4)))}} if draw(st.booleans()) else {}
        phase = draw(st.sampled_from(["Pending", "Inqueue", "Running"]))
        groups.append(["ns", f"g{index}", queue, draw(st.integers(1, count)), phase, needs])
        for number in range(count):
            node = draw(st.sampled_from(["", "", *(row[0] for row in nodes)]))
            phase = "Running" if node else "Pending"
            cpu, memory = draw(st.integers(0, 3)), draw(st.integers(0, 3))
            pods.append(["ns", f"g{index}-{number}", node, phase, cpu, memory, f"g{index}"])
    return {"nodes": nodes, "queues": draw(trees()), "podgroups": groups, "pods": pods}


# -- capability ------------------------------------------------------------------------------


def _used(scenario: Scenario, below: dict[str, list[str]]) -> dict[tuple[str, str], int]:
    """What each queue holds with those below it, by resource, counted from the pods."""
    used: dict[tuple[str, str], int] = {}
    for job in scenario.state.jobs.values():
        for queue in below.get(job.queue, []):
            for column, resource in enumerate(RESOURCES):
                total = sum(
                    int(task.shape.vector[column])
                    for task in job.tasks.values()
                    if task.status in HELD
                )
                used[queue, resource] = used.get((queue, resource), 0) + total
    return used


def _paths(scenario: Scenario, *, in_tree: bool) -> dict[str, list[str]]:
    shares = scenario.state.shares
    return {
        name: [shares.names[each] for each in shares.paths[row]] if in_tree else [name]
        for name, row in shares.rows.items()
    }


@EXAMPLES
@given(clusters(), st.booleans())
def test_no_queue_is_taken_over_its_capability(cluster: dict[str, Any], in_tree: bool) -> None:
    """Not by what a cycle places, in no queue above it either."""
    scenario = Scenario(cluster, config_text(CAPACITY if in_tree else FLAT))
    scenario.state.settle()
    paths = _paths(scenario, in_tree=in_tree)
    before = _used(scenario, paths)
    scenario.cycle()
    for (queue, resource), used in _used(scenario, paths).items():
        stated = (scenario.state.queues[queue].spec.capability or {}).get(resource)
        if stated is not None and used > before[queue, resource]:
            milli = parse_milli(stated)
            assert used <= (milli if resource == "cpu" else milli // 1000)


@EXAMPLES
@given(clusters())
def test_what_others_are_guaranteed_stays_free(cluster: dict[str, Any]) -> None:
    """What a cycle places beyond a queue's own guarantee leaves room for the guarantees of all queues."""
    scenario = Scenario(cluster, config_text(FLAT))
    scenario.state.settle()
    paths = _paths(scenario, in_tree=False)
    before = _used(scenario, paths)
    scenario.cycle()
    after = _used(scenario, paths)
    promised = {
        name: parse_milli(queue.spec.guarantee.resource["cpu"])
        for name, queue in scenario.state.queues.items()
        if queue.spec.guarantee is not None and queue.spec.guarantee.resource
    }
    total = sum(row[1] for row in cluster["nodes"]) * 1000
    for queue in paths:
        use = after.get((queue, "cpu"), 0)
        if use > max(before.get((queue, "cpu"), 0), promised.get(queue, 0)):
            others = [name for name in promised if name != queue]
            if others:
                kept = sum(max(promised[name] - after.get((name, "cpu"), 0), 0) for name in others)
                assert sum(after.get((name, "cpu"), 0) for name in paths) + kept <= total


def _slow_refuses(
    scenario: Scenario, paths: dict[str, list[str]], queue: str, task: TaskInfo
) -> bool:
    """Whether a queue cannot take the CPU and memory of a pod, counted from the pods and the specs of the queues."""
    queues, shares = scenario.state.queues, scenario.state.shares
    used, total = _used(scenario, paths), scenario.state.nodes.rows().allocatable.sum(axis=0)
    nothing = np.zeros_like(shares.allocated)
    rights = Entitlements.of(shares, total, Away(nothing, nothing, {}), in_tree=len(paths["a"]) > 1)
    above = {name: path[1] if len(path) > 1 else "" for name, path in paths.items()}
    for name in paths[queue]:
        for column, resource in enumerate(RESOURCES):
            asks = int(task.shape.vector[column])
            if not asks:
                continue
            use = used.get((name, resource), 0)
            stated = (queues[name].spec.capability or {}).get(resource)
            milli = parse_milli(stated) if stated is not None else 0
            limit = milli if resource == "cpu" else milli // 1000
            if limit and use + asks > limit:
                return True
            own = int(rights.guarantee[shares.rows[name], column])
            siblings = [each for each in paths if above[each] == above[name]]
            kept = sum(
                max(
                    int(rights.guarantee[shares.rows[each], column])
                    - used.get((each, resource), 0),
                    0,
                )
                for each in siblings
                if each != name
            )
            parent = above[name]
            shared = int(rights.real[shares.rows[parent], column]) if parent else int(total[column])
            held = sum(used.get((each, resource), 0) for each in siblings)
            if parent:
                held = used.get((parent, resource), 0)
            if kept and use + asks > own and held + kept + asks > shared:
                return True
    return False


@EXAMPLES
@given(clusters(), st.booleans(), st.data())
def test_limits_and_guarantees_are_those_of_a_recount(
    cluster: dict[str, Any], in_tree: bool, data: st.DataObject
) -> None:
    """After any decisions, and after they are undone; and what is said about room agrees with what is said about a pod."""
    scenario = Scenario(cluster, config_text(CAPACITY if in_tree else FLAT))
    session = open_session(scenario)
    paths = _paths(scenario, in_tree=in_tree)
    inner = {each for path in paths.values() for each in path[1:]}

    def check() -> None:
        for task in scenario.state.tasks.values():
            queue = scenario.state.jobs[task.job].queue
            if task.status is not SchedulingStatus.PENDING or queue in inner:
                continue
            refusal = session.answers.why_not_allocatable(scenario.state.queues[queue], task)
            assert (refusal is not None) is _slow_refuses(scenario, paths, queue, task)
            fits = session.answers.has_room(scenario.state.queues[queue], task.shape.vector)
            assert fits is (refusal is None)

    check()
    statement = session.statement()
    for task in list(scenario.state.tasks.values()):
        if task.status is SchedulingStatus.PENDING and data.draw(st.booleans()):
            statement.allocate(task, scenario.state.nodes.order[0])
        elif task.status is SchedulingStatus.RUNNING and data.draw(st.booleans()):
            statement.evict(task)
    check()
    statement.discard()
    check()


# -- entitlements ----------------------------------------------------------------------------


def _slow_entitlements(scenario: Scenario) -> dict[str, tuple[Fraction | None, Fraction]]:
    """Real capability and deserved CPU of each queue, from the formulae."""
    queues = scenario.state.queues
    above = {
        name: "" if name == "root" else (queue.spec.parent or "root")
        for name, queue in queues.items()
    }
    children = {name: [each for each in queues if above[each] == name] for name in ("", *queues)}

    def cpu(stated: dict[str, Any] | None) -> Fraction | None:
        return Fraction(parse_milli(stated["cpu"])) if stated and "cpu" in stated else None

    def guarantee(name: str) -> Fraction:
        own = queues[name].spec.guarantee
        stated = cpu(own.resource) if own else None
        return max(
            stated or Fraction(0), sum((guarantee(each) for each in children[name]), Fraction(0))
        )

    total = Fraction(sum(int(node[1]) for node in NODES) * 1000)
    found: dict[str, tuple[Fraction | None, Fraction]] = {}

    def visit(name: str, have: Fraction) -> None:
        kept = sum((guarantee(each) for each in children[above[name]]), Fraction(0))
        real = max(have - kept, Fraction(0)) + guarantee(name)
        limit = cpu(queues[name].spec.capability)
        if limit:
            real = min(real, limit)
        deserved = max(min(cpu(queues[name].spec.deserved) or Fraction(0), real), guarantee(name))
        found[name] = (real, deserved)
        for each in children[name]:
            visit(each, real)

    for name in children[""]:
        visit(name, total)
    return found


NODES: list[list[Any]] = [["n0", 5, 8], ["n1", 7, 8]]


@EXAMPLES
@given(trees())
def test_what_queues_may_have_and_deserve_follows_from_the_formulae(rows: list[list[Any]]) -> None:
    scenario = Scenario({"nodes": NODES, "queues": rows}, config_text(CAPACITY))
    session = open_session(scenario)
    rights = Entitlements.of(
        session.view.shares, session.view.total(), session.view.away, in_tree=True
    )
    for name, (real, deserved) in _slow_entitlements(scenario).items():
        row = session.view.shares.rows[name]
        assert rights.real[row, 0] == real
        assert rights.deserved[row, 0] == deserved


# -- order of events -------------------------------------------------------------------------


@EXAMPLES
@given(clusters(), st.randoms(use_true_random=False), st.sampled_from([CAPACITY, FLAT, HDRF]))
def test_shuffled_objects_give_the_same_answers(
    cluster: dict[str, Any], dice: Any, tiers: Any
) -> None:
    shuffled = {kind: dice.sample(rows, len(rows)) for kind, rows in cluster.items()}
    scenarios = [Scenario(each, config_text(tiers)) for each in (cluster, shuffled)]
    first, second = [_answers(scenario) for scenario in scenarios]
    assert first == second
    assert scenarios[0].cycle().binds == scenarios[1].cycle().binds


def _answers(scenario: Scenario) -> tuple[list[str], dict[str, list[str]]]:
    """The order of queues, and who may go for each waiting pod."""
    session = open_session(scenario)
    victims = {}
    for task in scenario.state.tasks.values():
        job = session.state.jobs[task.job]
        if task.status is SchedulingStatus.PENDING and job.row >= 0:
            preemptor = preemptor_of(scenario, task.key)
            offered = candidates_of(scenario, preemptor)
            victims[task.key] = may_go(
                offered, judge(session.extensions.reclaimable, preemptor, offered).may
            )
    queues = sorted(scenario.state.queues.values(), key=session.answers.queue_key)
    return [queue.metadata.name for queue in queues], victims
