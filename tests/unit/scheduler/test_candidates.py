"""Candidates for eviction: what is counted before each, and how the answers of plugins are combined."""

import numpy as np
import pytest

from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.points import Extension
from pumice.scheduler.session.statement import Statement
from pumice.scheduler.session.victims import Reversed, judge
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import Scenario

SCENE = {
    "nodes": [["n0", 8, "8Gi"], ["n1", 8, "8Gi"]],
    "podgroups": [["ns", name, "default", 1, "Running", {}] for name in ("x", "y")],
    "pods": [
        ["ns", "x-0", "n0", "Running", 1, 0, "x"],
        ["ns", "y-0", "n0", "Running", 2, 0, "y"],
        ["ns", "x-1", "n0", "Running", 3, 0, "x"],
        ["ns", "x-2", "n1", "Running", 4, 0, "x"],
        ["ns", "new", "", "Pending", 1, 0, "y"],
    ],
}


def candidates_of(scenario: Scenario) -> tuple[Preemptor, Candidates]:
    scenario.state.settle()
    state = scenario.state
    tasks = [state.tasks[f"ns/{name}"] for name in ("x-0", "y-0", "x-1", "x-2")]
    jobs = [state.jobs["ns/x"], state.jobs["ns/y"]]
    found = Candidates(
        state.nodes.running,
        np.array([task.row for task in tasks]),
        jobs,
        np.array([0, 1, 0, 0]),
        np.array([0, 0, 0, 1]),
    )
    preemptor = Preemptor(state.tasks["ns/new"], jobs[1], state.queues["default"])
    return preemptor, found


def test_what_comes_before_is_counted_by_node_and_group() -> None:
    _, candidates = candidates_of(Scenario(SCENE))
    assert candidates.earlier(candidates.job).tolist() == [0, 0, 1, 0]
    assert candidates.earlier(candidates.queue).tolist() == [0, 1, 2, 0]
    assert candidates.taken_before(candidates.job)[:, 0].tolist() == [0, 0, 1000, 0]
    assert candidates.taken_before(candidates.queue)[:, 0].tolist() == [0, 1000, 3000, 0]
    assert candidates.of_jobs(lambda job: job.ready).tolist() == [3, 1, 3, 3]


def test_what_goes_together_is_counted_over_all_nodes() -> None:
    """First x-0 alone, then y-0, then the rest of gang x, whose minimum is one pod."""
    _, each = candidates_of(Scenario(SCENE))
    rows = np.array([task.row for task in each.tasks])
    found = Candidates(
        each._running, rows, each.jobs, each.job, each.node, bundle=np.array([0, 1, 2, 2])
    )
    assert found.earlier(found.job).tolist() == [0, 0, 1, 2]
    assert found.taken_before(found.queue)[:, 0].tolist() == [0, 1000, 3000, 6000]
    assert found.taken_before_bundle(found.queue)[:, 0].tolist() == [0, 1000, 3000, 3000]
    assert found.returning[:, 0].tolist() == [1000, 2000, 3000, 3000]
    assert each.taken_before_bundle(each.queue)[:, 0].tolist() == [0, 1000, 3000, 0]


def test_all_plugins_must_agree_if_every_one_is_asked() -> None:
    preemptor, candidates = candidates_of(Scenario(SCENE))
    tiers = [says(0, "x-0", "y-0"), says(1, "y-0", "x-1")]
    found = judge(tiers, preemptor, candidates, every=True)  # type: ignore[arg-type]
    assert found.may.tolist() == [False, True, False, False]
    assert not judge([], preemptor, candidates, every=True).may.any()


def says(tier: int, *names: str | None) -> Extension[object]:
    """A plugin that allows these pods; one that has nothing to say where there are none."""

    def check(_: Preemptor, candidates: Candidates) -> Bools | None:
        if names == (None,):
            return None
        return np.array([task.name in names for task in candidates.tasks])

    return Extension(tier, "test", check)


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ([], []),
        ([says(0, "x-0", "y-0"), says(0, "y-0", "x-1")], ["y-0"]),
        ([says(0, None), says(0, "x-0")], ["x-0"]),
        ([says(0, "x-0"), says(0, "y-0"), says(1, "x-1")], ["x-1"]),
        ([says(0, "x-0"), says(1, "y-0", "x-2")], ["x-0", "x-2"]),
        ([says(0), says(1, None), says(2, "x-1")], ["x-1"]),
    ],
    ids=[
        "VI-4: nobody is asked",
        "VI-1: plugins of a tier agree",
        "VI-2: a plugin abstains",
        "a tier that does not agree leaves it to the next",
        "the first tier that allows anyone decides, node by node",
        "a tier of abstentions",
    ],
)
def test_tiers_are_alternatives_and_plugins_of_a_tier_agree(
    tiers: list[Extension[object]], expected: list[str]
) -> None:
    preemptor, candidates = candidates_of(Scenario(SCENE))
    mask = judge(tiers, preemptor, candidates).may  # type: ignore[arg-type]
    assert [task.name for task, may in zip(candidates.tasks, mask, strict=True) if may] == expected


def test_reversed_keys() -> None:
    assert sorted([(1, "b"), (2, "a"), (1, "a")], key=Reversed) == [(2, "a"), (1, "b"), (1, "a")]
    assert Reversed(1) == Reversed(1) != Reversed(2)


def test_rolling_back_to_a_savepoint_keeps_what_came_before() -> None:
    scenario = Scenario(SCENE)
    session = open_session(scenario)
    tasks, records = scenario.state.tasks, scenario.state.nodes.order
    statement: Statement = session.statement()
    statement.evict(tasks["ns/x-0"])
    before, savepoint = dump(scenario.state), statement.savepoint()
    statement.evict(tasks["ns/x-1"])
    statement.pipeline(tasks["ns/new"], records[0])
    statement.roll_back(savepoint)
    assert dump(scenario.state) == before
    assert len(statement) == 1
    statement.commit()
    assert session.committed.evicted == ["ns/x-0"]


def test_a_cycle_runs_when_a_plugin_wants_it_to() -> None:
    scenario = Scenario({})
    state = scenario.state
    state.settled = (state.parked.version, None)
    assert state.is_settled(None, 10.0)
    state.wakes.append(20.0)
    assert state.is_settled(None, 19.0)
    assert not state.is_settled(None, 20.0)
