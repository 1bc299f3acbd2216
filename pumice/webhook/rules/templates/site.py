"""The position of a check in the pod: where it reports, and the rest of the pod that it may read.

Checks see templates as raw JSON in which every known field has the right type and none is null: `types` has
reported the others and removed them.
"""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from pumice.api.fields import Reason
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

Raw = dict[str, Any]

HostPort = tuple[str, str, int]
"""Protocol, address and number of a port on the node."""


class CheckedPod:
    """The pod of which a check validates a part.

    It refers to no `Site`, so that a review leaves no reference cycles.

    Attributes:
        spec: Its spec.
        labels: Keys of the labels that the pod will have.
        os: Operating system that the pod names, or an empty string.
        host_network: Whether the pod is in the network of its node.
        host_users: Whether users in its containers are users of the node.
        host_ports: Ports on the node that regular containers have taken so far: the path of the port that took each,
            and whether only because the pod is in its node's network.
        ports: Numbers and protocols of ports of regular containers so far, with path and port of the first of each.
        port_names: Names of these ports, with the path of the first of each.
        volumes: Declared volumes by name.
    """

    def __init__(self, spec: Raw, labels: Collection[str] = ()) -> None:
        self.spec = spec
        self.labels = labels
        self.os: str = spec.get("os", {}).get("name", "")
        self.host_network: bool = spec.get("hostNetwork", False)
        self.host_users: bool = spec.get("hostUsers", True)
        self.host_ports: dict[HostPort, tuple[str, bool]] = {}
        self.ports: dict[tuple[int, str], tuple[str, Raw]] = {}
        self.port_names: dict[str, str] = {}
        first_counts = reversed(spec.get("volumes", ()))
        self.volumes: Mapping[str, Raw] = {each.get("name", ""): each for each in first_counts}


_NO_POD = CheckedPod({})
"""Placeholder for fields that are checked without a pod: no labels, no volumes, no containers."""


class Site(msgspec.Struct, frozen=True):
    """A position in a checked object.

    Attributes:
        case: The case, which gets the problems and has the settings.
        path: The path as users write it: `spec.tasks[0].template.spec`.
        pod: The pod of the position; an empty one for fields that are checked without a pod.
    """

    case: Case
    path: str
    pod: CheckedPod = _NO_POD

    def report(
        self, rule: Rule, message: str, field: str = "", reason: Reason | None = None
    ) -> None:
        """Report a problem here, or at a field below: `name`, `ports[0].containerPort`."""
        self.case.report(rule, f"{self.path}.{field}" if field else self.path, message, reason)


def entries(found: object) -> list[tuple[int, Raw]]:
    """The objects of a list with their indexes, for checks that need a position only to report.

    A null counts as an empty object, as for the API server; other values are skipped.
    """
    if not isinstance(found, list):
        return []
    return [
        (index, {} if each is None else each)
        for index, each in enumerate(found)
        if each is None or isinstance(each, dict)
    ]
