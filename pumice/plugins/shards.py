"""Files for a Job's pods that one ConfigMap may be too small for.

Kubernetes takes 1 MiB a ConfigMap. What is larger is spread over several, `NAME`, `NAME-1`, `NAME-2` and so
on, which a projected volume puts together in one directory again; a pod cannot tell the difference. Those
after the first are optional, so that running pods follow a Job that shrinks and needs fewer. A file that
is too large by itself comes in parts, `KEY.0001`, `KEY.0002` and so on, which end where lines end:
`cat KEY.*` is the whole file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pumice.api.kinds import CONFIG_MAP
from pumice.plugins.manifests import manifest

__all__ = ["LIMIT", "config_maps", "first_of", "is_in_parts", "volume"]

LIMIT = 1_000_000
"""Bytes of keys and texts in a ConfigMap; Kubernetes takes 1 MiB, and the rest of the object needs room."""

Raw = dict[str, Any]
_SUFFIX = len(".0001")
_NUMBER = re.compile(r"[1-9]\d*", re.ASCII)


def config_maps(name: str, namespace: str, data: Mapping[str, str]) -> list[Raw]:
    """ConfigMaps that hold the data, in its order; one where it fits.

    Args:
        name: Name of the first one.
        namespace: Their namespace.
        data: Texts by key; ASCII, one record a line.
    """
    return [
        manifest(CONFIG_MAP, _name(name, number), namespace, data=shard)
        for number, shard in enumerate(_shards(data))
    ]


def first_of(name: str) -> str:
    """Name of the first ConfigMap where this can be the name of one of those after it; empty where not."""
    first, _, number = name.rpartition("-")
    return first if _NUMBER.fullmatch(number) else ""


def volume(name: str, manifests: Sequence[Raw]) -> Raw:
    """A volume of that name with everything that the ConfigMaps hold."""
    names = [each["metadata"]["name"] for each in manifests]
    if len(names) == 1:
        return {"name": name, "configMap": {"name": names[0]}}
    sources = [
        {"configMap": {"name": each, "optional": True} if number else {"name": each}}
        for number, each in enumerate(names)
    ]
    return {"name": name, "projected": {"sources": sources}}


def is_in_parts(key: str, size: int) -> bool:
    """Whether a text of so many bytes is too large for a ConfigMap of its own."""
    return len(key) + _SUFFIX + size > LIMIT


def _shards(data: Mapping[str, str]) -> list[dict[str, str]]:
    shards: list[dict[str, str]] = [{}]
    used = 0
    for key, text in data.items():
        for part, content in _parts(key, text).items():
            size = len(part) + len(content)
            if used + size > LIMIT and shards[-1]:
                shards.append({})
                used = 0
            shards[-1][part] = content
            used += size
    return shards


def _parts(key: str, text: str) -> dict[str, str]:
    if not is_in_parts(key, len(text)):
        return {key: text}
    most = LIMIT - len(key) - _SUFFIX
    parts: dict[str, str] = {}
    begin = 0
    while begin < len(text):
        end = begin + most
        if end < len(text):
            # A line longer than a ConfigMap has no end to cut at; none of ours comes near.
            end = text.rfind("\n", begin, end) + 1 or end
        parts[f"{key}.{len(parts) + 1:04}"] = text[begin:end]
        begin = end
    return parts


def _name(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name
