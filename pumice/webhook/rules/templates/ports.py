"""Ports of containers: numbers, names, and ports of the node, which a pod can take only once."""

from pumice.api.names import port_name_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.shapes import (
    name,
    one_of,
    present,
    quoted,
    refused,
    unique,
    within,
)
from pumice.webhook.rules.templates.site import HostPort, PodPort, Raw, Site
from pumice.webhook.rules.templates.table import Row, compiled

__all__ = ["INIT_ROWS", "LARGEST_PORT", "ROWS"]

TPL_PORT = refused(
    "TPL-PORT",
    "ports have a number from 1 to 65535, a protocol that exists and a name of 15 characters at most",
    "ports: [{containerPort: 70000}]",
)
TPL_PORT_DUP = refused(
    "TPL-PORT-DUP",
    "no two ports of a container share a name, and no two of a pod a port of the node",
    "ports: [{name: http, containerPort: 80}, {name: http, containerPort: 81}]",
    reason="FieldValueDuplicate",
)
TPL_HOST_PORT = Rule(
    "TPL-HOST-PORT",
    "in the network of the node, hostPort is containerPort",
    "There is but one network, so there is but one number.",
    "hostNetwork: true, containers: [{ports: [{containerPort: 80, hostPort: 8080}]}]",
)
TPL_HOST_PORT_SHARED = Rule(
    "TPL-HOST-PORT-SHARED",
    "in the network of the node, no two containers have the same port",
    "Kubernetes takes the template, fills hostPort in for each pod, and then refuses the pod.",
    "hostNetwork: true, containers: [{ports: [{containerPort: 80}]}, {ports: [{containerPort: 80}]}]",
    reason="FieldValueDuplicate",
    stricter=True,
    compares=True,
)

LARGEST_PORT = 65535
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_OF_THE_POD = {"name", "containerPort", "protocol"}
_number = within(TPL_PORT, 1, LARGEST_PORT)


def _ports(site: Site, ports: list[Raw], field: str, container: Raw) -> None:
    if not _are_plain(ports):
        _PORTS(site, ports, field, container)


def _are_plain(ports: list[Raw]) -> bool:
    """Whether all ports are of the pod alone and in order, under names of their own.

    A single look, since nearly all are so.
    """
    names = set()
    for port in ports:
        name = port.get("name", "")
        if (
            not port.keys() <= _OF_THE_POD
            or not 1 <= port.get("containerPort", 0) <= LARGEST_PORT
            or port.get("protocol", "TCP") not in _PROTOCOLS
            or (name and (name in names or port_name_problem(name)))
        ):
            return False
        names.add(name)
    return True


def _host_ports_of_init(site: Site, ports: list[Raw], _: str, _container: Raw) -> None:
    """Check ports of the node of an init container; they run one by one, so each is for itself."""
    _take(site, ports, {})


def _take(site: Site, ports: list[Raw], taken: dict[HostPort, tuple[str, bool]]) -> None:
    """Take ports of the node; in its network, one without a number of its own has the container's."""
    for index, port in enumerate(ports):
        outside = port.get("hostPort")
        implied = not outside and site.pod.host_network
        number = port.get("containerPort") if implied else outside
        if not number:
            continue
        field = f"ports[{index}].hostPort"
        if not implied:
            _number(site, number, field, port)
        key = (port.get("protocol") or "TCP", port.get("hostIP", ""), number)
        where = f"{site.path}.ports[{index}]"
        first, first_implied = taken.setdefault(key, (where, implied))
        if first != where:
            rule = TPL_HOST_PORT_SHARED if implied or first_implied else TPL_PORT_DUP
            message = f"{number} is already the port of the node that {first} takes"
            site.report(rule, message, field)


def _in_network(site: Site, ports: list[Raw], field: str, _: Raw) -> None:
    """Check ports of a regular container in the networks of node and pod, which all of these share."""
    _take(site, ports, site.pod.host_ports)
    if not site.pod.host_network:
        _clashes(site, ports)
        return
    for index, port in enumerate(ports):
        inside, outside = port.get("containerPort"), port.get("hostPort", 0)
        if inside is not None and outside not in (0, inside):
            message = f"must be containerPort ({inside}) where hostNetwork is true, found {outside}"
            site.report(TPL_HOST_PORT, message, f"{field}[{index}].hostPort")


def _clashes(site: Site, ports: list[Raw]) -> None:
    """Check ports against each other and those of the containers before; a pod has one network for all.

    Source: the warnings that a Kubernetes API server of version 1.36 gives for pods.
    """
    pod = site.pod
    for index, port in enumerate(ports):
        here = (site.path, index, port)
        if port.get("hostIP") and not port.get("hostPort"):
            message = "has no effect without hostPort"
            site.report(TPL_DOUBTFUL, message, f"ports[{index}].hostIP")
        number = port.get("containerPort")
        if number:
            first = pod.ports.setdefault((number, port.get("protocol") or "TCP"), here)
            if first is not here and _clash(port, first[2]):
                message = f"{number} is already the port of {_place(first)}"
                site.report(TPL_DOUBTFUL, message, f"ports[{index}].containerPort")
        called = port.get("name")
        if called:
            owner = pod.port_names.setdefault(called, here)
            if owner[0] != site.path:
                message = (
                    f"{quoted(called)} is already the name of {_place(owner)}, for which it stands"
                )
                site.report(TPL_DOUBTFUL, message, f"ports[{index}].name")


def _place(port: PodPort) -> str:
    container, index, _ = port
    return f"{container}.ports[{index}]"


def _clash(port: Raw, other: Raw) -> bool:
    """Whether two ports of the same number are in each other's way, and not refused for that."""
    inside, outside = port.get("hostPort", 0), other.get("hostPort", 0)
    if not inside or not outside:
        return True
    # With the same address, too, they are the same port of the node, which is refused.
    return bool(inside == outside and bool(port.get("hostIP")) is not bool(other.get("hostIP")))


_PORTS = compiled(
    (
        Row("[].name", name(TPL_PORT, port_name_problem, empty=True)),
        Row("[].containerPort", present(TPL_PORT, _number, "FieldValueRequired"), None),
        Row("[].protocol", one_of(TPL_PORT, _PROTOCOLS, empty=True)),
        Row("", unique(TPL_PORT_DUP, "name", unless=port_name_problem, whole=True)),
    )
)
ROWS = (Row("ports", _ports), Row("ports", _in_network))
"""Fields of a regular container."""

INIT_ROWS = (Row("ports", _ports), Row("ports", _host_ports_of_init))
"""Fields of an init container."""
