"""The files of volumes, as kubelet makes them of ConfigMaps, Secrets and the downward API, and where containers see them.

Pure: a pod and the objects that it names in, contents and modes out. With a pod's `fsGroup` files are the group's,
and it may read them: kubelet adds mode 0440 to what the volume says.
"""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pumice.api.meta import Raw
from pumice.api.quantities import parse_milli
from pumice.embedded.node.environment import (
    MissingObjectError,
    Objects,
    data_of,
    expanded,
    field_of,
    resource_of,
)

Files = dict[str, tuple[bytes, int]]
"""Contents and modes by path."""

_MODE = 0o644
_READABLE_BY_GROUP = 0o440
_MAKES = {"DirectoryOrCreate": "folder", "FileOrCreate": "file"}
FILES_OF = ("configMap", "secret", "downwardAPI", "projected")
"""Kinds of volumes that are files."""


@dataclass(frozen=True, slots=True)
class ContainerMount:
    """A volume as one container sees it; `Root.show` in the node's namespaces reads it.

    Attributes:
        volume: Name of the volume.
        base: Folder of the machine, of `--allow-host-path`; empty for one of the pod's own.
        own: Folder of the pod.
        path: Path below it.
        target: Path in the container.
        is_folder: Whether it is a folder.
        is_read_only: Whether the container may only read it.
        makes: `file` or `folder` if it is made where it is missing.
    """

    volume: str
    base: str
    own: str
    path: str
    target: str
    is_folder: bool
    is_read_only: bool
    makes: str = ""


def files_of(pod: Raw, volume: Raw, objects: Objects, room: Mapping[str, str]) -> Files:
    """The files of a volume.

    Raises:
        MissingObjectError: An object or a key is missing that is not optional.
    """
    if volume.get("projected"):
        projected = volume["projected"]
        mode = projected.get("defaultMode", _MODE)
        found: Files = {}
        for source in projected.get("sources") or ():
            for kind, part in source.items():
                found |= _part(pod, kind, part or {}, mode, objects, room)
    else:
        kind = next(each for each in FILES_OF if each in volume)
        part = volume[kind] or {}
        found = _part(pod, kind, part, part.get("defaultMode", _MODE), objects, room)
    if (pod["spec"].get("securityContext") or {}).get("fsGroup") is None:
        return found
    return {path: (content, mode | _READABLE_BY_GROUP) for path, (content, mode) in found.items()}


def size_of(limit: object, most: int) -> int:
    """How many bytes a volume or a container may hold, with a limit that is a quantity or None."""
    asked = parse_milli(str(limit)) // 1000 if limit is not None else 0
    return min(asked, most) if asked > 0 else most


def host_path(path: str, allowed: Sequence[Path]) -> tuple[Path, str] | None:
    """The allowed folder in which a path of the machine lies, and the path below it; None if it lies in none."""
    wanted = Path(posixpath.normpath(path))
    for folder in allowed:
        if wanted.is_relative_to(folder):
            below = str(wanted.relative_to(folder))
            return folder, "" if below == "." else below
    return None


def mounts_of(
    pod: Raw,
    container: Raw,
    allowed: Sequence[Path],
    variables: Mapping[str, str],
    files: Mapping[str, Files],
) -> list[ContainerMount]:
    """Where a container sees volumes, the outer ones first.

    Args:
        pod: The pod.
        container: One of its containers.
        allowed: Folders of the machine in which a `hostPath` may lie.
        variables: The container's variables, for `subPathExpr`.
        files: The files of each volume that has some.

    Raises:
        MissingObjectError: A mount names no volume of the pod, or a path out of it.
    """
    volumes = pod["spec"].get("volumes") or ()
    numbers = {each["name"]: number for number, each in enumerate(volumes)}
    found = []
    for mount in container.get("volumeMounts") or ():
        name = mount["name"]
        if name not in numbers:
            raise MissingObjectError(f"there is no volume {name}")
        volume = volumes[numbers[name]]
        path = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", variables)
        if path.startswith("/") or ".." in path.split("/"):
            raise MissingObjectError(f"path {path} leads out of volume {name}")
        base, own, makes = "", f"volumes/{numbers[name]}", "folder" if path else ""
        is_folder = not path or path not in files.get(name, {})
        if volume.get("hostPath"):
            own, (base, path, is_folder, makes) = "", _of_machine(volume["hostPath"], path, allowed)
        elif name in files:
            makes = ""
        is_read_only = name in files or bool(mount.get("readOnly"))
        target = posixpath.normpath(f"/{mount['mountPath']}")
        found.append(ContainerMount(name, base, own, path, target, is_folder, is_read_only, makes))
    return sorted(found, key=lambda each: each.target.count("/"))


def _of_machine(source: Raw, below: str, allowed: Sequence[Path]) -> tuple[str, str, bool, str]:
    lies = host_path(source["path"], allowed)
    if lies is None:
        raise MissingObjectError(f"hostPath {source['path']} is below no --allow-host-path")
    folder, path = lies
    path = posixpath.join(path, below) if below else path
    kind = source.get("type") or ""
    is_folder = not (folder / path).is_file() and kind not in ("File", "FileOrCreate")
    return str(folder), path, is_folder, _MAKES.get(kind, "")


def _part(
    pod: Raw, kind: str, source: Raw, mode: int, objects: Objects, room: Mapping[str, str]
) -> Files:
    """The files of one source."""
    if kind == "downwardAPI":
        return {
            _safe(item["path"]): (_field(pod, item, room).encode(), item.get("mode", mode))
            for item in source.get("items") or ()
        }
    if kind == "secret":
        return _entries(
            "Secret", source.get("secretName") or source.get("name"), source, mode, objects
        )
    if kind == "configMap":
        return _entries("ConfigMap", source.get("name"), source, mode, objects)
    raise MissingObjectError(f"projected source {kind} is not there on this node")


def _field(pod: Raw, item: Raw, room: Mapping[str, str]) -> str:
    if item.get("fieldRef"):
        return field_of(pod, item["fieldRef"]["fieldPath"])
    return resource_of(pod["spec"]["containers"], {}, item["resourceFieldRef"], room)


def _entries(kind: str, name: str | None, source: Raw, mode: int, objects: Objects) -> Files:
    optional = source.get("optional", False)
    made = objects(kind, name or "")
    if made is None:
        if optional:
            return {}
        raise MissingObjectError(f"there is no {kind} {name}")
    data = data_of(made)
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    found = {}
    for item in items:
        if item["key"] in data:
            found[_safe(item["path"])] = (data[item["key"]], item.get("mode", mode))
        elif not optional:
            raise MissingObjectError(f"{kind} {name} has no key {item['key']}")
    return found


def path_problem(path: str) -> str | None:
    """What is wrong with a path of a file in a volume."""
    if path.startswith(("/", "..")) or ".." in path.split("/") or "\0" in path:
        return f"path {path!r} is none in a volume; expected one without a first / or .., without .. and NUL"
    return None


def _safe(path: str) -> str:
    if problem := path_problem(path):
        raise MissingObjectError(problem)
    return path
