"""Checks of Jobs."""

from pumice.api.jobs import Job
from pumice.webhook.rules import not_here_yet, pods, references
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.jobs import (
    defaults,
    depends_on,
    min_available,
    names,
    placement,
    plugins,
    policies,
    sizes,
    updates,
    volumes,
)
from pumice.webhook.rules.rule import Rule, rules_in
from pumice.webhook.rules.templates import pod
from pumice.webhook.rules.templates.containers import TPL_CONTAINERS
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.rules.updates import judge_update, leaves_spec
from pumice.webhook.rules.wired_pods import volcano_template

RULES: tuple[Rule, ...] = (
    *rules_in(min_available, names, sizes, defaults, updates, policies),
    *pod.RULES,
    *rules_in(placement, plugins, volumes, depends_on),
    *references.RULES,
)
"""Every rule about Jobs; rules for both Jobs and PodGroups are with those of PodGroups."""


def _pod_templates(case: Case, job: Job) -> None:
    for index, task in enumerate(job.tasks):
        path, template = f"spec.tasks[{index}].template", task.template or {}
        pod_template(Site(case, path), template)
        volcano_template(case, path, template)


CHECKS: tuple[Check[Job], ...] = (
    (min_available.JOB_NO_TASKS, min_available.task_list),
    (names.JOB_NAME, names.names),
    (sizes.JOB_ANNOTATIONS, sizes.handed_on),
    (sizes.JOB_SIZE, sizes.size),
    (min_available.JOB_MINAVAIL_TOTAL, min_available.counts),
    (policies.POL_NOTHING, policies.lifecycle_policies),
    (TPL_CONTAINERS, _pod_templates),
    (placement.JOB_NUMA_CPU, placement.numa),
    (placement.JOB_SCHEDULER, placement.scheduler_names),
    (placement.PART_PRODUCT, placement.partitions),
    (references.JOB.two_tiers, references.job_topologies),
    (plugins.JOB_PLUGIN, plugins.job_plugins),
    (volumes.VOL_PATH, volumes.volumes),
    (depends_on.JOB_NOT_DAG, depends_on.dependencies),
    (references.JOB.missing, references.job_queue),
    (references.JOB.priority, references.job_priorities),
    (pods.POD_COOLDOWN, pods.job_durations),
    (not_here_yet.NOT_HERE_YET, not_here_yet.uses),
)


def validate(case: Case, job: Job, old: Job | None) -> None:
    """Check a Job; updates are compared after defaulting both Jobs."""
    if old is None:
        run(case, CHECKS, job)
        return
    if leaves_spec(job, old):
        return
    before = updates.normal(case.sibling(), old)
    after = updates.normal(case.sibling(), job, old)
    if after.spec == before.spec:
        return
    covered = updates.frozen_changes(case, before, after)
    judge_update(case, CHECKS, after, before, covered=covered)
