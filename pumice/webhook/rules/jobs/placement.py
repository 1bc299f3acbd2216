"""Where the pods of a Job may run: their scheduler, and whole CPUs under a NUMA policy.

The gang of a Job waits for pods that Pumice's scheduler does not place. Under a NUMA policy nodes pin whole CPUs, so
containers must request whole CPUs.
"""

from typing import Any

from pumice.api.jobs import Job
from pumice.api.quantities import MILLI, parse_milli
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule, warned
from pumice.webhook.rules.templates.site import entries

JOB_NUMA_CPU = Rule(
    "JOB-NUMA-CPU",
    "under a NUMA policy every container requests whole CPUs",
    "The node pins whole CPUs; a fraction of one cannot be aligned.",
    "topologyPolicy: restricted, template: {… resources: {requests: {cpu: 500m}}}",
)
JOB_SCHEDULER = warned(
    "JOB-SCHEDULER",
    "no schedulerName of a Job names another scheduler",
    "The gang of the Job waits for its pods, and pods with another schedulerName are not placed with it.",
    "template: {spec: {schedulerName: default-scheduler}}",
)


def numa(case: Case, job: Job) -> None:
    """Check the CPU requests of every task that has a NUMA policy."""
    for index, task in enumerate(job.tasks):
        if task.topology_policy in ("", "none"):
            continue
        spec = task.pod_spec()
        for field in ("containers", "initContainers"):
            for position, container in entries(spec.get(field)):
                which, cpu = _cpu(container)
                if problem := _problem(cpu):
                    where = f"spec.tasks[{index}].template.spec.{field}[{position}]"
                    message = (
                        f'{problem}, and topologyPolicy "{task.topology_policy}" pins whole CPUs'
                    )
                    case.report(JOB_NUMA_CPU, f"{where}.resources.{which}.cpu", message)


def _cpu(container: dict[str, Any]) -> tuple[str, object]:
    """The CPU request of a container; without requests its limits count as requests."""
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return "requests", None
    which = "requests" if resources.get("requests") else "limits"
    amounts = resources.get(which)
    if not isinstance(amounts, dict):
        return "requests", None
    return which, amounts.get("cpu")


def _problem(cpu: object) -> str | None:
    if cpu is None:
        return f"{_NOT_WHOLE}, found none"
    try:
        milli = parse_milli(cpu)
    except ValueError:
        return None  # the rules on templates report it
    return f"{_NOT_WHOLE}, found {cpu}" if milli < MILLI or milli % MILLI else None


_NOT_WHOLE = "the cpu request isn't an integer of 1 or more"


def scheduler_names(case: Case, job: Job) -> None:
    """Check the scheduler of the Job and of every template that names one."""
    named: dict[str, object] = {"spec.schedulerName": job.spec.scheduler_name}
    for index, task in enumerate(job.tasks):
        path = f"spec.tasks[{index}].template.spec.schedulerName"
        named[path] = task.pod_spec().get("schedulerName")
    ours = case.settings.scheduler_names
    for path, name in named.items():
        if isinstance(name, str) and name and name not in ours:
            message = (
                f'scheduler "{name}" does not place pods together with their gang, '
                f"so the Job may wait for ever; remove it or write {' or '.join(ours)}"
            )
            case.report(JOB_SCHEDULER, path, message)
