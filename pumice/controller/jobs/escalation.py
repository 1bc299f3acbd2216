"""Graded recovery: pods that a restart replaces, and a wider action if they do not run again in time.

With `PodFailed` → `RestartPod` and `PodEvicted` → `RestartJob` after a `timeout`, a failed pod is restarted alone. If it
has not run again when the time is over, the Job is restarted. So for a policy about `PodEvicted` that has a timeout, and
whose action concerns more than the restart did, pods that a restart replaces count as evicted. Without a timeout they do
not: the controller's own removal is no eviction.

The time begins when the pod fails, also while the restart itself is delayed (see `restart_budgets`). It is noted in the status
like that of evicted pods (`job_pods`).
"""

from collections.abc import Iterator, Mapping

import msgspec

from pumice.api.jobs import Job
from pumice.controller.jobs.phases import (
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RUNNING,
    turning,
)
from pumice.controller.jobs.pods import partition_of
from pumice.controller.jobs.policies import POD_EVICTED, Policies, PolicyChoice, PolicyRequest
from pumice.controller.jobs.restart_targets import Restart
from pumice.controller.jobs.situation import Situation

_WIDTH = {RESTART_POD: 0, RESTART_PARTITION: 1, RESTART_TASK: 2}
_WHOLE = 3
"""How much actions concern; all others concern the whole Job."""


def evictions_that_wait(job: Job, policies: Policies) -> dict[str, PolicyChoice]:
    """Actions about evicted pods that have a timeout, by task. Most Jobs have none, and need no look at each pod."""
    found = {
        task.name: policies.choose(PolicyRequest(event=POD_EVICTED, task=task.name))
        for task in job.tasks
    }
    possible = turning(RUNNING)
    return {
        task: choice for task, choice in found.items() if choice.delay and choice.action in possible
    }


def after_failure(
    failure: PolicyRequest, restart: PolicyChoice, eviction: PolicyChoice, backoff: float
) -> list[tuple[PolicyRequest, PolicyChoice]]:
    """The event and the action that follow if a failed pod, whose restart is delayed, does not run again in time.

    Args:
        failure: The event of its failure.
        restart: The restart for which it waits.
        eviction: The action about evicted pods of its task.
        backoff: Seconds for which the restart waits.

    Returns:
        Empty if no wider action follows, or the restart comes first. The delay of the action begins with the failure.
    """
    delay = restart.delay + eviction.delay
    if delay >= backoff or not _is_wider(eviction, restart.action):
        return []
    event = msgspec.structs.replace(
        failure,
        event=POD_EVICTED,
        exit_codes=(),
        detail=f"{failure.detail} and does not run again",
    )
    return [(event, PolicyChoice(eviction.action, delay, eviction.path))]


def replaced_since(
    situation: Situation, restart: Restart, since: Mapping[str, float]
) -> dict[str, float]:
    """Since when the pods that a restart replaces do not run, those for which a wider action follows."""
    found: dict[str, float] = {}
    choices, known = evictions_that_wait(situation.job, Policies(situation.job)), situation.job_pods
    tasks = {task.name: task for task in situation.job.tasks if task.name in choices}
    for name in _replaced(situation, restart) if choices else ():
        task, index = known.names.key(name) or ("", 0)
        if task not in tasks:
            continue
        done = restart.action(task, partition_of(tasks[task], index))
        if _is_wider(choices[task], done):
            moment = known.waiting.get(name) if known.waits(name) else None
            found[name] = min(
                since.get(name, situation.now) if moment is None else moment, situation.now
            )
    return found


def _replaced(situation: Situation, restart: Restart) -> Iterator[str]:
    """Names of the pods that a restart replaces, also of those that are gone."""
    yield from (pod.metadata.name for pod in situation.wanted_pods if restart.replaces(pod))
    covers = restart.covers(situation.job, situation.job_pods.names)
    yield from filter(covers, (*situation.job_pods.missing, *situation.job_pods.awaited))


def _is_wider(choice: PolicyChoice, than: str) -> bool:
    return _WIDTH.get(choice.action, _WHOLE) > _WIDTH.get(than, _WHOLE)
