"""Simple templates without problems, which need no other rule.

Most fields of a container are arguments and variables. Lists of strings need no check, nor do variables with valid
names and string values. They are left out before a template is checked, and before it is searched in the cache: Jobs of
a parameter sweep differ only in them.

Nearly all templates name containers, images, claims, mounts, ports, resources, labels, a node selector and tolerations,
and nothing else. These fields are decoded into structs and checked together, which takes half the time of the types and
the tables. Other templates may still be valid; the rules decide. Each of these fields has a rule in another file; a
template is simple only if that rule has nothing to report.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from pumice.api.names import dns_subdomain_problem, env_name_problem, port_name_problem
from pumice.webhook.rules.labels import MOST_LABELS
from pumice.webhook.rules.templates.doubtful import NODE_LABELS
from pumice.webhook.rules.templates.metadata import key_problem, label_problem, value_problem
from pumice.webhook.rules.templates.network import LARGEST_PORT
from pumice.webhook.rules.templates.resources import are_plain
from pumice.webhook.rules.templates.site import Raw


def without_plain(template: Raw) -> Raw:
    """A copy of a template without these fields; the template may be any object."""
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
    """True for a list of strings."""
    try:
        "".join(found)
    except TypeError:
        return False
    return type(found) is list


def _are_variables(found: Any) -> bool:
    """True for variables with valid, unique names and string values."""
    try:
        values = {each["name"]: each["value"] for each in found if len(each) == 2}
        names = "".join(values)  # a name is invalid because of a character at any position
        "".join(values.values())
    except (KeyError, TypeError):
        return False  # some have their values from elsewhere
    return len(values) == len(found) and "" not in values and env_name_problem(names) is None


_PLAIN = {"command": _are_texts, "args": _are_texts, "env": _are_variables}


class _Simple(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An object with these fields only; with other fields a template is not simple."""


_LONGEST_AMOUNTS = 1024
"""Characters of the limits and requests of a container, which usually take about a hundred."""

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _ClaimSource(_Simple):
    claim_name: _Text


class _Claim(_Simple):
    name: str
    persistent_volume_claim: _ClaimSource


class _Mount(_Simple):
    name: str
    mount_path: _Text
    read_only: bool = False


class _Port(_Simple):
    container_port: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PORT)]
    name: str = ""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"


class _Resources(_Simple):
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}


class _Container(_Simple):
    name: str
    image: _Text
    volume_mounts: list[_Mount] = []
    ports: list[_Port] = []
    resources: _Resources = msgspec.field(default_factory=_Resources)
    image_pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = ""


class _Toleration(_Simple):
    key: str = ""
    operator: Literal["", "Equal", "Exists"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class _Spec(_Simple):
    containers: list[_Container]
    volumes: list[_Claim] = []
    restart_policy: Literal["", "Always", "OnFailure", "Never"] = ""
    node_selector: dict[str, str] = {}
    tolerations: list[_Toleration] = []
    scheduler_name: str = ""
    service_account_name: str = ""
    priority_class_name: str = ""


class _Metadata(_Simple):
    labels: dict[str, str] = {}


class _Template(_Simple):
    spec: _Spec
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def is_simple(template: Raw) -> bool:
    """True if a template has only these fields and no problem, so that no other rule is needed."""
    try:
        found = msgspec.convert(template, _Template)
        in_order = _are_containers(found.spec)
    except (ValueError, RecursionError):  # another field or type, or an amount that is no quantity
        return False
    spec = found.spec
    names = (spec.service_account_name, spec.priority_class_name)
    return (
        in_order
        and len(found.metadata.labels) <= MOST_LABELS
        and _are_labels(found.metadata.labels)
        and _are_labels(spec.node_selector)
        and NODE_LABELS.keys().isdisjoint(spec.node_selector)
        and all(map(_is_tolerable, spec.tolerations))
        and not any(each and dns_subdomain_problem(each) for each in names)
    )


def _are_containers(spec: _Spec) -> bool:
    """True if containers have no problems, and all volumes are valid claims.

    Raises:
        ValueError: A value is not a quantity.
    """
    volumes = {each.name for each in spec.volumes}
    if len(volumes) != len(spec.volumes) or any(map(label_problem, volumes)):
        return False
    called = set()
    for each in spec.containers:
        called.add(each.name)
        mounts, amounts = each.volume_mounts, each.resources
        if (
            each.image != each.image.strip()
            or len({mount.mount_path for mount in mounts}) != len(mounts)
            or not volumes.issuperset([mount.name for mount in mounts])
            # Several ports may clash.
            or (each.ports and (len(spec.containers) > 1 or len(each.ports) > 1))
            or any(port.name and port_name_problem(port.name) for port in each.ports)
            or not _are_amounts(amounts)
        ):
            return False
    return 0 < len(called) == len(spec.containers) and not any(map(label_problem, called))


def _are_amounts(amounts: _Resources) -> bool:
    written = (*amounts.limits.items(), *amounts.requests.items())
    # The results are kept, so long ones are left to the rules.
    if sum(len(name) + len(value) for name, value in written) > _LONGEST_AMOUNTS:
        return False
    return are_plain(tuple(amounts.limits.items()), tuple(amounts.requests.items()))


def _are_labels(found: Mapping[str, str]) -> bool:
    return not (any(map(key_problem, found)) or any(map(value_problem, found.values())))


def _is_tolerable(toleration: _Toleration) -> bool:
    if toleration.operator == "Exists":
        fits = not toleration.value
    else:
        fits = toleration.key != "" and value_problem(toleration.value) is None
    return fits and not (toleration.key and key_problem(toleration.key))
