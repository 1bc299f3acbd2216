"""Settings of job plugins: what a cluster's operator decides, as against what a Job asks for.

Flags of `pumice controller` and the chart's values end here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from pumice.api.fields import did_you_mean
from pumice.plugins import words

__all__ = ["DEFAULT", "DESCRIPTIONS", "PluginSettingError", "PluginSettings"]

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

DESCRIPTIONS = {
    "wait-image": "Image of init containers that wait for other pods; it needs `sh` and one of `nc`, `bash` and `python3`.",
    "wait-resources": "Their `resources`, as JSON; pods without them fail where a quota wants them.",
    "wait-security-context": "Their `securityContext`, as JSON.",
    "strict-upstream": "Wire pods as Volcano does, to the byte, also where Pumice does better, and count restarts as it does.",
}
"""What each setting is for, by its name on the command line."""


class PluginSettingError(ValueError):
    """A setting that does not exist or has no such value; the message is one clear line."""


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """What plugins take for granted in this cluster.

    Attributes:
        wait_image: Image of init containers that wait for other pods; it needs `sh` and one of `nc`, `bash` and `python3`.
        wait_resources: Their `resources`; pods without them fail where a quota wants them.
        wait_security_context: Their `securityContext`.
        strict_upstream: Whether to give Volcano's result where Pumice's is better.
    """

    wait_image: str = "busybox:1.36.1"
    wait_resources: Mapping[str, Any] = field(default_factory=lambda: _RESOURCES)
    wait_security_context: Mapping[str, Any] = field(default_factory=lambda: _SECURITY_CONTEXT)
    strict_upstream: bool = False

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> "PluginSettings":
        """Read `NAME=VALUE` texts, names with dashes as on the command line.

        Raises:
            PluginSettingError: A text is no assignment, or its name or value is not known.
        """
        values: dict[str, Any] = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            name = name.strip()
            if not equals:
                raise PluginSettingError(f"{assignment!r} is no setting, expected NAME=VALUE")
            if name not in DESCRIPTIONS:
                hint = did_you_mean(name, DESCRIPTIONS) or f", known are {', '.join(DESCRIPTIONS)}"
                raise PluginSettingError(f"there is no setting {name!r}{hint}")
            values[name.replace("-", "_")] = _read(name, value.strip())
        return cls(**values)

    def as_defaults(self) -> dict[str, Any]:
        """The values by name on the command line, as the settings page shows them."""
        return {each.name.replace("_", "-"): getattr(self, each.name) for each in fields(self)}


def _read(name: str, value: str) -> Any:
    if name == "strict-upstream":
        chosen = words.boolean(value)
        if chosen is None:
            raise PluginSettingError(f"setting {name}: expected true or false, found {value!r}")
        return chosen
    if name == "wait-image":
        if not value:
            raise PluginSettingError(f"setting {name}: expected an image, found none")
        return value
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise PluginSettingError(
            f"setting {name}: expected a JSON object, found {value!r} ({error})"
        ) from None


DEFAULT = PluginSettings()
