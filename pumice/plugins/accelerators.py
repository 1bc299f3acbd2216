"""Accelerators: which resources are GPUs or similar devices, and how many a pod requests."""

from collections.abc import Collection, Iterator
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.api.quantities import MILLI, QuantityError, parse_milli
from pumice.api.raw import list_in, object_in

_KNOWN = frozenset(
    {
        "amd.com/gpu",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        "enflame.com/gcu",
        "google.com/tpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "hygon.com/dcu",
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "volcano.sh/gpu-number",
        "volcano.sh/vgpu-number",
    }
)
_PREFIXES = ("nvidia.com/mig-", "huawei.com/ascend", "cambricon.com/mlu")
# Resources for shares of a device, in addition to the devices: `huawei.com/Ascend910-memory`, `cambricon.com/mlu.smlu.vcore`.
_SHARES = ("memory", "vcore", "cores")


def is_accelerator(resource: str) -> bool:
    """True if a resource counts accelerators, each of which needs a process of its own."""
    name = resource.lower()
    if name in _KNOWN or name.endswith("/gpu"):
        return True
    return name.startswith(_PREFIXES) and not name.endswith(_SHARES)


def accelerators(task: Task) -> int:
    """Number of accelerators that one pod of a task requests, over all containers including sidecars.

    Devices of resource claims are not counted, because the claim is another object.
    """
    spec = task.pod_spec()
    everywhere = [
        *list_in(spec, "containers"),
        *filter(_keeps_running, list_in(spec, "initContainers")),
    ]
    return sum(
        amount // MILLI
        for container in everywhere
        for name, amount in _amounts(container)
        if is_accelerator(name)
    )


def cpus(task: Task) -> int:
    """Whole CPUs that one pod of a task requests: of the pod as a whole, or of its containers together.

    Fractions are dropped, and sidecars do not count.
    """
    spec = task.pod_spec()
    of_pod = dict(_amounts(spec)).get("cpu")
    if of_pod is not None:
        return of_pod // MILLI
    containers = list_in(spec, "containers")
    return sum(dict(_amounts(each)).get("cpu", 0) for each in containers) // MILLI


def claim_warnings(job: Job, tasks: Collection[str], outcome: str) -> list[FieldError]:
    """Warn about pods that get devices only by resource claims, whose number is not known here.

    Args:
        job: The Job.
        tasks: Tasks in whose pods accelerators are counted.
        outcome: The consequence, and what to do about it.
    """
    return [
        FieldError(
            f"spec.tasks[{position}].template.spec.resourceClaims",
            f"devices of resource claims are not counted, so {outcome}",
            "JOB-PLUGIN-ARGUMENT",
        )
        for position, task in enumerate(job.tasks)
        if task.name in tasks and task.pod_spec().get("resourceClaims") and not accelerators(task)
    ]


def _amounts(owner: Any) -> Iterator[tuple[str, int]]:
    """Quantities of a container or a pod in milli-units: requests, completed by limits."""
    resources = object_in(owner, "resources")
    found = object_in(resources, "limits") | object_in(resources, "requests")
    for name, value in found.items():
        try:
            yield name, parse_milli(value)
        except (QuantityError, TypeError):
            continue


def _keeps_running(container: Any) -> bool:
    return isinstance(container, dict) and container.get("restartPolicy") == "Always"
