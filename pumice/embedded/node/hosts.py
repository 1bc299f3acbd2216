"""The host file of each pod: the names that the cluster's DNS would know.

A pod's own name of a headless Service resolves as soon as the pod has an address where the Service publishes pods that
are not ready, and once its containers run where it does not. So does the name of every Service, with the addresses of its pods: most
programs take the first, as nothing shares connections out.

Pure: pods and Services in, texts out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pumice.api.meta import Raw

_DOMAIN = "svc.cluster.local"
_LOCAL = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"


@dataclass(frozen=True, slots=True)
class NamedPod:
    """A pod that has an address.

    Attributes:
        key: What tells it from other pods.
        manifest: The pod.
        address: Its address.
        is_ready: Whether its containers run.
    """

    key: str
    manifest: Raw
    address: str
    is_ready: bool

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.manifest["metadata"]["namespace"])


def host_name(pod: Raw) -> str:
    """The host name of a pod."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]


def host_files(pods: Iterable[NamedPod], services: Iterable[Raw]) -> dict[str, str]:
    """The host file of each pod, by its key."""
    pods = list(pods)
    published = _published(pods, services)
    return {
        pod.key: f"{_LOCAL}{_own(pod)}{published.get(pod.namespace, '')}{_aliases(pod)}"
        for pod in pods
    }


def _own(pod: NamedPod) -> str:
    host, domain = host_name(pod.manifest), pod.manifest["spec"].get("subdomain")
    full = f"{host}.{domain}.{pod.namespace}.{_DOMAIN} " if domain else ""
    return f"{pod.address} {full}{host}\n"


def _aliases(pod: NamedPod) -> str:
    lines = [
        f"{each['ip']} {' '.join(each.get('hostnames') or ())}\n"
        for each in pod.manifest["spec"].get("hostAliases") or ()
    ]
    return "".join(lines)


def _published(pods: list[NamedPod], services: Iterable[Raw]) -> dict[str, str]:
    """Lines that all pods of a namespace share."""
    by_namespace: dict[str, list[NamedPod]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.namespace, []).append(pod)
    lines: dict[str, list[str]] = {}
    for service in services:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        spec = service.get("spec") or {}
        selector = spec.get("selector")
        if not selector:
            continue
        chosen = [
            pod
            for pod in by_namespace.get(namespace, ())
            if selector.items() <= (pod.manifest["metadata"].get("labels") or {}).items()
            and (pod.is_ready or spec.get("publishNotReadyAddresses"))
        ]
        is_headless = spec.get("clusterIP") == "None"
        found = lines.setdefault(namespace, [])
        for pod in chosen:
            if is_headless and pod.manifest["spec"].get("subdomain") == name:
                found.append(
                    f"{pod.address} {_forms(f'{host_name(pod.manifest)}.{name}', namespace)}\n"
                )
            found.append(f"{pod.address} {_forms(name, namespace)}\n")
    return {namespace: "".join(found) for namespace, found in lines.items()}


def _forms(name: str, namespace: str) -> str:
    """All forms of a name, the full one first."""
    return f"{name}.{namespace}.{_DOMAIN} {name}.{namespace}.svc {name}.{namespace} {name}"
