"""The resources and objects that request paths address."""

from dataclasses import dataclass

from pumice.embedded.resources import Resource, ResourceRegistry

__all__ = ["Target", "locate"]


@dataclass(frozen=True, slots=True)
class Target:
    """The resource, object or subresource that a path addresses.

    Attributes:
        resource: The resource.
        namespace: Namespace in the path; empty for none or all.
        name: Object in the path; empty for the collection.
        subresource: What below the object; empty for the object itself.
        watch: Whether the old `/watch/` prefix stands in the path.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def locate(registry: ResourceRegistry, segments: list[str]) -> Target | None:
    """Find what the segments of a path (`apis`, group, version, ...) address; None for nothing."""
    if segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    else:
        group, version, rest = segments[1], segments[2], segments[3:]
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not _is_namespace_part(group, rest[2]):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    resource = registry.find(group, version, plural)
    if resource is None or (namespace and not resource.kind.namespaced):
        return None
    if name and not namespace and resource.kind.namespaced:
        return None
    if subresource and resource.subresource(subresource) is None and not resource.crd:
        return None
    return Target(resource, namespace, name, subresource, watch)


def _is_namespace_part(group: str, segment: str) -> bool:
    """Whether `namespaces/x/<segment>` is part of the namespace x, not a resource in it."""
    return not group and segment in {"status", "finalize"}
