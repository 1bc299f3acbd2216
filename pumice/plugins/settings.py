"""Settings of job plugins by the cluster's operator, not by a Job.

Flags of `pumice controller` and the chart's values set them. Plugins are pure code, so this is a plain dataclass;
pydantic is used only if the operator has set something.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import msgspec

from pumice.api.json_words import quoted
from pumice.api.meta import parse_bool
from pumice.api.setting_errors import SettingError, assigned

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


def _setting(default: Any, description: str, **limits: Any) -> Any:
    """A setting with its description, and its limits by pydantic's names."""
    metadata = {"description": description, "strict": True, **limits}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Settings of all plugins in this cluster."""

    __pydantic_config__: ClassVar = {
        "extra": "forbid",
        "alias_generator": lambda name: name.replace("_", "-"),
    }

    wait_image: str = _setting(
        "busybox:1.36.1",
        "Image of init containers that wait for other pods; it needs `sh` and one of `nc`, `bash` and `python3`.",
        min_length=1,
    )
    wait_resources: Mapping[str, Any] = _setting(
        _RESOURCES, "Their `resources`, as JSON; pods without them fail where a quota wants them."
    )
    wait_security_context: Mapping[str, Any] = _setting(
        _SECURITY_CONTEXT, "Their `securityContext`, as JSON."
    )
    strict_upstream: bool = _setting(
        False,
        "Wire pods as Volcano does, to the byte, also where Pumice does better, and count restarts as it does.",
    )

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> "PluginSettings":
        """Read `NAME=VALUE` texts, names with dashes as on the command line.

        Raises:
            SettingError: A text is not an assignment, or its name or value is invalid.
        """
        values = {name: _value(name, value) for name, value in map(assigned, assignments)}
        if not values:
            return DEFAULT
        from pumice.settings import read

        found: PluginSettings = read(cls, values)
        return found

    @classmethod
    def described(cls) -> dict[str, tuple[str, Any]]:
        """Description and default of each setting, by its name on the command line."""
        return {
            each.name.replace("_", "-"): (each.metadata["description"], getattr(DEFAULT, each.name))
            for each in fields(cls)
        }


def _value(name: str, text: str) -> Any:
    """A value in the spelling of people and of Go's flags; the text if it is not one.

    Raises:
        SettingError: The value must be JSON and is not.
    """
    if name in ("wait-resources", "wait-security-context"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            message = f"must be a JSON object, found {quoted(text)}: {error}"
            raise SettingError.of(message, name) from None
    chosen = parse_bool(text) if name == "strict-upstream" else None
    return text if chosen is None else chosen


DEFAULT = PluginSettings()
