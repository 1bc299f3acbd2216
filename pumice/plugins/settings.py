"""Settings of job plugins: what a cluster's operator decides, as against what a Job asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DEFAULT", "PluginSettings"]

_RESOURCES = {
    "requests": {"cpu": "10m", "memory": "16Mi"},
    "limits": {"cpu": "100m", "memory": "32Mi"},
}
_SECURITY_CONTEXT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """What plugins take for granted in this cluster.

    Attributes:
        wait_image: Image of init containers that wait for other pods; it needs `sh` and `nc`.
        wait_resources: Their `resources`; pods without them fail where a quota wants them.
        wait_security_context: Their `securityContext`.
    """

    wait_image: str = "busybox:1.36.1"
    wait_resources: Mapping[str, Any] = field(default_factory=lambda: _RESOURCES)
    wait_security_context: Mapping[str, Any] = field(default_factory=lambda: _SECURITY_CONTEXT)


DEFAULT = PluginSettings()
