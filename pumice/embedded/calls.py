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
    """Who does what to which object.

    Attributes:
        resource: The resource.
        namespace: Its namespace, empty for cluster-scoped resources and for all namespaces.
        name: Its name, empty for a collection.
        subresource: What below the object is meant, empty for the object itself.
        dry_run: Whether nothing may be written.
        manager: Name under which server-side apply records who set a field.
        force: Whether an apply takes fields over from other managers.
        validation: What happens about fields that the kind does not have.
        warnings: Warnings for the client; filled while the request is handled.
        admit: Whether admission is asked. Direct writes of a test leave it out.
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
