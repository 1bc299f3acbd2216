"""One pass over one Job: observed state in, plan out.

`reconcile` is a function of its arguments. It is called when something about the Job has changed. Equal arguments give
an equal plan. After its plan has been carried out, and if nothing else has changed, it returns an empty plan.

First it looks for an action: that of a user's Command, or else of a lifecycle policy. If the table of `phases` gives
another phase for the action, the plan only writes that phase, and the next pass begins the work. Otherwise the work of
the present phase continues.
"""

from collections.abc import Callable

from pumice.api.failures import attempts
from pumice.api.kinds import COMMAND
from pumice.api.meta import Raw
from pumice.api.pods import Pod
from pumice.controller.jobs import notes, restart_budgets, restart_targets
from pumice.controller.jobs.due import Delayed, DueAction, Order, due, next_order
from pumice.controller.jobs.escalation import replaced_since
from pumice.controller.jobs.kill import judged, kill, restart
from pumice.controller.jobs.phases import (
    FINISHED,
    PENDING,
    RESTART_JOB,
    RESTARTING,
    SOFT,
    SYNC_JOB,
    PhaseResult,
    Work,
    phase_of,
    row,
)
from pumice.controller.jobs.restart_budgets import RestartCount, RestartUnit
from pumice.controller.jobs.restart_targets import Restart, restart_for
from pumice.controller.jobs.situation import LIMITS, Limits, Observed, Situation, situation_of
from pumice.controller.jobs.status import INVALID, START, refused
from pumice.controller.jobs.subject import UnusableError
from pumice.controller.jobs.sync import sync
from pumice.controller.plan import (
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
)
from pumice.plugins import PluginSettings, Registry
from pumice.plugins.settings import DEFAULT

JobCheck = Callable[[Raw], str]
"""Checks a Job: returns why admission would refuse it; empty if it would not."""


def reconcile(
    observed: Observed,
    *,
    registry: Registry,
    now: float,
    settings: PluginSettings = DEFAULT,
    check: JobCheck | None = None,
    limits: Limits = LIMITS,
) -> Plan:
    """Plan the writes for a Job.

    Args:
        observed: The Job and everything around it.
        registry: The job plugins.
        now: The moment, in UNIX seconds.
        settings: What the cluster's operator has decided about plugins.
        check: Checks a Job before its first PodGroup is created; None where admission has done so.
        limits: Limits of the size of Jobs and of a pass.

    Returns:
        The plan; empty when everything is as it should be.
    """
    if observed.job["metadata"].get("deletionTimestamp"):
        return Plan()  # what the Job owns is collected with it
    try:
        if check is not None and _is_new(observed) and (problem := check(observed.job)):
            raise UnusableError(problem)
        return _reconcile(situation_of(observed, registry, now, settings, limits))
    except UnusableError as error:
        return _refuse(observed.job, str(error), now)


def _is_new(observed: Observed) -> bool:
    """True for a Job that nothing has been created for."""
    return observed.group is None and phase_of(observed.job.get("status")) in ("", PENDING)


def _reconcile(situation: Situation) -> Plan:
    order = next_order(situation.job, situation.observed.commands)
    if order is not None:
        return _obey(situation, order)
    decision, delayed = due(situation)
    if decision is not None:
        return _turn(situation, decision)
    plan = _work(situation, delayed)
    if delayed.wake is not None:
        return Plan((*plan.stages, (RequeueAfter(delayed.wake),)))
    return plan


def _work(situation: Situation, delayed: Delayed) -> Plan:
    if situation.phase == RESTARTING:
        return restart(situation)
    if row(situation.phase, SYNC_JOB).work is Work.SYNC:
        return sync(situation, delayed.backoff)
    return kill(situation)


def _obey(situation: Situation, order: Order) -> Plan:
    """Handle one Command; the next pass handles the next one, or does the work."""
    meta = order.command.metadata
    delete = DeleteObject(COMMAND, meta.namespace, meta.name, meta.uid)
    if order.refusal:
        message = f"Command {meta.name} is refused: {order.refusal}"
        return Plan.of([RecordEvent("Warning", "CommandRefused", message)], [delete])
    if not order.action:
        return Plan.of([delete])
    why = "requested by a Command" + (  # whose name would lead nowhere, since it is removed
        f": {order.command.message}" if order.command.message else ""
    )
    found = row(situation.phase, order.action)
    if found.to or (situation.phase == RESTARTING and order.action == RESTART_JOB):
        decision = DueAction(
            action=order.action, why=why, restart=restart_for(order.action), order=order
        )
        return _turn(situation, decision)
    message = f"{order.action} ({why}) has no effect on a Job that is {situation.phase}"
    return Plan.of([RecordEvent("Normal", "CommandIssued", message)], [delete])


def _turn(situation: Situation, decision: DueAction) -> Plan:
    """Plan only the status write of an intention; before it, ask about pods that are gone, a window in each pass."""
    absent = situation.unconfirmed(decision.gone)
    if len(absent) > situation.limits.window:
        return Plan.of(absent[: situation.limits.window], [RequeueAfter(0.0)])
    found = row(situation.phase, decision.action)
    under_way, order = decision.restart, decision.order
    uid = order.command.metadata.uid if order else ""
    retry = found.retry or (situation.strict and found.to == RESTARTING)
    why, is_done = decision.why, True
    if under_way is None:
        controlled, removing = notes.of_passing(situation, command=uid), _unfinished(situation)
    else:
        controlled, removing, used, is_done = _of_restart(
            situation, decision, under_way, uid, retry
        )
        why += used and f"; {used}"
    status = situation.status(
        PhaseResult(found.to or situation.phase, decision.action, why),
        controlled,
        removing=removing,
        new_version=under_way is None or not under_way.targeted,
        retry=retry,
    )
    reason = "CommandIssued" if order else "ExecuteAction"
    event = RecordEvent("Normal", reason, f"{decision.action}: {why}")
    deletes: list[DeleteObject] = []
    if order:
        meta = order.command.metadata
        deletes.append(DeleteObject(COMMAND, meta.namespace, meta.name, meta.uid))
    return Plan.of(absent, status, [event] if is_done else [], deletes)


def _of_restart(
    situation: Situation, decision: DueAction, under_way: Restart, uid: str, retry: bool
) -> tuple[dict[str, str], list[Pod], str, bool]:
    """The status fields for a new restart, the pods that it removes, which of its attempts are used, and whether it is done.

    Where the attempts are used up it is not: the next pass ends the Job, and its event says why.
    """
    again: list[RestartUnit] = []
    tallies: dict[RestartUnit, RestartCount] = {}
    if under_way.targeted and not situation.strict:
        names = situation.job_pods.names
        again = restart_budgets.restart_units(under_way, names)
        tallies = restart_budgets.restarted(
            restart_budgets.of(situation.job, names), again, decision.failed
        )
    count, limit = situation.facts.retry_count + retry, situation.facts.max_retry
    verdict = judged(situation, under_way, count, again, tallies)
    used = attempts(count, limit) if retry else ""
    if again:
        count, unit = restart_budgets.spent(again, tallies, situation.job_pods.names)
        used = attempts(count, limit, unit)
    if verdict.phase not in FINISHED:
        since = replaced_since(situation, under_way, decision.since) if under_way.targeted else {}
        controlled = notes.of_restart(
            situation, under_way, command=uid, tallies=tallies, since=since
        )
        if not under_way.targeted:
            controlled.pop(START, None)
        return controlled, [pod for pod in situation.pods if under_way.replaces(pod)], used, True
    # Only pods that have not finished are removed.
    controlled = notes.of_passing(situation, command=uid) | {
        restart_targets.NOTE: under_way.note(situation.job_pods.names)
    }
    if tallies:
        controlled[restart_budgets.NOTE] = restart_budgets.write(tallies)
    return controlled, _unfinished(situation), used, False


def _unfinished(situation: Situation) -> list[Pod]:
    return [pod for pod in situation.pods if pod.status.phase not in SOFT]


def _refuse(job: Raw, message: str, now: float) -> Plan:
    stored = job.get("status") or {}
    if phase_of(stored) in FINISHED:
        return Plan()
    status = refused(stored, INVALID, message, now)
    if status is None:
        return Plan()
    return Plan.of([PatchStatus(status)], [RecordEvent("Warning", INVALID, message)])
