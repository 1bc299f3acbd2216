"""Jobs as `pumice job` shows them: phase, pods, position in the queue, and why each waits.

Pure: objects in, data out.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pumice.api import keys
from pumice.api.durations import human_age
from pumice.api.failures import without_failures
from pumice.api.jobs import Job
from pumice.api.names import pod_group_name
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.live.explanation_text import is_waiting, lacks_pods, wait_reason
from pumice.cli.output import table

if TYPE_CHECKING:
    from pumice.cli.live.observed import ReadableCluster
    from pumice.scheduler import Config

Row = dict[str, Any]

COLOURS = {"Running": "green", "Completed": "green", "Pending": "yellow", "Restarting": "yellow"}
COLOURS |= {"Aborted": "yellow", "Aborting": "yellow", "Failed": "red", "Terminated": "red"}


def job_rows(
    jobs: Sequence[Job],
    seen: "ReadableCluster | None",
    config: "Config | None",
    now: float,
    gangs: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Row]:
    """Jobs as data, sorted by namespace and name.

    Args:
        jobs: The Jobs.
        seen: The cluster; None if no Job waits or lacks pods.
        config: Configuration of the scheduler; Pumice's default if None.
        now: The moment, in UNIX seconds.
        gangs: Waiting gangs with their positions; None to determine them.
    """
    if gangs is None and seen is not None:
        from pumice.cli.files.configuration import read_config
        from pumice.cli.live.explanations import positioned_gangs  # which imports the scheduler
        from pumice.cli.live.simulated import simulated

        figures = simulated(seen, config or read_config(None), now)
        gangs = positioned_gangs(seen, figures)
    pods: dict[tuple[str, str], list[Pod]] = {}
    for pod in seen.objects.pods if seen is not None else ():
        if name := pod.metadata.label(keys.JOB_NAME):
            pods.setdefault((pod.metadata.namespace, name), []).append(pod)
    groups = {
        (each.metadata.namespace, each.metadata.name): each
        for each in (seen.objects.pod_groups if seen is not None else ())
    }
    ordered = sorted(jobs, key=lambda each: (each.metadata.namespace, each.metadata.name))
    return [_row(job, gangs or {}, pods, groups, seen) for job in ordered]


def _row(
    job: Job,
    gangs: Mapping[str, Mapping[str, Any]],
    pods: Mapping[tuple[str, str], Sequence[Pod]],
    groups: Mapping[tuple[str, str], PodGroup],
    seen: "ReadableCluster | None",
) -> Row:
    meta, spec, status = job.metadata, job.spec, job.status
    waits = is_waiting(job)
    group_name = pod_group_name(meta.name, meta.uid)
    found = gangs.get(f"{meta.namespace}/{group_name}", {})
    gang = found if waits else {}
    reason = status.state.message
    if lacks_pods(job) and found and seen is not None and seen.sees_cluster:
        failures = reason.removeprefix(without_failures(reason)).removeprefix("; ")
        reason = "; ".join(filter(None, (found["summary"], failures)))
    if waits:
        group = groups.get((meta.namespace, group_name))
        reason = wait_reason(job, group, pods.get((meta.namespace, meta.name), ()))
        if gang and seen is not None and seen.sees_cluster:
            reason = gang["summary"]
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "queue": spec.queue or keys.DEFAULT_QUEUE,
        "phase": status.state.phase,
        "minAvailable": job.replicas if spec.min_available is None else spec.min_available,
        "replicas": job.replicas,
        "pending": status.pending,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "retries": status.retry_count,
        "priorityClassName": spec.priority_class_name,
        "creationTimestamp": meta.creation_timestamp,
        "waiting": waits,
        "position": gang.get("position"),
        "gangsWaiting": gang.get("gangsWaiting"),
        "reason": reason,
    }


def details(job: Job, row: Row) -> Row:
    """A Job as data, with its tasks and its former phases."""
    counts = job.status.task_status_count or {}
    return row | {
        "tasks": [
            {
                "name": task.name,
                "replicas": task.size,
                "minAvailable": task.minimum,
                "pods": dict((counts[task.name].phase or {}) if task.name in counts else {}),
            }
            for task in job.tasks
        ],
        "phases": [
            {"phase": each.status, "since": each.last_transition_time}
            for each in job.status.conditions or ()
        ],
    }


def list_table(rows: Sequence[Row], where: str | None, *, wide: bool, now: float) -> str:
    """Jobs as a table; with a column of namespaces if they are of all namespaces (None)."""
    if not rows:
        return f"no Jobs in namespace {where}" if where else "no Jobs"
    namespaces = where is None
    header = ["namespace"] if namespaces else []
    header += ["name", "queue", "phase", "min", "running", "position", "age"]
    header += ["pending", "succeeded", "failed", "retries", "priority"] if wide else []
    header += ["forecast"] if any("forecast" in each for each in rows) else []
    return table(
        [*header, "reason"], [_cells(each, namespaces, wide, now) for each in rows], COLOURS
    )


def _cells(row: Row, namespaces: bool, wide: bool, now: float) -> list[str]:
    cells = [row["namespace"]] if namespaces else []
    cells += [row["name"], row["queue"], row["phase"] or "-", str(row["minAvailable"])]
    cells += [f"{row['running']}/{row['replicas']}", _position(row)]
    cells.append(human_age(row["creationTimestamp"], now))
    if wide:
        cells += [str(row[name]) for name in ("pending", "succeeded", "failed", "retries")]
        cells.append(row["priorityClassName"] or "-")
    if "forecast" in row:
        cells.append(row["forecast"]["message"] if row["forecast"] else "-")
    return [*cells, " ".join(row["reason"].split())]


def _position(row: Row) -> str:
    return f"{row['position']}/{row['gangsWaiting']}" if row["position"] else "-"


def details_text(found: Row, now: float) -> str:
    """One Job as text."""
    position = _position(found)
    lines = [
        ("Job", f"{found['namespace']}/{found['name']}"),
        ("Phase", found["phase"] or "-"),
        ("Queue", found["queue"]),
        ("Position", f"{position} of the gangs that wait in the queue" if position != "-" else "-"),
        ("Running", f"{found['running']}/{found['replicas']}, at least {found['minAvailable']}"),
        ("Age", human_age(found["creationTimestamp"], now)),
        ("Reason", " ".join(found["reason"].split()) or "-"),
    ]
    text = [f"{name + ':':<10}{value}" for name, value in lines]
    rows = [
        (
            each["name"],
            str(each["replicas"]),
            str(each["minAvailable"]),
            ", ".join(f"{count} {phase}" for phase, count in sorted(each["pods"].items())) or "-",
        )
        for each in found["tasks"]
    ]
    text += ["", table(("task", "replicas", "min", "pods"), rows)]
    phases = [(each["phase"], each["since"] or "-") for each in found["phases"]]
    if phases:
        text += ["", table(("phase", "since"), phases, COLOURS)]
    return "\n".join(text)
