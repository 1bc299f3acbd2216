"""Jobs in a simulation: the controller's plans, applied in memory.

`reconcile` is called as in a cluster, and its plan is applied to the objects of the simulation. As in a cluster, a Job has
pods once the scheduler has let its gang into its queue. Its pods get what their RuntimeClass gives them, as from an API server.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.fields import plain
from pumice.api.kinds import POD, POD_GROUP, Kind
from pumice.api.meta import Raw
from pumice.api.names import pod_group_name
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.runtime_classes import RuntimeClass, admit
from pumice.cli.output import note
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import LIMITS, Limits, Observed
from pumice.controller.objects import with_placeholders
from pumice.controller.plan import CreateObject, DeleteObject, PatchStatus, Step, UpdateObject
from pumice.plugins import Registry

__all__ = ["PassResult", "SimulatedJobs", "SimulatedRuntimeClasses"]


class SimulatedRuntimeClasses:
    """The RuntimeClasses of the files. A pod with a uid comes from a cluster, where it was admitted before.

    A class that is not in the files has no effect, since files rarely hold all objects of a cluster. It is reported
    once.
    """

    def __init__(self, classes: Iterable[RuntimeClass] = ()) -> None:
        self._known = {each.metadata.name: each for each in classes}
        self._missing: set[str] = set()

    def admitted(self, pod: Raw) -> Raw:
        """A pod as an API server stores it; a pod that it would refuse is returned unchanged."""
        if pod["metadata"].get("uid"):
            return pod
        spec = dict(pod.get("spec") or {})
        return pod if self.why_refused(spec) else {**pod, "spec": spec}

    def why_refused(self, spec: Raw) -> str | None:
        """Apply the RuntimeClass of a pod to its spec; returns why the pod is refused, None if it is not."""
        name = spec.get("runtimeClassName")
        found = self._known.get(name) if name else None
        if name and found is None:
            if name not in self._missing:
                self._missing.add(name)
                note(
                    plain(
                        f'RuntimeClass "{name}" is not in the state: its overhead, node selector and '
                        "tolerations do not count"
                    )
                )
            return None
        return admit(spec, found)

    def problems(self, job: Mapping[str, Any]) -> list[str]:
        """Why the API server would refuse the pods of a Job, with the path of the template."""
        problems = []
        for place, task in enumerate((job.get("spec") or {}).get("tasks") or ()):
            spec = dict((task.get("template") or {}).get("spec") or {})
            if why := self.why_refused(spec):
                problems.append(f"spec.tasks[{place}].template.spec: {why}")
        return problems


ALL_AT_ONCE = Limits(window=LIMITS.max_pods)
"""Limits without windows: there is no API server to protect."""

PASSES = 8
"""Maximum number of plans in a row for a Job: objects, group, pods, status, and a reserve."""

_NO_UID = "00000000-0000-0000-0000-000000000000"


@dataclass(slots=True)
class PassResult:
    """Changes of the controller.

    Attributes:
        groups: The current PodGroups.
        pods: New pods.
        gone: Pods that were deleted.
    """

    groups: list[PodGroup] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    gone: list[Pod] = field(default_factory=list)


class SimulatedJobs:
    """All Jobs of a simulation with a controller."""

    def __init__(
        self,
        jobs: Iterable[Raw],
        groups: Sequence[Raw],
        queues: Sequence[Queue],
        priorities: Mapping[str, int],
        registry: Registry,
        runtime_classes: SimulatedRuntimeClasses,
    ) -> None:
        """Add Jobs.

        Args:
            jobs: The Jobs, admitted.
            groups: PodGroups that exist.
            queues: Queues that exist.
            priorities: PriorityClass values by name.
            registry: The job plugins.
            runtime_classes: Adds the fields of RuntimeClasses to new pods.
        """
        self._registry = registry
        self._queues = {queue.metadata.name: queue for queue in queues}
        self._priorities = priorities
        self._runtime_classes = runtime_classes
        existing = {_key(group): group for group in groups}
        self._files = [_File.of(job, existing) for job in jobs]

    def work(
        self, pods: Mapping[str, Pod], statuses: Mapping[str, PodGroupStatus], now: float
    ) -> PassResult:
        """Run the controller for every Job.

        Args:
            pods: All pods, by `namespace/name`.
            statuses: PodGroup statuses of the scheduler, by `namespace/name`.
            now: The moment, in UNIX seconds.
        """
        result = PassResult()
        by_job: dict[tuple[str, str], dict[str, Pod]] = {}
        for key, pod in pods.items():
            if name := pod.metadata.label(keys.JOB_NAME):
                by_job.setdefault((pod.metadata.namespace, name), {})[key] = pod
        for file in self._files:
            if file.group is not None and (status := statuses.get(_key(file.group))):
                file.group = file.group | {"status": msgspec.to_builtins(status)}
            own = by_job.get((file.namespace, file.name), {})
            self._settle(file, own, pods, result, now)
        return result

    def _settle(
        self,
        file: "_File",
        own: dict[str, Pod],
        everyone: Mapping[str, Pod],
        result: PassResult,
        now: float,
    ) -> None:
        queue = (file.job.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE
        for _ in range(PASSES):
            plan = reconcile(
                Observed(
                    job=file.job,
                    pods=tuple(own.values()),
                    group=file.group,
                    objects=tuple(file.objects),
                    queue=self._queues.get(queue),
                    priorities=self._priorities,
                ),
                registry=self._registry,
                now=now,
                limits=ALL_AT_ONCE,
            )
            if not plan:
                return
            for step in plan.steps:
                self._apply(step, file, own, everyone, result)
        note(
            f"Job/{file.namespace}/{file.name}: the controller still plans changes after {PASSES} passes; "
            "pods may be missing here that a cluster would have"
        )

    def _apply(
        self,
        step: Step,
        file: "_File",
        own: dict[str, Pod],
        everyone: Mapping[str, Pod],
        result: PassResult,
    ) -> None:
        match step:
            case CreateObject(kind, manifest) if kind == POD:
                key = _key(manifest)
                if key not in everyone and key not in own:
                    own[key] = _created_pod(self._runtime_classes.admitted(manifest), file)
                    result.pods.append(own[key])
            case CreateObject(kind, manifest) if kind == POD_GROUP:
                created = file.job["metadata"].get("creationTimestamp")
                born = {"creationTimestamp": created} if created else {}
                file.group = manifest | {"metadata": manifest["metadata"] | born}
                result.groups.append(msgspec.convert(file.group, PodGroup))
            case CreateObject(_, manifest, secret):
                # A Secret without keys would be deleted and created in every pass; scheduling needs no real ones.
                made = with_placeholders(manifest, secret) if secret is not None else manifest
                file.objects.append(made)
            case UpdateObject(kind, _, _, patch) if kind == POD_GROUP and file.group is not None:
                file.group = _merged(file.group, patch)
                result.groups.append(msgspec.convert(file.group, PodGroup))
            case UpdateObject(kind, _, name, patch):
                file.objects = [
                    _merged(each, patch) if _is(each, kind, name) else each for each in file.objects
                ]
            case DeleteObject(kind, namespace, name) if kind == POD:
                gone = own.pop(f"{namespace}/{name}", None)
                if gone is not None:
                    result.gone.append(gone)
            case DeleteObject(kind, _, name):
                file.objects = [each for each in file.objects if not _is(each, kind, name)]
            case PatchStatus(status):
                file.job = file.job | {"status": status}
            case _:
                pass  # events, claims, and when to look again


@dataclass(slots=True)
class _File:
    """A Job and what it owns.

    Attributes:
        job: The Job, with a uid.
        group: Its PodGroup.
        objects: The objects of its plugins.
    """

    job: Raw
    group: Raw | None
    objects: list[Raw] = field(default_factory=list)

    @classmethod
    def of(cls, job: Raw, groups: Mapping[str, Raw]) -> "_File":
        metadata = {"namespace": "default", "uid": _NO_UID} | job["metadata"]
        name = pod_group_name(metadata["name"], metadata["uid"])
        return cls(job | {"metadata": metadata}, groups.get(f"{metadata['namespace']}/{name}"))

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.job["metadata"]["namespace"])


def _created_pod(manifest: Raw, file: _File) -> Pod:
    """A pod as the API server would show it: with a uid, a creation time and a phase."""
    metadata = {
        "uid": f"{file.namespace}-{manifest['metadata']['name']}",
        "creationTimestamp": file.job["metadata"].get("creationTimestamp"),
    } | manifest["metadata"]
    return msgspec.convert(manifest | {"metadata": metadata, "status": {"phase": "Pending"}}, Pod)


def _is(found: Raw, kind: Kind, name: str) -> bool:
    """True if this is the object of a kind with a name, in the namespace of its Job."""
    type_of = found.get("apiVersion"), found.get("kind")
    return type_of == (kind.api_version, kind.kind) and found["metadata"]["name"] == name


def _key(obj: Raw) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def _merged(target: Raw, patch: Raw) -> Raw:
    """A merge patch (RFC 7386) applied to a copy."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result
