"""Which resources the server has: the built-in ones and those that CRDs define; and which of them a request path addresses.

A resource is a kind with verbs, subresources, strategy (processing of new and changed objects) and table columns. The
registry is a value of one server; imports register nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from pumice.api.kinds import Kind
from pumice.embedded.storage import ResourceKey
from pumice.embedded.strategies import Strategy

ALL_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One printer column.

    Attributes:
        name: Heading, as the table carries it.
        path: JSONPath of a CRD's `additionalPrinterColumns`.
        type: `string`, `integer`, `number`, `boolean` or `date`.
        description: What the column shows.
        priority: 0 is always shown, more only with `-o wide`.
        format: OpenAPI format.
    """

    name: str
    path: str = ""
    type: str = "string"
    description: str = ""
    priority: int = 0
    format: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A resource under an object, such as `pods/binding`.

    Attributes:
        name: Last part of the path.
        kind: Kind of what is sent and received; empty for that of the object.
        group: API group of that kind.
        version: Version of that kind.
        verbs: What can be done with it.
    """

    name: str
    kind: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ("get", "patch", "update")


STATUS = Subresource("status")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version.

    Attributes:
        kind: Group, version, names and scope.
        strategy: What happens to objects on their way in.
        singular: Lower-case singular for kubectl.
        list_kind: Kind of a list of them.
        categories: kubectl's collective names, such as `all`.
        verbs: What can be done with objects.
        subresources: What hangs below an object.
        columns: Printer columns of a CRD; None for built-in resources.
        schema: OpenAPI schema of a CRD; None for built-in resources.
        fields: Field selectors beyond `metadata.name` and `metadata.namespace`.
        crd: Name of the CRD behind it, empty for built-in resources.
        warning: What a creation warns of.
    """

    kind: Kind
    strategy: Strategy
    singular: str
    list_kind: str
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    columns: tuple[PrinterColumn, ...] | None = None
    schema: dict[str, Any] | None = field(default=None, hash=False, compare=False)
    fields: tuple[str, ...] = ()
    crd: str = ""
    warning: str = ""

    @property
    def key(self) -> ResourceKey:
        """Where its objects are stored."""
        return (self.kind.group, self.kind.plural)

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name."""
        return next((each for each in self.subresources if each.name == name), None)


class ResourceRegistry:
    """The resources of one server, found by path or by kind."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Add a resource, or replace it."""
        kind = resource.kind
        self._by_path[kind.group, kind.version, kind.plural] = resource
        self._by_kind[kind.api_version, kind.kind] = resource

    def remove(self, resource: Resource) -> None:
        """Remove a resource."""
        kind = resource.kind
        self._by_path.pop((kind.group, kind.version, kind.plural), None)
        self._by_kind.pop((kind.api_version, kind.kind), None)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource that a path names."""
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a manifest's kind."""
        return self._by_kind.get((api_version, kind))

    def of_key(self, key: ResourceKey) -> Resource | None:
        """A resource stored under that key, in whichever version comes first."""
        for (group, _, plural), resource in self._by_path.items():
            if (group, plural) == key:
                return resource
        return None

    def all(self) -> list[Resource]:
        """All resources, by group, version and plural."""
        return [self._by_path[path] for path in sorted(self._by_path)]

    def versions(self, group: str) -> list[str]:
        """Versions of a group, the preferred one first; empty for an unknown group."""
        found = dict.fromkeys(version for name, version, _ in self._by_path if name == group)
        return sorted(found, key=_preference)

    def groups(self) -> list[str]:
        """Names of all groups but the core one."""
        return sorted({group for group, _, _ in self._by_path if group})


def _preference(version: str) -> tuple[int, int, int, str]:
    """Order in which Kubernetes prefers versions: v2, v1, v1beta2, v1beta1, v1alpha1, others."""
    head, _, rest = version.partition("alpha")
    stage = 2
    if not rest:
        head, _, rest = version.partition("beta")
        stage = 1 if rest else 0
    number = head.removeprefix("v")
    if not (version.startswith("v") and number.isdigit() and (not rest or rest.isdigit())):
        return (3, 0, 0, version)
    return (stage, -int(number), -int(rest or 0), version)


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


FieldValidation = Literal["Ignore", "Warn", "Strict"]
DEFAULT_USER = "kubernetes-admin"
"""There is no authentication: the server listens on loopback for one user."""


@dataclass(slots=True)
class Call:
    """A request: operation, object and options.

    Attributes:
        resource: The resource.
        namespace: Its namespace, empty for cluster-scoped resources and for all namespaces.
        name: Its name, empty for a collection.
        subresource: The subresource; empty for the object itself.
        dry_run: Whether nothing may be written.
        manager: Name under which server-side apply records who set a field.
        force: Whether an apply takes fields over from other managers.
        validation: What happens about fields that the kind does not have.
        warnings: Warnings for the client; filled while the request is handled.
        admit: Whether admission is called. Direct writes of tests skip it.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    manager: str = "unknown"
    force: bool = False
    validation: FieldValidation = "Warn"
    warnings: list[str] = field(default_factory=list)
    admit: bool = True
