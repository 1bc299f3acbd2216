"""`SyncJob`: bring pods and objects of a running or pending Job to what its spec wants.

The order makes it safe to stop at any step. First comes the status, whose write fails if the observed state is old.
Then come objects of plugins, to which pods refer, and the PodGroup. Pods are created after the scheduler has let the
group enqueue. Last, surplus pods and pods for another size of the Job are removed.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from pumice.api import keys
from pumice.api.failures import grouped, with_failures
from pumice.api.kinds import JOB, PERSISTENT_VOLUME_CLAIM, POD, POD_GROUP
from pumice.api.meta import controller_of
from pumice.api.pods import Pod
from pumice.controller import objects, podgroups
from pumice.controller.jobs import job_group, notes
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
from pumice.controller.jobs.pods import outdated, partition_of
from pumice.controller.jobs.policies import Policies
from pumice.controller.jobs.reasons import Waiting, arrival, why
from pumice.controller.jobs.replicas import Replicas, creations, is_marked, leaving, removal
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.status import said
from pumice.controller.jobs.volumes import claims_of_others
from pumice.controller.objects import NameConflict, Settled, controls_raw, described, settle_keys
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

_DOUBTS = 10
"""Warnings that are recorded as events; admission reports all of them."""

CONFLICT_SECONDS = 30.0
"""Seconds until a taken name is tried again; no event reports that it is free."""


class DelayedRestarts(msgspec.Struct, frozen=True):
    """Failed pods that are restarted after a backoff.

    Attributes:
        pods: Number of pods.
        message: Which, and when.
    """

    pods: int
    message: str


class _GroupSync(msgspec.Struct, frozen=True):
    """Steps that bring the PodGroup up to date."""

    steps: tuple[Step, ...] = ()
    admitted: bool = False
    conflicts: tuple[NameConflict, ...] = ()


def sync(situation: Situation, backoff: DelayedRestarts | None = None) -> Plan:
    """The plan that brings a Job in `Pending` or `Running` to what its spec wants."""
    evicted = _evicted(situation)
    absent = situation.unconfirmed(evicted)
    if len(absent) > situation.limits.window:
        return Plan.of(absent[: situation.limits.window], [RequeueAfter(0.0)])
    verdict = _judged(situation, backoff.pods if backoff else 0)
    if verdict.phase in FINISHED:
        removing = [pod for pod in situation.pods if pod.status.phase not in SOFT]
        status = situation.status(verdict, notes.of_passing(situation), removing=removing)
        return Plan.of(absent, status, _arrival(situation, verdict) if status else [])
    held = held_tasks(situation.job, situation.wanted_pods, situation.job_pods.lost_by_task)
    settled, renewed = _objects(situation)
    startable = situation.wiring is not None and not settled.conflicts and not renewed
    group = _group(situation, held, create=startable)
    replicas = Replicas(situation.job, situation.job_pods)
    taken, others = _names(situation, replicas)
    conflicts = (*settled.conflicts, *group.conflicts, *others)
    waits = {each.task for each in held}
    lacking = {
        task.name for task in situation.job.tasks if task.name in waits and replicas.lacks(task)
    }
    free = replicas.window(situation.limits.window, held=waits, taken=taken)
    pods = creations(
        situation, free if startable and group.admitted else (), forwarding=_forwards(situation)
    )
    problem = pods.problem()
    due = () if problem else pods
    waiting = Waiting(
        conflicts=conflicts,
        problem=situation.plugin_problem or problem,
        admitted=group.admitted,
        held=tuple(each for each in held if each.task in lacking),
        missing=replicas.missing,
        backoff=backoff.message if backoff else "",
    )
    old = outdated(situation) if startable else []
    surplus = leaving(replicas, situation.pods)
    surplus += [pod for pod in old if not is_marked(pod)]  # the others are leaving already
    removed = removal(surplus, situation.limits.window)
    verdict, events = _reasoned(situation, verdict, waiting)
    noted = notes.of_living(situation, surplus, evicted)
    status = situation.status(verdict, noted, failures=True)
    return Plan.of(
        absent,
        status,
        [*(events if status else []), *_restarts(old), *_lost_keys(situation, settled)],
        [*_forwarding(situation), *settled.creates, *settled.updates, *renewed],
        _claims(situation) if due or situation.observed.group is None else [],
        group.steps,
        due,
        removed.marks,
        [*removed.deletes, *_spare(situation)],
        [RequeueAfter(CONFLICT_SECONDS)] if conflicts or taken else [],
        [RequeueAfter(0.0)] if len(due) >= situation.limits.window else removed.again,
    )


def _objects(situation: Situation) -> tuple[Settled, list[DeleteObject]]:
    """Objects that plugins and volumes want, and Secrets that must be created again."""
    meta, present = situation.job.metadata, situation.observed.objects
    plain = objects.settle(meta, situation.wanted, present)
    keys, renewed = settle_keys(meta, situation.secrets, present, pods=bool(situation.pods))
    settled = Settled(
        (*plain.creates, *keys.creates),
        (*plain.updates, *keys.updates),
        (*plain.conflicts, *keys.conflicts),
    )
    return settled, renewed


def _forwards(situation: Situation) -> bool:
    """Whether the Job's queue lets other clusters take its pods."""
    queue = situation.observed.queue
    return queue is not None and bool(queue.spec.extend_clusters)


def _forwarding(situation: Situation) -> list[UpdateObject]:
    """Annotate a Job with whether other clusters may take its pods; a value of its user is kept."""
    meta = situation.job.metadata
    if not _forwards(situation) or keys.JOB_FORWARDING in (meta.annotations or {}):
        return []
    patch = {"metadata": {"uid": meta.uid, "annotations": {keys.JOB_FORWARDING: "true"}}}
    return [UpdateObject(JOB, meta.namespace, meta.name, patch)]


def _lost_keys(situation: Situation, settled: Settled) -> list[RecordEvent]:
    """Report that running pods have keys that later pods cannot get, because the Secret was removed."""
    running = situation.counts.running
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
    pods = "1 pod" if len(old) == 1 else f"{len(old)} pods"
    message = f"restarting {pods} of task {task}, which started before the Job was scaled"
    return [RecordEvent("Normal", "RestartOnScaling", message)]


def _claims(situation: Situation) -> list[RequireObject]:
    """Claims that must exist before the Job enters its queue and before it gets pods."""
    return [
        RequireObject(
            PERSISTENT_VOLUME_CLAIM,
            situation.namespace,
            name,
            "PVCError",
            f"claim {name}, which spec.volumes names, does not exist; the Job waits until it does",
        )
        for name in claims_of_others(situation.job)
    ]


def _spare(situation: Situation) -> list[DeleteObject]:
    return objects.spare(situation.job.metadata, situation.wanted, situation.observed.objects)


def _judged(situation: Situation, restarted: int) -> PhaseResult:
    """The next phase, by the pods alone.

    A pod that failed and is about to be restarted has not ended, so a Job that runs does not end because of it.
    For a Job that has yet to run it counts like every pod that failed.
    """
    rule, facts = row(situation.phase, SYNC_JOB).rule, situation.facts
    if rule is NextPhase.RUN:
        facts = replace(facts, failed=facts.failed - restarted)
    verdict = judge(rule, situation.phase, facts)
    if verdict.phase in FINISHED and facts.failed:
        message = with_failures(verdict.message, grouped(situation.staying()))
        verdict = replace(verdict, message=message)
    return verdict


def _arrival(situation: Situation, verdict: PhaseResult) -> list[RecordEvent]:
    """The events of a new phase, and for a new Job what is doubtful about its plugins."""
    doubts = situation.doubts[:_DOUBTS]
    return [
        *arrival(situation, verdict),
        *(RecordEvent("Warning", "PluginArgument", doubt) for doubt in doubts),
    ]


def _reasoned(
    situation: Situation, verdict: PhaseResult, waiting: Waiting
) -> tuple[PhaseResult, list[RecordEvent]]:
    """The next phase with its reason, and the events of the change."""
    events = _arrival(situation, verdict)
    if verdict.phase in (PENDING, RUNNING):
        reason = why(situation, verdict.phase, waiting)
        verdict = PhaseResult(verdict.phase, reason.word, reason.sentence)
        if reason.event and (reason.word, reason.sentence) != said(situation.stored_state):
            events.append(reason.event)
    return verdict, events


def _evicted(situation: Situation) -> dict[str, float]:
    """Evicted pods that were just found missing and for which a policy has a timeout, with the time.

    If a pod had failed and the policy concerns that, it is the time of its failure.
    """
    if not situation.job_pods.missing:
        return {}
    policies, noted = Policies(situation.job), situation.job_pods.waiting
    return {
        request.pod: situation.now if request.since is None else min(request.since, situation.now)
        for request in evicted(situation.job, situation.job_pods)
        if request.pod not in noted and policies.choose(request).delay
    }


def _group(situation: Situation, held: Sequence[HeldTask], *, create: bool) -> _GroupSync:
    stored = situation.observed.group
    waiting = [each.task for each in held if not each.started]
    target = job_group.wanted(
        situation.job,
        situation.observed.priorities,
        waiting,
        situation.annotations,
        situation.job_pods.lost_by_task,
        _partial_partitions(situation),
        strict=situation.strict,
    )
    if stored is None:
        return _GroupSync((CreateObject(POD_GROUP, target),) if create else ())
    if stored["metadata"].get("deletionTimestamp"):
        return _GroupSync()
    name = target["metadata"]["name"]
    if not controls_raw(situation.job.metadata, stored):
        return _GroupSync(conflicts=(NameConflict(POD_GROUP.kind, name, described(stored)),))
    patch = podgroups.update(stored, target)
    admitted = podgroups.is_current(stored, target) and (
        podgroups.phase_of(stored) in podgroups.ADMITTED
    )
    return _GroupSync(
        (UpdateObject(POD_GROUP, situation.namespace, name, patch),) if patch else (), admitted
    )


def _partial_partitions(situation: Situation) -> dict[str, list[str]]:
    """Partitions by task some of whose pods succeeded and no longer exist."""
    divided = {task.name: task for task in situation.job.tasks if task.partition_policy}
    lost = situation.job_pods.lost
    if not divided or not lost:
        return {}
    return {
        name: list(dict.fromkeys([partition_of(divided[name], index) for index in indexes]))
        for name, indexes in situation.job_pods.names.by_task(lost).items()
        if name in divided
    }


def _names(situation: Situation, replicas: Replicas) -> tuple[frozenset[str], list[NameConflict]]:
    """Names of missing pods that cannot be used now, and names that other objects have.

    It is no conflict if the object with that name is being removed or belongs to the Job; then the controller waits.
    """
    holders: dict[str, str | None] = {}
    for pod_of_other in situation.pods_of_others:
        owner = controller_of(pod_of_other.metadata)
        leaves = pod_of_other.metadata.deletion_timestamp is not None
        holders[pod_of_other.metadata.name] = (
            None if leaves else f"{owner.kind} {owner.name}" if owner else "no controller"
        )
    for each in situation.observed.objects:
        if each.get("kind") == POD.kind:
            ours = controls_raw(situation.job.metadata, each)
            leaves = bool(each["metadata"].get("deletionTimestamp"))
            holders[each["metadata"]["name"]] = None if ours or leaves else described(each)
    found = {name: holder for name, holder in holders.items() if replicas.is_missing(name)}
    conflicts = [NameConflict(POD.kind, name, holder) for name, holder in found.items() if holder]
    conflicts.sort(key=lambda each: (len(each.name), each.name))
    return frozenset(found), conflicts
