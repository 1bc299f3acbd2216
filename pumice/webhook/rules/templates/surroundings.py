"""What a check of a container looks at beyond the container."""

from collections.abc import Mapping

from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import is_int

__all__ = ["HostPort", "PodPort", "Surroundings"]

_GRACE = 30
"""Seconds that Kubernetes gives a pod to end, unless the pod says otherwise."""

_LEAST_GRACE = 1
"""Seconds that it gives a pod which says less than none."""

HostPort = tuple[str, str, int]
"""Protocol, address and number of a port on the node."""

PodPort = tuple[Site, int, Raw]
"""A port of a container: where the container is, its position there, and the port."""


class Surroundings:
    """The pod around a container.

    Attributes:
        spec: The pod's.
        volumes: Declared volumes by name.
        host_network: Whether the pod is in the network of its node.
        windows_options: Whether a security context seen so far has options of Windows.
        host_ports: Ports on the node that regular containers have taken so far: who took each, and
            whether only because the pod is in its node's network.
        ports: Ports that regular containers have listened on so far, with the first that did.
        port_names: Names of ports of regular containers so far, with the first that had each.
    """

    __slots__ = (
        "host_network",
        "host_ports",
        "port_names",
        "ports",
        "spec",
        "volumes",
        "windows_options",
    )

    def __init__(self, spec: Raw, volumes: Mapping[str, Raw]) -> None:
        """Look around.

        Args:
            spec: The pod's.
            volumes: Declared volumes by name.
        """
        self.spec = spec
        self.volumes = volumes
        self.host_network: bool = spec.get("hostNetwork") is True
        context = spec.get("securityContext")
        self.windows_options: bool = (
            isinstance(context, dict) and context.get("windowsOptions") is not None
        )
        self.host_ports: dict[HostPort, tuple[str, bool]] = {}
        self.ports: dict[tuple[int, str], PodPort] = {}
        self.port_names: dict[str, PodPort] = {}

    @property
    def host_users(self) -> bool:
        """Whether users in its containers are users of the node."""
        return self.spec.get("hostUsers") is not False

    @property
    def restart_policy(self) -> object:
        """The pod's."""
        return self.spec.get("restartPolicy") or "Always"

    @property
    def grace(self) -> int | None:
        """Seconds the pod may take to end; None when that is of the wrong type."""
        found = self.spec.get("terminationGracePeriodSeconds")
        if found is None:
            return _GRACE
        if not is_int(found):
            return None
        return found if found >= 0 else _LEAST_GRACE

    @property
    def os(self) -> str:
        """Operating system that the pod names, or an empty text."""
        found = self.spec.get("os")
        name = found.get("name") if isinstance(found, dict) else None
        return name if isinstance(name, str) else ""

    def claims(self) -> set[str]:
        """Names of the pod's resource claims."""
        found = entries(self.spec.get("resourceClaims"))
        return {name for _, claim in found if isinstance(name := claim.get("name"), str) and name}
