"""A container's environment, as a container runtime makes it."""

from __future__ import annotations

import re
from typing import Any

from tests.support.pods.volumes import Objects, VolumeError, data_of

__all__ = ["PATH", "command", "environment"]

Raw = dict[str, Any]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)", re.ASCII)


def environment(pod: Raw, container: Raw, home: str, objects: Objects) -> dict[str, str]:
    """Variables of the manifest in its order, after those of every container.

    Args:
        pod: The pod.
        container: One of its containers.
        home: The user's home.
        objects: ConfigMaps and Secrets.

    Raises:
        VolumeError: A variable comes from something that is not there.
    """
    found = {"PATH": PATH, "HOME": home, "HOSTNAME": pod["spec"].get("hostname", "")}
    for variable in container.get("env", ()):
        value = _value(pod, variable, objects)
        if value is not None:
            found[variable["name"]] = _expanded(value, found)
    return found


def command(container: Raw, known: dict[str, str]) -> list[str]:
    """The command with its arguments, variables filled in."""
    words = [*container["command"], *container.get("args", ())]
    return [_expanded(word, known) for word in words]


def _value(pod: Raw, variable: Raw, objects: Objects) -> str | None:
    source = variable.get("valueFrom")
    if source is None:
        return str(variable.get("value", ""))
    if "fieldRef" in source:
        found: Any = pod
        for step in source["fieldRef"]["fieldPath"].split("."):
            found = found[step]
        return str(found)
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            reference = source[key]
            made = objects(kind, reference["name"])
            data = data_of(made) if made is not None else {}
            if reference["key"] in data:
                return data[reference["key"]].decode()
            if reference.get("optional"):
                return None
            raise VolumeError(f"{variable['name']}: no {reference['key']} in {reference['name']}")
    raise VolumeError(f"{variable['name']}: cannot come from {source}")


def _expanded(text: str, known: dict[str, str]) -> str:
    """`$(NAME)` of a variable before it, `$$` for a dollar; what is not known stays."""

    def fill(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else known.get(match[1], match[0])

    return _REFERENCE.sub(fill, text)
