"""The controllers of JobFlows and of JobTemplates."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pumice.api import keys
from pumice.api.commands import Command, targets
from pumice.api.jobflows import JOBS, failure_options, job_name
from pumice.api.kinds import COMMAND, JOB, JOB_FLOW, JOB_TEMPLATE
from pumice.api.meta import ObjectMeta, Raw
from pumice.cluster.cache import WatchCache
from pumice.controller.jobflows import plan_job_flow, plan_job_template, termination_name
from pumice.controller.jobs.phases import TERMINATE_JOB, phase_of
from pumice.controller.objects import controller_key, controller_raw
from pumice.controller.plan import Plan
from pumice.controller.worker.controller import NamespacedController, PlannedObject, Source
from pumice.controller.worker.memory import ObjectKey, PlanOutcome
from pumice.controller.worker.process import ControllerProcess, Watches

TOGETHER_SECONDS = 1.0
"""How long changes of a Job that do not end anything are collected: pod counts, and its first phase."""

_BY_FLOW = "job flow"
_BY_JOB = "job"
_BY_TEMPLATE = "job template"
_BY_FLOW_JOB = "job to terminate"


class FlowCaches:
    """Watches: JobFlows, JobTemplates and Jobs, all raw, and Commands."""

    def __init__(self, watches: Watches) -> None:
        """Create the caches."""
        self.job_flows: WatchCache[Raw] = watches.of(JOB_FLOW, dict, optional=True)
        self.templates: WatchCache[Raw] = watches.of(JOB_TEMPLATE, dict, optional=True)
        self.jobs: WatchCache[Raw] = watches.of(JOB, dict)
        self.commands = watches.of(COMMAND, Command)
        self.job_flows.index(_BY_JOB, _jobs_of_flow)
        self.job_flows.index(_BY_TEMPLATE, _templates_of_flow)
        self.jobs.index(_BY_FLOW, partial(controller_key, kind=JOB_FLOW))
        self.commands.index(_BY_FLOW_JOB, _terminated_by)
        self.jobs.index(_BY_TEMPLATE, _templates_of_job)


class JobFlowController(NamespacedController):
    """The JobFlow controller, while this process is the leader."""

    def __init__(self, worker: ControllerProcess, caches: FlowCaches) -> None:
        """Create a controller; it must `run`."""
        required = (caches.templates, caches.commands, caches.jobs, caches.job_flows)
        super().__init__(worker, "job flows", required, caches.job_flows)
        self._caches = caches
        self._metrics = worker.metrics

    def sources(self) -> Iterable[Source]:
        """JobFlows, new and changed templates, and Jobs by owner and by name."""
        yield self._caches.templates, self._template_changed
        yield self._caches.jobs, self._job_changed
        yield self._caches.job_flows, self.added_or_changed

    async def plan(self, key: ObjectKey, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """Its next Jobs and its status."""
        namespace, job_flow = key[0], subject.obj
        caches = self._caches
        jobs = {each["metadata"]["name"]: each for each in finds if each["kind"] == JOB.kind}
        for _, name in _jobs_of_flow(job_flow):
            if (job := caches.jobs.get(name, namespace)) is not None:
                jobs[name] = job
        for job in caches.jobs.indexed(_BY_FLOW, (namespace, subject.uid)):
            jobs[job["metadata"]["name"]] = job
        templates = {
            name: template
            for _, name in _templates_of_flow(job_flow)
            if (template := caches.templates.get(name, namespace)) is not None
        }
        commanded = {
            name for name in jobs if caches.commands.indexed(_BY_FLOW_JOB, (namespace, name))
        }
        taken = {each["metadata"]["name"] for each in finds if each["kind"] == COMMAND.kind}
        if taken:  # by a Command that the cache does not show yet
            commanded |= {
                name
                for name, job in jobs.items()
                if termination_name(name, job["metadata"]["uid"]) in taken
            }
        return plan_job_flow(job_flow, jobs.values(), templates, self.clock.wall(), commanded)

    def carried_out(
        self, key: ObjectKey, subject: PlannedObject, plan: Plan, outcome: PlanOutcome
    ) -> None:
        """Count the phase that was entered."""
        phase = phase_of(plan.status)
        if outcome.wrote_status and phase != phase_of(subject.obj.get("status")):
            self._metrics.job_flow_entered(phase, key[0])

    def _template_changed(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        meta = (new or old or {})["metadata"]
        key = meta.get("namespace", ""), meta["name"]
        for job_flow in self._caches.job_flows.indexed(_BY_TEMPLATE, key):
            self.add(job_flow)

    def _job_changed(self, old: Raw | None, new: Raw | None) -> None:
        """Add the JobFlow that owns a Job, and those that wait for its name, to the queue."""
        later = new is not None and _standing(new) == _standing(old)
        for job in (old, new):
            if job is None:
                continue
            meta, owner = job["metadata"], controller_raw(job)
            namespace = meta.get("namespace", "")
            found = self._caches.job_flows.indexed(_BY_JOB, (namespace, meta["name"]))
            if owner.get("kind") == JOB_FLOW.kind:
                own = self._caches.job_flows.get(owner["name"], namespace)
                found = [*found, *([own] if own is not None else [])]
            for job_flow in found:
                self.add(job_flow, TOGETHER_SECONDS if later else 0.0)


class JobTemplateController(NamespacedController):
    """The JobTemplate controller, while this process is the leader."""

    def __init__(self, worker: ControllerProcess, caches: FlowCaches) -> None:
        """Create a controller; it must `run`."""
        required = (caches.jobs, caches.templates)
        super().__init__(worker, "job templates", required, caches.templates)
        self._caches = caches

    def sources(self) -> Iterable[Source]:
        """JobTemplates, and new and removed Jobs."""
        yield self._caches.jobs, self._job_changed
        yield self._caches.templates, self.added_or_changed

    async def plan(self, key: ObjectKey, subject: PlannedObject, finds: Sequence[Raw]) -> Plan:
        """The list of its Jobs."""
        del finds
        return plan_job_template(subject.obj, self._caches.jobs.indexed(_BY_TEMPLATE, key))

    def _job_changed(self, old: Raw | None, new: Raw | None) -> None:
        before, after = (set(_templates_of_job(each)) if each else set() for each in (old, new))
        for key in before ^ after:
            self.queue.add_after(key, TOGETHER_SECONDS)


def _standing(job: Raw | None) -> tuple[str, bool]:
    """The fields of a Job whose change starts a pass immediately; a Job without a phase counts as missing."""
    if job is None:
        return "", False
    return phase_of(job.get("status")), bool(job["metadata"].get("deletionTimestamp"))


def _names(job_flow: Raw) -> Iterator[str]:
    flows = (job_flow.get("spec") or {}).get("flows") or ()
    return (each.get("name", "") for each in flows)


def _jobs_of_flow(job_flow: Raw) -> list[ObjectKey]:
    """The names that the Jobs of a JobFlow have or may get; of one with too many flows only those of the first attempts."""
    meta, names = job_flow["metadata"], list(_names(job_flow))
    namespace = meta.get("namespace", "")
    retries = failure_options(ObjectMeta(annotations=meta.get("annotations"))).retries
    attempts = range(1 + (retries if len(names) * retries < JOBS else 0))
    return [
        (namespace, job_name(meta["name"], each, retry)) for each in names for retry in attempts
    ]


def _templates_of_flow(job_flow: Raw) -> list[ObjectKey]:
    """The JobTemplates that a JobFlow names."""
    namespace = job_flow["metadata"].get("namespace", "")
    return [(namespace, each) for each in _names(job_flow)]


def _templates_of_job(job: Raw) -> Iterable[ObjectKey]:
    """The JobTemplate of its own namespace that a Job was created from. Names of templates may have dots, namespaces cannot."""
    meta = job["metadata"]
    namespace, _, name = (
        (meta.get("labels") or {}).get(keys.CREATED_BY_JOB_TEMPLATE, "").partition(".")
    )
    if name and namespace == meta.get("namespace", ""):
        yield namespace, name


def _terminated_by(command: Command) -> Iterable[ObjectKey]:
    """The Job that a Command terminates."""
    name = targets(command)
    if name and command.action == TERMINATE_JOB:
        yield command.metadata.namespace, name
