"""The pod of one replica of a task.

Names, labels and annotations are Volcano's: the scheduler, the plugins,
`vcctl` and the users' own selectors read them. What the controller writes overrides the template.
The template itself is shared between pods and never changed.

A container keeps the variables with which it started, so after a Job was scaled, `WORLD_SIZE` and similar variables are
right only in new pods. A pod carries a fingerprint of the sizes that it was made for. If the Job requests it, its older pods are
created again, task by task; the next task follows when all pods run. Files are updated without a restart. Replaced pods are
marked first, like surplus pods, so that no lifecycle policy takes them for evicted.
"""

import hashlib
from collections.abc import Callable, Mapping

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.meta import Raw
from pumice.api.names import pod_group_name, pod_name
from pumice.api.pods import Pod
from pumice.api.raw import object_in
from pumice.controller.jobs.phases import RUNNING
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.volumes import job_volumes, mounted
from pumice.controller.objects import controller_reference

Wire = Callable[[Task, int, Raw], Raw]
"""Applies the Job's plugins to a pod: `Wiring(job, registry).pod`."""


def build(job: Job, task: Task, index: int, wire: Wire, *, forwarding: bool = False) -> Raw:
    """The pod of replica `index` of a task, with the edits of all plugins.

    Args:
        job: The Job, complete as `subject.read` returns it.
        task: One of its tasks.
        index: Number of the replica, from 0.
        wire: Applies the plugins.
        forwarding: Whether the Job's queue lets other clusters take its pods.
    """
    spec = {**task.pod_spec()}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name or keys.DEFAULT_SCHEDULER
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    template = task.pod_metadata()
    annotations = _annotations(job, task, index, forwarding)
    pod: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(job.metadata.name, task.name, index),
            "namespace": job.metadata.namespace,
            "labels": object_in(template, "labels") | _labels(job, task, index, forwarding),
            "annotations": object_in(template, "annotations") | annotations,
            "ownerReferences": [controller_reference(job.metadata)],
        },
        "spec": mounted(spec, job_volumes(job)),
    }
    return _labelled_for_admission(wire(task, index, pod), annotations)


def _labelled_for_admission(pod: Raw, own: Mapping[str, str]) -> Raw:
    """The pod with a label that lets the API server skip Pumice's pod webhooks, if they have nothing to do.

    The webhooks' match conditions read annotations. To evaluate them the API server converts the pod once for each
    webhook, which took a sixth of the cost of a creation. A label selector costs nothing.
    """
    meta = pod["metadata"]
    found = (meta.get("annotations") or {}).keys()
    labels = {key: value for key, value in meta["labels"].items() if key != keys.ADMISSION}
    if found <= own.keys() | {keys.WIRED} and found.isdisjoint(keys.BUDGETS):
        labels[keys.ADMISSION] = keys.ADMISSION_UNNEEDED
    return {**pod, "metadata": {**meta, "labels": labels}}


def partition_of(task: Task, index: int) -> str:
    """Partition of a replica, as in its label; empty without a partition policy."""
    policy = task.partition_policy
    if policy is None:
        return ""
    if policy.partition_size <= 0:
        return "0"
    # Towards zero, as in Volcano; floor division would send a negative index elsewhere.
    return str(int(index / policy.partition_size))


def _identity(job: Job, task: Task, index: int) -> dict[str, str]:
    return {
        keys.TASK_INDEX: str(index),
        keys.TASK_SPEC: task.name,
        keys.JOB_NAME: job.metadata.name,
        keys.QUEUE_NAME: job.spec.queue or keys.DEFAULT_QUEUE,
    }


def _labels(job: Job, task: Task, index: int, forwarding: bool) -> dict[str, str]:
    labels = _identity(job, task, index)
    labels[keys.JOB_NAMESPACE] = job.metadata.namespace
    for key in keys.COPIED_LABELS:
        if value := job.metadata.label(key):
            labels[key] = value
    if partition := partition_of(task, index):
        labels[keys.PARTITION_ID] = partition
    if forwarding:
        labels[keys.JOB_FORWARDING] = "true"
    return labels


def _annotations(job: Job, task: Task, index: int, forwarding: bool) -> dict[str, str]:
    meta = job.metadata
    annotations = _identity(job, task, index)
    annotations |= {
        keys.GROUP_NAME: pod_group_name(meta.name, meta.uid),
        keys.JOB_VERSION: str(job.status.version),
        keys.JOB_RETRY_COUNT: str(job.status.retry_count),
        keys.TEMPLATE_UID: f"{meta.name}-{task.name}",
    }
    if task.topology_policy:
        annotations[keys.NUMA_POLICY] = task.topology_policy
    for key in keys.COPIED_ANNOTATIONS:
        if value := meta.annotation(key):
            annotations[key] = value
    for key in keys.BUDGETS:
        if value := meta.annotation(key):
            annotations[key] = value
            break
    if forwarding:
        annotations[keys.JOB_FORWARDING] = "true"
    if scale := fingerprint(job):
        annotations[keys.SCALE] = scale
    return annotations


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
