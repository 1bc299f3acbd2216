"""Volumes and mounts of a Job that conflict with those of a plugin.

The Job's own are kept, so the plugin's files are not at the documented paths. And nothing can be mounted inside a
read-only volume: such a container does not start.
"""

from collections.abc import Collection
from functools import lru_cache

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.meta import Raw
from pumice.api.raw import list_in, object_in, objects_in
from pumice.plugins.used_names import used_names

_CODE = "JOB-PLUGIN-KEPT"
_READ_ONLY = ("secret", "configMap", "projected", "downwardAPI", "image")


def kept_volume_warnings(
    job: Job,
    plugin: str,
    volume: str,
    paths: tuple[str, ...],
    *,
    tasks: Collection[str] | None = None,
    of_job: bool = True,
) -> list[FieldError]:
    """Warn about each volume and mount of the template that replaces a plugin's, or conflicts with it.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        volume: Name of the plugin's volume.
        paths: Paths at which it is mounted.
        tasks: Tasks that mount it; None for all.
        of_job: Check `spec.volumes` too.
    """
    places = _places(paths)
    warnings = []
    for number, claim in enumerate((job.spec.volumes or ()) if of_job else ()):
        if places.get(_identity(claim.mount_path)) == "":
            where = f"spec.volumes[{number}].mountPath"
            warnings.append(FieldError(where, _stays(claim.mount_path, plugin), _CODE))
    if not used_names(job).may_have(volume, places):
        return warnings
    for position, task in enumerate(job.tasks):
        if tasks is not None and task.name not in tasks:
            continue
        spec = task.pod_spec()
        found = [*_volumes(spec, plugin, volume), *_mounts(spec, plugin, places)]
        warnings += [
            FieldError(f"spec.tasks[{position}].template.spec.{where}", text, _CODE)
            for where, text in found
        ]
    return warnings


@lru_cache(maxsize=256)
def _places(paths: tuple[str, ...]) -> dict[str, str]:
    """The parent directories of some paths, each with the first path inside; the paths themselves have none."""
    places: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for end in range(1, len(parts)):
            places.setdefault("/".join(parts[:end]) or "/", path)
    return places | dict.fromkeys(map(_identity, paths), "")


def _identity(path: str) -> str:
    return path.rstrip("/") or "/"


def _stays(path: str, plugin: str) -> str:
    return f'"{path}" is the path of the files of plugin {plugin}, which are not mounted then; use another path'


def _volumes(spec: Raw, plugin: str, volume: str) -> list[tuple[str, str]]:
    found = []
    for number, each in enumerate(list_in(spec, "volumes")):
        if isinstance(each, dict) and each.get("name") == volume and not _is_same(each, volume):
            text = (
                f'volume "{volume}" is defined here and kept, with other files than those of plugin '
                f"{plugin}; use another name"
            )
            found.append((f"volumes[{number}].name", text))
    return found


def _is_same(volume: Raw, name: str) -> bool:
    """True if a volume has the same content as the plugin's, as in a manifest that was made from a wired pod."""
    of_map, of_secret = object_in(volume, "configMap"), object_in(volume, "secret")
    return "projected" in volume or name in (of_map.get("name"), of_secret.get("secretName"))


def _mounts(spec: Raw, plugin: str, places: dict[str, str]) -> list[tuple[str, str]]:
    found = []
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(list_in(spec, kind)):
            if not isinstance(container, dict):
                continue
            found += _devices(container, plugin, places, f"{kind}[{position}]")
            for number, mount in enumerate(list_in(container, "volumeMounts")):
                path = mount.get("mountPath") if isinstance(mount, dict) else None
                if not isinstance(path, str) or (inside := places.get(_identity(path))) is None:
                    continue
                if inside and not _is_read_only(spec, mount):
                    continue
                where = f"{kind}[{position}].volumeMounts[{number}].mountPath"
                found.append(
                    (where, _in_the_way(inside, plugin) if inside else _stays(path, plugin))
                )
    return found


def _devices(
    container: Raw, plugin: str, places: dict[str, str], where: str
) -> list[tuple[str, str]]:
    """Block devices at a plugin's paths."""
    return [
        (f"{where}.volumeDevices[{number}].devicePath", _stays(path, plugin))
        for number, device in enumerate(list_in(container, "volumeDevices"))
        if isinstance(device, dict)
        and isinstance(path := device.get("devicePath"), str)
        and places.get(_identity(path)) == ""
    ]


def _in_the_way(inside: str, plugin: str) -> str:
    return (
        f"plugin {plugin} mounts {inside} inside of this read-only volume, and a container starts only where "
        "there is something to mount it over; mount the volume elsewhere"
    )


def _is_read_only(spec: Raw, mount: Raw) -> bool:
    """True if nothing can be created in a mounted volume."""
    return mount.get("readOnly") is True or any(
        each.get("name") == mount.get("name") and any(key in each for key in _READ_ONLY)
        for each in objects_in(spec, "volumes")
    )
