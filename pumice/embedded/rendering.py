"""Objects in responses: single, in lists, as tables, as metadata only."""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from pumice.embedded import statuses
from pumice.embedded.media import MediaForm
from pumice.embedded.resources import Resource
from pumice.embedded.storage import Obj, Version, encode
from pumice.embedded.tables import Tables


class Continue(msgspec.Struct, frozen=True):
    """Where the next page of a list begins, and in which version.

    Attributes:
        revision: Version that all pages show.
        namespace: Namespace of the last object shown.
        name: Its name.
    """

    revision: int
    namespace: str
    name: str

    def encode(self) -> str:
        """As the opaque text that clients send back."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()

    @classmethod
    def decode(cls, text: str) -> "Continue":
        """Read the text.

        Raises:
            ApiStatusError: 400 when it was not made here.
        """
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(text), type=cls)
        except (msgspec.DecodeError, ValueError) as error:
            raise statuses.bad_request("continue key is not valid") from error


class Renderer:
    """Renders objects of any resource."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def one(
        self, resource: Resource, version: Version, form: MediaForm, include: str = ""
    ) -> bytes:
        """One object."""
        match form.name:
            case "Table":
                table = self._tables.table(resource, [version], include, headed=True)
                table["metadata"] = {"resourceVersion": str(version.revision)}
                return encode(table)
            case "PartialObjectMetadata" | "PartialObjectMetadataList":
                return encode(_bare("PartialObjectMetadata", form, version.obj))
            case _:
                return self.raw(resource, version)

    def event(
        self, resource: Resource, version: Version, form: MediaForm, include: str, *, first: bool
    ) -> bytes:
        """One object inside a watch; only the first table carries its headings."""
        if form.name == "Table":
            table = self._tables.table(resource, [version], include, headed=first)
            table["metadata"] = {"resourceVersion": str(version.revision)}
            return encode(table)
        return self.one(resource, version, form)

    def many(
        self,
        resource: Resource,
        versions: Sequence[Version],
        form: MediaForm,
        metadata: dict[str, Any],
        include: str = "",
    ) -> bytes:
        """A list."""
        if form.name == "Table":
            table = self._tables.table(resource, versions, include, headed=True)
            table["metadata"] = metadata
            return encode(table)
        kind = resource.list_kind
        api_version = resource.kind.api_version
        if form.name == "PartialObjectMetadataList":
            kind, api_version = form.name, form.api_version
            items = [encode(_bare("PartialObjectMetadata", form, each.obj)) for each in versions]
        else:
            items = self._items(resource, versions)
        head = encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})
        return head[:-1] + b',"items":[' + b",".join(items) + b"]}"

    def _items(self, resource: Resource, versions: Sequence[Version]) -> list[bytes]:
        """The objects of a list; those of built-in kinds do not repeat what the list says."""
        raws = [self.raw(resource, each) for each in versions]
        if resource.strategy.custom:
            return raws
        kind = resource.kind
        head = encode(kind.type_meta)[:-1] + b","
        return [b"{" + raw[len(head) :] if raw.startswith(head) else raw for raw in raws]

    def raw(self, resource: Resource, version: Version) -> bytes:
        """The object itself, in the version of the resource that was asked for."""
        if version.obj["apiVersion"] == resource.kind.api_version:
            return version.raw
        return encode({**version.obj, "apiVersion": resource.kind.api_version})


def _bare(kind: str, form: MediaForm, obj: Obj) -> Obj:
    return {"kind": kind, "apiVersion": form.api_version, "metadata": obj["metadata"]}
