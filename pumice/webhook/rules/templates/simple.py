"""Templates that have only the most usual fields, and are in order.

Nearly all templates name containers, images, claims, mounts, ports, resources, labels, a node selector and
tolerations, and nothing else. These fields are few enough to be read as structs and compared in one go, which costs
half of what the types and the tables cost. What is not simple may still be in order: the rules decide.

Each field here has a rule in another file; a template is simple only if that rule has nothing to report.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.templates.doubtful import NODE_LABELS
from pumice.webhook.rules.templates.metadata import key_problem, label_problem, value_problem
from pumice.webhook.rules.templates.network import are_usual_ports
from pumice.webhook.rules.templates.resources import are_usual_resources
from pumice.webhook.rules.templates.site import Raw

__all__ = ["is_simple"]

_UNREADABLE = (AttributeError, TypeError, ValueError, RecursionError)
"""What reading fields raises that have wrong types or are no quantities."""


class _Simple(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Fields of an object of which a template may have more, and is not simple then."""


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


class _Container(_Simple):
    name: str
    image: _Text
    volume_mounts: list[_Mount] = []
    ports: Any = msgspec.UNSET
    resources: Any = msgspec.UNSET
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
    """Whether a template has these fields only and is in order, so that no other rule need look at it."""
    try:
        found = msgspec.convert(template, _Template)
        if not _are_simple(found.spec):
            return False
    except _UNREADABLE:
        return False
    spec = found.spec
    return (
        _are_labels(found.metadata.labels)
        and _are_labels(spec.node_selector)
        and NODE_LABELS.keys().isdisjoint(spec.node_selector)
        and all(map(_is_tolerable, spec.tolerations))
        and not (spec.service_account_name and dns_subdomain_problem(spec.service_account_name))
        and not (spec.priority_class_name and dns_subdomain_problem(spec.priority_class_name))
    )


def _are_simple(spec: _Spec) -> bool:
    """Whether containers are in order, and volumes, all of them claims.

    Raises:
        AttributeError, TypeError, ValueError: A field has the wrong type or is no quantity.
    """
    volumes = {each.name for each in spec.volumes}
    if len(volumes) != len(spec.volumes) or any(map(label_problem, volumes)):
        return False
    called = set()
    for each in spec.containers:
        called.add(each.name)
        mounts, ports, resources = each.volume_mounts, each.ports, each.resources
        if (
            each.image != each.image.strip()
            or len({mount.mount_path for mount in mounts}) != len(mounts)
            or not volumes.issuperset([mount.name for mount in mounts])
            # Ports of several containers may clash.
            or (
                ports is not msgspec.UNSET
                and not (len(spec.containers) == 1 and are_usual_ports(ports))
            )
            or (resources is not msgspec.UNSET and not are_usual_resources(resources))
        ):
            return False
    return 0 < len(called) == len(spec.containers) and not any(map(label_problem, called))


def _are_labels(found: Mapping[str, str]) -> bool:
    return not (any(map(key_problem, found)) or any(map(value_problem, found.values())))


def _is_tolerable(toleration: _Toleration) -> bool:
    if toleration.operator == "Exists":
        fits = not toleration.value
    else:
        fits = toleration.key != "" and value_problem(toleration.value) is None
    return fits and not (toleration.key and key_problem(toleration.key))
