"""Ports of containers that are in each other's way; a pod has one network for all of them.

Source: the warnings that a Kubernetes API server of version 1.36 gives for pods.
"""

from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.site import Entries, Raw, Site
from pumice.webhook.rules.templates.surroundings import PodPort, Surroundings
from pumice.webhook.rules.templates.values import is_int, quoted

__all__ = ["clashes"]


def clashes(site: Site, ports: Entries, pod: Surroundings) -> None:
    """Check the ports of a regular container against each other and those of the containers before it.

    Args:
        site: Where the container is.
        ports: Its ports, with their positions.
        pod: The pod, which is not in the network of its node: there the ports are the node's.
    """
    for index, port in ports:
        here = (site, index, port)
        if port.get("hostIP") and not port.get("hostPort"):
            message = "has no effect without hostPort"
            site.report(TPL_DOUBTFUL, message, f"ports[{index}].hostIP")
        number = port.get("containerPort")
        if is_int(number) and number:
            first = pod.ports.setdefault((number, str(port.get("protocol") or "TCP")), here)
            if first is not here and _clash(port, first[2]):
                message = f"{number} is already the port of {_place(first)}"
                site.report(TPL_DOUBTFUL, message, f"ports[{index}].containerPort")
        name = port.get("name")
        if name and isinstance(name, str):
            owner = pod.port_names.setdefault(name, here)
            if owner[0] is not site:
                message = (
                    f"{quoted(name)} is already the name of {_place(owner)}, for which it stands"
                )
                site.report(TPL_DOUBTFUL, message, f"ports[{index}].name")


def _place(port: PodPort) -> str:
    site, index, _ = port
    return f"{site.path}.ports[{index}]"


def _clash(port: Raw, other: Raw) -> bool:
    """Whether two ports of the same number are in each other's way, and not refused for that."""
    inside, outside = port.get("hostPort", 0), other.get("hostPort", 0)
    if not inside or not outside:
        return True
    # With the same address, too, they are the same port of the node, which is refused.
    return bool(inside == outside and bool(port.get("hostIP")) is not bool(other.get("hostIP")))
