"""The controller of Jobs: wait for a change of a Job, plan with `reconcile`, carry the plan out.

Owners of Jobs (CronJobs and JobFlows) record their Jobs in their status, and would run a Job again that is removed
before that. They are watched also if their controllers do not run in this process.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from pumice.api.kinds import (
    COMMAND,
    CRON_JOB,
    JOB,
    JOB_FLOW,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
)
from pumice.api.meta import ObjectMeta, Raw, parse_time
from pumice.api.names import pod_group_name
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache, is_from_backup
from pumice.cluster.errors import ApiError, TooManyRequests
from pumice.controller.cronjobs import awaits_note
from pumice.controller.jobflows import awaits_end
from pumice.controller.jobs.phases import phase_of
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Limits, Observed, PlanFailure, secret_names
from pumice.controller.jobs.status import COUNT_SECONDS, counts_only, without_status
from pumice.controller.jobs.sync import CONFLICT_SECONDS
from pumice.controller.objects import controller_raw, controls_raw
from pumice.controller.plan import Plan, RequeueAfter
from pumice.controller.podgroups import queue_of
from pumice.controller.worker.caches import BY_JOB, JobCaches, job_of_pod
from pumice.controller.worker.controller import (
    UNSEEN_SECONDS,
    NamespacedController,
    PlannedObject,
    Source,
    object_key,
)
from pumice.controller.worker.memory import JobMemories, JobMemory, ObjectKey, PlanOutcome
from pumice.controller.worker.process import ControllerProcess, Watches
from pumice.controller.worker.secrets import KnownSecrets
from pumice.plugins import Registry

logger = logging.getLogger(__name__)

TOGETHER_SECONDS = 0.05
"""How long changes of pods are collected into one pass: pods of a gang start and end one after the other."""

SHARE = 5
"""While pods of a Job change continuously, planning takes at most this share of the time."""

MANY_PODS = 1000
"""Pods of a Job from which on a thread plans: a pass over 10,000 pods takes a tenth of a second or more."""


Awaits = Callable[[Raw, Raw], bool]
"""True if an owner has not yet recorded the end of one of its Jobs."""


class JobOwners:
    """The CronJobs and JobFlows that own Jobs."""

    def __init__(self, watches: Watches) -> None:
        """Create the caches."""
        self._caches: dict[str, tuple[WatchCache[Raw], Awaits]] = {
            kind.kind: (watches.of(kind, dict, optional=True), awaits)
            for kind, awaits in ((CRON_JOB, awaits_note), (JOB_FLOW, _awaits_end))
        }

    def await_note(self, job: Raw) -> bool:
        """True if an ended Job must stay until its owner has recorded it.

        This is false if the owner is gone or has another uid.
        """
        owner = controller_raw(job)
        if owner.get("kind") not in self._caches:
            return False
        cache, awaits = self._caches[owner["kind"]]
        if owner.get("apiVersion") != cache.kind.api_version:
            return False
        if not cache.synced.is_set():
            return True
        found = cache.get(str(owner.get("name")), job["metadata"].get("namespace", ""))
        return (
            found is not None
            and found["metadata"].get("uid") == owner.get("uid")
            and awaits(found, job)
        )


def _awaits_end(job_flow: Raw, job: Raw) -> bool:
    return awaits_end(job_flow, job["metadata"]["name"])


class JobController(NamespacedController):
    """The Job controller, while this process is the leader, with its state."""

    find_seconds = (
        CONFLICT_SECONDS - 5.0
    )  # less than the time after which a taken name is tried again

    def __init__(
        self,
        worker: ControllerProcess,
        registry: Registry,
        caches: JobCaches,
        owners: JobOwners,
    ) -> None:
        """Create a controller; it must `run`."""
        self._memory = JobMemories()
        super().__init__(worker, "jobs", caches.all, caches.jobs, self._memory)
        self._registry = registry
        self._settings = settings = worker.settings
        self._metrics = worker.metrics
        self._caches = caches
        self._secrets = KnownSecrets(worker.client, self.clock, readable=settings.secrets)
        self._owners = owners
        self._limits = Limits(
            max_pods=settings.max_pods_per_job,
            window=settings.window,
            expire="gc-controller" in settings.controllers,
        )

    def sources(self) -> Iterable[Source]:
        """Jobs and everything around them; what is remembered of pods comes before the passes."""
        yield self._caches.pods, self._note_change
        yield self._caches.queues, self._note_queue
        yield self._caches.jobs, self._note_restore
        yield from self._caches.sources(self.queue.add, self._note_pod)

    def look(self, key: ObjectKey) -> PlannedObject | None:
        """A Job; if it does not exist, the oldest Command for it."""
        self._metrics.jobs.set(len(self._caches.jobs))
        found = super().look(key)
        if found is not None:
            return PlannedObject(JOB, found.obj | JOB.type_meta)
        return self.command_for(self._caches.commands.indexed(BY_JOB, key))

    def forget(self, key: ObjectKey) -> None:
        """A Job is gone."""
        if (memory := self._memory.get(key)) is not None:
            self._secrets.forget(key[0], memory.secrets)
        self._metrics.forget(*key)

    async def plan(self, key: ObjectKey, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """What `reconcile` says; a change of counts may wait. A Command for a Job that does not exist is refused."""
        if subject.kind == COMMAND:
            return await self.refusal(subject.obj, JOB, key[1])
        memory = self._memory.of(key, subject.uid)
        memory.began = self.clock.monotonic()
        try:
            secrets = await self._read_secrets(subject.obj, memory)
        except ApiError as error:
            logger.warning("secrets of job %s/%s: %s", *key, error)
            patience = error.patience if isinstance(error, TooManyRequests) else UNSEEN_SECONDS
            return Plan.of([RequeueAfter(patience)])
        memory.observed = observed = self._observe(key, subject.obj, memory, [*finds, *secrets])
        plan = await self._plan(observed)
        memory.cost = self.clock.monotonic() - memory.began
        return self._now_due(memory, observed, plan)

    def carried_out(
        self, key: ObjectKey, subject: PlannedObject, plan: Plan, outcome: PlanOutcome
    ) -> None:
        """Take in what the next plan depends on, and count the pass."""
        memory = self._memory.of(key, subject.uid)
        self._secrets.note(outcome.written, (found for _, found in outcome.finds))
        if outcome.outdated:
            self._secrets.forget(key[0], memory.secrets)
        if memory.observed is None:
            return  # a Command was refused, or what was remembered of the Job does not count any more
        observed, memory.observed = memory.observed, None
        owner = ObjectMeta(uid=memory.uid)
        for kind, obj in outcome.finds:
            if kind == PERSISTENT_VOLUME_CLAIM and controls_raw(owner, obj):
                memory.claims[obj["metadata"]["name"]] = obj
        for each in outcome.written:
            if each.kind == PERSISTENT_VOLUME_CLAIM and each.made is not None:
                memory.claims[each.name] = each.made | each.kind.type_meta
        memory.absent |= outcome.absent
        if outcome.wrote_status or not (outcome.complete or outcome.interrupted):
            memory.absent.clear()  # what they were asked for is done, or was planned from an old state
        if outcome.wrote_status:
            memory.noted(
                observed.ended, phase_of(observed.job.get("status")), phase_of(plan.status)
            )
            memory.differs_since = None
        memory.creates_pods = (outcome.complete or outcome.interrupted) and any(
            each.kind == POD and each.version for each in outcome.written
        )
        if memory.creates_pods and not observed.pods:
            self._note_first_pods(observed.job)
        self._metrics.pass_seconds.observe(self.clock.monotonic() - memory.began)
        self._metrics.passes.labels(
            "again" if not outcome.complete else "done" if plan else "idle"
        ).inc()

    def report(self, subject: PlannedObject, trouble: PlanFailure) -> None:
        """The next pass writes it to the Job's status, with an event."""
        if subject.kind != JOB:
            super().report(subject, trouble)

    # Changes

    def _note_change(self, old: Pod | None, new: Pod | None) -> None:
        if old is None or (key := job_of_pod(old)) is None:
            return
        if new is None or new.metadata.uid != old.metadata.uid:
            self._memory.removed(key, old)
        else:
            watched = self._caches.pods.settled.is_set()
            self._memory.changed(key, old, new, watched=watched)

    def _note_restore(self, old: Raw | None, new: Raw | None) -> None:
        """Forget what was written for a Job if the API server was restored to a state from before that."""
        if old is not None and new is not None and is_from_backup(old, new):
            self._memory.forget(object_key(new))

    def _note_pod(self, key: ObjectKey) -> None:
        """Add a Job whose pod changed to the queue, once for changes at about the same time."""
        if self._memory.waits(key):
            self.queue.add(key)
        else:
            self.queue.add_after(key, TOGETHER_SECONDS + SHARE * self._memory.cost(key))

    def _note_queue(self, old: Queue | None, new: Queue | None) -> None:
        """Add Jobs with a refused write to the queue when a queue opens."""
        if new is not None and new.is_open and (old is None or not old.is_open):
            self.add_refused()

    # Passes

    async def _plan(self, observed: Observed) -> Plan:
        """The plan of a pass. For a Job of many pods a thread makes it, so that the event loop goes on meanwhile."""
        make = partial(
            reconcile,
            observed,
            registry=self._registry,
            now=self.clock.wall(),
            settings=self._settings.plugins,
            check=self._settings.check,
            limits=self._limits,
        )
        try:
            return make() if len(observed.pods) < MANY_PODS else await asyncio.to_thread(make)
        except Exception:
            self._metrics.passes.labels("failed").inc()
            raise

    def _now_due(self, memory: JobMemory, observed: Observed, plan: Plan) -> Plan:
        """The part of a plan that is carried out now: a write of counts alone waits for further changes.

        The end of a pod that is gone does not wait, because the note of pods changes with it.
        """
        stored = observed.job.get("status")
        if plan.status is None:
            memory.differs_since = None  # the stored object is right again
            if not plan:  # a Command is answered before the status is composed
                memory.noted(observed.ended, phase_of(stored))
        elif counts_only(stored or {}, plan):
            if memory.differs_since is None:
                memory.differs_since = memory.began
            left = memory.differs_since + COUNT_SECONDS - memory.began
            if left > 0:
                return Plan.of(*without_status(plan).stages, [RequeueAfter(left)])
        return plan

    def _note_first_pods(self, job: Raw) -> None:
        """Observe how long a Job waited for its first pods; restarts are not counted."""
        created = parse_time(job["metadata"].get("creationTimestamp"))
        if created is not None and not (job.get("status") or {}).get("version"):
            self._metrics.first_pods.observe(max(0.0, self.clock.wall() - created) * 1000)

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
        self, key: ObjectKey, job: Raw, memory: JobMemory, found: Sequence[Raw]
    ) -> Observed:
        namespace, name = key
        caches = self._caches
        objects = {
            (kind.kind, obj["metadata"]["name"]): obj | kind.type_meta
            for kind, cache in caches.objects.items()
            for obj in cache.indexed(BY_JOB, key)
        }
        finds = {(each["kind"], each["metadata"]["name"]): each for each in found}
        group_name = pod_group_name(name, job["metadata"]["uid"])
        found_group = finds.pop((POD_GROUP.kind, group_name), None)
        group = caches.pod_groups.get(group_name, namespace) or found_group
        queue = caches.queues.get(queue_of((job.get("spec") or {}).get("queue"), group))
        return Observed(
            job=job,
            pods=tuple(caches.pods.indexed(BY_JOB, key)),
            ended=tuple(memory.ended.values()),
            absent=frozenset(memory.absent),
            group=group,
            objects=(*(finds | objects).values(), *memory.claims.values()),
            commands=tuple(caches.commands.indexed(BY_JOB, key)),
            queue=queue,
            priorities={
                each.metadata.name: each.value for each in caches.priority_classes.values()
            },
            trouble=memory.trouble,
            awaited=self._owners.await_note(job),
        )
