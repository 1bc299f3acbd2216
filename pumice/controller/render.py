"""All objects that the controller would create for a Job, or for an object of another controller, without a cluster."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from pumice.api.kinds import JOB, Kind
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.jobs import job_group, pods
from pumice.controller.jobs.subject import read
from pumice.controller.jobs.volumes import wanted_claims
from pumice.controller.objects import owned, secret_manifests, with_placeholders
from pumice.plugins import KeySecret, PluginSettings, Registry, Wiring
from pumice.plugins.addresses import OwnerTask
from pumice.plugins.other_owners import OWNERS, OwnerWirings, RequestError, Wired, is_wired
from pumice.plugins.settings import DEFAULT

NO_UID = "00000000-0000-0000-0000-000000000000"
"""Placeholder for the uid of an object that has none yet."""


def render(
    job: Raw,
    registry: Registry,
    priorities: Mapping[str, int] | None = None,
    settings: PluginSettings = DEFAULT,
) -> list[Raw]:
    """The Job's PodGroup, claims, objects of plugins and pods, in the order of their creation.

    Args:
        job: The Job after admission. If it has no uid, names and references have one of zeros.
        registry: The job plugins.
        priorities: PriorityClass values by name.
        settings: What the cluster's operator has decided about plugins.

    Raises:
        UnusableError: No pods can be made from the Job.
        PluginError: A plugin is unknown or cannot wire a pod.
        UnknownKindError: A plugin wants an object of a kind that Pumice does not know.
    """
    meta = {"namespace": "default", "uid": NO_UID} | (job.get("metadata") or {})
    subject = read({**job, **JOB.type_meta, "metadata": meta})
    wiring = Wiring(subject, registry, settings=settings)
    annotations = wiring.job_annotations()
    return [
        *owned(subject.metadata, [*wanted_claims(subject), *wiring.objects()]),
        *(without_keys(subject.metadata, secret) for secret in wiring.secrets()),
        job_group.wanted(
            subject, priorities or {}, (), annotations, strict=settings.strict_upstream
        ),
        *(
            pods.build(subject, task, index, wiring.pod)
            for task in subject.tasks
            for index in range(task.size)
        ),
    ]


def without_keys(job: ObjectMeta, secret: KeySecret, kind: Kind = JOB) -> Raw:
    """The Secret with placeholders for the keys, which only a controller creates."""
    (manifest,) = secret_manifests(job, [secret], kind)
    return with_placeholders(manifest, secret)


def render_owner(
    kind: Kind, manifest: Raw, registry: Registry, settings: PluginSettings = DEFAULT
) -> list[Raw]:
    """The objects that the plugins want, and the pods as they would be stored; none for a template without plugins.

    A pod's name is its hostname, because the names that its controller gives are not known.

    Args:
        kind: Kind of the owner, one of those that plugins can wire.
        manifest: The owner. If it has no uid, references have one of zeros.
        registry: The job plugins.
        settings: What the cluster's operator has decided about plugins.

    Raises:
        RequestError: An annotation cannot be understood, or the plugins refuse the pods.
        PluginError: A plugin cannot wire a pod.
        UnknownKindError: A plugin wants an object of a kind that Pumice does not know.
    """
    stated: dict[str, Any] = {"namespace": "default", "uid": NO_UID} | (
        manifest.get("metadata") or {}
    )
    owner = msgspec.convert({**manifest, "metadata": stated}, OWNERS[kind])
    meta = ObjectMeta(name=stated["name"], namespace=stated["namespace"], uid=stated["uid"])
    made: list[Raw] = []
    for wired in OwnerWirings(registry, settings).of(owner):
        if wired.errors:
            raise RequestError("; ".join(wired.errors))
        made += owned(meta, wired.wiring.objects(), kind)
        made += [without_keys(meta, secret, kind) for secret in wired.wiring.secrets()]
        made += _pods(wired)
    return made


def _pods(wired: Wired) -> Iterator[Raw]:
    job = wired.pods.job
    for tasks in wired.pods.groups.values():
        for task in tasks:
            if task.template is not None:
                for index in range(task.size):
                    pod = _pod(job.metadata.namespace, task, index, job.labels or {})
                    if job.has_service:
                        pod["spec"]["subdomain"] = job.subdomain
                    # As in admission: a pod with this mark has been wired.
                    yield pod if is_wired(pod) else wired.wiring.pod(task, index, pod)


def _pod(namespace: str, task: OwnerTask, index: int, labels: dict[str, str]) -> Raw:
    """A pod as its controller is expected to create it."""
    template = task.pod_metadata()
    hostname = task.hostnames.at(index)
    metadata: Raw = {
        "name": hostname,
        "namespace": namespace,
        "labels": {**(template.get("labels") or {}), **labels, **(task.labels or {})},
        "annotations": {**(template.get("annotations") or {})},
    }
    spec = {**task.pod_spec(), "hostname": hostname}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
