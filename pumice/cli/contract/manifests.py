"""Whether what a plugin asks for can be had: edits of a pod, objects and Secrets beside a Job."""

from collections.abc import Sequence
from typing import Any

import msgspec

from pumice.api import names
from pumice.api.kinds import CONFIG_MAP, NETWORK_POLICY, SECRET, SERVICE
from pumice.plugins import EnvVar, KeySecret, Mount, PodEdits, Port

__all__ = ["KINDS", "faults_of_edits", "faults_of_objects", "repeated"]

KINDS = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)
"""Kinds that the controller watches and may write for plugins."""

_LARGEST_PORT = 65535
_LISTS = (("env", EnvVar), ("mounts", Mount), ("ports", Port))


def faults_of_edits(edits: Any) -> str:
    """The first thing that no pod can have; empty when there is none."""
    if not isinstance(edits, PodEdits):
        return f"expected PodEdits, found {edits!r}"
    for field, kind in _LISTS:
        for each in getattr(edits, field):
            if not isinstance(each, kind):
                return f"{field} holds {each!r}, expected {kind.__name__}"
    return _fault_of_fields(edits) or _fault_of_metadata(edits)


def _fault_of_fields(edits: Any) -> str:
    for variable in edits.env:
        if problem := names.env_name_problem(variable.name):
            return f'variable "{variable.name}" {problem}'
        if not isinstance(variable.value, str):
            return f"the value of {variable.name} is {variable.value!r}, expected text"
    for port in edits.ports:
        if not isinstance(port.number, int) or not 1 <= port.number <= _LARGEST_PORT:
            return f"port {port.number!r} is none: expected a number from 1 to {_LARGEST_PORT}"
        if port.name and (problem := names.port_name_problem(port.name)):
            return f'port name "{port.name}" {problem}'
    volumes = {each.get("name") for each in edits.volumes}
    for volume in edits.volumes:
        if problem := names.dns_label_problem(str(volume.get("name", ""))):
            return f'volume "{volume.get("name", "")}" {problem}'
    for mount in edits.mounts:
        if not mount.path:
            return f'volume "{mount.volume}" is mounted nowhere: its path is empty'
        if mount.volume not in volumes:
            return f'mounts volume "{mount.volume}", which its volumes do not hold'
    for container in edits.init_containers:
        if not container.get("name") or not container.get("image"):
            return f"init container {container.get('name')!r} needs a name and an image"
    return ""


def _fault_of_metadata(edits: Any) -> str:
    for key, value in (edits.labels or {}).items():
        problem = names.qualified_name_problem(key) or names.label_value_problem(value)
        if problem:
            return f'label "{key}: {value}" {problem}'
    for key, value in (edits.annotations or {}).items():
        if problem := names.qualified_name_problem(key):
            return f'annotation "{key}" {problem}'
        if not isinstance(value, str):
            return f"the value of annotation {key} is {value!r}, expected text"
    return ""


def repeated(edits: Any) -> str:
    """What edits have twice; empty when nothing."""
    if not isinstance(edits, PodEdits):
        return ""
    for what, found in (
        ("variable", [each.name for each in edits.env]),
        ("mount path", [(each.path, each.containers) for each in edits.mounts]),
        ("port", [each.number for each in edits.ports]),
        ("volume", [each.get("name") for each in edits.volumes]),
        ("init container", [each.get("name") for each in edits.init_containers]),
    ):
        if twice := _twice(found):
            return f"{what} {twice[0]}"
    return ""


def faults_of_objects(objects: Sequence[Any], secrets: Sequence[Any], namespace: str) -> str:
    """What is wrong with the objects that a plugin wants; empty when nothing."""
    found: list[tuple[str, str]] = []
    for manifest in objects:
        if fault := _fault_of_manifest(manifest, namespace):
            return fault
        found.append((manifest["kind"], manifest["metadata"]["name"]))
    for secret in secrets:
        if not isinstance(secret, KeySecret):
            return f"secrets gives {secret!r}, expected KeySecret"
        if secret.namespace != namespace:
            return f'Secret "{secret.name}" is not in the Job\'s namespace'
        found.append(("Secret", secret.name))
    if twice := _twice(found):
        return f'wants the {twice[0][0]} "{twice[0][1]}" twice'
    return ""


def _fault_of_manifest(manifest: Any, namespace: str) -> str:
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(metadata, dict):
        return f"objects gives {manifest!r}, expected a manifest with metadata"
    version, kind, name = manifest.get("apiVersion"), manifest.get("kind"), metadata.get("name")
    if (version, kind) not in [(each.api_version, each.kind) for each in KINDS]:
        known = ", ".join(f"{each.api_version} {each.kind}" for each in KINDS)
        return f'the controller writes no "{version} {kind}" for plugins, but {known}'
    if not isinstance(name, str) or names.dns_subdomain_problem(name):
        return f"{kind} {name!r} {names.dns_subdomain_problem(str(name or ''))}"
    if metadata.get("namespace") != namespace:
        return f'{kind} "{name}" is not in the Job\'s namespace'
    if "ownerReferences" in metadata:
        return f'{kind} "{name}" has ownerReferences, which the controller adds'
    try:
        msgspec.json.encode(manifest)
    except (TypeError, ValueError, OverflowError) as error:
        return f'{kind} "{name}" is no JSON: {error}'
    return ""


def _twice(found: Sequence[Any]) -> list[Any]:
    return [each for position, each in enumerate(found) if each in found[:position]]
