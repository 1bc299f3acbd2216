"""Jobs: which rules apply when."""

from pumice.api.jobs import Job
from pumice.webhook.rules import (
    annotation_sizes,
    dependencies,
    job_counts,
    job_defaults,
    job_names,
    job_plugins,
    job_priorities,
    job_updates,
    lifecycle_policies,
    network_topology,
    numa,
    partitions,
    pod_templates,
    priority_classes,
    queue_references,
    ratchet,
    tiers,
    volumes,
)
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import pod
from pumice.webhook.rules.templates.containers import TPL_CONTAINERS

__all__ = ["CHECKS", "RULES", "validate_create", "validate_update"]

RULES: tuple[Rule, ...] = (
    *job_counts.RULES,
    *job_names.RULES,
    *annotation_sizes.RULES,
    *job_defaults.RULES,
    *job_updates.RULES,
    *lifecycle_policies.RULES,
    *pod.RULES,
    *numa.RULES,
    *partitions.RULES,
    *network_topology.RULES,
    *tiers.RULES,
    *job_plugins.RULES,
    *volumes.RULES,
    *dependencies.RULES,
    *queue_references.RULES,
    *priority_classes.RULES,
)
"""Every rule about Jobs; those that hold for PodGroups, too, stand beside theirs."""

CHECKS: tuple[Check[Job], ...] = (
    (job_counts.JOB_NO_TASKS, job_counts.task_list),
    (job_names.JOB_NAME, job_names.names),
    (annotation_sizes.JOB_ANNOTATIONS, annotation_sizes.handed_on),
    (job_counts.JOB_MINAVAIL_TOTAL, job_counts.counts),
    (lifecycle_policies.POL_NOTHING, lifecycle_policies.lifecycle_policies),
    (TPL_CONTAINERS, pod_templates.pod_templates),
    (numa.JOB_NUMA_CPU, numa.numa),
    (partitions.PART_PRODUCT, partitions.partitions),
    (network_topology.JOB_TOPO_BOTH, network_topology.job_topologies),
    (job_plugins.JOB_PLUGIN, job_plugins.job_plugins),
    (volumes.VOL_PATH, volumes.volumes),
    (dependencies.JOB_NOT_DAG, dependencies.dependencies),
    (queue_references.JOB_QUEUE.missing, queue_references.job_queue),
    (priority_classes.JOB_PRIORITY, job_priorities.job_priorities),
)
"""What is judged about a Job, in the order in which problems are told."""


def validate_create(case: Case, job: Job) -> None:
    """Judge a new Job."""
    run(case, CHECKS, job)


def validate_update(case: Case, job: Job, old: Job) -> None:
    """Judge a change of a Job.

    A Job that is being deleted, and one whose spec does not change, may change as it likes: finalizers
    must go and annotations come, whatever rules there are by now.
    """
    if job.metadata.deletion_timestamp or job.spec == old.spec:
        return
    before, after = job_updates.normal(case, old), job_updates.normal(case, job, old)
    if after.spec == before.spec:
        return
    covered = job_updates.frozen_changes(case, before, after)
    ratchet.judge_update(case, CHECKS, after, before, covered=covered)
