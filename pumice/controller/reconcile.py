"""One pass over one Job: from what is observed to what is to be done.

`reconcile` is a function of its arguments. It is asked whenever something around the Job has changed, as
often as anyone likes, and answers the same to the same; once its plan has been carried out, and nothing
else happened, it answers with an empty one.

First it is asked whether something calls for an action: a Command of a user, else a lifecycle policy. If
the table of `phases` sends the Job to another phase for it, writing that down is the whole plan, and the
work begins with the next pass. Otherwise the work of the present phase goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pumice.api.kinds import COMMAND
from pumice.api.meta import Raw
from pumice.controller import marks
from pumice.controller.commands import Order, next_order
from pumice.controller.happenings import happenings
from pumice.controller.kill import kill, restart
from pumice.controller.observed import Observed
from pumice.controller.phases import (
    FINISHED,
    PENDING,
    RESTART_JOB,
    RESTARTING,
    RUNNING,
    SYNC_JOB,
    Verdict,
    Work,
    row,
)
from pumice.controller.plan import DeleteObject, PatchStatus, Plan, RecordEvent, RequeueAfter
from pumice.controller.policies import choose
from pumice.controller.restarts import Restart, restart_for
from pumice.controller.situation import Situation, situation
from pumice.controller.status import refused
from pumice.controller.subject import UnusableError
from pumice.controller.sync import sync
from pumice.plugins import PluginSettings, Registry
from pumice.plugins.settings import DEFAULT

__all__ = ["JobCheck", "reconcile"]

JobCheck = Callable[[Raw], str]
"""From a Job to what admission would refuse it for; empty if nothing."""


@dataclass(frozen=True, slots=True)
class _Decision:
    """An action that sends the Job to another phase."""

    action: str
    why: str
    restart: Restart | None = None
    order: Order | None = None


def reconcile(
    observed: Observed,
    *,
    registry: Registry,
    now: float,
    settings: PluginSettings = DEFAULT,
    check: JobCheck | None = None,
) -> Plan:
    """Plan what is to be done about a Job.

    Args:
        observed: The Job and everything around it.
        registry: The job plugins.
        now: The moment, in UNIX seconds.
        settings: What the cluster's operator has decided about plugins.
        check: Checks a Job before its first PodGroup is created; None where admission has done so.

    Returns:
        The plan; empty when everything is as it should be.
    """
    if observed.job["metadata"].get("deletionTimestamp"):
        return Plan()  # what the Job owns is collected with it
    try:
        if check is not None and _is_new(observed) and (problem := check(observed.job)):
            raise UnusableError(problem)
        return _reconcile(situation(observed, registry, now, settings))
    except UnusableError as error:
        return _refuse(observed.job, str(error), now)


def _is_new(observed: Observed) -> bool:
    """True for a Job that nothing has been created for."""
    state = (observed.job.get("status") or {}).get("state") or {}
    return observed.group is None and state.get("phase", PENDING) in ("", PENDING)


def _reconcile(case: Situation) -> Plan:
    order = next_order(case.job, case.observed.commands)
    if order is not None:
        return _obey(case, order)
    decision, wake = _from_policies(case)
    if decision is not None:
        return _turn(case, decision)
    plan = _work(case)
    if wake is not None:
        return Plan((*plan.stages, (RequeueAfter(wake),)))
    return plan


def _work(case: Situation) -> Plan:
    if case.phase == RESTARTING:
        return restart(case)
    if row(case.phase, SYNC_JOB).work is Work.SYNC:
        return sync(case)
    return kill(case)


def _obey(case: Situation, order: Order) -> Plan:
    """Deal with one Command; the next pass finds the one after it, or the work to do."""
    meta = order.command.metadata
    delete = DeleteObject(COMMAND, meta.namespace, meta.name, meta.uid)
    if order.refusal:
        message = f"Command {meta.name} is refused: {order.refusal}"
        return Plan.of([RecordEvent("Warning", "CommandRefused", message)], [delete])
    if not order.action:
        return Plan.of([delete])
    why = f"Command {meta.name}" + (f": {order.command.message}" if order.command.message else "")
    found = row(case.phase, order.action)
    if found.to or (case.phase == RESTARTING and order.action == RESTART_JOB):
        return _turn(case, _Decision(order.action, why, restart_for(order.action), order))
    message = f"{order.action} ({why}) has no effect on a Job that is {case.phase}"
    return Plan.of([RecordEvent("Normal", "CommandIssued", message)], [delete])


def _from_policies(case: Situation) -> tuple[_Decision | None, float | None]:
    """The first action that an event calls for now, or the seconds until one will."""
    wake: float | None = None
    if case.phase not in (PENDING, RUNNING):
        return None, None
    for request in happenings(case.job, case.pods, case.observed):
        choice = choose(case.job, request)
        leads_to = row(case.phase, choice.action).to
        if not leads_to:
            continue
        restart = restart_for(choice.action, request.task, request.pod, request.partition)
        if leads_to == RESTARTING and restart is None:
            continue  # a targeted restart for an event that concerns no pod
        if choice.delay:
            if request.since is None:
                continue
            left = request.since + choice.delay - case.now
            if left > 0:
                wake = left if wake is None else min(wake, left)
                continue
        return _Decision(choice.action, f"{request.detail} ({choice.path})", restart), None
    return None, wake


def _turn(case: Situation, decision: _Decision) -> Plan:
    """Write an intention down, and nothing else."""
    found = row(case.phase, decision.action)
    targeted = decision.restart is not None and decision.restart.targeted
    uid = decision.order.command.metadata.uid if decision.order else ""
    status = case.status(
        Verdict(found.to or case.phase, decision.action, decision.why),
        marks.of_passing(case, restart=decision.restart, command=uid),
        new_version=not targeted,
        retry=found.retry,
    )
    reason = "CommandIssued" if decision.order else "ExecuteAction"
    event = RecordEvent("Normal", reason, f"{decision.action}: {decision.why}")
    deletes: list[DeleteObject] = []
    if decision.order:
        meta = decision.order.command.metadata
        deletes.append(DeleteObject(COMMAND, meta.namespace, meta.name, meta.uid))
    return Plan.of(status, [event], deletes)


def _refuse(job: Raw, message: str, now: float) -> Plan:
    stored = job.get("status") or {}
    if (stored.get("state") or {}).get("phase") in FINISHED:
        return Plan()
    status = refused(stored, "InvalidJob", message, now)
    if status is None:
        return Plan()
    return Plan.of([PatchStatus(status)], [RecordEvent("Warning", "InvalidJob", message)])
