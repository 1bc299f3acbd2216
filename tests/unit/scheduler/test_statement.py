"""Tentative decisions and their undoing."""

import pytest

from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.points import Extension
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import Scenario, config_text


@pytest.fixture
def scenario() -> Scenario:
    """Two nodes; a running pod of gang a, a bound one, and two waiting ones of gang b."""
    return Scenario(
        {
            "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [
                ["ns", "a", "default", 1, "Running"],
                ["ns", "b", "default", 2, "Inqueue"],
            ],
            "pods": [
                ["ns", "a-0", "n1", "Running", 2, "1Gi", "a", {"ports": [80]}],
                ["ns", "a-1", "n2", "Pending", 1, "1Gi", "a"],
                ["ns", "b-0", "", "Pending", 1, "1Gi", "b", {"ports": [80]}],
                ["ns", "b-1", "", "Pending", 3, "2Gi", "b"],
            ],
        }
    )


def _everything(scenario: Scenario, session: Session) -> tuple[dict[str, list[int]], Statement]:
    """Do one of each; return what the nodes look like and the statement."""
    tasks, nodes = scenario.state.tasks, scenario.state.nodes.records
    statement = session.statement()
    statement.evict(tasks["ns/a-0"])
    statement.evict(tasks["ns/a-1"])
    statement.allocate(tasks["ns/b-0"], nodes["n2"])
    statement.pipeline(tasks["ns/b-1"], nodes["n1"])
    rows = session.view.rows
    seen = {name: getattr(rows, name)[:, 0].tolist() for name in ("used", "releasing", "pipelined")}
    return seen, statement


def test_decisions_take_effect_at_once(scenario: Scenario) -> None:
    session = open_session(scenario)
    seen, _ = _everything(scenario, session)
    assert seen == {"used": [2000, 2000], "releasing": [2000, 1000], "pipelined": [3000, 0]}
    tasks = scenario.state.tasks
    assert [tasks[f"ns/{name}"].status for name in ("a-0", "a-1", "b-0", "b-1")] == [
        SchedulingStatus.RELEASING,
        SchedulingStatus.RELEASING,
        SchedulingStatus.ALLOCATED,
        SchedulingStatus.PIPELINED,
    ]
    assert session.view.rows.future_idle(0).tolist() == [1000, 3000]


def test_discard_restores_every_bit(scenario: Scenario) -> None:
    """Also the status that an evicted pod had: bound is not the same as running."""
    before = dump(scenario.state)
    session = open_session(scenario)
    _, statement = _everything(scenario, session)
    assert dump(scenario.state) != before
    statement.discard()
    assert dump(scenario.state) == before
    assert session.committed.binds == {}


def test_commit_is_the_way_out(scenario: Scenario) -> None:
    session = open_session(scenario)
    _, statement = _everything(scenario, session)
    session.commit(statement)
    assert session.committed.binds == {"ns/b-0": "n2"}
    assert session.committed.evicted == ["ns/a-0", "ns/a-1"]
    assert session.pipelined == {"ns/b-1": "n1"}
    assert scenario.state.tasks["ns/b-0"].status is SchedulingStatus.BINDING


def test_promises_end_with_the_session(scenario: Scenario) -> None:
    session = open_session(scenario)
    statement = session.statement()
    statement.pipeline(scenario.state.tasks["ns/b-1"], scenario.state.nodes.records["n1"])
    before_closing = session.view.rows.pipelined.any()
    session.commit(statement)
    session.close()
    assert before_closing
    assert not session.view.rows.pipelined.any()
    assert scenario.state.tasks["ns/b-1"].status is SchedulingStatus.PENDING


def test_kept_statements_end_with_the_session(scenario: Scenario) -> None:
    before = dump(scenario.state)
    session = open_session(scenario)
    _, statement = _everything(scenario, session)
    session.keep(statement)
    assert session.pipelined == {"ns/b-1": "n1"}
    session.close()
    assert dump(scenario.state) == before


def test_handlers_hear_of_everything_and_of_its_undoing(scenario: Scenario) -> None:
    heard: list[str] = []
    session = open_session(scenario)
    session.extensions.on_allocate.append(
        Extension(0, "test", lambda task, node: heard.append(f"+{task.name}@{node.name}"))
    )
    session.extensions.on_deallocate.append(
        Extension(0, "test", lambda task, node: heard.append(f"-{task.name}@{node.name}"))
    )
    _, statement = _everything(scenario, session)
    assert heard == ["-a-0@n1", "-a-1@n2", "+b-0@n2", "+b-1@n1"]
    heard.clear()
    statement.discard()
    assert heard == ["-b-1@n1", "-b-0@n2", "+a-1@n2", "+a-0@n1"]


def test_keys_are_taken_again_where_a_share_became_smaller() -> None:
    """A line notices the eviction of a pod, and an undone placement during which keys were taken."""
    scenario = Scenario(
        {
            "nodes": [["n", 9, "9Gi"]],
            "podgroups": [["ns", name, "default", 1, "Running"] for name in ("a", "b")],
            "pods": [
                ["ns", "a-0", "n", "Running", 2, "1Gi", "a"],
                ["ns", "a-1", "", "Pending", 2, "1Gi", "a"],
                ["ns", "b-0", "n", "Running", 1, "1Gi", "b"],
                ["ns", "b-1", "", "Pending", 3, "1Gi", "b"],
            ],
        },
        config_text([["drf"]]),
    )
    session = open_session(scenario)
    jobs, tasks = scenario.state.jobs, scenario.state.tasks
    line = session.answers.ordered_jobs()
    statement = session.statement()
    statement.allocate(tasks["ns/b-1"], scenario.state.nodes.order[0])
    line.push(jobs["ns/a"])
    line.push(jobs["ns/b"])
    statement.discard()
    assert line.pop() is jobs["ns/b"]
    line.push(jobs["ns/b"])
    statement.evict(tasks["ns/a-0"])
    assert line.pop() is jobs["ns/a"]


def test_an_undone_placement_that_no_key_has_seen_costs_nothing() -> None:
    scenario = Scenario(
        {
            "nodes": [["n", 9, "9Gi"]],
            "podgroups": [["ns", "a", "default", 1, "Inqueue"]],
            "pods": [["ns", "a-0", "", "Pending", 2, "1Gi", "a"]],
        },
        config_text([["drf"]]),
    )
    session = open_session(scenario)
    session.answers.job_key(scenario.state.jobs["ns/a"])
    statement = session.statement()
    statement.allocate(scenario.state.tasks["ns/a-0"], scenario.state.nodes.order[0])
    statement.discard()
    assert (session.touched.job_epoch, session.touched.queue_epoch) == (0, 0)
