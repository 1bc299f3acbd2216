"""What is wrong with the edits and objects that a plugin wants, in ways that only the API server would notice."""

from collections.abc import Iterator
from typing import Any

from pumice.api import names
from pumice.api.kinds import CONFIG_MAP, NETWORK_POLICY, SECRET, SERVICE
from pumice.plugins import KeySecret, PodEdits, Raw

__all__ = ["KINDS", "fault_in_pod", "fault_of_objects"]

KINDS = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)
"""Kinds that the controller watches and may write for plugins."""

_LARGEST_PORT = 65535


def fault_in_pod(edits: PodEdits) -> str:
    """The first thing that the API server would refuse in a pod; empty if there is none."""
    return next(filter(None, _faults_in_pod(edits)), "")


def _faults_in_pod(edits: PodEdits) -> Iterator[str]:
    for variable in edits.env:
        yield _named("variable", variable.name, names.env_name_problem(variable.name))
    for port in edits.ports:
        number: Any = port.number
        if not isinstance(number, int) or not 1 <= number <= _LARGEST_PORT:
            yield f"port {number!r} is none: expected a number from 1 to {_LARGEST_PORT}"
        if port.name:
            yield _named("port name", port.name, names.port_name_problem(port.name))
    volumes = [str(each.get("name", "")) for each in edits.volumes]
    for name in volumes:
        yield _named("volume", name, names.dns_label_problem(name))
    for mount in edits.mounts:
        if not mount.path:
            yield f'the path at which volume "{mount.volume}" is mounted is empty'
        if mount.volume not in volumes:
            yield f'mounts volume "{mount.volume}", which its volumes do not hold'
    for key, value in (edits.labels or {}).items():
        yield _named("label", key, names.qualified_name_problem(key))
        yield _named(f"the value of label {key},", value, names.label_value_problem(value))
    for key in edits.annotations or {}:
        yield _named("annotation", key, names.qualified_name_problem(key))


def fault_of_objects(objects: list[Raw], secrets: list[KeySecret], namespace: str) -> str:
    """The first thing that the controller would not write; empty if there is none."""
    for manifest in objects:
        if fault := _fault_of_manifest(manifest, namespace):
            return fault
    for secret in secrets:
        if secret.namespace != namespace:
            return f'Secret "{secret.name}" is not in the Job\'s namespace'
    return ""


def _fault_of_manifest(manifest: Raw, namespace: str) -> str:
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    if (version, kind) not in [(each.api_version, each.kind) for each in KINDS]:
        known = ", ".join(f"{each.api_version} {each.kind}" for each in KINDS)
        return f'the controller writes no "{version} {kind}" for plugins, but {known}'
    name = metadata["name"]
    if problem := names.dns_subdomain_problem(name):
        return _named(kind, name, problem)
    if metadata.get("namespace") != namespace:
        return f'{kind} "{name}" is not in the Job\'s namespace'
    if "ownerReferences" in metadata:
        return f'{kind} "{name}" has ownerReferences, which the controller adds'
    return ""


def _named(what: str, name: str, problem: str | None) -> str:
    return f'{what} "{name}" {problem}' if problem else ""
