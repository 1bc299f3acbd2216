"""Direct reads and writes for tests and for parts of the server: no HTTP, no await.

Objects get the same processing as in requests (defaults, schemas, versions), except for the webhook, which is called
only if `admit=True`. Results are private copies.
"""

from pumice.api.kinds import Kind
from pumice.api.raw import object_in
from pumice.embedded import statuses
from pumice.embedded.deletion import DeleteOptions, delete
from pumice.embedded.objects import Objects
from pumice.embedded.resources import Call, Resource, ResourceRegistry
from pumice.embedded.selectors import selector
from pumice.embedded.storage import Obj, Storage, Version


class Store:
    """Synchronous access to the objects of an embedded server.

    Attributes:
        objects: What is under it, for requests with options.
    """

    def __init__(self, registry: ResourceRegistry, objects: Objects) -> None:
        self._registry = registry
        self.objects = objects

    @property
    def storage(self) -> Storage:
        """The storage of all versions of objects; `storage.revision` is the newest revision."""
        return self.objects.storage

    def create(self, obj: Obj, *, admit: bool = False) -> Obj:
        """Create an object, in the namespace that it names or in `default`.

        Raises:
            ApiStatusError: As a request would be answered.
        """
        call = self.call_of(obj, named=False, admit=admit)
        return self.objects.create(call, _private(obj)).copy()

    def restore(self, obj: Obj) -> Obj:
        """Take over an object as it was in another cluster, without admission; see `Objects.restore`.

        Raises:
            ApiStatusError: 400 or 422.
        """
        return self.objects.restore(self.call_of(obj, named=True), _private(obj)).copy()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj | None:
        """An object, or None."""
        version = self.storage.get(self.resource(kind).key, namespace, name)
        return version.copy() if version else None

    def list(self, kind: Kind, namespace: str | None = None, *, fields: str = "") -> list[Obj]:
        """Objects by namespace and name; without a namespace, all of them."""
        resource = self.resource(kind)
        selected = selector("", fields, resource.fields)
        versions = self.storage.table(resource.key).items(namespace)
        return [version.copy() for version in versions if selected(version.obj)]

    def update(self, obj: Obj, *, subresource: str = "", admit: bool = False) -> Obj:
        """Replace an object; one without `resourceVersion` replaces whichever there is.

        Raises:
            ApiStatusError: As a request would be answered.
        """
        call = self.call_of(obj, named=True, admit=admit)
        call.subresource = subresource
        copied = _private(obj)
        current = self.objects.get(call)
        if not copied["metadata"].get("resourceVersion"):
            copied["metadata"]["resourceVersion"] = current.obj["metadata"]["resourceVersion"]
        return self.objects.update(call, copied).copy()

    def update_status(self, obj: Obj) -> Obj:
        """Replace an object's status.

        Raises:
            ApiStatusError: As a request would be answered.
        """
        return self.update(obj, subresource="status")

    def delete(
        self, kind: Kind, name: str, namespace: str = "", *, propagation: str = "", grace: int = 0
    ) -> None:
        """Delete an object; a pod at once, unless a grace is given.

        Raises:
            ApiStatusError: As a request would be answered.
        """
        call = Call(self.resource(kind), namespace, name, admit=False)
        delete(self.objects, call, DeleteOptions(propagation=propagation, grace=grace))

    def resource(self, kind: Kind) -> Resource:
        """The resource of a kind.

        Raises:
            ApiStatusError: 404 when the server does not have it.
        """
        resource = self._registry.find(kind.group, kind.version, kind.plural)
        if resource is None:
            raise statuses.not_found(kind, "")
        return resource

    def call_of(self, obj: Obj, *, named: bool = False, admit: bool = False) -> Call:
        """The request for a manifest.

        Args:
            obj: The manifest.
            named: Whether it means the object of its name, not the collection.
            admit: Whether admission is to be asked.

        Raises:
            ApiStatusError: 400 for a kind that the server does not have.
        """
        api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
        resource = self._registry.of_kind(api_version, kind)
        if resource is None:
            raise statuses.bad_request(f'no matches for kind "{kind}" in version "{api_version}"')
        metadata = object_in(obj, "metadata")  # another value is refused when it is created
        namespace = metadata.get("namespace") or "default" if resource.kind.namespaced else ""
        return Call(resource, namespace, metadata.get("name", "") if named else "", admit=admit)


def _private(obj: Obj) -> Obj:
    return Version(obj, 0).copy()
