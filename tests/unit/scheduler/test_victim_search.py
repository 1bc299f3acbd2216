"""The search for victims against a slow one that looks at every node and every pod."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.eviction.attempt import EvictionAttempt, FoundRoom
from pumice.scheduler.eviction.bounds import highest_importance
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.settings import EvictionRules, EvictionSetting, rules_for
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import Scenario, config_text
from tests.unit.scheduler.test_properties import EXAMPLES

TIERS: list[list[Any]] = [["priority", "gang", "conformance"], ["nodeorder"]]
LOOSE: list[list[Any]] = [
    ["priority", {"gang": ["JobOrder", "JobReady", "JobPipelined", "JobStarving"]}, "conformance"],
    ["nodeorder"],
]
"""Gangs may lose their minimum."""
PREEMPT = EvictionSetting("preempt", reclaims=False, by_gang=False)
RECLAIM = EvictionSetting("reclaim", reclaims=True, by_gang=False)


@st.composite
def contested(draw: st.DrawFn) -> dict[str, Any]:
    """Full nodes, gangs of several queues and priorities that run there, and gangs that want to."""
    count = draw(st.integers(1, 3))
    free = {f"n{number}": 4 for number in range(count)}
    groups: list[list[Any]] = []
    pods: list[list[Any]] = []
    for number in range(draw(st.integers(2, 5))):
        name, value = f"g{number}", draw(st.integers(0, 2))
        options: dict[str, Any] = {"prio": f"p{value}"}
        if draw(st.integers(0, 3)) == 0:
            options["minTask"] = {"a": draw(st.integers(0, 2))}
        size = draw(st.integers(0, 5))
        queue = draw(st.sampled_from(["q1", "q1", "q2"]))
        groups.append(["ns", name, queue, draw(st.integers(0, size // 2)), "Inqueue", options])
        for index in range(size):
            role = draw(st.sampled_from(["a", "b"]))
            cpu = draw(st.sampled_from([0, 1, 1, 2, 3]))
            place = draw(st.sampled_from([*free, *free, ""]))
            if place and free[place] < cpu:
                place = ""
            if place:
                free[place] -= cpu
            of_pod: dict[str, Any] = {"role": role, "preemptable": draw(st.integers(0, 5)) > 0}
            if draw(st.integers(0, 3)) == 0:
                of_pod["prio"] = value + draw(st.integers(0, 2))
            phase = draw(st.sampled_from(["Running", "Running", "Pending"])) if place else "Pending"
            row = ["ns", f"{name}-{role}-{index}", place, phase, cpu, 0, name, of_pod]
            pods.append(row)
    groups += [
        ["ns", f"fill{queue}", queue, draw(st.integers(0, 3)), "Inqueue"] for queue in ("q1", "q2")
    ]
    for name, left in free.items():
        queue = draw(st.sampled_from(["q1", "q2"]))
        pods += [
            ["ns", f"fill-{name}-{index}", name, "Running", 1, 0, f"fill{queue}"]
            for index in range(left)
        ]
    groups.append(["ns", "new", "q1", draw(st.integers(1, 2)), "Inqueue", {"prio": "p3"}])
    for index in range(2):
        cpu = draw(st.integers(0, 4))
        pods.append(["ns", f"new-{index}", "", "Pending", cpu, 0, "new"])
    return {
        "classes": {f"p{value}": value for value in range(4)},
        "nodes": [[name, 4, "8Gi", {"pods": draw(st.sampled_from([3, 110]))}] for name in free],
        "queues": [["q1"], ["q2"]],
        "podgroups": groups,
        "pods": pods,
    }


def _slow(
    session: Session, preemptor: Preemptor, rules: EvictionRules, *, guards: bool
) -> tuple[Any, list[str]] | None:
    """Cost without scores, and names, of the best plan."""
    plans = []
    for record in session.state.nodes.order:
        victims = _slow_node(session, preemptor, rules, record, guards=guards)
        if victims is not None:
            jobs = session.state.jobs
            lost = Counter(task.job for task in victims)
            broken = sum(
                jobs[key].ready - count < jobs[key].min_member <= jobs[key].ready
                for key, count in lost.items()
            )
            cost = (highest_importance(session, victims), broken, len(victims))
            plans.append((cost, sorted(task.key for task in victims)))
    return min(plans, default=None)


def _slow_node(
    session: Session,
    preemptor: Preemptor,
    rules: EvictionRules,
    record: NodeRecord,
    *,
    guards: bool,
) -> list[TaskInfo] | None:
    jobs, rows, row = session.state.jobs, session.view.rows, record.row

    def lacks(gone: list[TaskInfo]) -> bool:
        return any(
            rows.future_idle(need.column)[row]
            + sum(int(task.shape.vector[need.column]) for task in gone)
            < need.amount
            for need in preemptor.task.shape.needs
        )

    def may(task: TaskInfo) -> bool:
        job = jobs.get(task.job)
        return (
            job is not None
            and job.group is not None
            and task.row >= 0
            and (task.status is SchedulingStatus.RUNNING or not rules.setting.reclaims)
            and bool(rules.queues[job.row])
            and task.job != rules.without
            and task.is_preemptable
            and not task.is_critical
            and (task.shape.is_empty or not preemptor.task.shape.is_empty)
            and (rules.setting.reclaims or job.order_priority < preemptor.job.order_priority)
            and (not guards or job.ready > job.min_member)
            and (not guards or _role_surplus(session, task) > 0)
        )

    order = sorted(
        (task for task in record.tasks.values() if may(task)),
        key=lambda task: (
            session.answers.job_rank(jobs[task.job]),
            session.answers.task_key(task),
            task.key,
        ),
        reverse=True,
    )
    if rules.queue_key is not None:
        by_queue = {
            task.key: rules.queue_key(session.state.queues[jobs[task.job].queue]) for task in order
        }
        order.sort(key=lambda task: by_queue[task.key])
    of_gang: Counter[str] = Counter()
    of_role: Counter[tuple[str, str]] = Counter()
    chosen: list[TaskInfo] = []
    for task in order:
        if not lacks(chosen):
            break
        job = jobs[task.job]
        within = of_gang[task.job] < job.ready - job.min_member
        within &= of_role[task.job, task.role] < _role_surplus(session, task)
        of_gang[task.job] += 1
        of_role[task.job, task.role] += 1
        if within or not guards:
            chosen.append(task)
    if lacks(chosen):
        return None
    for task in chosen[::-1]:
        rest = [other for other in chosen if other is not task]
        if not lacks(rest):
            chosen = rest
    return chosen


def _role_surplus(session: Session, task: TaskInfo) -> int:
    job = session.state.jobs[task.job]
    minimum = job.min_task.get(task.role, 0) if job.min_member >= job.min_task_total else 0
    return job.role_ready(task.role) - minimum if minimum else len(job.tasks)


def waiting(session: Session) -> list[Preemptor]:
    state = session.state
    return [
        Preemptor(task, job, state.queues[job.queue])
        for job in sorted(state.jobs.values(), key=lambda job: job.key)
        if job.group is not None and job.queue in state.queues
        for task in sorted(job.tasks.values(), key=lambda task: task.key)
        if task.status is SchedulingStatus.PENDING
    ]


def _decided(plan: FoundRoom | None) -> Any:
    return plan and (plan.cost, [task.key for task in plan.victims])


def _check_all(scenario: Scenario, *, reclaims: bool, guards: bool) -> None:
    """Twice the same search: each pod with what was decided for those before, and then all of it undone."""
    session = open_session(scenario)
    before = dump(scenario.state)
    search = Search(session, RECLAIM if reclaims else PREEMPT)
    found = []
    for _ in range(2):
        statement = session.statement()
        plans = [
            _check(session, search, preemptor, statement, reclaims=reclaims, guards=guards)
            for preemptor in waiting(session)
        ]
        statement.discard()
        search.discarded()
        assert dump(scenario.state) == before
        found.append(plans)
    assert [_decided(each) for each in found[0]] == [_decided(each) for each in found[1]]
    session.close()


def _check(
    session: Session,
    search: Search,
    preemptor: Preemptor,
    statement: Statement,
    *,
    reclaims: bool,
    guards: bool,
) -> FoundRoom | None:
    rules = rules_for(session, RECLAIM if reclaims else PREEMPT, preemptor.job, preemptor.queue)
    expected = _slow(session, preemptor, rules, guards=guards)
    plan = search.find(search.nodes(preemptor, rules, statement), statement)
    if expected is None or plan is None:
        assert (expected, plan) == (None, None)
        return None
    assert plan.cost[:3] == expected[0]
    record = session.state.nodes.order[int(plan.cost[-1])]
    victims = _slow_node(session, preemptor, rules, record, guards=guards)
    assert victims is not None
    assert {task.key for task in victims} == {task.key for task in plan.victims}
    return search.place(preemptor, rules, statement)


@EXAMPLES
@given(contested(), st.booleans())
def test_preempt_finds_what_a_slow_search_finds_and_discarding_restores_everything(
    cluster: dict[str, Any], guards: bool
) -> None:
    config = config_text(TIERS if guards else LOOSE)
    _check_all(Scenario(cluster, config), reclaims=False, guards=guards)


@EXAMPLES
@given(contested(), st.booleans())
def test_reclaim_finds_what_a_slow_search_finds_and_discarding_restores_everything(
    cluster: dict[str, Any], guards: bool
) -> None:
    config = config_text(TIERS if guards else LOOSE)
    _check_all(Scenario(cluster, config), reclaims=True, guards=guards)


@EXAMPLES
@given(contested(), st.sampled_from(["preempt", "reclaim"]))
def test_no_gang_falls_below_its_minimum_and_no_pod_is_evicted_for_less(
    cluster: dict[str, Any], action: str
) -> None:
    scenario = Scenario(cluster, config_text(TIERS, ["enqueue", "allocate", action]))
    result = scenario.cycle()
    for key in result.evicted:
        job = scenario.state.jobs[scenario.state.tasks[key].job]
        assert job.ready >= job.min_member
    if result.evicted:
        assert result.nominations
    for key in result.nominations:
        gang = scenario.state.jobs[scenario.state.tasks[key].job]
        promised = sum(task in result.pipelined for task in gang.tasks)
        assert gang.ready + promised >= gang.min_member


@EXAMPLES
@given(contested())
def test_what_gangs_alike_have_found_before_changes_nothing(cluster: dict[str, Any]) -> None:
    """Answers of drf become stricter with each pod of a gang; the next gang starts with the first answers again."""
    scenario = Scenario(cluster, config_text([["drf"]]))
    session = open_session(scenario)
    shared = Search(session, PREEMPT)
    statement = session.statement()
    for preemptor in waiting(session):
        rules = rules_for(session, PREEMPT, preemptor.job, preemptor.queue)
        other = Search(session, PREEMPT)
        alone = other.find(other.nodes(preemptor, rules, statement), statement)
        plan = shared.place(preemptor, rules, statement)
        assert _decided(plan) == _decided(alone)


def test_a_small_gang_takes_what_a_larger_one_before_it_could_not() -> None:
    """The second pod of the first gang would have a larger share than what is left to the victim's gang."""
    scenario = Scenario(
        {
            "nodes": [["n0", 2, "8Gi"], ["n1", 2, "8Gi"], ["n2", 6, "8Gi"]],
            "podgroups": [
                ["ns", "a", "default", 2, "Inqueue"],
                ["ns", "b", "default", 1, "Inqueue"],
                ["ns", "rest", "default", 1, "Running"],
                ["ns", "x", "default", 1, "Running"],
                ["ns", "y", "default", 1, "Running"],
            ],
            "pods": [
                ["ns", "a-0", "", "Pending", 2, 0, "a"],
                ["ns", "a-1", "", "Pending", 2, 0, "a"],
                ["ns", "b-0", "", "Pending", 2, 0, "b"],
                *(["ns", f"x-{n}", f"n{n}", "Running", 2, 0, "x"] for n in (0, 1)),
                *(["ns", f"x-{n}", "n2", "Running", 1, 0, "x"] for n in (2, 3)),
                ["ns", "rest-0", "n2", "Running", 4, 0, "rest"],
            ],
        },
        config_text([["drf"], ["nodeorder"]]),
    )
    session = open_session(scenario)
    search, statement = Search(session, PREEMPT), session.statement()
    plans = []
    for preemptor in waiting(session):
        rules = rules_for(session, PREEMPT, preemptor.job, preemptor.queue)
        plans.append(search.place(preemptor, rules, statement))
    assert [plan is not None for plan in plans] == [True, False, True]


@pytest.mark.parametrize(
    ("cpu", "queue", "finds"),
    [(4, {}, True), (1, {"capability": {"cpu": 20}}, False)],
    ids=["each would break a gang", "the queue would lack room anywhere"],
)
def test_of_nodes_alike_few_are_tried(
    monkeypatch: pytest.MonkeyPatch, cpu: int, queue: dict[str, Any], finds: bool
) -> None:
    names = [f"n{number:02}" for number in range(20)]
    cluster = {
        "classes": {"high": 100},
        "nodes": [[name, 4, "8Gi"] for name in names],
        "queues": [["q1", queue]],
        "podgroups": [
            *(["ns", name, "q1", 1, "Running"] for name in names),
            ["ns", "new", "q1", 1, "Inqueue", {"prio": "high"}],
        ],
        "pods": [
            *(["ns", name, name, "Running", cpu, 0, name] for name in names),
            ["ns", "new-0", "", "Pending", 4, 0, "new"],
        ],
    }
    gang = {"gang": ["JobOrder", "JobReady", "JobPipelined", "JobStarving"]}
    tiers: list[list[Any]] = [["priority", gang], ["capacity", "predicates"]]
    session = open_session(Scenario(cluster, config_text(tiers)))
    search, statement = Search(session, PREEMPT), session.statement()
    tried, run = [], EvictionAttempt.run

    def count(attempt: EvictionAttempt) -> None:
        tried.append(attempt)
        run(attempt)

    monkeypatch.setattr(EvictionAttempt, "run", count)
    (preemptor,) = waiting(session)
    rules = rules_for(session, PREEMPT, preemptor.job, preemptor.queue)
    assert (search.place(preemptor, rules, statement) is not None) == finds
    assert len(tried) == 1
    session.close()
