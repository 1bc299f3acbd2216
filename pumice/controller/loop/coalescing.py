"""Changed pod counts are written after a second; all other changes are written immediately.

Pods of a gang start and end one after the other, and a status for each of them would be as many writes as there are
pods. Phases, reasons with an event, restarts and notes are written immediately, except for the note of succeeded pods,
which grows like a count.
"""

from pumice.api.kinds import POD
from pumice.api.meta import Raw
from pumice.controller.jobs import job_pods
from pumice.controller.plan import DeleteObject, PatchStatus, Plan, RecordEvent, Step, UpdateObject

__all__ = ["COUNT_SECONDS", "counts_only", "without_status"]

COUNT_SECONDS = 1.0
"""How long a change of counts waits, so that several are written together."""

_COUNTS = frozenset(
    ("pending", "running", "succeeded", "failed", "terminating", "unknown", "taskStatusCount")
)


def counts_only(stored: Raw, plan: Plan) -> bool:
    """True if a plan writes the status, and changes only counts and similar fields in it.

    The message about why a Job waits contains counts, too.

    Args:
        stored: Status as stored.
        plan: The plan.
    """
    status = plan.status
    if status is None or any(map(_depends_on_it, plan.built)):
        return False
    return _rest(stored) == _rest(status)


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
