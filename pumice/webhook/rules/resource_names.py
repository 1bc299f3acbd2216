"""Names of resources: which are counted in whole numbers, and which look misspelt."""

from difflib import SequenceMatcher
from functools import lru_cache

from pumice.api.fields import did_you_mean

__all__ = ["is_integer", "misspelt"]

_COUNTED = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
_MEASURED = frozenset({"cpu", "ephemeral-storage", "memory", "storage"})
_EXTENDED = (
    "amd.com/gpu",
    "huawei.com/Ascend910",
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "rdma/hca",
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
    "volcano.sh/vgpu-cores",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-number",
)
_ALIKE = 0.9
"""Share of common characters above which two vendor names are taken for one, misspelt."""


def is_integer(name: str) -> bool:
    """Whether amounts of a resource are whole numbers: counted objects and extended resources.

    Source: webhook specification, section 10.3.
    """
    if name in _COUNTED or name.startswith("count/"):
        return True
    return "/" in name and "kubernetes.io/" not in name


@lru_cache(maxsize=1024)
def misspelt(name: str) -> str:
    """A hint at the name that was probably meant, or an empty text."""
    if name in _COUNTED or name in _MEASURED or name in _EXTENDED:
        return ""
    if "/" in name:
        return did_you_mean(name, _EXTENDED) if _is_near_extended(name) else ""
    if name.startswith(("hugepages-", "requests.", "limits.")):
        return ""
    return did_you_mean(name, [*_COUNTED, *_MEASURED]) or " (no such resource is built in)"


def _is_near_extended(name: str) -> bool:
    """Whether a vendor's name is nearly a known one; other vendors may call theirs as they like."""
    return any(SequenceMatcher(None, name, known).ratio() >= _ALIKE for known in _EXTENDED)
