"""All objects that the controller would create for a Job, without a cluster."""

from collections.abc import Mapping

from pumice.api.kinds import JOB, Kind
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.jobs import job_group, pods
from pumice.controller.jobs.subject import read
from pumice.controller.jobs.volumes import wanted_claims
from pumice.controller.key_secrets import manifests, with_placeholders
from pumice.controller.objects import owned
from pumice.plugins import KeySecret, PluginSettings, Registry, Wiring
from pumice.plugins.settings import DEFAULT

__all__ = ["NO_UID", "render", "without_keys"]

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
    subject = read({**job, "apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": meta})
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
    (manifest,) = manifests(job, [secret], kind)
    return with_placeholders(manifest, secret)
