"""Accelerators: which resources are GPUs and their like, and how many a pod asks for."""

from pumice.api.jobs import Task
from pumice.api.quantities import MILLI, QuantityError, parse_milli

__all__ = ["accelerators", "cpus", "is_accelerator"]

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
# Shares of a device stand beside the devices: `huawei.com/Ascend910-memory`, `cambricon.com/mlu.smlu.vcore`.
_SHARES = ("memory", "vcore", "cores")


def is_accelerator(resource: str) -> bool:
    """Whether a resource counts accelerators, each of which wants a process of its own."""
    name = resource.lower()
    if name in _KNOWN or name.endswith("/gpu"):
        return True
    return name.startswith(_PREFIXES) and not name.endswith(_SHARES)


def accelerators(task: Task) -> int:
    """Accelerators that the containers of one pod of a task ask for, all of them together."""
    return sum(
        amount
        for resources in _containers(task)
        for name, amount in resources.items()
        if is_accelerator(name)
    )


def cpus(task: Task) -> int:
    """Whole CPUs that the containers of one pod of a task ask for; a rest does not count."""
    return sum(resources.get("cpu", 0) for resources in _containers(task, milli=True)) // MILLI


def _containers(task: Task, *, milli: bool = False) -> list[dict[str, int]]:
    """Amounts of each container that is no init container: requests, where they lack limits."""
    containers = task.pod_spec().get("containers")
    found = []
    for container in containers if isinstance(containers, list) else ():
        resources = container.get("resources") if isinstance(container, dict) else None
        if not isinstance(resources, dict):
            continue
        amounts: dict[str, int] = {}
        for which in ("limits", "requests"):
            given = resources.get(which)
            for name, value in (given if isinstance(given, dict) else {}).items():
                try:
                    amount = parse_milli(value)
                except (QuantityError, TypeError):
                    continue
                amounts[name] = amount if milli else amount // MILLI
        found.append(amounts)
    return found
