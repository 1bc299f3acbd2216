"""What a pod asks for that processes on this machine do not have: each refused with what would help.

Pure: the spec of a pod in, problems out. A field that changes only where or how images are had, or how other components treat
the pod, is no demand on the node.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.meta import Raw
from pumice.embedded.node.environment import Objects
from pumice.embedded.node.namespaces import Mode
from pumice.embedded.node.volumes import FILES_OF, host_path, path_problem

CODE = "RUN-UNSUPPORTED"

CAPABILITIES = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "NET_RAW": 13,
    "SYS_CHROOT": 18,
    "MKNOD": 27,
    "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}
"""Those of a container that names none."""
_MORE = {"NET_ADMIN": 12, "IPC_LOCK": 14, "IPC_OWNER": 15, "SYS_PTRACE": 19, "SYS_NICE": 23}
"""Those that a container may add."""

_POD = {
    "hostNetwork": "pods have networks of their own; leave it out",
    "hostPID": "containers have process namespaces of their own; leave it out",
    "hostIPC": "pods have IPC namespaces of their own; leave it out",
    "shareProcessNamespace": "each container has a process namespace of its own; leave it out",
    "setHostnameAsFQDN": "host names are short here; leave it out",
    "dnsConfig": "names come from /etc/hosts, there is no name server; leave it out",
    "runtimeClassName": "there are no further runtimes; leave it out",
    "readinessGates": "nothing sets their conditions; leave them out",
    "resourceClaims": "there are no drivers of devices; leave them out",
}
_CONTAINER = {
    "lifecycle": "hooks are not called; do their work in the command",
    "volumeDevices": "there are no block devices; use a volumeMount",
    "tty": "containers have no terminal; leave it out",
}
_VOLUMES = ("emptyDir", "hostPath", *FILES_OF)
_PROJECTED = ("configMap", "secret", "downwardAPI")
_OBJECTS = {
    "configMap": "ConfigMap",
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "secret": "Secret",
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
}
"""Kinds of objects by the fields that name one."""
_HOST_TYPES = ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate")
_FULL = "run as root, or install uidmap and give your user a range in /etc/subuid and /etc/subgid"


def problems(spec: Raw, path: str, mode: Mode, allowed: Sequence[Path]) -> Iterator[FieldError]:
    """What cannot be run of a pod.

    Args:
        spec: Its spec.
        path: Where the spec stands, for the paths of the problems.
        mode: The users that pods may have.
        allowed: Folders of the machine in which a `hostPath` may lie.
    """
    for field, why in _POD.items():
        if spec.get(field):
            yield _problem(f"{path}.{field}", why)
    if (spec.get("os") or {}).get("name", "linux") != "linux":
        yield _problem(f"{path}.os.name", "this is Linux; leave it out")
    yield from _of_security(spec.get("securityContext") or {}, f"{path}.securityContext", mode)
    for number, volume in enumerate(spec.get("volumes") or ()):
        yield from _of_volume(volume, f"{path}.volumes[{number}]", allowed)
    for field in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(field) or ()):
            yield from _of_container(container, spec, f"{path}.{field}[{number}]", mode)


def has_probes(spec: Raw) -> bool:
    """Whether a container of a pod has a probe."""
    names = ("livenessProbe", "readinessProbe", "startupProbe")
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return any(each.get(name) for each in containers for name in names)


def capabilities_of(container: Raw) -> list[int]:
    """Numbers of the capabilities that a container's programs may have."""
    told = (container.get("securityContext") or {}).get("capabilities") or {}
    dropped = {name.removeprefix("CAP_") for name in told.get("drop") or ()}
    kept = {} if "ALL" in dropped else CAPABILITIES
    found = {number for name, number in kept.items() if name not in dropped}
    known = CAPABILITIES | _MORE
    return sorted(found | {known[name.removeprefix("CAP_")] for name in told.get("add") or ()})


def _problem(path: str, why: str) -> FieldError:
    return FieldError(path, why, CODE)


def _no_such(kind: str, number: int, mode: Mode) -> str:
    if not mode.is_full:
        return f"pods run as you alone here, not as {kind} {number}; {_FULL}"
    last = max(each.stop for each in mode.numbers(kind)) - 1
    file = "/etc/subuid" if kind == "user" else "/etc/subgid"
    return (
        f"there is no {kind} {number} here, the last is {last}; a longer range in {file} gives more"
    )


def _of_security(context: Raw, path: str, mode: Mode) -> Iterator[FieldError]:
    """Users and groups that the node's user namespace does not have."""
    named = [(field, context.get(field)) for field in ("runAsUser", "runAsGroup", "fsGroup")]
    named += [("supplementalGroups", each) for each in context.get("supplementalGroups") or ()]
    for field, number in named:
        kind = "user" if field == "runAsUser" else "group"
        if number is not None and not any(int(number) in each for each in mode.numbers(kind)):
            yield _problem(f"{path}.{field}", _no_such(kind, number, mode))
    if context.get("sysctls"):
        yield _problem(f"{path}.sysctls", "sysctls are not set; leave them out")


def _of_volume(volume: Raw, path: str, allowed: Sequence[Path]) -> Iterator[FieldError]:
    kinds = [key for key in volume if key != "name"]
    for kind in kinds or ["emptyDir"]:
        if kind not in _VOLUMES:
            yield _problem(
                f"{path}.{kind}",
                "is no volume of this machine; use emptyDir, or hostPath with --allow-host-path",
            )
    for where, kind, source in _sources(volume, path):
        if kind not in _PROJECTED:
            yield _problem(where, f"is not there; expected one of {', '.join(_PROJECTED)}")
        for number, item in enumerate(source.get("items") or ()):
            if problem := path_problem(str(item.get("path", ""))):
                yield _problem(f"{where}.items[{number}].path", problem)
    if host := volume.get("hostPath"):
        if host_path(str(host.get("path", "")), allowed) is None:
            folder = host.get("path") or "DIR"
            yield _problem(
                f"{path}.hostPath.path",
                f"lies in no folder that pods may mount; add --allow-host-path {folder}",
            )
        if (host.get("type") or "") not in _HOST_TYPES:
            expected = ", ".join(_HOST_TYPES[1:])
            yield _problem(f"{path}.hostPath.type", f"expected one of {expected}")


def _sources(volume: Raw, path: str) -> Iterator[tuple[str, str, Raw]]:
    """Path, kind and content of what the files of a volume are made of."""
    for kind in _PROJECTED:
        if kind in volume:
            yield f"{path}.{kind}", kind, volume[kind] or {}
    for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
        for kind, content in source.items():
            yield f"{path}.projected.sources[{number}].{kind}", kind, content or {}


def missing(spec: Raw, path: str, objects: Objects) -> Iterator[FieldError]:
    """ConfigMaps, Secrets and keys of them for which a pod would wait.

    Args:
        spec: Its spec.
        path: Where the spec stands, for the paths of the problems.
        objects: Those that there are.
    """
    for where, kind, source in _references(spec, path):
        if kind not in _OBJECTS or source.get("optional"):
            continue
        kind, name = _OBJECTS[kind], source.get("secretName") or source.get("name")
        made = objects(kind, name or "")
        if made is None:
            yield _problem(where, f"there is no {kind} {name}; add it to the files")
            continue
        parts = [made.get(part) for part in ("data", "stringData", "binaryData")]
        known = {key for part in parts if isinstance(part, dict) for key in part}
        keys = [source.get("key"), *(item.get("key") for item in source.get("items") or ())]
        for key in keys:
            if key is not None and key not in known:
                yield _problem(where, f"{kind} {name} has no key {key}; add it")


def _references(spec: Raw, path: str) -> Iterator[tuple[str, str, Raw]]:
    """Path, kind and content of each place in which a pod may name an object."""
    for number, volume in enumerate(spec.get("volumes") or ()):
        yield from _sources(volume, f"{path}.volumes[{number}]")
    for field in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{number}]"
            for index, source in enumerate(container.get("envFrom") or ()):
                for kind, content in source.items():
                    if kind in _OBJECTS:
                        yield f"{where}.envFrom[{index}].{kind}", kind, content or {}
            for variable in container.get("env") or ():  # plugins put some before those of the file
                for kind, content in (variable.get("valueFrom") or {}).items():
                    yield f"{where}.env[{variable['name']}].valueFrom.{kind}", kind, content or {}


def _of_container(container: Raw, spec: Raw, path: str, mode: Mode) -> Iterator[FieldError]:
    for field, why in _CONTAINER.items():
        if container.get(field):
            yield _problem(f"{path}.{field}", why)
    command = container.get("command")
    if not command:
        what = "is missing: what program an image would start is not known here; name it"
        yield _problem(f"{path}.command", what)
    for number, port in enumerate(container.get("ports") or ()):
        if port.get("hostPort"):
            what = "pods are not reached from outside; leave it out"
            yield _problem(f"{path}.ports[{number}].hostPort", what)
    context = container.get("securityContext") or {}
    yield from _of_security(context, f"{path}.securityContext", mode)
    yield from _of_privileges(context, f"{path}.securityContext")
    pods_context: Mapping[str, Any] = spec.get("securityContext") or {}
    user = context.get("runAsUser", pods_context.get("runAsUser")) or 0
    if context.get("runAsNonRoot", pods_context.get("runAsNonRoot")) and not user:
        yield _problem(f"{path}.securityContext.runAsNonRoot", "name the user with runAsUser")
    words = " ".join(map(str, [*(command or ()), *(container.get("args") or ())]))
    if not mode.is_full and "sshd" in words:
        what = "sshd runs parts of itself as another user, and pods run as you alone here"
        yield _problem(f"{path}.command", f"{what}; {_FULL}")


def _of_privileges(context: Raw, path: str) -> Iterator[FieldError]:
    if context.get("privileged"):
        what = "no container may change this machine; leave it out, or add capabilities"
        yield _problem(f"{path}.privileged", what)
    known = {**CAPABILITIES, **_MORE}
    for name in (context.get("capabilities") or {}).get("add") or ():
        if str(name).removeprefix("CAP_") not in known:
            expected = ", ".join(known)
            yield _problem(f"{path}.capabilities.add", f"{name}: expected one of {expected}")
