"""Restarting the pods of a Job that was scaled, one task after the other.

A container keeps the variables with which it started, so after a Job was scaled, `WORLD_SIZE` and similar variables are
right only in new pods. If the Job requests it, its older pods are created again, task by task; the next task follows
when all pods run. Files are updated without a restart.

A pod carries a fingerprint of the sizes that it was made for. Replaced pods are marked first, like surplus pods, so
that no lifecycle policy takes them for evicted.
"""

import hashlib

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.pods import Pod
from pumice.controller.jobs.phases import RUNNING
from pumice.controller.jobs.situation import Situation

__all__ = ["fingerprint", "outdated"]


def fingerprint(job: Job) -> str:
    """A text that changes with the sizes of a Job's tasks; empty for a Job that requests no restarts."""
    if job.metadata.annotation(keys.RESTART_ON_SCALING) != "true":
        return ""
    sizes = "".join(f"{task.name}={task.size}\n" for task in job.tasks)
    return hashlib.sha256(sizes.encode()).hexdigest()[:12]


def outdated(situation: Situation) -> list[Pod]:
    """Pods to replace now: of the first task that has any, and only while all pods of the Job run."""
    current = fingerprint(situation.job)
    all_run = situation.counts.running == situation.facts.running == situation.facts.total
    if not current or situation.phase != RUNNING or not all_run:
        return []
    for task in situation.job.tasks:
        found = [pod for pod in situation.wanted_pods if _is_outdated(pod, task.name, current)]
        if found:
            return found
    return []


def _is_outdated(pod: Pod, task: str, current: str) -> bool:
    meta = pod.metadata
    made_for = meta.annotation(keys.SCALE)
    return meta.annotation(keys.TASK_SPEC) == task and made_for not in ("", current)
