"""Gangs made of statuses: `Running@node-1`, `Pending`, `BE Pending` (a pod without requests)."""

from collections.abc import Sequence

from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.state.watched_cluster import ClusterState
from tests.unit.scheduler.scenarios import pod, pod_group


def gang(
    minimum: int,
    tasks: Sequence[str] = (),
    *,
    phase: str = "Inqueue",
    roles: dict[str, int] | None = None,
    min_task: dict[str, int] | None = None,
) -> JobInfo:
    """A gang whose pods have these statuses."""
    state = ClusterState()
    options = {"minTask": min_task} if min_task else {}
    state.set_pod_group(pod_group(["ns", "gang", "default", minimum, phase, options]))
    rows = [(f"task-{index + 1}", "", text) for index, text in enumerate(tasks)]
    for role, count in (roles or {}).items():
        rows += [(f"{role}-{index}", role, "Pending") for index in range(count)]
    job = state.jobs["ns/gang"]
    for name, role, text in rows:
        is_empty = text.startswith("BE ")
        title, _, node = text.removeprefix("BE ").partition("@")
        cpu = 0 if is_empty else 1
        state.set_pod(pod(["ns", name, node, "Pending", cpu, 0, "gang", {"role": role}]))
        job.move(state.tasks[f"ns/{name}"], SchedulingStatus[title.upper()])
    return job
