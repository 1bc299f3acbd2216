"""One sentence about a Job: why it waits, or where its pods run.

Pure, so that `pumice explain` and the demo say the same.
"""

from collections import Counter
from collections.abc import Sequence

from pumice.api.jobs import Job
from pumice.api.podgroups import PodGroup, PodGroupCondition
from pumice.api.pods import Pod

__all__ = ["current_condition", "is_waiting", "lacks_pods", "places", "sentence", "wait_reason"]


def current_condition(group: PodGroup | None) -> PodGroupCondition | None:
    """The newest condition of a PodGroup with status True."""
    conditions = (group.status.conditions if group else None) or []
    holding = [each for each in conditions if each.status == "True"]
    if not holding:
        return None
    # Times have whole seconds only; among equals the later entry is the newer one.
    return max(reversed(holding), key=lambda each: each.last_transition_time or "")


def is_waiting(job: Job) -> bool:
    """Whether a Job has not started yet."""
    return job.status.state.phase in ("", "Pending", "Restarting")


def lacks_pods(job: Job) -> bool:
    """Whether a Job runs and some of its pods do not."""
    return job.status.state.phase == "Running" and job.status.pending > 0


def places(pods: Sequence[Pod]) -> str:
    """`node1 (2 pods), node3 (1 pod)`, most pods first; empty when no pod has a node."""
    counts = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{node} ({_pods(count)})" for node, count in ordered)


def sentence(job: Job, group: PodGroup | None, pods: Sequence[Pod]) -> str:
    """Why a Job waits, or where its pods run."""
    state = job.status.state
    name = f"Job {job.metadata.namespace}/{job.metadata.name}"
    if is_waiting(job):
        return f"{name} waits: {wait_reason(job, group, pods)}"
    where = places(pods)
    if state.phase == "Running":
        reason = f"; {state.message}" if state.message else ""
        return f"{name} runs on {where or 'no node yet'}{reason}"
    because = f": {state.message}" if state.message else ""
    ran = f"; its pods were on {where}" if where else ""
    return f"{name} is {state.phase}{because}{ran}"


def wait_reason(job: Job, group: PodGroup | None, pods: Sequence[Pod]) -> str:
    """The most specific reason: the controller's, else the scheduler's, else the missing object."""
    if job.status.state.message:
        return job.status.state.message
    condition = current_condition(group)
    if condition is not None and condition.type != "Scheduled" and condition.message:
        return condition.message
    if not job.status.state.phase:
        return "no controller has looked at it yet; is `pumice controller` running?"
    if group is None:
        return "it has no PodGroup yet; is `pumice controller` running?"
    if group.status.phase in ("", "Pending"):
        queue = group.spec.queue or "default"
        return (
            f"the scheduler has not let it into queue {queue} yet; is `pumice scheduler` running?"
        )
    missing = job.replicas - len(pods)
    if missing > 0:
        return _some(missing, job.replicas, "not exist")
    idle = sum(1 for pod in pods if pod.status.phase in ("", "Pending"))
    if not idle:
        return "all of its pods have started, which its status does not say yet"
    return _some(idle, job.replicas, "not run")


def _some(number: int, total: int, what: str) -> str:
    """As the controller says it."""
    return (
        f"{number} of {total} pods do {what} yet" if total > 1 else f"its only pod does {what} yet"
    )


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"
