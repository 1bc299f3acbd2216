"""Ports of containers: numbers, names, and ports of the node, which a pod can take only once."""

from pumice.api.names import port_name_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.port_clashes import clashes
from pumice.webhook.rules.templates.site import Entries, Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import HostPort, Surroundings
from pumice.webhook.rules.templates.values import is_int, one_of, quoted

__all__ = ["RULES", "init_ports", "port_number_problem", "ports"]

TPL_PORT = Rule(
    "TPL-PORT",
    "ports have a number from 1 to 65535, a protocol that exists and a name of 15 characters at most",
    "Kubernetes refuses the pod otherwise.",
    "ports: [{containerPort: 70000}]",
)
TPL_PORT_DUP = Rule(
    "TPL-PORT-DUP",
    "no two ports of a container share a name, and no two of a pod a port of the node",
    "Kubernetes refuses the pod otherwise.",
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

RULES = (TPL_PORT, TPL_PORT_DUP, TPL_HOST_PORT, TPL_HOST_PORT_SHARED)

_LARGEST = 65535
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def ports(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check the ports of a regular container; they run side by side, and so share the node's ports."""
    found = entries(container["ports"])
    _ports(site, found, pod, pod.host_ports)
    if pod.host_network:
        for index, port in found:
            inside, outside = port.get("containerPort"), port.get("hostPort")
            if is_int(inside) and is_int(outside) and outside not in (0, inside):
                message = (
                    f"must be containerPort ({inside}) where hostNetwork is true, found {outside}"
                )
                site.report(TPL_HOST_PORT, message, f"ports[{index}].hostPort")
    else:
        clashes(site, found, pod)


def init_ports(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check the ports of an init container; they run one by one, so each is for itself."""
    _ports(site, entries(container["ports"]), pod, {})


def port_number_problem(number: int) -> str | None:
    """Say why a number is none of a port, or None when it is."""
    if 1 <= number <= _LARGEST:
        return None
    return f"must be from 1 to {_LARGEST}, found {number}"


def _ports(
    site: Site, found: Entries, pod: Surroundings, taken: dict[HostPort, tuple[str, bool]]
) -> None:
    names: dict[str, int] = {}
    for index, port in found:
        name = port.get("name")
        if name and isinstance(name, str):
            _name(site, name, index, names)
        number = port.get("containerPort")
        if number is None:
            where = f"ports[{index}].containerPort"
            site.report(TPL_PORT, "must be set, found none", where, "FieldValueRequired")
        elif is_int(number) and (problem := port_number_problem(number)):
            site.report(TPL_PORT, problem, f"ports[{index}].containerPort")
        if protocol := port.get("protocol"):
            one_of(site, TPL_PORT, protocol, _PROTOCOLS, f"ports[{index}].protocol")
        outside = port.get("hostPort")
        if outside or pod.host_network:
            _host_port(site, port, index, taken, implied=not outside)


def _name(site: Site, name: str, index: int, names: dict[str, int]) -> None:
    if problem := port_name_problem(name):
        site.report(TPL_PORT, problem, f"ports[{index}].name")
    elif (first := names.setdefault(name, index)) != index:
        message = f"{quoted(name)} is already the name of {site.path}.ports[{first}]"
        site.report(TPL_PORT_DUP, message, f"ports[{index}].name")


def _host_port(
    site: Site, port: Raw, index: int, taken: dict[HostPort, tuple[str, bool]], *, implied: bool
) -> None:
    """Take a port of the node; without a number of its own it is the container's."""
    number = port.get("containerPort" if implied else "hostPort")
    if not is_int(number) or not number:
        return
    field = f"ports[{index}].hostPort"
    if not implied and (problem := port_number_problem(number)):
        site.report(TPL_PORT, problem, field)
    key = (str(port.get("protocol") or "TCP"), str(port.get("hostIP") or ""), number)
    where = f"{site.path}.ports[{index}]"
    first, first_implied = taken.setdefault(key, (where, implied))
    if first != where:
        rule = TPL_HOST_PORT_SHARED if implied or first_implied else TPL_PORT_DUP
        site.report(rule, f"{number} is already the port of the node that {first} takes", field)
