"""Volumes as kubelet makes them of Secrets and ConfigMaps: links, modes, groups, and atomic updates.

The files lie in a folder that the link `..data` points to, and change all at once when that link does. With a
pod's `fsGroup` they are the group's, and it may read them: kubelet adds mode 0440 to what the volume says.
"""

from __future__ import annotations

import base64
import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["Objects", "Volume", "VolumeError", "data_of"]

Raw = dict[str, Any]
Objects = Callable[[str, str], Raw | None]
"""From kind and name to an object; None where there is none."""

MODE = 0o644
READABLE_BY_GROUP = 0o440
_versions = itertools.count(1)


class VolumeError(AssertionError):
    """A pod refers to something that is not there: kubelet would never start it."""


class Volume:
    """One volume of a pod.

    Args:
        manifest: The volume in the pod's spec.
        folder: Where it is made.
        group: The pod's `fsGroup`; None where it has none.
    """

    def __init__(self, manifest: Raw, folder: Path, group: int | None) -> None:
        self.folder = folder
        self._manifest = manifest
        self._group = group
        folder.mkdir(parents=True)

    def update(self, objects: Objects) -> None:
        """Show what the objects hold now.

        Raises:
            VolumeError: An object or a key is missing that is not optional.
        """
        if "emptyDir" in self._manifest:
            self.folder.chmod(0o777)
            return
        fresh = self.folder / f"..version_{next(_versions)}"
        fresh.mkdir()
        fresh.chmod(0o755)
        for path, (content, mode) in self._files(objects).items():
            file = fresh / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            self._own(file, mode)
        data, link = self.folder / "..data", self.folder / "..data_tmp"
        old = data.resolve() if data.exists() else None
        link.symlink_to(fresh.name)
        link.rename(data)
        names = {each.name for each in fresh.iterdir()}
        for each in list(self.folder.iterdir()):
            if not each.name.startswith("..") and each.name not in names:
                each.unlink()
        for name in names:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        if old is not None:
            shutil.rmtree(old)

    def _own(self, file: Path, mode: int) -> None:
        if self._group is None:
            file.chmod(mode)
            return
        os.chown(file, -1, self._group)
        file.chmod(mode | READABLE_BY_GROUP)

    def _files(self, objects: Objects) -> dict[str, tuple[bytes, int]]:
        """Contents and modes by path."""
        for key, kind, name in (
            ("secret", "Secret", "secretName"),
            ("configMap", "ConfigMap", "name"),
        ):
            if key in self._manifest:
                source = self._manifest[key]
                return _files(source, kind, source[name], objects, source.get("defaultMode", MODE))
        projected = self._manifest["projected"]
        mode = projected.get("defaultMode", MODE)
        found: dict[str, tuple[bytes, int]] = {}
        for source in projected["sources"]:
            ((key, part),) = source.items()
            kind = {"secret": "Secret", "configMap": "ConfigMap"}[key]
            found |= _files(part, kind, part["name"], objects, mode)
        return found


def data_of(made: Raw) -> dict[str, bytes]:
    """What a Secret or a ConfigMap holds."""
    found = {key: text.encode() for key, text in (made.get("stringData") or {}).items()}
    for key, text in (made.get("data") or {}).items():
        found.setdefault(key, base64.b64decode(text) if made["kind"] == "Secret" else text.encode())
    return found


def _files(
    source: Mapping[str, Any], kind: str, name: str, objects: Objects, mode: int
) -> dict[str, tuple[bytes, int]]:
    optional = source.get("optional", False)
    made = objects(kind, name)
    if made is None:
        if optional:
            return {}
        raise VolumeError(f"there is no {kind} {name}")
    data = data_of(made)
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    found = {}
    for item in items:
        if item["key"] in data:
            found[item["path"]] = (data[item["key"]], item.get("mode", mode))
        elif not optional:
            raise VolumeError(f"{kind} {name} has no key {item['key']}")
    return found
