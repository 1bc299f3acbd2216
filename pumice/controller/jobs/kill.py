"""Removing pods before the end of a Job, at its end, and in a restart.

The pods to remove follow from the phase, and in a restart also from the note that was written with it. Both are written
before anything is removed, so a pass looks only at what still exists.

A Job that has ended keeps its finished pods, whose logs may still be wanted, and its claims. Its PodGroup
and what its plugins wanted are removed once nothing runs any more; a Job that is resumed gets them again.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pumice.api.kinds import JOB, POD_GROUP
from pumice.api.meta import parse_time
from pumice.api.pods import Pod
from pumice.controller import objects
from pumice.controller.jobs import notes, restart_budgets, restart_targets
from pumice.controller.jobs.phases import (
    ABORTED,
    FINISHED,
    RESTARTING,
    SOFT,
    SYNC_JOB,
    NextPhase,
    PhaseResult,
    judge,
    row,
)
from pumice.controller.jobs.reasons import arrival
from pumice.controller.jobs.replicas import removal
from pumice.controller.jobs.restart_budgets import RestartCount, RestartUnit
from pumice.controller.jobs.restart_targets import Restart
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.status import INVALID, facts
from pumice.controller.objects import controls_raw
from pumice.controller.plan import DeleteObject, Plan, RecordEvent, RequeueAfter

AWAITED_SECONDS = 1.0
"""Minimum time between two checks whether a JobFlow or CronJob has recorded a Job."""

AWAITED_SHARE = 8
"""A Job that is overdue for long is checked again after an eighth of that time, since its controller may not run."""


def kill(situation: Situation) -> Plan:
    """Remove the remaining pods and objects of a Job that is ending or has ended."""
    found = row(situation.phase, SYNC_JOB)
    every = facts(
        situation.job, situation.counts
    )  # a Job has not ended before all of its pods have
    verdict = _as_before(situation, judge(found.rule, situation.phase, every).phase)
    removed = [pod for pod in situation.pods if pod.status.phase not in found.retain]
    leaving = removal(removed, situation.limits.window, marked=False)
    ended = situation.phase in FINISHED or situation.phase == ABORTED
    at_rest = ended and not every.alive
    controlled = notes.of_ended(situation) if at_rest else notes.of_passing(situation)
    if at_rest and (expired := _expiry(situation)) is not None and not expired.seconds:
        return Plan.of([_forget(situation)])
    status = situation.status(verdict, controlled, removing=removed)
    return Plan.of(
        status,
        (arrival(situation, verdict) if status else []) + _troubles(situation),
        leaving.deletes,
        _tear_down(situation) if at_rest else [],
        [expired] if at_rest and expired is not None else [],
        leaving.again,
    )


def restart(situation: Situation) -> Plan:
    """Remove the pods that a restart replaces, then set the Job to `Pending`."""
    noted = situation.job.status.controlled_resources or {}
    under_way = restart_targets.parse(noted.get(restart_targets.NOTE, ""), situation.job_pods.names)
    names = situation.job_pods.names
    again, tallies = (
        restart_budgets.restart_units(under_way, names),
        restart_budgets.of(situation.job, names),
    )
    verdict = judged(situation, under_way, situation.facts.retry_count, again, tallies)
    remaining: list[Pod] = []
    if verdict.phase in FINISHED:
        spared = [pod for pod in situation.pods if pod.status.phase not in SOFT]
        if (caused := situation.job.status.state.message).endswith(verdict.message):
            verdict = replace(verdict, message=caused)  # which names the pods and the policy
        status = situation.status(verdict, notes.of_passing(situation), removing=spared)
    else:
        remaining = under_way.remaining(situation.pods)
        if remaining or verdict.phase == RESTARTING:
            verdict = _as_before(situation, RESTARTING)
        over = verdict.phase != RESTARTING
        status = situation.status(
            verdict, notes.of_restart(situation, under_way, over=over), removing=remaining
        )
    leaving = removal(reversed(remaining), situation.limits.window, marked=under_way.targeted)
    return Plan.of(
        status,
        (arrival(situation, verdict) if status else []) + _troubles(situation),
        leaving.marks,
        leaving.deletes,
        leaving.again,
    )


def judged(
    situation: Situation,
    restart: Restart,
    retry_count: int,
    again: Sequence[RestartUnit],
    tallies: Mapping[RestartUnit, RestartCount],
) -> PhaseResult:
    """The phase after a restart, given the restart budget of its targets.

    Args:
        situation: The Job.
        restart: The restart.
        retry_count: Restarts of the Job, with this one.
        again: The units that it restarts.
        tallies: Restarts of its pods, tasks and partitions, with this one.
    """
    rule, restarted = NextPhase.RESTART, ""
    if not situation.strict and restart == restart_targets.RESUME:
        rule = NextPhase.RESUME
    elif not situation.strict and restart.targeted:
        retry_count, restarted = restart_budgets.spent(again, tallies, situation.job_pods.names)
    numbers = replace(situation.facts, retry_count=retry_count, restarted=restarted)
    return judge(rule, RESTARTING, numbers)


def _as_before(situation: Situation, phase: str) -> PhaseResult:
    """The current phase, with the reason for which pods are being removed."""
    state = situation.job.status.state
    return (
        PhaseResult(phase)
        if state.reason == INVALID
        else PhaseResult(phase, state.reason, state.message)
    )


def _tear_down(situation: Situation) -> list[DeleteObject]:
    meta = situation.job.metadata
    wanted = [*situation.wanted, *objects.secret_manifests(meta, situation.secrets)]
    deletes = objects.remove(meta, wanted, situation.observed.objects)
    group = situation.observed.group
    if group is not None and controls_raw(situation.job.metadata, group):
        stored = group["metadata"]
        if not stored.get("deletionTimestamp"):
            deletes.append(
                DeleteObject(POD_GROUP, situation.namespace, stored["name"], stored.get("uid", ""))
            )
    return deletes


def _expiry(situation: Situation) -> RequeueAfter | None:
    """When `ttlSecondsAfterFinished` is over; None if the Job does not expire."""
    ttl = situation.job.spec.ttl_seconds_after_finished
    finished = parse_time(situation.job.status.state.last_transition_time)
    if (
        not situation.limits.expire
        or ttl is None
        or finished is None
        or situation.phase not in FINISHED
    ):
        return None
    left = finished + ttl - situation.now
    earliest = max(AWAITED_SECONDS, -left / AWAITED_SHARE) if situation.observed.awaited else 0.0
    return RequeueAfter(max(earliest, left))


def _forget(situation: Situation) -> DeleteObject:
    meta = situation.job.metadata
    # The resourceVersion makes sure that the time to live has not changed meanwhile.
    return DeleteObject(
        JOB,
        meta.namespace,
        meta.name,
        meta.uid,
        propagation="Foreground",
        resource_version=meta.resource_version,
    )


def _troubles(situation: Situation) -> list[RecordEvent]:
    trouble = situation.observed.trouble
    return [RecordEvent("Warning", trouble.reason, trouble.message)] if trouble else []
