"""What of a template is in order at a glance, so that no other rule need look at it.

Most of what a container says are arguments and variables. Of a list of texts there is nothing to say, whatever
the texts are, nor of variables with good names and texts for values. These are left out before a template is
judged, and before it is looked for among those that are known: Jobs of a sweep differ in nothing else.

Most of the rest is alike in most templates: volumes that are claims, mounts, ports, resources, labels, a node selector
and tolerations. Of a template that is not known and has nothing else, `simple` decides as a whole. Of any other one,
volumes, mounts, ports and resources are left out before it is judged, where nothing can be wrong with them.
"""

from collections.abc import Collection
from typing import Any

from pumice.api.names import env_name_problem
from pumice.webhook.rules.templates.metadata import label_problem
from pumice.webhook.rules.templates.network import are_usual_ports
from pumice.webhook.rules.templates.resources import are_usual_resources

__all__ = ["without_plain", "without_usual"]

Raw = dict[str, Any]

_CLAIM = "persistentVolumeClaim"
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What reading fields raises that have wrong types, are missing or are no quantities."""


def without_plain(template: Raw) -> Raw:
    """A copy without these of a template, which may be any object."""
    spec = template.get("spec")
    if type(spec) is not dict or type(found := spec.get("containers")) is not list:
        return template
    containers = [_without_plain(each) if type(each) is dict else each for each in found]
    return {**template, "spec": {**spec, "containers": containers}}


def _without_plain(container: Raw) -> Raw:
    rest = {**container}
    for field, is_plain in _PLAIN.items():
        if field in rest and is_plain(rest[field]):
            del rest[field]
    return rest


def _are_texts(found: Any) -> bool:
    """Whether this is a list of texts."""
    try:
        "".join(found)
    except TypeError:
        return False
    return type(found) is list


def _are_variables(found: Any) -> bool:
    """Whether these are texts under good names, each under its own: of two with one name, one may hold the other."""
    try:
        values = {each["name"]: each["value"] for each in found if len(each) == 2}
        names = "".join(values)  # what makes one bad is a character, wherever it stands
        "".join(values.values())
    except (KeyError, TypeError):
        return False  # some have their values from elsewhere
    return len(values) == len(found) and "" not in values and env_name_problem(names) is None


_PLAIN = {"command": _are_texts, "args": _are_texts, "env": _are_variables}


def without_usual(template: Raw) -> Raw:
    """A copy without volumes, mounts, ports and resources of a template, where nothing can be wrong with them.

    The template may be any object. What is left has to be judged beside all volumes of the template.
    """
    spec = template.get("spec")
    if type(spec) is not dict or type(found := spec.get("containers")) is not list:
        return template
    rest = {**spec}
    try:
        names, are_claims = _names_of(spec.get("volumes", ()))
        if are_claims:
            del rest["volumes"]
        # Ports of several containers may clash, and resources of a pod depend on those of its containers.
        ports = len(found) == 1 and "hostNetwork" not in spec
        resources = "resources" not in spec
        rest["containers"] = [_without_usual(each, names, ports, resources) for each in found]
        if "initContainers" in spec:
            found = spec["initContainers"]
            rest["initContainers"] = [_without_usual(x, names, False, resources) for x in found]
    except _UNREADABLE:
        return template
    return {**template, "spec": rest}


def _without_usual(container: Raw, names: Collection[str], ports: bool, resources: bool) -> Raw:
    rest = {**container}
    # Devices are compared with mounts.
    mounts = "volumeMounts" in rest and "volumeDevices" not in rest
    if mounts and _are_mounts(rest["volumeMounts"], names):
        del rest["volumeMounts"]
    if ports and "ports" in rest and are_usual_ports(rest["ports"]):
        del rest["ports"]
    if resources and "resources" in rest and are_usual_resources(rest["resources"]):
        del rest["resources"]
    return rest


def _names_of(volumes: Any) -> tuple[Collection[str], bool]:
    """Names of volumes, and whether all volumes are claims by name, under good names of their own."""
    try:
        claims = {
            volume["name"]: claim["claimName"]
            for volume in volumes
            if len(volume) == 2 and len(claim := volume[_CLAIM]) == 1
        }
    except KeyError:
        claims = {}
    if not claims or len(claims) != len(volumes):
        return {volume["name"] for volume in volumes}, False
    "".join(claims.values())
    good = type(volumes) is list and "" not in claims.values()
    return claims, good and not any(map(label_problem, claims))


def _are_mounts(mounts: list[Raw], names: Collection[str]) -> bool:
    """Whether all mounts are of volumes that there are, and at paths of their own, and say no more."""
    paths = {
        mount["mountPath"]
        for mount in mounts
        if mount["name"] in names
        and (len(mount) == 2 or (len(mount) == 3 and type(mount.get("readOnly")) is bool))
    }
    "".join(paths)
    return len(paths) == len(mounts) and type(mounts) is list and "" not in paths
