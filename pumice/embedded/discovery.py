"""Discovery: version, groups and resources of the server."""

import platform

from pumice.api.meta import Raw
from pumice.embedded.resources import Resource, ResourceRegistry, Subresource

VERSION = "v1.36.3"
"""Kubernetes version whose behaviour the contract suite compares with."""


def version_info() -> Raw:
    """Answer of `/version`."""
    major, minor, _ = VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{VERSION}+pumice",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def api_versions() -> Raw:
    """Answer of `/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
    }


def _group(registry: ResourceRegistry, group: str) -> Raw:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in registry.versions(group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_groups(registry: ResourceRegistry, group: str | None = None) -> Raw | None:
    """Answer of `/apis`, or of `/apis/<group>`; None for an unknown group."""
    if group is None:
        groups = [_group(registry, each) for each in registry.groups()]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if group not in registry.groups():
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}


def _resources(registry: ResourceRegistry, group: str, version: str) -> list[Resource]:
    return [
        each for each in registry.all() if each.kind.group == group and each.kind.version == version
    ]


def resource_list(registry: ResourceRegistry, group: str, version: str) -> Raw | None:
    """Answer of `/api/v1` or `/apis/<group>/<version>`; None for an unknown one."""
    resources = _resources(registry, group, version)
    if not resources:
        return None
    rows: list[Raw] = []
    for resource in resources:
        kind = resource.kind
        row: Raw = {
            "name": kind.plural,
            "singularName": resource.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(resource.verbs),
        }
        rows.append(row | _other_names(resource))
        rows.extend(_subresource_row(resource, each) for each in resource.subresources)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": resources[0].kind.api_version,
        "resources": rows,
    }


def _subresource_row(resource: Resource, subresource: Subresource) -> Raw:
    row: Raw = {
        "name": f"{resource.kind.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.kind.namespaced,
        "kind": subresource.kind or resource.kind.kind,
        "verbs": list(subresource.verbs),
    }
    if subresource.kind:
        row["group"] = subresource.group
        row["version"] = subresource.version
    return row


def discovery_list(registry: ResourceRegistry, groups: list[str], api_version: str) -> Raw:
    """Aggregated discovery: everything about several groups at once (`""` is the core group)."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": api_version,
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group, "creationTimestamp": None} if group else {},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [
                            _discovered(each) for each in _resources(registry, group, version)
                        ],
                    }
                    for version in registry.versions(group)
                ],
            }
            for group in groups
        ],
    }


def _other_names(resource: Resource) -> Raw:
    """Short names and categories of a resource that has some."""
    found = {"shortNames": resource.kind.short_names, "categories": resource.categories}
    return {key: list(names) for key, names in found.items() if names}


def _discovered(resource: Resource) -> Raw:
    kind = resource.kind
    row: Raw = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    row |= _other_names(resource)
    if resource.subresources:
        row["subresources"] = [
            {
                "subresource": each.name,
                "responseKind": {
                    "group": each.group if each.kind else kind.group,
                    "version": each.version if each.kind else kind.version,
                    "kind": each.kind or kind.kind,
                },
                "verbs": list(each.verbs),
            }
            for each in resource.subresources
        ]
    return row
