"""Changed pod counts are written after a second; all other changes are written immediately.

Pods of a gang start and end one after the other, and a status for each of them would be as many writes as there are
pods. Phases, reasons with an event, restarts and notes are written immediately, except for the note of succeeded pods,
which grows like a count. When a pod is removed, a delayed status is written first: the next phase of the Job depends on
whether that pod had succeeded.
"""

from pumice.api.kinds import POD
from pumice.api.meta import Raw
from pumice.controller.jobs import job_pods
from pumice.controller.plan import DeleteObject, PatchStatus, Plan, RecordEvent, Step, UpdateObject

__all__ = ["COUNT_SECONDS", "counts_only", "without_status", "writes_status", "written_phase"]

COUNT_SECONDS = 1.0
"""How long a change of counts waits, so that several are written together."""

_COUNTS = frozenset(
    ("pending", "running", "succeeded", "failed", "terminating", "unknown", "taskStatusCount")
)


def writes_status(plan: Plan) -> bool:
    """True if a plan writes the status."""
    return any(isinstance(step, PatchStatus) for step in plan.built)


def written_phase(plan: Plan) -> str:
    """The phase that a plan writes; empty if it writes no status."""
    found = next((step.status for step in plan.built if isinstance(step, PatchStatus)), {})
    return str((found.get("state") or {}).get("phase", ""))


def counts_only(stored: Raw, plan: Plan) -> PatchStatus | None:
    """A plan's write of the status, if it changes only counts and similar fields.

    The message about why a Job waits contains counts, too.

    Args:
        stored: Status as stored.
        plan: The plan.
    """
    steps = list(plan.built)
    found = next((step for step in steps if isinstance(step, PatchStatus)), None)
    if found is None or any(map(_depends_on_it, steps)) or _rest(stored) != _rest(found.status):
        return None
    return found


def _depends_on_it(step: Step) -> bool:
    """True for a step that must not be taken before the status is written."""
    if isinstance(step, UpdateObject | DeleteObject):
        return step.kind == POD
    return isinstance(step, RecordEvent)


def without_status(plan: Plan) -> Plan:
    """A plan without its write of the status."""
    return plan.without(lambda step: isinstance(step, PatchStatus))


def _rest(status: Raw) -> Raw:
    rest = {key: value for key, value in status.items() if key not in _COUNTS and value}
    rest["state"] = {"phase": (status.get("state") or {}).get("phase", "")}
    notes = status.get("controlledResources") or {}
    rest["controlledResources"] = {
        key: text for key, text in notes.items() if key != job_pods.SUCCEEDED
    }
    return rest
