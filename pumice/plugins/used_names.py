"""Variables, volumes and paths that the templates of a Job use, for all tasks together.

Several plugins check every Job for conflicts with their own names, and there are rarely any. So the names are collected
once, as texts: searching a text for a few names costs less than building sets of hundreds.
"""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import ref

from pumice.api.jobs import Job

_MEMBERS = {name: itemgetter(name) for name in ("name", "mountPath", "devicePath")}


class UsedNames(NamedTuple):
    """Names that the templates use, one on each line.

    Attributes:
        variables: Names of environment variables.
        volumes: Names of volumes.
        paths: Mount paths and device paths, each followed by a slash.
        addresses: Whether a template sets `hostname` or `subdomain`.
    """

    variables: str
    volumes: str
    paths: str
    addresses: bool

    def may_set(self, names: Iterable[str]) -> bool:
        """False only if none of these variables is set."""
        return any(f"\n{name}\n" in self.variables for name in names)

    def may_set_any(self, prefix: str) -> bool:
        """False only if no container sets a variable whose name begins with this prefix."""
        return f"\n{prefix}" in self.variables

    def may_have(self, volume: str, paths: Iterable[str]) -> bool:
        """False only if there is no volume with a name and no mount at some paths."""
        return self.may_mount(paths) or f"\n{volume}\n" in self.volumes

    def may_mount(self, paths: Iterable[str]) -> bool:
        """False only if there is no mount at some paths."""
        return any(f"\n{path}/" in self.paths for path in paths)


class _Last:
    """Cache of the last Job: a review asks about ten times for the same one.

    The reference is weak, because a Job takes a hundred times the memory of this data.
    """

    found: tuple[Callable[[], Job | None], UsedNames] = lambda: None, UsedNames("", "", "", False)


def used_names(job: Job) -> UsedNames:
    """Names that the templates of a Job use; invalid entries are skipped."""
    known, found = _Last.found
    if known() is not job:
        found = _gathered(job)
        _Last.found = ref(job), found
    return found


def _gathered(job: Job) -> UsedNames:
    variables: list[Any] = []
    volumes: list[Any] = []
    mounts: list[Any] = []
    devices: list[Any] = []
    addresses = False
    for task in job.tasks:
        spec = task.pod_spec()
        addresses = addresses or "hostname" in spec or "subdomain" in spec
        if type(found := spec.get("volumes")) is list:
            volumes += found
        containers = spec.get("containers")
        if "initContainers" in spec:
            containers = [*_listed(containers), *_listed(spec["initContainers"])]
        for container in _listed(containers):
            if type(container) is dict:
                get = container.get
                if type(found := get("env")) is list:
                    variables += found
                if type(found := get("volumeMounts")) is list:
                    mounts += found
                if type(found := get("volumeDevices")) is list:
                    devices += found
    return UsedNames(
        _lines(variables, "name"),
        _lines(volumes, "name"),
        _lines(mounts, "mountPath", "/\n") + _lines(devices, "devicePath", "/\n"),
        addresses,
    )


def _listed(found: Any) -> list[Any]:
    return found if type(found) is list else []


def _lines(entries: list[Any], member: str, end: str = "\n") -> str:
    """A string member of every entry, one on each line, after an empty line."""
    try:
        found = end.join(map(_MEMBERS[member], entries))
    except (KeyError, TypeError):
        members = [each.get(member) for each in entries if isinstance(each, dict)]
        found = end.join(each for each in members if isinstance(each, str))
    return f"\n{found}{end}"
