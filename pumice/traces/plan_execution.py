"""The plans of the controller of Jobs, applied in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from pumice.api.kinds import JOB, POD, POD_GROUP, Kind
from pumice.api.meta import ObjectMeta, Raw, format_time
from pumice.api.nodes import PodPriorities
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod, PodSpec, PodStatus
from pumice.api.raw import key_in, merged
from pumice.controller.objects import with_placeholders
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    Plan,
    RequeueAfter,
    Step,
    UpdateObject,
)
from pumice.traces.controlled_job import ControlledJob

_SPECS = 3
"""Specs that are kept beside the newest: the tasks of a Job, in whose order its pods are created, rarely alternate."""

_PENDING = PodStatus("Pending")


@dataclass(slots=True)
class ControllerChanges:
    """What the controller has changed.

    Attributes:
        groups: PodGroups that are new or changed, by key; None for those that are gone.
        pods: New pods, by key.
        gone: Pods that are gone; a new one may have the name of one of them.
        jobs: Jobs whose status has changed, by key.
        unsettled: Keys of Jobs for which the controller still plans changes after all passes.
    """

    groups: dict[str, PodGroup | None] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    gone: list[Pod] = field(default_factory=list)
    jobs: dict[str, "ControlledJob"] = field(default_factory=dict)
    unsettled: list[str] = field(default_factory=list)


class PlanExecution:
    """Applies plans.

    Attributes:
        taken: Names of all pods, `namespace/name`.
        of_groups: Jobs by their PodGroup, `namespace/name`.
    """

    def __init__(self, admitted: Callable[[Raw], Raw], classes: PodPriorities) -> None:
        """Begin without pods.

        Args:
            admitted: A pod as an API server stores it.
            classes: The priority classes, as pods get them.
        """
        self._admitted = admitted
        self._classes = classes
        self.taken: set[str] = set()
        self.of_groups: dict[str, ControlledJob] = {}

    def carry_out(
        self, plan: Plan, job: ControlledJob, changes: ControllerChanges, now: float
    ) -> tuple[set[type[Step]], float | None]:
        """Apply a plan.

        Returns:
            The types of steps that have changed something, after which another plan may follow; and seconds until the next plan even if nothing
            changes.
        """
        wake: float | None = None
        types: set[type[Step]] = set()
        for step in plan.steps:
            if isinstance(step, RequeueAfter):
                wake = step.seconds if wake is None else min(wake, step.seconds)
            else:
                types.add(type(step))
                self._apply(step, job, changes, now)
        return types, wake

    def forget(self, job: ControlledJob) -> None:
        """Forget the pods and the PodGroup of a Job that is gone."""
        self.taken.difference_update(job.pods)
        if job.group is not None:
            self.of_groups.pop(key_in(job.group), None)

    def _apply(
        self, step: Step, job: ControlledJob, changes: ControllerChanges, now: float
    ) -> None:
        match step:
            case PatchStatus(status):
                job.raw = job.raw | {"status": status}
                changes.jobs[job.key] = job
            case CreateObject(kind, manifest) if kind == POD:
                self.create_pod(manifest, job, changes, now)
            case CreateObject(kind, manifest) if kind == POD_GROUP:
                self.create_group(manifest, job, changes)
            case CreateObject(_, manifest, secret):
                # A Secret without keys would be deleted and created in every pass; scheduling needs no real ones.
                made = with_placeholders(manifest, secret) if secret is not None else manifest
                job.objects.append(made)
            case UpdateObject(kind, _, _, patch) if kind == POD_GROUP and job.group is not None:
                self._put_group(job, merged(job.group, patch), changes)
            case UpdateObject(kind, _, _, patch) if kind == JOB:
                job.raw = merged(job.raw, patch)
            case UpdateObject(kind, _, _, _) if kind == POD:
                pass  # marks of pods that the next stage removes
            case UpdateObject(kind, _, name, patch):
                job.objects = [
                    merged(each, patch) if _is(each, kind, name) else each for each in job.objects
                ]
            case DeleteObject() if step.kind == JOB:
                job.is_gone = True
                changes.gone += job.pods.values()
            case DeleteObject():
                self._delete(step, job, changes)
            case _:
                pass  # events, and claims

    def create_group(self, manifest: Raw, job: ControlledJob, changes: ControllerChanges) -> None:
        """Create the PodGroup of a Job; it counts as old as the Job."""
        created = job.raw["metadata"].get("creationTimestamp")
        born = {"creationTimestamp": created} if created else {}
        self._put_group(job, manifest | {"metadata": manifest["metadata"] | born}, changes)

    def created(self, manifest: Raw, job: ControlledJob, now: float) -> Pod:
        """A pod as the API server would show it: with a uid, a creation time and a phase."""
        pod = self._admitted(manifest)
        meta = pod["metadata"]
        stamps = {
            "uid": f"{meta.get('namespace')}-{meta['name']}",
            "creationTimestamp": format_time(now),
        }
        return Pod(
            metadata=msgspec.convert(stamps | meta, ObjectMeta),
            spec=self._spec(pod["spec"], job),
            status=_PENDING,
        )

    def create_pod(
        self, manifest: Raw, job: ControlledJob, changes: ControllerChanges, now: float
    ) -> None:
        """Create a pod, as the API server would show it, unless its name is taken."""
        if key_in(manifest) not in self.taken:
            self.add_pod(self.created(manifest, job, now), job, changes)

    def add_pod(self, pod: Pod, job: ControlledJob, changes: ControllerChanges) -> None:
        """Add a pod as the API server shows it, unless its name is taken."""
        key = pod.metadata.key
        if key not in self.taken:
            self.taken.add(key)
            job.pods[key] = changes.pods[key] = pod

    def _put_group(self, job: ControlledJob, group: Raw, changes: ControllerChanges) -> None:
        key = key_in(group)
        self.of_groups[key] = job
        changes.groups[key] = job.put_group(group)

    def _delete(self, step: DeleteObject, job: ControlledJob, changes: ControllerChanges) -> None:
        key = f"{step.namespace}/{step.name}"
        if step.kind == POD:
            if (gone := job.pods.pop(key, None)) is not None:
                self.taken.discard(key)
                if changes.pods.pop(key, None) is None:
                    changes.gone.append(gone)
        elif step.kind == POD_GROUP:
            job.drop_group()
            self.of_groups.pop(key, None)
            changes.groups[key] = None
        else:
            job.objects = [each for each in job.objects if not _is(each, step.kind, step.name)]

    def _spec(self, raw: Raw, job: ControlledJob) -> PodSpec:
        """The spec of a pod; pods of a Job whose specs are equal share one."""
        for known, spec in job.specs:
            if known == raw:
                return spec
        spec = self._classes.prioritized(msgspec.convert(raw, PodSpec))
        job.specs = [*job.specs[-_SPECS:], (raw, spec)]
        return spec


def _is(found: Raw, kind: Kind, name: str) -> bool:
    """True if this is the object of a kind with a name, in the namespace of its Job."""
    type_of = found.get("apiVersion"), found.get("kind")
    return type_of == (kind.api_version, kind.kind) and found["metadata"]["name"] == name
