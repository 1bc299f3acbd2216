"""Files for a Job's pods that may be too large for one ConfigMap.

A ConfigMap has at most 1 MiB. Larger data is divided into several, `NAME`, `NAME-1`, `NAME-2` and so on, and a
projected volume combines them in one directory. All but the first are optional, so that running pods keep working when
a Job shrinks and needs fewer. A file that is too large for one ConfigMap is divided at line ends into `KEY.0001`,
`KEY.0002` and so on: `cat KEY.*` is the whole file.
"""

import re
from collections.abc import Mapping, Sequence

from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import Raw
from pumice.plugins.interface import manifest

LIMIT = 1_000_000
"""Maximum size of keys and texts in a ConfigMap; Kubernetes takes 1 MiB, and the rest of the object needs space."""

_SUFFIX = len(".0001")
_NUMBER = re.compile(r"[1-9]\d*", re.ASCII)


def config_maps(name: str, namespace: str, data: Mapping[str, str]) -> list[Raw]:
    """ConfigMaps with the data in its order; one if it fits.

    Args:
        name: Name of the first one.
        namespace: Their namespace.
        data: Texts by key; ASCII, one record on each line.
    """
    return [
        manifest(CONFIG_MAP, _name(name, number), namespace, data=shard)
        for number, shard in enumerate(_shards(data))
    ]


def first_of(name: str) -> str:
    """Name of the first ConfigMap, if this may be the name of a later one; otherwise empty."""
    first, _, number = name.rpartition("-")
    return first if _NUMBER.fullmatch(number) else ""


def volume(name: str, manifests: Sequence[Raw]) -> Raw:
    """A volume with a name and the content of all ConfigMaps."""
    names = [each["metadata"]["name"] for each in manifests]
    if len(names) == 1:
        return {"name": name, "configMap": {"name": names[0]}}
    sources = [
        {"configMap": {"name": each, "optional": True} if number else {"name": each}}
        for number, each in enumerate(names)
    ]
    return {"name": name, "projected": {"sources": sources}}


def is_in_parts(key: str, size: int) -> bool:
    """True if a text with this number of bytes is too large for one ConfigMap."""
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
            # A line longer than a ConfigMap cannot be divided; Pumice writes none.
            end = text.rfind("\n", begin, end) + 1 or end
        parts[f"{key}.{len(parts) + 1:04}"] = text[begin:end]
        begin = end
    return parts


def _name(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name
