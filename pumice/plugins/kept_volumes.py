"""Volumes and mounts that a Job has already where a plugin would put its own.

What the Job has stays, so the plugin's files are not where its variables and its documentation say. And
nothing can be mounted inside of a volume that is read-only: such a container does not start.
"""

from collections.abc import Collection, Iterator, Sequence
from posixpath import normpath
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job

__all__ = ["kept_volume_warnings"]

_CODE = "JOB-PLUGIN-KEPT"
_READ_ONLY = ("secret", "configMap", "projected", "downwardAPI", "image")

Raw = dict[str, Any]


def kept_volume_warnings(
    job: Job,
    plugin: str,
    volume: str,
    paths: Sequence[str],
    *,
    tasks: Collection[str] | None = None,
    of_job: bool = True,
) -> list[FieldError]:
    """Warn about each volume and mount that stays in a plugin's place, or in its way.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        volume: Name of the plugin's volume.
        paths: Where it is mounted.
        tasks: Tasks in which it is; None for all.
        of_job: Whether to look at `spec.volumes` too.
    """
    wanted = [normpath(path) for path in paths]
    warnings = _of_job(job, plugin, wanted) if of_job else []
    for position, task in enumerate(job.tasks):
        if tasks is not None and task.name not in tasks:
            continue
        spec = task.pod_spec()
        where = f"spec.tasks[{position}].template.spec"
        warnings += _volumes(spec, plugin, volume, where)
        for mount, path, is_read_only in _mounts(spec):
            if path in wanted:
                text = _stays(path, plugin)
            elif is_read_only and (inside := _first_inside(path, wanted)):
                text = (
                    f"plugin {plugin} mounts {inside} inside of this read-only volume, and a container starts "
                    "only where there is something to mount it over; mount the volume elsewhere"
                )
            else:
                continue
            warnings.append(FieldError(f"{where}.{mount}.mountPath", text, _CODE))
    return warnings


def _of_job(job: Job, plugin: str, wanted: Sequence[str]) -> list[FieldError]:
    return [
        FieldError(f"spec.volumes[{number}].mountPath", _stays(path, plugin), _CODE)
        for number, each in enumerate(job.spec.volumes or ())
        if (path := normpath(each.mount_path)) in wanted
    ]


def _stays(path: str, plugin: str) -> str:
    return f'"{path}" is where plugin {plugin} puts its files, which are left out then; mount this elsewhere'


def _volumes(spec: Raw, plugin: str, volume: str, where: str) -> list[FieldError]:
    return [
        FieldError(
            f"{where}.volumes[{number}].name",
            f'volume "{volume}" is defined here and stays so, with other files than those of plugin {plugin}; '
            "give it another name",
            _CODE,
        )
        for number, each in enumerate(_list(spec, "volumes"))
        if isinstance(each, dict) and each.get("name") == volume and not _is_same(each, volume)
    ]


def _is_same(volume: Raw, name: str) -> bool:
    """Whether a volume shows what the plugin's would, as in a manifest that was made of a wired pod."""
    source = {key: value for key, value in volume.items() if key != "name"}
    config_map, secret = source.get("configMap"), source.get("secret")
    return "projected" in source or (
        (isinstance(config_map, dict) and config_map.get("name") == name)
        or (isinstance(secret, dict) and secret.get("secretName") == name)
    )


def _mounts(spec: Raw) -> Iterator[tuple[str, str, bool]]:
    """Where each mount stands, its path, and whether nothing can be written below it."""
    read_only: frozenset[Any] | None = None
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(_list(spec, kind)):
            mounts = container.get("volumeMounts") if isinstance(container, dict) else None
            for number, mount in enumerate(mounts if isinstance(mounts, list) else ()):
                path = mount.get("mountPath") if isinstance(mount, dict) else None
                if not isinstance(path, str) or not path:
                    continue
                if read_only is None:
                    read_only = _read_only(spec)
                is_read_only = mount.get("readOnly") is True or str(mount.get("name")) in read_only
                yield f"{kind}[{position}].volumeMounts[{number}]", normpath(path), is_read_only


def _read_only(spec: Raw) -> frozenset[Any]:
    return frozenset(
        str(each.get("name"))
        for each in _list(spec, "volumes")
        if isinstance(each, dict) and any(key in each for key in _READ_ONLY)
    )


def _first_inside(path: str, wanted: Sequence[str]) -> str:
    inside = path if path.endswith("/") else f"{path}/"
    return next((each for each in wanted if each.startswith(inside)), "")


def _list(owner: Raw, key: str) -> list[Any]:
    value = owner.get(key)
    return value if isinstance(value, list) else []
