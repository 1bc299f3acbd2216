"""The Job of a flow, and the Command that ends it early.

The patch of a flow is merged into the spec of its JobTemplate. A scalar or a list of the patch replaces that of the template, maps are merged key by key, and null changes nothing. In some
lists items are identified by a key: an item of the patch is merged into, or replaces, the one with the same key, or is appended.
"""

from typing import Any

from pumice.api import keys
from pumice.api.kinds import COMMAND, JOB, JOB_FLOW
from pumice.api.meta import ObjectMeta, Raw
from pumice.controller.jobs.phases import TERMINATE_JOB
from pumice.controller.objects import controller_reference

_CONTAINERS = ("tasks.template.spec.containers", "tasks.template.spec.initContainers")


_MERGED = dict.fromkeys(("tasks", *_CONTAINERS), ("name",))
"""Lists whose items are merged by key."""


_REPLACED = {
    "tasks.template.spec.volumes": ("name",),
    "tasks.template.spec.tolerations": ("key",),
    "tasks.template.spec.hostAliases": ("ip",),
    **{f"{path}.env": ("name",) for path in _CONTAINERS},
    **{f"{path}.ports": ("containerPort",) for path in _CONTAINERS},
    **{f"{path}.volumeMounts": ("mountPath", "name") for path in _CONTAINERS},
}
"""Lists whose items are replaced as a whole: merged with another source, a volume or variable would have two sources."""


_KEYS = _MERGED | _REPLACED


_WHOLE = frozenset(
    (
        "affinity",
        "securityContext",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    )
)
"""Maps that are replaced as a whole, because their fields exclude or depend on each other."""


def made_from(namespace: str, name: str) -> str:
    """The value of labels that refer to a JobFlow or JobTemplate: `<namespace>.<name>`."""
    return f"{namespace}.{name}"


def job_of(job_flow: ObjectMeta, job_name: str, flow: Raw, template: Raw) -> Raw:
    """The manifest of a Job.

    Args:
        job_flow: Metadata of the JobFlow.
        job_name: Name of the Job.
        flow: The entry of `spec.flows`.
        template: The JobTemplate that the flow names; its own metadata is not copied.
    """
    namespace = job_flow.namespace
    origin = {
        keys.CREATED_BY_JOB_TEMPLATE: made_from(namespace, flow["name"]),
        keys.CREATED_BY_JOB_FLOW: made_from(namespace, job_flow.name),
    }
    patch = (flow.get("patch") or {}).get("jobSpec") or {}
    return {
        **JOB.type_meta,
        "metadata": {
            "name": job_name,
            "namespace": namespace,
            "labels": origin,
            "annotations": dict(origin),
            "ownerReferences": [controller_reference(job_flow, JOB_FLOW)],
        },
        "spec": merged(template.get("spec") or {}, patch),
    }


def termination_name(name: str, uid: str) -> str:
    """Name of the Command that terminates a Job; always the same, so that there is one at a time."""
    return f"{name}-terminate-{uid[:8]}"


def termination_of(job: ObjectMeta, job_flow: str) -> Raw:
    """The Command that terminates a Job."""
    target = controller_reference(job, JOB)
    return {
        **COMMAND.type_meta,
        "metadata": {
            "name": termination_name(job.name, job.uid),
            "namespace": job.namespace,
            "ownerReferences": [target],
        },
        "action": TERMINATE_JOB,
        "target": target,
        "reason": "JobFlowFailed",
        "message": f"JobFlow {job_flow} has failed",
    }


def merged(spec: Raw, patch: Raw) -> Raw:
    """The spec of a Job: that of its template with a patch."""
    return _merged(spec, patch, "")


def _merged(stored: Raw, patch: Raw, path: str) -> Raw:
    found = dict(stored)
    for key, value in patch.items():
        at = f"{path}.{key}" if path else key
        present = found.get(key)
        if value is None:
            continue
        if isinstance(value, dict) and isinstance(present, dict) and key not in _WHOLE:
            found[key] = _merged(present, value, at)
        elif isinstance(value, list) and isinstance(present, list) and at in _KEYS:
            found[key] = _items(present, value, at)
        else:
            found[key] = value
    return found


def _items(stored: list[Any], patch: list[Any], path: str) -> list[Any]:
    found = list(stored)
    for item in patch:
        at = _position(found, item, _KEYS[path])
        if at is None:
            found.append(item)
        elif path in _MERGED:
            found[at] = _merged(found[at], item, path)
        else:
            found[at] = item
    return found


def _position(items: list[Any], wanted: Any, keys: tuple[str, ...]) -> int | None:
    """Position of the item with the same key; the first key by which one is found decides."""
    for key in keys:
        value = _value(wanted, key)
        for at, item in enumerate(items):
            if value is not None and _value(item, key) == value:
                return at
    return None


def _value(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None
