"""One request to the API as the layers below HTTP see it."""

from dataclasses import dataclass, field
from typing import Literal

from pumice.embedded.resources import Resource

__all__ = ["DEFAULT_USER", "Call", "FieldValidation"]

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
