"""The loop of Jobs: wait for a change of a Job, plan with `reconcile`, carry the plan out."""

import asyncio
import logging
import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from pumice.api.kinds import (
    COMMAND,
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    SECRET,
    Kind,
)
from pumice.api.meta import ObjectMeta, Raw, parse_time
from pumice.api.names import pod_group_name
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cluster.backoff import Backoff
from pumice.cluster.errors import ApiError, Conflict, NotFound, TooManyRequests
from pumice.cluster.events import Reference
from pumice.cluster.sent import SentRequests
from pumice.cluster.store import Change, is_from_backup
from pumice.cluster.turns import first_part
from pumice.cluster.workqueue import WorkQueue
from pumice.controller.jobs.observed import Observed
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Limits, secret_names
from pumice.controller.loop.caches import BY_JOB, ControllerCaches, JobKey, job_key, job_of_pod
from pumice.controller.loop.coalescing import (
    COUNT_SECONDS,
    counts_only,
    without_status,
    writes_status,
    written_phase,
)
from pumice.controller.loop.execution import OUTAGE_SECONDS, Executor
from pumice.controller.loop.job_owners import JobOwners
from pumice.controller.loop.known_secrets import KnownSecrets
from pumice.controller.loop.memory import JobMemory, Memory
from pumice.controller.loop.planned import UNEXPECTED
from pumice.controller.loop.process import ControllerProcess
from pumice.controller.loop.resync import resync
from pumice.controller.loop.steps import PlanOutcome
from pumice.controller.owners import controls_raw
from pumice.controller.plan import Plan, RequeueAfter
from pumice.controller.podgroups import queue_of
from pumice.plugins import Registry

__all__ = ["JobTerm"]

logger = logging.getLogger(__name__)

UNSEEN_SECONDS = 5.0
"""How long until something that the caches do not show is checked again."""

TOGETHER_SECONDS = 0.05
"""How long changes of pods are collected into one pass: pods of a gang start and end one after the other."""

SHARE = 5
"""While pods of a Job change continuously, planning takes at most this share of the time."""

MANY_PODS = 1000
"""Pods of a Job from which on a thread plans: a pass over 10,000 pods takes a tenth of a second or more."""

LONGEST_SECONDS = 3600.0
"""Maximum delay of a pass that was requested for later."""


class JobTerm:
    """The Job controller, while this process is the leader, with its state."""

    def __init__(
        self,
        worker: ControllerProcess,
        registry: Registry,
        caches: ControllerCaches,
        owners: JobOwners,
    ) -> None:
        self._client = worker.client
        self._registry = registry
        self._settings = settings = worker.settings
        self._clock = worker.clock
        self._metrics = worker.metrics
        self._caches = caches
        self._owners = owners
        self._recorder = worker.recorder
        self._memory = Memory()
        self._backoff = Backoff(base=0.1, cap=300.0, spread=0.1, seed=settings.identity)
        self._outage = Backoff(base=0.1, cap=OUTAGE_SECONDS, spread=0.1, seed=settings.identity)
        faults = worker.faults.of_queue("jobs", self._about, UNEXPECTED)
        self._jobs: WorkQueue[JobKey] = WorkQueue(
            "jobs", first_part, of_one=settings.workers, faults=faults
        )
        self._busy_until: dict[str, float] = {}
        self._limits = Limits(
            max_pods=settings.max_pods_per_job,
            window=settings.window,
            expire="gc-controller" in settings.controllers,
        )
        self._secrets = KnownSecrets(self._client, self._clock, readable=settings.secrets)
        self._sent = SentRequests()
        self._executor = Executor(
            self._client,
            self._recorder,
            self._metrics,
            worker.slots,
            concurrent=settings.concurrent_writes,
            sent=self._sent,
        )

    async def run(self) -> None:
        """Work until cancelled; then wait for the responses to open requests."""
        try:
            await self._work()
        finally:
            await self._sent.answered()

    async def _work(self) -> None:
        with ExitStack() as stack:
            stack.callback(self._jobs.close)
            stack.callback(await self._caches.pods.replay(self._note_change))
            stack.callback(await self._caches.queues.replay(self._note_queue))
            stack.callback(await self._caches.jobs.replay(self._note_restore))
            await self._caches.subscribe(self._jobs.add, stack, self._note_pod)
            async with asyncio.TaskGroup() as group:
                group.create_task(resync(self._caches.job_keys, self._jobs.add, self._clock))
                group.create_task(self._jobs.work(self._job, self._settings.passes))

    def _note_change(self, change: Change, old: Pod | None, new: Pod | None) -> None:
        del change
        if old is None or (key := job_of_pod(old)) is None:
            return
        if new is None or new.metadata.uid != old.metadata.uid:
            self._memory.removed(key, old)
        else:
            watched = self._caches.pods.settled.is_set()
            self._memory.changed(key, old, new, watched=watched)

    def _note_restore(self, change: Change, old: Raw | None, new: Raw | None) -> None:
        """Forget what was written for a Job if the API server was restored to a state from before that."""
        del change
        if old is not None and new is not None and is_from_backup(old, new):
            self._memory.forget(job_key(new))

    def _note_pod(self, key: JobKey) -> None:
        """Add a Job whose pod changed to the queue, once for changes at about the same time."""
        if self._memory.waits(key):
            self._jobs.add(key)
        else:
            self._jobs.add_after(key, TOGETHER_SECONDS + SHARE * self._memory.cost(key))

    def _note_queue(self, change: Change, old: Queue | None, new: Queue | None) -> None:
        """Add Jobs with a refused write to the queue when a queue opens: admission refuses PodGroups for closed queues."""
        del change
        if new is not None and new.is_open and (old is None or not old.is_open):
            for key in self._memory.refused():
                self._jobs.add(key)

    async def _job(self, key: JobKey) -> float | None:
        """One pass over a Job. Returns the seconds until the next pass, if known."""
        namespace, name = key
        self._metrics.jobs.set(len(self._caches.jobs))
        started = self._clock.monotonic()
        if (busy := self._busy_until.get(namespace, -math.inf)) > started:
            return busy - started
        job = self._caches.jobs.get(name, namespace)
        if job is None:
            if (memory := self._memory.forget(key)) is not None:
                self._secrets.forget(namespace, memory.secrets)
            self._metrics.forget(namespace, name)
            return await self._refuse_commands(key)
        memory = self._memory.of(key, job["metadata"]["uid"])
        if (unseen := memory.writes.unseen(self._caches.of, started)) is not None:
            return unseen  # the event that shows the write arrives here earlier
        try:
            secrets = await self._read_secrets(job, memory)
        except TooManyRequests as error:
            return self._busy(namespace, error.patience)
        except ApiError as error:
            logger.warning("secrets of job %s/%s: %s", namespace, name, error)
            return UNSEEN_SECONDS
        observed = self._observe(key, job, memory, secrets)
        plan = await self._plan(observed)
        memory.cost = self._clock.monotonic() - started
        stored = job.get("status") or {}
        phase = str((stored.get("state") or {}).get("phase", ""))
        if (overdue := memory.due(stored)) is not None:
            plan = Plan.of([overdue], [RequeueAfter(0.0)])
        elif not writes_status(plan):
            memory.let_go()  # the stored object is right again
            if not plan:  # a Command is answered before the status is composed
                memory.noted(observed.ended, phase)
        elif (counts := counts_only(stored, plan)) is not None:
            if memory.held is None:
                memory.held_at = started
            left = memory.held_at + COUNT_SECONDS - started
            if left > 0:
                memory.hold(counts, stored)
                plan = Plan.of(*without_status(plan).stages, [RequeueAfter(left)])
        outcome = await self._executor.carry_out(
            plan,
            observed.job,
            namespace,
            wide=memory.creates,
            others_wait=lambda: self._jobs.others_wait(key),
        )
        self._remember(namespace, memory, outcome)
        if outcome.wrote_status and overdue is None:
            memory.noted(observed.ended, phase, written_phase(plan))
        memory.creates = (outcome.complete or outcome.interrupted) and any(
            each.kind == POD and each.made is not None for each in outcome.written
        )
        if memory.creates and not observed.pods:
            self._note_first_pods(job)
        self._metrics.pass_seconds.observe(self._clock.monotonic() - started)
        self._metrics.passes.labels(
            "again" if not outcome.complete else "done" if plan else "idle"
        ).inc()
        return self._after(namespace, memory, outcome, plan.wake)

    def _note_first_pods(self, job: Raw) -> None:
        """Observe how long a Job waited for its first pods; restarts are not counted."""
        created = parse_time(job["metadata"].get("creationTimestamp"))
        if created is not None and not (job.get("status") or {}).get("version"):
            self._metrics.first_pods.observe(max(0.0, self._clock.wall() - created) * 1000)

    async def _plan(self, observed: Observed) -> Plan:
        """The plan of a pass. For a Job of many pods a thread makes it, so that the event loop goes on meanwhile."""
        make = partial(
            reconcile,
            observed,
            registry=self._registry,
            now=self._clock.wall(),
            settings=self._settings.plugins,
            check=self._settings.check,
            limits=self._limits,
        )
        try:
            return make() if len(observed.pods) < MANY_PODS else await asyncio.to_thread(make)
        except Exception:
            self._metrics.passes.labels("failed").inc()
            raise

    def _after(
        self, namespace: str, memory: JobMemory, outcome: PlanOutcome, wake: float | None = None
    ) -> float | None:
        """Seconds until the next pass over a Job, if known."""
        if outcome.busy is not None:
            return self._busy(namespace, outcome.busy)
        if outcome.interrupted:
            return 0.0
        if outcome.trouble is not None:
            memory.refusals += 1
            return _sooner(self._backoff.delay(memory.refusals - 1), wake)
        if not outcome.complete:
            memory.outages += 1
            return _sooner(self._outage.delay(memory.outages - 1), wake)
        memory.refusals = memory.outages = 0
        if outcome.finds or memory.trouble is not None:
            memory.trouble = None
            return 0.0
        return None if outcome.after is None else min(outcome.after, LONGEST_SECONDS)

    def _busy(self, namespace: str, seconds: float) -> float:
        """Send nothing for any Job of a namespace for some time: it is not one Job that has too many requests.

        Other namespaces go on, because an admission webhook or plugin may refuse the requests of one alone. If the API server
        is overloaded, each namespace learns it from its next request.
        """
        now = self._clock.monotonic()
        until = max(self._busy_until.get(namespace, now), now + seconds)
        self._busy_until = {key: each for key, each in self._busy_until.items() if each > now}
        self._busy_until[namespace] = until
        return seconds

    async def _refuse_commands(self, key: JobKey) -> float | None:
        """Remove Commands for a Job that does not exist."""
        commands = self._caches.commands.indexed(BY_JOB, key)
        if not commands:
            return None
        namespace, name = key
        try:
            await self._client.get(JOB, name, namespace)
            return UNSEEN_SECONDS  # the Job is newer than the cache; its event arrives here earlier
        except NotFound:
            pass
        except TooManyRequests as error:
            return self._busy(namespace, error.patience)
        except ApiError as error:
            logger.warning("commands for job %s/%s: %s", namespace, name, error)
            return UNSEEN_SECONDS
        for command in commands:
            meta = command.metadata
            message = f"Command {meta.name} is refused: there is no Job {name}"
            about = Reference.of(COMMAND, meta)
            try:
                request = self._client.delete(
                    COMMAND, meta.name, namespace, uid=meta.uid, metadata_only=True
                )
                await self._sent.send(request)
            except (Conflict, NotFound):
                continue
            except TooManyRequests as error:
                return self._busy(namespace, error.patience)
            except ApiError as error:
                logger.warning("removing command %s/%s: %s", namespace, meta.name, error)
                return UNSEEN_SECONDS
            self._recorder.record(about, "Warning", "CommandRefused", message)
        return None

    async def _read_secrets(self, job: Raw, memory: JobMemory) -> list[Raw]:
        """The Secrets that the Job's plugins want; a new Job has none."""
        plugins = (job.get("spec") or {}).get("plugins")
        if not plugins:
            return []
        namespace = job["metadata"].get("namespace", "")
        if memory.plugins != plugins:
            memory.secrets = secret_names(job, self._registry, self._settings.plugins, self._limits)
            memory.plugins = plugins
            # What is known may be of an earlier Job of this name.
            self._secrets.forget(namespace, memory.secrets)
        return await self._secrets.read(namespace, memory.secrets, new=not job.get("status"))

    def _observe(
        self, key: JobKey, job: Raw, memory: JobMemory, secrets: Sequence[Raw]
    ) -> Observed:
        namespace, name = key
        caches = self._caches
        meta = job["metadata"]
        objects = {
            (kind, obj["metadata"]["name"]): _whole(kind, obj)
            for kind, cache in caches.objects.items()
            for obj in cache.indexed(BY_JOB, key)
        } | {(SECRET, each["metadata"]["name"]): each for each in secrets}
        finds = {
            found: obj
            for found, obj in memory.found(self._clock.monotonic())
            if found not in objects
        }
        group_name = pod_group_name(name, meta["uid"])
        group = caches.pod_groups.get(group_name, namespace)
        if group is None:
            group = finds.pop((POD_GROUP, group_name), None)
        queue = caches.queues.get(queue_of((job.get("spec") or {}).get("queue"), group))
        return Observed(
            job=_whole(JOB, job),
            pods=tuple(caches.pods.indexed(BY_JOB, key)),
            ended=tuple(memory.ended.values()),
            requested=dict(memory.requested),
            absent=frozenset(memory.absent),
            group=group,
            objects=(*objects.values(), *finds.values(), *memory.claims.values()),
            commands=tuple(caches.commands.indexed(BY_JOB, key)),
            queue=queue,
            priorities={
                each.metadata.name: each.value for each in caches.priority_classes.values()
            },
            trouble=memory.trouble,
            awaited=self._owners.await_note(job),
        )

    def _remember(self, namespace: str, memory: JobMemory, outcome: PlanOutcome) -> None:
        now = self._clock.monotonic()
        owner = ObjectMeta(uid=memory.uid)
        self._secrets.note(outcome.written, (found for _, found in outcome.finds))
        if outcome.outdated:
            self._secrets.forget(namespace, memory.secrets)
        for kind, obj in outcome.finds:
            name = obj["metadata"]["name"]
            if kind == PERSISTENT_VOLUME_CLAIM and controls_raw(owner, obj):
                memory.claims[name] = obj
            else:
                memory.finds[kind, name] = obj, now
        for each in outcome.written:
            memory.finds.pop((each.kind, each.name), None)
            if each.kind == PERSISTENT_VOLUME_CLAIM and each.made is not None:
                memory.claims[each.name] = _whole(each.kind, each.made)
            memory.writes.add(each, now)
        memory.absent |= outcome.absent
        if outcome.wrote_status or not (outcome.complete or outcome.interrupted):
            memory.absent.clear()  # what they were asked for is done, or was planned from an old state
        if outcome.wrote_status:
            memory.let_go()
        if outcome.trouble is not None:
            memory.trouble = outcome.trouble

    def _about(self, key: JobKey) -> Reference:
        return self._caches.jobs.reference(key[1], key[0])


def _sooner(delay: float, wake: float | None) -> float:
    return delay if wake is None else min(delay, wake)


def _whole(kind: Kind, obj: Raw) -> Raw:
    """An object with its kind, which servers leave out in lists."""
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
