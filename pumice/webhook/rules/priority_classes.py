"""Priority classes that Jobs and PodGroups name."""

from pumice.api.jobs import Job
from pumice.api.kinds import PRIORITY_CLASS
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule, rules_in

__all__ = ["JOB_PRIORITY", "PG_PRIORITY", "RULES", "job_priorities", "priority_class"]


def _rule(prefix: str, noun: str) -> Rule:
    return Rule(
        f"{prefix}-PRIORITY",
        f"the priority class of a {noun} exists",
        "A gang whose class does not exist has priority 0, and the API server refuses pods that name it.",
        "priorityClassName: hihg-priority",
        reason="FieldValueNotFound",
        level="warn",
    )


JOB_PRIORITY = _rule("JOB", "Job")
PG_PRIORITY = _rule("PG", "PodGroup")

RULES = rules_in(globals())


def priority_class(case: Case, rule: Rule, path: str, name: str) -> None:
    """Warn of a priority class that does not exist, where it is known which do.

    Args:
        case: Where to report.
        rule: Under whose code, for example `JOB_PRIORITY`.
        path: Of the field that names it.
        name: Its name; empty for none.
    """
    view = case.view
    if not name or view.priority_class(name) is not None or not view.knows(PRIORITY_CLASS):
        return
    hint = case.did_you_mean(name, [each.metadata.name for each in view.priority_classes()])
    case.report(rule, path, f'there is no priority class "{name}"{hint}')


def job_priorities(case: Case, job: Job) -> None:
    """Warn of priority classes that do not exist."""
    if job.spec.priority_class_name:
        priority_class(case, JOB_PRIORITY, "spec.priorityClassName", job.spec.priority_class_name)
    for index, task in enumerate(job.tasks):
        name = task.pod_spec().get("priorityClassName")
        if name and isinstance(name, str):
            path = f"spec.tasks[{index}].template.spec.priorityClassName"
            priority_class(case, JOB_PRIORITY, path, name)
