"""`SyncJob`: bring pods and objects of a running or pending Job to what its spec wants.

The order makes it safe to stop at any step. First comes the status, whose write fails if the observed state is old.
Then come objects of plugins, to which pods refer, and the PodGroup. Pods are created after the scheduler has let the
group enqueue. Last, surplus pods and pods for another size of the Job are removed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pumice.api import keys
from pumice.api.kinds import JOB, PERSISTENT_VOLUME_CLAIM, POD, POD_GROUP
from pumice.api.meta import controller_of
from pumice.api.pods import Pod
from pumice.controller import objects, podgroups
from pumice.controller.jobs import job_group, notes, rolling
from pumice.controller.jobs.depends import HeldTask, held_tasks
from pumice.controller.jobs.job_events import evicted
from pumice.controller.jobs.phases import (
    FINISHED,
    PENDING,
    RUNNING,
    SOFT,
    SYNC_JOB,
    NextPhase,
    PhaseResult,
    judge,
    row,
)
from pumice.controller.jobs.policies import Policies
from pumice.controller.jobs.reasons import Waiting, arrival, why
from pumice.controller.jobs.replicas import Replicas, creations, is_marked, leaving, removal
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.volumes import foreign_claims
from pumice.controller.key_secrets import settle_keys
from pumice.controller.objects import NameConflict, Settled
from pumice.controller.owners import controls_raw, described
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireObject,
    Step,
    UpdateObject,
)

__all__ = ["CONFLICT_SECONDS", "DelayedRestarts", "sync"]

_DOUBTS = 10
"""Warnings that are recorded as events; admission reports all of them."""

CONFLICT_SECONDS = 30.0
"""Seconds until a taken name is tried again; no event reports that it is free."""


@dataclass(frozen=True, slots=True)
class DelayedRestarts:
    """Failed pods that are restarted after a backoff.

    Attributes:
        pods: Number of pods.
        message: Which, and when.
    """

    pods: int
    message: str


@dataclass(frozen=True, slots=True)
class _GroupSync:
    """Steps that bring the PodGroup up to date."""

    steps: tuple[Step, ...] = ()
    admitted: bool = False
    conflicts: tuple[NameConflict, ...] = ()


def sync(case: Situation, backoff: DelayedRestarts | None = None) -> Plan:
    """The plan that brings a Job in `Pending` or `Running` to what its spec wants.

    Args:
        case: The Job.
        backoff: Pods that failed and are about to be restarted.
    """
    evicted = _evicted(case)
    absent = case.unconfirmed(evicted)
    if len(absent) > case.limits.window:
        return Plan.of(absent[: case.limits.window], [RequeueAfter(0.0)])
    held = held_tasks(case.job, case.wanted_pods, case.job_pods.lost_by_task)
    settled, renewed = _objects(case)
    startable = case.wiring is not None and not settled.conflicts and not renewed
    group = _group(case, held, create=startable)
    replicas = Replicas(case.job, case.job_pods)
    taken, others = _names(case, replicas)
    conflicts = (*settled.conflicts, *group.conflicts, *others)
    waits = {each.task for each in held}
    lacking = {task.name for task in case.job.tasks if task.name in waits and replicas.lacks(task)}
    free = replicas.window(case.limits.window, held=waits, taken=taken)
    pods = creations(case, free if startable and group.admitted else (), forwarding=_forwards(case))
    problem = pods.problem()
    due = () if problem else pods
    waiting = Waiting(
        conflicts=conflicts,
        problem=case.plugin_problem or problem,
        admitted=group.admitted,
        held=tuple(each for each in held if each.task in lacking),
        missing=replicas.missing,
        backoff=backoff.message if backoff else "",
    )
    old = rolling.outdated(case) if startable else []
    surplus = leaving(replicas, case.pods)
    surplus += [pod for pod in old if not is_marked(pod)]  # the others are leaving already
    removed = removal(surplus, case.limits.window)
    verdict, events = _verdict(case, waiting, backoff.pods if backoff else 0)
    if verdict.phase in FINISHED:
        removing = [pod for pod in case.pods if pod.status.phase not in SOFT]
        status = case.status(verdict, notes.of_passing(case), removing=removing)
        return Plan.of(absent, status, events if status else [])
    status = case.status(verdict, notes.of_living(case, surplus, evicted))
    return Plan.of(
        absent,
        status,
        [*(events if status else []), *_restarts(old), *_lost_keys(case, settled)],
        [*_forwarding(case), *settled.creates, *settled.updates, *renewed],
        _claims(case) if due or case.observed.group is None else [],
        group.steps,
        due,
        removed.marks,
        [*removed.deletes, *_spare(case)],
        [RequeueAfter(CONFLICT_SECONDS)] if conflicts or taken else [],
        [RequeueAfter(0.0)] if len(due) >= case.limits.window else removed.again,
    )


def _objects(case: Situation) -> tuple[Settled, list[DeleteObject]]:
    """Objects that plugins and volumes want, and Secrets that must be created again."""
    meta, present = case.job.metadata, case.observed.objects
    plain = objects.settle(meta, case.wanted, present)
    keys, renewed = settle_keys(meta, case.secrets, present, pods=bool(case.pods))
    settled = Settled(
        (*plain.creates, *keys.creates),
        (*plain.updates, *keys.updates),
        (*plain.conflicts, *keys.conflicts),
    )
    return settled, renewed


def _forwards(case: Situation) -> bool:
    """Whether the Job's queue lets other clusters take its pods."""
    queue = case.observed.queue
    return queue is not None and bool(queue.spec.extend_clusters)


def _forwarding(case: Situation) -> list[UpdateObject]:
    """Annotate a Job with whether other clusters may take its pods; a value of its user is kept."""
    meta = case.job.metadata
    if not _forwards(case) or keys.JOB_FORWARDING in (meta.annotations or {}):
        return []
    patch = {"metadata": {"uid": meta.uid, "annotations": {keys.JOB_FORWARDING: "true"}}}
    return [UpdateObject(JOB, meta.namespace, meta.name, patch)]


def _lost_keys(case: Situation, settled: Settled) -> list[RecordEvent]:
    """Report that running pods have keys that later pods cannot get, because the Secret was removed."""
    running = case.counts.running
    names = [each.name for each in settled.creates if each.keys is not None] if running else []
    return [
        RecordEvent(
            "Warning",
            "KeysReplaced",
            f"Secret {name} was gone and is made again with another key pair: pods that start from now on "
            f"and the {running} that run cannot log in to each other; restart the Job to fix it",
        )
        for name in names
    ]


def _restarts(old: Sequence[Pod]) -> list[RecordEvent]:
    if not old or any(map(is_marked, old)):
        return []  # nothing to report, or it was reported when the first of them was marked
    task = old[0].metadata.annotation(keys.TASK_SPEC)
    message = f"restarting {len(old)} pods of task {task}, which started before the Job was scaled"
    return [RecordEvent("Normal", "RestartOnScaling", message)]


def _claims(case: Situation) -> list[RequireObject]:
    """Claims that must exist before the Job enters its queue and before it gets pods."""
    return [
        RequireObject(
            PERSISTENT_VOLUME_CLAIM,
            case.namespace,
            name,
            "PVCError",
            f"claim {name}, which spec.volumes names, does not exist; the Job waits until it does",
        )
        for name in foreign_claims(case.job)
    ]


def _spare(case: Situation) -> list[DeleteObject]:
    return objects.spare(case.job.metadata, case.wanted, case.observed.objects)


def _verdict(
    case: Situation, waiting: Waiting, restarted: int
) -> tuple[PhaseResult, list[RecordEvent]]:
    """The next phase with its reason, and the events of the change.

    A pod that failed and is about to be restarted has not ended, so a Job that runs does not end because of it.
    For a Job that has yet to run it counts like every pod that failed.
    """
    rule, facts = row(case.phase, SYNC_JOB).rule, case.facts
    if rule is NextPhase.RUN:
        facts = replace(facts, failed=facts.failed - restarted)
    verdict = judge(rule, case.phase, facts)
    events = arrival(case, verdict)
    events += [RecordEvent("Warning", "PluginArgument", doubt) for doubt in case.doubts[:_DOUBTS]]
    if verdict.phase in (PENDING, RUNNING):
        reason = why(case, verdict.phase, waiting)
        verdict = PhaseResult(verdict.phase, reason.word, reason.sentence)
        state = case.job.status.state
        if reason.event and (reason.word, reason.sentence) != (state.reason, state.message):
            events.append(reason.event)
    return verdict, events


def _evicted(case: Situation) -> dict[str, float]:
    """Evicted pods that were just found missing and for which a policy has a timeout, with the time.

    If a pod had failed and the policy concerns that, it is the time of its failure.
    """
    policies, noted = Policies(case.job), case.job_pods.waiting
    return {
        request.pod: case.now if request.since is None else min(request.since, case.now)
        for request in evicted(case.job, case.job_pods)
        if request.pod not in noted and policies.choose(request).delay
    }


def _group(case: Situation, held: Sequence[HeldTask], *, create: bool) -> _GroupSync:
    stored = case.observed.group
    waiting = [each.task for each in held if not each.started]
    target = job_group.wanted(
        case.job,
        case.observed.priorities,
        waiting,
        case.annotations,
        case.job_pods.lost_by_task,
        strict=case.strict,
    )
    if stored is None:
        return _GroupSync((CreateObject(POD_GROUP, target),) if create else ())
    if stored["metadata"].get("deletionTimestamp"):
        return _GroupSync()
    name = target["metadata"]["name"]
    if not controls_raw(case.job.metadata, stored):
        return _GroupSync(conflicts=(NameConflict(POD_GROUP.kind, name, described(stored)),))
    patch = podgroups.update(stored, target)
    admitted = podgroups.is_current(stored, target) and (
        podgroups.phase_of(stored) in podgroups.ADMITTED
    )
    return _GroupSync(
        (UpdateObject(POD_GROUP, case.namespace, name, patch),) if patch else (), admitted
    )


def _names(case: Situation, replicas: Replicas) -> tuple[frozenset[str], list[NameConflict]]:
    """Names of missing pods that cannot be used now, and names that other objects have.

    It is no conflict if the object with that name is being removed or belongs to the Job; then the controller waits.
    """
    holders: dict[str, str | None] = {}
    for foreign_pod in case.foreign_pods:
        owner = controller_of(foreign_pod.metadata)
        leaves = foreign_pod.metadata.deletion_timestamp is not None
        holders[foreign_pod.metadata.name] = (
            None if leaves else f"{owner.kind} {owner.name}" if owner else "no controller"
        )
    for each in case.observed.objects:
        if each.get("kind") == POD.kind:
            ours = controls_raw(case.job.metadata, each)
            leaves = bool(each["metadata"].get("deletionTimestamp"))
            holders[each["metadata"]["name"]] = None if ours or leaves else described(each)
    found = {name: holder for name, holder in holders.items() if replicas.is_missing(name)}
    conflicts = [NameConflict(POD.kind, name, holder) for name, holder in found.items() if holder]
    conflicts.sort(key=lambda each: (len(each.name), each.name))
    return frozenset(found), conflicts
