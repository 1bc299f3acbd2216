"""Where a check reports, and what it can look at in the rest of the pod.

Checks see templates as raw JSON in which every known field has the right type and none is null: `types` has
reported the others and removed them.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.fields import Reason
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

Raw = dict[str, Any]

HostPort = tuple[str, str, int]
"""Protocol, address and number of a port on the node."""
PodPort = tuple[str, int, Raw]
"""A port of a container: the path of the container, the position there, and the port.

No `Site` in it: a pod and its places must not refer to each other, so that a review leaves no cycles for the collector."""
_GRACE = 30
"""Seconds that Kubernetes gives a pod to end, unless the pod says otherwise."""
_LEAST_GRACE = 1
"""Seconds that it gives a pod which says less than none."""
_OF_THE_CONTROLLER = frozenset(
    {keys.JOB_NAME, keys.JOB_NAMESPACE, keys.QUEUE_NAME, keys.TASK_INDEX, keys.TASK_SPEC}
)
"""Keys of the labels that every pod of a Job gets."""


class CheckedPod:
    """The pod that a check judges a part of.

    Attributes:
        spec: The pod's.
        host_network: Whether the pod is in the network of its node.
        windows_options: Whether a security context seen so far has options of Windows.
        host_ports: Ports on the node that regular containers have taken so far: who took each, and
            whether only because the pod is in its node's network.
        ports: Ports that regular containers have listened on so far, with the first that did.
        port_names: Names of ports of regular containers so far, with the first that had each.
    """

    def __init__(self, spec: Raw, labels: Iterable[str] | None = None) -> None:
        """Look at a pod; `labels` are the keys of the template's, or None if no Job makes the pod."""
        self.spec = spec
        self.host_network: bool = spec.get("hostNetwork", False)
        self.windows_options = "windowsOptions" in spec.get("securityContext", ())
        self.host_ports: dict[HostPort, tuple[str, bool]] = {}
        self.ports: dict[tuple[int, str], PodPort] = {}
        self.port_names: dict[str, PodPort] = {}
        self._labels = labels

    @cached_property
    def volumes(self) -> Mapping[str, Raw]:
        """Declared volumes by name."""
        found = reversed(self.spec.get("volumes", ()))
        return {volume.get("name", ""): volume for volume in found}

    @property
    def labels(self) -> frozenset[str]:
        """Keys of the labels that the pod will have."""
        return frozenset() if self._labels is None else _OF_THE_CONTROLLER.union(self._labels)

    @property
    def host_users(self) -> bool:
        """Whether users in its containers are users of the node."""
        return bool(self.spec.get("hostUsers", True))

    @property
    def restart_policy(self) -> str:
        """The pod's."""
        return self.spec.get("restartPolicy") or "Always"

    @property
    def grace(self) -> int:
        """Seconds the pod may take to end."""
        found: int = self.spec.get("terminationGracePeriodSeconds", _GRACE)
        return found if found >= 0 else _LEAST_GRACE

    @property
    def os(self) -> str:
        """Operating system that the pod names, or an empty string."""
        return str(self.spec.get("os", {}).get("name", ""))


_NO_POD = CheckedPod({})
"""Around fields that are judged without a pod; it has no labels, no volumes and no containers."""


class Site(msgspec.Struct, frozen=True):
    """A place in an object under judgement.

    Attributes:
        case: The case that is judged: where problems go, and what the settings are.
        path: The place as users write it: `spec.tasks[0].template.spec`.
        pod: The pod that the place is in; an empty one for fields that are judged without.
    """

    case: Case
    path: str
    pod: CheckedPod = _NO_POD

    def item(self, name: str, index: int) -> "Site":
        """The place of an item of a member that is a list."""
        return Site(self.case, f"{self.path}.{name}[{index}]", self.pod)

    def report(
        self, rule: Rule, message: str, field: str = "", reason: Reason | None = None
    ) -> None:
        """Say what is wrong here, or in the field that continues the path: `name`, `ports[0].containerPort`."""
        self.case.report(rule, f"{self.path}.{field}" if field else self.path, message, reason)


def entries(found: object) -> list[tuple[int, Raw]]:
    """The objects of a list with their positions, for checks that need a place only to report.

    A null counts as an empty object, as it does for the API server; what is neither is passed over.
    """
    if not isinstance(found, list):
        return []
    return [
        (index, {} if each is None else each)
        for index, each in enumerate(found)
        if each is None or isinstance(each, dict)
    ]
