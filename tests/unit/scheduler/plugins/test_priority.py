"""More important first."""

import pytest

from pumice.scheduler.plugins.priority import is_starving
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.gangs import gang
from tests.unit.scheduler.scenarios import Scenario, config_text


@pytest.mark.parametrize(
    ("tasks", "starving"),
    [
        (["Running@a", "Pipelined@a"], False),
        (["Running@a", "Pending"], True),
        (["Running@a", "Failed@a"], True),
        (["Succeeded@a"], False),
    ],
)
def test_a_job_starves_while_a_pod_has_no_place(tasks: list[str], starving: bool) -> None:
    assert is_starving(gang(1, tasks)) is starving


def test_orders() -> None:
    scenario = Scenario(
        {
            "classes": {"high": 10},
            "podgroups": [
                ["ns", "a", "default", 1, "Inqueue"],
                ["ns", "b", "default", 1, "Inqueue", {"prio": "high"}],
            ],
            "pods": [
                ["ns", "a-0", "", "Pending", 1, 0, "a"],
                ["ns", "a-1", "", "Pending", 1, 0, "a", {"prio": 5}],
            ],
        },
        config_text([["priority"]]),
    )
    session = open_session(scenario)
    jobs, tasks = scenario.state.jobs.values(), scenario.state.tasks.values()
    assert [job.name for job in sorted(jobs, key=session.answers.job_key)] == ["b", "a"]
    assert [task.name for task in sorted(tasks, key=session.answers.task_key)] == ["a-1", "a-0"]
