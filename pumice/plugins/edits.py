"""Edits of a pod as data, and their application.

Rules for every edit:

- Existing values are kept. A variable, volume, mount, port, init container, label or annotation that the pod already
  has stays; only missing ones are added. (With `user_wins=False` a plugin's variable replaces the user's in place. In
  Volcano a second entry of the same name has this effect in a running container.)
- Injected variables stand before the user's, so that the user's can refer to them: `$(VC_TASK_INDEX)`.
- There are no duplicates: variables and volumes are identified by name, mounts by path, ports by number, init
  containers by name. So applying the same edits again changes nothing.
- Edits that Kubernetes would refuse in this pod are left out: an init container with the name of a container, and a
  mount at the path of a block device, or of a volume that is used as one.
- In a pod with `hostNetwork` only one container declares a port: each port is one of the node, and Kubernetes refuses
  duplicates.
- Fields that Pumice does not know are kept. The given pod is not changed; the result shares its unchanged parts, so
  pods may be built from a template by shallow copies.

A sidecar (an init container with `restartPolicy: Always`) counts as a container.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from pumice.api.meta import Raw
from pumice.api.raw import list_in, object_in, objects_in, text_in

_MAX_PORT = 65535
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EnvVar:
    """A variable of all containers.

    Attributes:
        name: Name of the variable.
        value: Its value.
        config_map: Name of the ConfigMap whose key of the variable's name holds the value, instead of `value`.
        init_containers: Whether init containers get it too.
    """

    name: str
    value: str = ""
    config_map: str = ""
    init_containers: bool = True

    def manifest(self) -> Raw:
        """The entry of `env`."""
        if self.config_map:
            reference = {"name": self.config_map, "key": self.name}
            return {"name": self.name, "valueFrom": {"configMapKeyRef": reference}}
        return {"name": self.name, "value": self.value}


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume mount for all containers, or for some; of two mounts at one path a container gets the first.

    Attributes:
        volume: Name of the volume.
        path: Where it is mounted.
        init_containers: Whether init containers get it too.
        sub_path: Path in the volume that is mounted; empty for the whole volume.
        containers: Names of the containers that get it; None for all.
    """

    volume: str
    path: str
    init_containers: bool = True
    sub_path: str = ""
    containers: frozenset[str] | None = None

    def manifest(self) -> Raw:
        """The entry of `volumeMounts`."""
        mount = {"name": self.volume, "mountPath": self.path}
        return {**mount, "subPath": self.sub_path} if self.sub_path else mount


@dataclass(frozen=True, slots=True)
class Port:
    """A port of all containers.

    Attributes:
        name: Name of the port; left out where the container has another port of that name.
        number: Port number.
        init_containers: Whether init containers get it too.
    """

    name: str
    number: int
    init_containers: bool = False


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """Edits of one container that is not an init container.

    Attributes:
        name: Its name. If the pod has one container, it is edited under any name.
        command: Its command, which replaces the existing one.
        ports: Ports to declare.
        by_name_only: Whether a single container with another name is not edited.
    """

    name: str
    command: Sequence[str] = ()
    ports: Sequence[Port] = ()
    by_name_only: bool = False


@dataclass(frozen=True, slots=True)
class PodEdits:
    """Edits of a pod by one or several plugins.

    Attributes:
        hostname: `spec.hostname` where the template sets none.
        subdomain: `spec.subdomain` where the template sets none.
        env: Variables, in their order.
        volumes: Entries of `spec.volumes`.
        mounts: Mounts of those volumes.
        ports: Ports to declare.
        containers: Edits of single containers.
        init_containers: Entries to append to `spec.initContainers`.
        labels: Labels of the pod.
        annotations: Annotations of the pod.
    """

    hostname: str = ""
    subdomain: str = ""
    env: Sequence[EnvVar] = ()
    volumes: Sequence[Mapping[str, Any]] = ()
    mounts: Sequence[Mount] = ()
    ports: Sequence[Port] = ()
    containers: Sequence[ContainerEdits] = ()
    init_containers: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


_FIELDS = tuple(each.name for each in fields(PodEdits))


def merge(edits: Iterable[PodEdits]) -> PodEdits:
    """All edits as one, in the given order; of two edits of the same thing the earlier one wins."""
    merged: dict[str, Any] = {}
    for each in edits:
        for name in _FIELDS:
            value = getattr(each, name)
            if not value:
                continue
            earlier = merged.get(name)
            if earlier is None:
                merged[name] = value
            elif isinstance(value, Mapping):
                merged[name] = {**value, **earlier}
            elif not isinstance(value, str):
                merged[name] = (*earlier, *value)
    return PodEdits(**merged)


def apply(pod: Raw, edits: PodEdits, *, user_wins: bool = True) -> Raw:
    """Apply edits to a pod; returns the same object if nothing is missing.

    Args:
        pod: A pod as raw JSON.
        edits: The edits.
        user_wins: Whether a variable that the pod sets itself keeps its value.
    """
    spec = _spec(object_in(pod, "spec"), edits, user_wins)
    metadata = object_in(pod, "metadata")
    metadata = _with_keys(metadata, "labels", edits.labels)
    metadata = _with_keys(metadata, "annotations", edits.annotations)
    return _with(_with(pod, "metadata", metadata), "spec", spec)


def _spec(spec: Raw, edits: PodEdits, user_wins: bool) -> Raw:
    if edits.hostname and not spec.get("hostname"):
        spec = {**spec, "hostname": edits.hostname}
    if edits.subdomain and not spec.get("subdomain"):
        spec = {**spec, "subdomain": edits.subdomain}
    of_node = _NodePorts(spec) if spec.get("hostNetwork") is True else None
    spec = _single_containers(spec, edits.containers, of_node)
    spec = _with_items(spec, "volumes", edits.volumes, _name, _copied)
    if edits.init_containers:
        taken = {_name(each) for each in list_in(spec, "containers")}
        wanted = [each for each in edits.init_containers if _name(each) not in taken]
        spec = _with_items(spec, "initContainers", wanted, _name, _copied)
    for key in ("containers", "initContainers"):
        containers = list_in(spec, key)
        edited = [
            _container(
                each,
                edits,
                user_wins,
                init=key == "initContainers" and not _sidecar(each),
                of_node=of_node,
            )
            for each in containers
        ]
        if any(new is not old for new, old in zip(edited, containers, strict=True)):
            spec = {**spec, key: edited}
    return spec


class _NodePorts:
    """Ports that the containers of a pod with `hostNetwork` have declared."""

    def __init__(self, spec: Raw) -> None:
        self._numbers = {
            port.get("containerPort")
            for key in ("containers", "initContainers")
            for container in list_in(spec, key)
            for port in objects_in(container, "ports")
        }

    def free(self, wanted: Iterable[Port]) -> list[Port]:
        """The ports that are not declared yet; they count as declared afterwards."""
        found = [each for each in wanted if _int32(each.number) not in self._numbers]
        self._numbers.update(_int32(each.number) for each in found)
        return found


def _single_containers(
    spec: Raw, wanted: Sequence[ContainerEdits], of_node: _NodePorts | None
) -> Raw:
    commanded: set[int] = set()
    for each in wanted:
        containers = list_in(spec, "containers")
        position = meant(containers, each.name, by_name_only=each.by_name_only)
        if position is None:
            continue
        old = containers[position]
        new = _with_ports(old, each.ports if of_node is None else of_node.free(each.ports))
        if each.command and position not in commanded:
            commanded.add(position)
            if new.get("command") != list(each.command):
                new = {**new, "command": list(each.command)}
        if new is not old:
            edited = [*containers[:position], new, *containers[position + 1 :]]
            spec = {**spec, "containers": edited}
    return spec


def meant(containers: Sequence[Any], name: str, *, by_name_only: bool = False) -> int | None:
    """Position of the container with a name, or of the only container."""
    for position, container in enumerate(containers):
        if isinstance(container, dict) and container.get("name") == name:
            return position
    if by_name_only or len(containers) != 1 or not isinstance(containers[0], dict):
        return None
    return 0


def _container(
    container: Any, edits: PodEdits, user_wins: bool, *, init: bool, of_node: _NodePorts | None
) -> Any:
    if not isinstance(container, dict):
        return container
    env = [each for each in edits.env if each.init_containers or not init]
    container = _with_env(container, env, user_wins)
    mounts = [
        each
        for each in edits.mounts
        if (each.init_containers or not init)
        and (each.containers is None or _name(container) in each.containers)
    ]
    if devices := list_in(container, "volumeDevices"):
        names = {_name(each) for each in devices}
        paths = {_path(each, "devicePath") for each in devices}
        mounts = [
            each
            for each in mounts
            if each.volume not in names and (each.path.rstrip("/") or "/") not in paths
        ]
    container = _with_items(container, "volumeMounts", mounts, _mount_path, Mount.manifest)
    ports = [each for each in edits.ports if each.init_containers or not init]
    return _with_ports(container, ports if of_node is None else of_node.free(ports))


def _with_env(container: Raw, wanted: Sequence[EnvVar], user_wins: bool) -> Raw:
    present = list_in(container, "env")
    names = {_name(each) for each in present}
    kept = present
    if not user_wins:
        kept = _replaced(present, {each.name: each.manifest() for each in reversed(wanted)})
    injected = []
    for each in wanted:
        if each.name not in names:
            names.add(each.name)
            injected.append(each.manifest())
    if not injected and kept is present:
        return container
    return {**container, "env": [*injected, *kept]}


def _replaced(present: list[Any], wanted: Mapping[str, Raw]) -> list[Any]:
    replaced = [wanted.get(_name(each), each) for each in present]
    return present if replaced == present else replaced


def _with_ports(container: Raw, wanted: Sequence[Port]) -> Raw:
    present = list_in(container, "ports")
    numbers = [each.get("containerPort") for each in objects_in(container, "ports")]
    names = {_name(each) for each in present}
    added = []
    for each in wanted:
        number = _int32(each.number)
        if number in numbers:
            continue
        port: Raw = {"containerPort": number}
        if each.name and each.name not in names:
            port = {"name": each.name, **port}
        numbers.append(number)
        names.add(each.name)
        added.append(port)
    return {**container, "ports": [*present, *added]} if added else container


def _int32(number: int) -> int:
    """A number cut to 32 bits, which is what Volcano declares for an invalid port."""
    return number if 0 <= number <= _MAX_PORT else (number + 2**31) % 2**32 - 2**31


def _with_items(
    owner: Raw,
    key: str,
    wanted: Sequence[T],
    identity: Callable[[Any], str],
    manifest: Callable[[T], Any],
) -> Raw:
    """The owner with every wanted item appended to a list, without duplicates."""
    if not wanted:
        return owner
    present = list_in(owner, key)
    known = {identity(each) for each in present}
    added = []
    for each in wanted:
        entry = manifest(each)
        if identity(entry) not in known:
            known.add(identity(entry))
            added.append(entry)
    return {**owner, key: [*present, *added]} if added else owner


def _copied(value: Any) -> Any:
    """A deep copy of a JSON value; pods share no mutable values. It takes a third of the time of `deepcopy`."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _with_keys(metadata: Raw, key: str, wanted: Mapping[str, str] | None) -> Raw:
    present = object_in(metadata, key)
    missing = {name: value for name, value in (wanted or {}).items() if name not in present}
    return {**metadata, key: {**present, **missing}} if missing else metadata


def _with(owner: Raw, key: str, value: Raw) -> Raw:
    return owner if value is owner.get(key) or not value else {**owner, key: value}


def _sidecar(container: Any) -> bool:
    return isinstance(container, dict) and container.get("restartPolicy") == "Always"


def _name(item: Any) -> str:
    return text_in(item, "name")


def _mount_path(mount: Any) -> str:
    return _path(mount, "mountPath")


def _path(item: Any, member: str) -> str:
    path = text_in(item, member)
    return path and (path.rstrip("/") or "/")
