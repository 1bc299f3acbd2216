"""A container's environment, as kubelet makes it.

Pure: a pod and the objects that it names in, variables out.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping

from pumice.api.meta import Raw
from pumice.api.quantities import parse_milli

Objects = Callable[[str, str], Raw | None]
"""From kind and name to an object of the pod's namespace; None where there is none."""

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_.-][\w.-]*", re.ASCII)
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_STATUS = {"hostIP": "hostIP", "podIP": "podIP", "hostIPs": "hostIP", "podIPs": "podIP"}


class MissingObjectError(RuntimeError):
    """A pod names an object, a key or a field that is not there, so that kubelet would not start it yet."""


def data_of(made: Raw) -> dict[str, bytes]:
    """What a Secret or a ConfigMap holds."""
    found = {key: text.encode() for key, text in (made.get("stringData") or {}).items()}
    is_secret = made["kind"] == "Secret"
    for key, text in (made.get("data") or {}).items():
        found.setdefault(key, base64.b64decode(text) if is_secret else text.encode())
    for key, text in (made.get("binaryData") or {}).items():
        found.setdefault(key, base64.b64decode(text))
    return found


def environment(
    pod: Raw, container: Raw, objects: Objects, room: Mapping[str, str]
) -> dict[str, str]:
    """Variables of a container: those of `envFrom`, then those of `env`, each with the ones before it filled in.

    Args:
        pod: The pod, with its addresses in its status.
        container: One of its containers.
        objects: ConfigMaps and Secrets.
        room: What the node has of each resource, which counts where a container has no limit.

    Raises:
        MissingObjectError: A variable comes from something that is not there.
    """
    found: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if source.get(key):
                for name, value in _all_of(kind, source[key], objects).items():
                    name = f"{source.get('prefix') or ''}{name}"
                    if _NAME.fullmatch(name):
                        found[name] = value
    for variable in container.get("env") or ():
        made = _value(pod, container, variable, objects, room)
        if made is not None:
            is_text = not variable.get("valueFrom")
            found[variable["name"]] = expanded(made, found) if is_text else made
    return found


def command(container: Raw, known: Mapping[str, str]) -> list[str]:
    """The command with its arguments, variables filled in."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expanded(word, known) for word in words]


def expanded(text: str, known: Mapping[str, str]) -> str:
    """A text with `$(NAME)` of known variables filled in and `$$` as a dollar; what is not known stays."""

    def fill(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else known.get(match[1], match[0])

    return _REFERENCE.sub(fill, text)


def field_of(pod: Raw, path: str) -> str:
    """A field of a pod, as the downward API gives it.

    Raises:
        MissingObjectError: The downward API has no such field.
    """
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = sorted((metadata.get(path.partition(".")[2]) or {}).items())
        return "\n".join(f"{key}={_quoted(value)}" for key, value in pairs)
    head, _, name = path.partition(".")
    if head == "metadata" and name in ("name", "namespace", "uid"):
        return str(metadata.get(name, ""))
    if path == "spec.serviceAccountName":
        return str(spec.get("serviceAccountName") or "default")
    if path == "spec.nodeName":
        return str(spec.get("nodeName", ""))
    if head == "status" and name in _STATUS:
        return str(status.get(_STATUS[name], ""))
    raise MissingObjectError(f"the downward API has no field {path}")


def resource_of(containers: list[Raw], own: Raw, reference: Raw, room: Mapping[str, str]) -> str:
    """A request or a limit of a container, in units of a divisor, rounded up.

    Args:
        containers: The pod's containers.
        own: The container that asks.
        reference: A `resourceFieldRef`.
        room: What the node has of each resource.

    Raises:
        MissingObjectError: There is no such container.
    """
    named = reference.get("containerName") or own.get("name")
    container = next((each for each in containers if each["name"] == named), None)
    if container is None:
        raise MissingObjectError(f"there is no container {named}")
    kind, _, resource = reference["resource"].partition(".")
    resources = container.get("resources") or {}
    limit = (resources.get("limits") or {}).get(resource)
    found = limit if kind == "limits" else (resources.get("requests") or {}).get(resource, limit)
    if found is None:
        found = room.get(resource, "0") if kind == "limits" else "0"
    divisor = str(reference.get("divisor") or "1")
    unit = parse_milli(divisor if divisor != "0" else "1") or 1
    return str(math.ceil(parse_milli(str(found)) / unit))


def _all_of(kind: str, reference: Raw, objects: Objects) -> dict[str, str]:
    made = objects(kind, reference["name"])
    if made is not None:
        return {key: value.decode(errors="replace") for key, value in data_of(made).items()}
    if reference.get("optional"):
        return {}
    raise MissingObjectError(f"there is no {kind} {reference['name']}")


def _value(
    pod: Raw, container: Raw, variable: Raw, objects: Objects, room: Mapping[str, str]
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value") or "")
    if source.get("fieldRef"):
        return field_of(pod, source["fieldRef"]["fieldPath"])
    if source.get("resourceFieldRef"):
        spec = pod["spec"]
        containers = [*spec["containers"], *(spec.get("initContainers") or ())]
        return resource_of(containers, container, source["resourceFieldRef"], room)
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if source.get(key):
            reference = source[key]
            made = objects(kind, reference["name"])
            data = data_of(made) if made is not None else {}
            if reference["key"] in data:
                return data[reference["key"]].decode(errors="replace")
            if reference.get("optional"):
                return None
            what = f"key {reference['key']} in" if made is not None else ""
            raise MissingObjectError(
                f"there is no {what} {kind} {reference['name']}".replace("  ", " ")
            )
    raise MissingObjectError(f"variable {variable['name']} cannot come from {', '.join(source)}")


def _quoted(value: str) -> str:
    """A value in a file of the downward API, as Go's `%q` writes it."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in value) + '"'
