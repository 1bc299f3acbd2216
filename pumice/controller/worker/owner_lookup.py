"""Lookup of owners of pods whose kinds are not watched.

Owners can be of any kind, and watching all kinds would cost too much. So an owner is read when its PodGroup is created,
and at intervals after that: one request reads its metadata, and one request for each kind finds the path. This needs
RBAC rights. Without them the PodGroup is created without data of the owner, and the kind is not read again for some
time.
"""

import re
from dataclasses import dataclass

import msgspec

from pumice.api.kinds import Kind
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.errors import ApiError, Forbidden, NotFound
from pumice.controller.other_owners import OwnedGang, PodOwner
from pumice.controller.plan import RecordEvent

LOOK_AGAIN_SECONDS = 600.0
"""How long until a kind that is not served, or must not be read, is tried again."""

FRESH_SECONDS = 60.0
"""How long a result is valid: pods of a gang are created one after the other."""

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
"""A valid path segment. Users write owner references, and the API server does not check names in them."""


class _ServedResource(msgspec.Struct):
    name: str = ""
    kind: str = ""
    namespaced: bool = True


class _ServedResources(msgspec.Struct):
    resources: list[_ServedResource] | None = None


_resources = msgspec.json.Decoder(_ServedResources)


@dataclass(frozen=True, slots=True)
class FoundOwner:
    """The result of a lookup.

    Attributes:
        owner: The metadata of the owner; None if it is gone or reading it is forbidden.
        unread: Why reading it is forbidden.
    """

    owner: PodOwner | None = None
    unread: RecordEvent | None = None


class OwnerLookup:
    """Cache of owners, of served kinds, and of kinds that may not be read. Entries expire."""

    def __init__(self, client: Client, clock: Clock) -> None:
        """Create an empty cache."""
        self._client = client
        self._clock = clock
        self._owners: dict[tuple[str, str], tuple[float, FoundOwner]] = {}
        self._kinds: dict[Kind, tuple[float, Kind | None]] = {}
        self._refused: dict[tuple[Kind, str], float] = {}

    async def read(self, gang: OwnedGang) -> FoundOwner:
        """The owner of a gang of pods.

        Raises:
            ApiError: It cannot be read for now.
        """
        key = gang.namespace, gang.uid
        now = self._clock.monotonic()
        known = self._owners.get(key)
        if known is not None and now - known[0] < FRESH_SECONDS:
            return known[1]
        try:
            found = await self._look_up(gang)
        except ApiError:
            if known is None:
                raise
            return known[1]
        self._owners[key] = now, found
        return found

    def forget(self, namespace: str, uid: str) -> None:
        """Drop an owner whose pods are gone."""
        self._owners.pop((namespace, uid), None)

    async def _look_up(self, gang: OwnedGang) -> FoundOwner:
        if not all(
            map(_SEGMENT.fullmatch, (gang.kind.group or "core", gang.kind.version, gang.name))
        ):
            return FoundOwner()
        kind = await self._served(gang.kind)
        if kind is None:
            return FoundOwner()
        where = kind, gang.namespace
        now = self._clock.monotonic()
        if now - self._refused.get(where, -LOOK_AGAIN_SECONDS) < LOOK_AGAIN_SECONDS:
            return _unread(gang, kind)
        try:
            found = await self._client.get(kind, gang.name, gang.namespace, metadata_only=True)
        except NotFound:
            return FoundOwner()
        except Forbidden:
            self._refused[where] = now
            return _unread(gang, kind)
        owner = msgspec.convert({"metadata": found["metadata"]}, PodOwner)
        return FoundOwner(owner if owner.metadata.uid == gang.uid else None)

    async def _served(self, kind: Kind) -> Kind | None:
        """A kind as the API server serves it; None if it does not."""
        now = self._clock.monotonic()
        self._kinds = {
            each: known
            for each, known in self._kinds.items()
            if now - known[0] < LOOK_AGAIN_SECONDS
        }
        if kind not in self._kinds:
            self._kinds[kind] = now, await self._discover(kind)
        return self._kinds[kind][1]

    async def _discover(self, kind: Kind) -> Kind | None:
        root = "/apis" if kind.group else "/api"
        try:
            answer = await self._client.raw("GET", f"{root}/{kind.api_version}")
        except NotFound:
            return None
        for each in _resources.decode(answer).resources or ():
            if each.kind == kind.kind and "/" not in each.name:
                return Kind(kind.group, kind.version, kind.kind, each.name, each.namespaced)
        return None


def _unread(gang: OwnedGang, kind: Kind) -> FoundOwner:
    message = (
        f"annotations of {kind.kind} {gang.name} are not read, because the controller has no right to get {kind.resource}; add it to "
        "controller.owners of the chart, or write the annotations into the template of its pods"
    )
    return FoundOwner(unread=RecordEvent("Normal", "OwnerNotRead", message))
