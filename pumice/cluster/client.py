"""REST with an API server: JSON out, JSON in, every failure an `ApiError`.

Objects are plain dicts (or msgspec structs, or bytes, on the way out). `collection` reads lists page by page and watches; caches
decode them directly into their structs. `transport` has what all requests share.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from pumice.api.kinds import NODE, POD, Kind
from pumice.cluster.clock import Clock
from pumice.cluster.collection import Collection, decode_answer
from pumice.cluster.connection import Connection
from pumice.cluster.kubeconfig import find_connection
from pumice.cluster.paths import collection_path, object_path
from pumice.cluster.transport import Body, Transport

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"

FIELD_MANAGER = "pumice"
"""Name under which fields are set, as `metadata.managedFields` has it."""

METADATA_ONLY = {
    # The second form is for servers and responses without the first.
    "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
}
"""Header of a request whose response may contain only the metadata."""

LOG_SILENCE = 86_400.0
"""Seconds for which a log that is followed may have no new line; a broken connection is found out by probes."""

Object = dict[str, Any]
"""An object as JSON gives it."""


class Client:
    """A session with one API server. Create it with `connect`; tasks may share it."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock | None = None,
        fail_fast: bool = False,
    ) -> None:
        """Open a session. Call it inside a running event loop, and `close` it.

        Args:
            connection: The server and the credentials.
            clock: Waits between repeated reads.
            fail_fast: Whether a server that has never answered is reported after one attempt, for commands of users.
        """
        self._transport = Transport(connection, clock=clock, fail_fast=fail_fast)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        kubeconfig: str | Path | None = None,
        server: str | None = None,
        *,
        context: str | None = None,
        clock: Clock | None = None,
        fail_fast: bool = False,
    ) -> AsyncIterator["Client"]:
        """Find the API server (see `find_connection`) and open a session for a `with` block.

        Raises:
            ConfigurationError: When no API server is known.
        """
        found = await find_connection(kubeconfig, server, context=context)
        client = cls(found, clock=clock, fail_fast=fail_fast)
        try:
            yield client
        finally:
            await client.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    @property
    def connection(self) -> Connection:
        """The connection of this client."""
        return self._transport.connection

    # Reading

    async def version(self) -> Object:
        """`GET /version`: `gitVersion` and the rest."""
        return await self._object("GET", "/version")

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, metadata_only: bool = False
    ) -> Object:
        """Read one object, or its metadata alone.

        Raises:
            NotFound: When it does not exist.
        """
        headers = METADATA_ONLY if metadata_only else None
        return await self._object("GET", object_path(kind, name, namespace), headers=headers)

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Object:
        """Read a whole collection, page by page, as one list object.

        Raises:
            Gone: When the continue token has expired, so that the list must be started again.
        """
        whole: Object = {}
        items: list[Object] = []
        asked = self.collection(kind, namespace, label_selector, field_selector)
        async for body in asked.bodies():
            whole = decode_answer(_object_decoder, body, f"GET {kind.resource}")
            items.extend(whole.get("items") or ())
        whole["items"] = items
        return whole

    def collection(
        self,
        kind: Kind,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Collection:
        """The objects of a kind, to be listed page by page or watched."""
        return Collection(self._transport, kind, namespace, label_selector, field_selector)

    async def log(
        self, namespace: str, pod: str, query: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Read the log of a container in chunks, those of `follow` as they come.

        Args:
            namespace: Namespace of the pod.
            pod: Its name.
            query: `v1.PodLogOptions`: `container`, `follow`, `timestamps`, `tailLines`, `sinceTime` and so on.

        Raises:
            BadRequest: The container has not started, or the pod has several and the query names none.
            NotFound: There is no such pod.
        """
        path = f"{object_path(POD, pod, namespace)}/log"
        async with self._transport.stream(path, query=query, silence=LOG_SILENCE) as chunks:
            async for chunk in chunks:
                yield chunk

    # Writing

    async def create(
        self,
        kind: Kind,
        obj: Body,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        metadata_only: bool = False,
    ) -> Object:
        """Create an object, in its own namespace unless another is given.

        Args:
            kind: Its kind.
            obj: The object.
            namespace: Its namespace, if it does not name one itself.
            dry_run: Whether the object is only checked.
            metadata_only: Whether the response may contain only the metadata.

        Raises:
            AlreadyExists: When the name is taken.
            Invalid: When the schema or a rule refuses it.
            Forbidden: When admission or RBAC refuses it.
        """
        namespace = namespace or _namespace_of(obj)
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        headers = METADATA_ONLY if metadata_only else None
        return await self._object("POST", collection_path(kind, namespace), obj, query, headers)

    async def update(self, kind: Kind, obj: Object) -> Object:
        """Replace an object; its resourceVersion guards against lost updates.

        Raises:
            Conflict: When it changed meanwhile.
        """
        meta = obj["metadata"]
        path = object_path(kind, meta["name"], meta.get("namespace"))
        return await self._object("PUT", path, obj, {"fieldManager": FIELD_MANAGER})

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Body,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
        metadata_only: bool = False,
    ) -> Object:
        """Patch an object or one of its subresources (`status`, `scale`); see `create`.

        Raises:
            Invalid: When a `test` operation of a JSON patch fails or the result is invalid.
        """
        path = object_path(kind, name, namespace)
        if subresource:
            path = f"{path}/{subresource}"
        query = {"fieldManager": FIELD_MANAGER}
        headers = {"Content-Type": content_type} | (METADATA_ONLY if metadata_only else {})
        return await self._object("PATCH", path, body, query, headers)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str | None = None,
        uid: str | None = None,
        grace: int | None = None,
        resource_version: str | None = None,
        metadata_only: bool = False,
    ) -> Object:
        """Delete an object.

        Args:
            kind: Its kind.
            name: Its name.
            namespace: Its namespace.
            propagation: `Background`, `Foreground` or `Orphan`; the kind's default when None.
            uid: Delete only this incarnation.
            grace: Seconds between the signal and the end of a pod's processes.
            resource_version: Delete only this state.
            metadata_only: Whether the response for an object that stays may contain only the metadata.

        Returns:
            A Status, or the object if finalizers delay the deletion.

        Raises:
            NotFound: When it does not exist.
            Conflict: When it is not the incarnation or state expected.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        guards = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {key: value for key, value in guards.items() if value}:
            options["preconditions"] = preconditions
        headers = METADATA_ONLY if metadata_only else None
        return await self._object(
            "DELETE", object_path(kind, name, namespace), options, None, headers
        )

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Assign a pod to a node, and add annotations to it.

        Raises:
            Conflict: When it is assigned already, or is another incarnation than `uid`.
        """
        guard = {"uid": uid} if uid else {}
        added = {"annotations": dict(annotations)} if annotations else {}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace} | guard | added,
            "target": {**NODE.type_meta, "name": node},
        }
        await self._transport.request("POST", f"{object_path(POD, pod, namespace)}/binding", body)

    async def evict(self, namespace: str, pod: str, *, uid: str | None = None) -> None:
        """Request a pod's eviction.

        Raises:
            TooManyRequests: When a disruption budget forbids it for now.
            NotFound: When the pod is gone.
        """
        guard = {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        } | guard
        await self._transport.request("POST", f"{object_path(POD, pod, namespace)}/eviction", body)

    async def raw(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send any request, for paths without a kind (`/readyz`, `/openapi/v3`)."""
        return await self._transport.request(method, path, body, query=query, headers=headers)

    async def _object(
        self,
        method: str,
        path: str,
        body: Body = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Object:
        answer = await self._transport.request(method, path, body, query=query, headers=headers)
        return decode_answer(_object_decoder, answer, f"{method} {path}")


_object_decoder = msgspec.json.Decoder(Object)


def _namespace_of(obj: Body) -> str | None:
    if isinstance(obj, Mapping):
        namespace = (obj.get("metadata") or {}).get("namespace")
        return str(namespace) if namespace else None
    return getattr(getattr(obj, "metadata", None), "namespace", None) or None
