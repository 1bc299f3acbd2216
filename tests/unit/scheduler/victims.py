"""Candidates for eviction of a scenario, as actions offer them to plugins."""

import numpy as np

from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.model.tasks import TaskInfo
from tests.unit.scheduler.scenarios import Scenario


def preemptor_of(scenario: Scenario, pod: str) -> Preemptor:
    """A pod of a scenario as one for which others may have to go."""
    task = scenario.state.tasks[pod]
    job = scenario.state.jobs[task.job]
    return Preemptor(task, job, scenario.state.queues[job.queue])


def candidates_of(
    scenario: Scenario, preemptor: Preemptor, *, same_queue: bool = False
) -> Candidates:
    """Running pods of other queues (or of other gangs of the same one), by node and then by name."""
    state = scenario.state
    tasks = [
        task
        for task in state.tasks.values()
        if task.node
        and task.job
        and task.status in VICTIMS
        and task.is_preemptable
        and task.job != preemptor.job.key
        and (state.jobs[task.job].queue == preemptor.job.queue) is same_queue
    ]
    tasks.sort(key=lambda task: (state.nodes.records[task.node].row, task.key))
    return candidates(scenario, tasks)


def candidates(scenario: Scenario, tasks: list[TaskInfo]) -> Candidates:
    """These pods as candidates, in this order."""
    state = scenario.state
    jobs = list(dict.fromkeys(state.jobs[task.job] for task in tasks))
    return Candidates(
        state.nodes.running,
        np.array([task.row for task in tasks], dtype=np.int64),
        jobs,
        np.array([jobs.index(state.jobs[task.job]) for task in tasks], dtype=np.int64),
        np.array([state.nodes.records[task.node].row for task in tasks], dtype=np.int64),
    )


def may_go(found: Candidates, mask: object) -> list[str]:
    """Names of the candidates that a mask lets go."""
    return [task.name for task, yes in zip(found.tasks, np.asarray(mask), strict=True) if yes]
