"""A Job or a gang of a dump as a job of a trace: what is submitted again, without what the cluster has added to it."""

import msgspec

from pumice.api import keys, kinds
from pumice.api.kinds import JOB
from pumice.api.meta import Raw
from pumice.api.names import pod_group_name
from pumice.api.pods import PodSpec
from pumice.api.quantities import QuantityError, format_milli
from pumice.api.raw import key_in, object_in, objects_in, text_in
from pumice.api.requests import pod_requests
from pumice.traces.job_list import BadLineError, label
from pumice.traces.own_format import gang_size
from pumice.traces.past_times import Times, times_of_gang, times_of_job
from pumice.traces.trace import TraceJob

_SCHEDULER = "schedulerName"
_PLACING = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
"""Fields of a pod that say where it may run."""


def group_of_job(job: Raw) -> str:
    """The PodGroup of a Job, `namespace/name`."""
    return pod_group_name(key_in(job), text_in(object_in(job, "metadata"), "uid"))


def gang_of(pod: Raw) -> str:
    """The PodGroup of a pod, `namespace/name`; empty if it has none."""
    metadata = object_in(pod, "metadata")
    annotations = object_in(metadata, "annotations")
    name = text_in(annotations, keys.GROUP_NAME) or text_in(annotations, keys.GROUP_NAME_VOLCANO)
    return f"{text_in(metadata, 'namespace') or 'default'}/{name}" if name else ""


def is_of_job(group: Raw) -> bool:
    """Whether a Job owns a PodGroup: one that is not in the dump, if its PodGroup is not that of a Job there."""
    owners = objects_in(object_in(group, "metadata"), "ownerReferences")
    return any(kinds.of_object(owner) == JOB for owner in owners)


def trace_job_of_job(job: Raw, pods: list[Raw]) -> TraceJob | None:
    """A Job as it was submitted; None if it never started and names no duration.

    Raises:
        BadLineError: It cannot be read.
    """
    spec, metadata = object_in(job, "spec"), object_in(job, "metadata")
    replicas, gang = gang_size(spec)
    least = gang or replicas
    annotations = object_in(metadata, "annotations")
    described = {
        "labels": object_in(metadata, "labels"),
        "annotations": {
            name: each for name, each in annotations.items() if name != keys.LAST_APPLIED
        },
    }
    templates = [
        object_in(object_in(each, "template"), "spec") for each in objects_in(spec, "tasks")
    ]
    times = times_of_job(job, pods, least)
    wanted = _for_simulation(_without_retries(spec) if times.fails else spec)
    return _trace_job(
        job,
        times,
        manifest={**JOB.type_meta, "metadata": described, "spec": wanted},
        replicas=replicas,
        least=least,
        requests=_requests(templates[0]) if templates else {},
    )


def trace_job_of_gang(group: Raw, pods: list[Raw]) -> TraceJob | None:
    """A gang without a Job, as a Job with a task for each shape of its pods; None as for a Job.

    Raises:
        BadLineError: It cannot be read.
    """
    spec = object_in(group, "spec")
    least = spec.get("minMember")
    least = min(max(least if isinstance(least, int) else 1, 1), max(len(pods), 1))
    times = times_of_gang(group, pods, least)
    shapes: dict[bytes, tuple[Raw, int]] = {}
    for pod in pods:
        template = _template(object_in(pod, "spec"))
        encoded = msgspec.json.encode(template, order="sorted")
        shapes[encoded] = template, shapes.get(encoded, (template, 0))[1] + 1
    tasks: list[Raw] = [
        {"name": f"shape-{place}", "replicas": count, "template": {"spec": template}}
        for place, (_, (template, count)) in enumerate(sorted(shapes.items()), 1)
    ]
    wanted: Raw = {
        "minAvailable": least,
        "tasks": tasks,
        "queue": text_in(spec, "queue") or "default",
    }
    if name := text_in(spec, "priorityClassName"):
        wanted["priorityClassName"] = name
    if topology := object_in(spec, "networkTopology"):
        wanted["networkTopology"] = topology
    return _trace_job(
        group,
        times,
        manifest={**JOB.type_meta, "metadata": {}, "spec": wanted},
        replicas=max(len(pods), 1),
        least=least,
        requests=_requests(tasks[0]["template"]["spec"]) if tasks else {},
    )


def _trace_job(
    found: Raw, times: Times, *, manifest: Raw, replicas: int, least: int, requests: dict[str, str]
) -> TraceJob | None:
    if times.start is None and times.duration is None:
        return None
    metadata, spec = object_in(found, "metadata"), manifest["spec"]
    return TraceJob(
        name=text_in(metadata, "name"),
        submit=times.submit,
        duration=times.duration,
        queue=text_in(spec, "queue") or "default",
        namespace=label(text_in(metadata, "namespace")) or "default",
        priority=text_in(spec, "priorityClassName") or 0,
        replicas=replicas,
        min=least,
        requests=requests,
        manifest=manifest,
        fails=times.fails,
        scheduled=times.start,
    )


def _without_retries(spec: Raw) -> Raw:
    """The spec of a Job that failed, so that it fails once: the time that it took has its retries in it."""

    def kept(holder: Raw) -> Raw:
        policies = [
            each
            for each in objects_in(holder, "policies")
            if not text_in(each, "action").startswith("Restart")
            or each.get("event") == "PodEvicted"
        ]
        return holder | {"policies": policies}

    return kept(spec) | {"tasks": [kept(each) for each in objects_in(spec, "tasks")]}


def _for_simulation(spec: Raw) -> Raw:
    """The spec of a Job whose pods the simulated scheduler places, whatever its own is called."""
    tasks = []
    for each in objects_in(spec, "tasks"):
        template = object_in(each, "template")
        pod = {
            name: value for name, value in object_in(template, "spec").items() if name != _SCHEDULER
        }
        tasks.append(each | {"template": template | {"spec": pod}})
    return spec | {_SCHEDULER: keys.DEFAULT_SCHEDULER, "tasks": tasks}


def _template(spec: Raw) -> Raw:
    """What a pod requests and where it may run, as a pod of one container."""
    container: Raw = {"name": "main", "image": "busybox"}
    if requests := _requests(spec):
        container["resources"] = {"requests": requests, "limits": _devices(requests)}
    return {name: spec[name] for name in _PLACING if spec.get(name)} | {"containers": [container]}


def _devices(requests: dict[str, str]) -> dict[str, str]:
    """Requests of which Kubernetes wants the same limit."""
    return {name: each for name, each in requests.items() if "/" in name}


def _requests(spec: Raw) -> dict[str, str]:
    """What a pod requests, as quantities.

    Raises:
        BadLineError: It cannot be read.
    """
    try:
        amounts = pod_requests(msgspec.convert(spec, PodSpec))
    except (msgspec.ValidationError, QuantityError) as error:
        raise BadLineError(f"the requests of its pods: {error}") from None
    return {name: format_milli(each) for name, each in amounts.items() if name != "pods"}
