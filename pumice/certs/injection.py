"""Keeping `caBundle` right: webhook configurations trust the CAs in the Secret.

A bundle that was set once does not stay: an upgrade or a GitOps tool applies the manifest again and with it an empty
`caBundle`. So the configurations are watched, and every change is reported to the injector. It then reads the Secret
again before it injects: otherwise two replicas could overwrite each other's bundle during a rotation.

Only the named configurations are read and written. Watching one object by its name
(`fieldSelector=metadata.name=…`) is what RBAC's `resourceNames` can allow.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from pumice.api.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Kind
from pumice.certs.authority import same
from pumice.certs.rotation import CertSettings
from pumice.certs.verification import certificates_in
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import JSON_PATCH, Client, Object
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import ApiError, Conflict, Invalid, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.set_aside import ObjectFaults, RetryTimers

logger = logging.getLogger(__name__)

_PLACE = "trust bundle"
"""Where a configuration may be set aside, in metrics and events."""


@dataclass(frozen=True, slots=True)
class WebhookEntry:
    """How the API server calls one webhook.

    Attributes:
        host: Name or address that the served certificate must have.
        trust: `caBundle` as PEM; empty where it is missing.
    """

    host: str
    trust: bytes


def entries_of(configuration: Object) -> list[WebhookEntry]:
    """How the API server calls the webhooks of a configuration."""
    return [
        WebhookEntry(_host(entry), _bundle(entry)) for entry in configuration.get("webhooks") or ()
    ]


def _host(entry: dict[str, Any]) -> str:
    client = entry.get("clientConfig") or {}
    if service := client.get("service"):
        return f"{service.get('name')}.{service.get('namespace')}.svc"
    try:
        return urlsplit(client.get("url") or "").hostname or ""
    except ValueError:
        return ""


def _bundle(entry: dict[str, Any]) -> bytes:
    encoded = (entry.get("clientConfig") or {}).get("caBundle") or ""
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return b""


def patch_for(configuration: Object, trust: bytes) -> list[dict[str, Any]]:
    """The JSON patch that sets the bundle in every entry; empty if all entries have it.

    It begins with a test of the resourceVersion: a JSON patch counts entries, and their order may have
    changed since they were read.
    """
    encoded = base64.b64encode(trust).decode()
    changes = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": encoded}
        for index, entry in enumerate(configuration.get("webhooks") or ())
        if _bundle(entry) != trust
    ]
    version = configuration["metadata"].get("resourceVersion")
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
    return [test, *changes] if changes else []


class Injector:
    """Observed webhook configurations, and the function that updates them.

    Attributes:
        patched: How many configurations were patched so far.
        changed: Set when a configuration changed or must be checked again.
        faults: Reports configurations at which something fails unexpectedly; to be set before `run`.
    """

    def __init__(
        self,
        client: Client,
        mutating: Sequence[str],
        validating: Sequence[str],
        *,
        clock: Clock | None = None,
    ) -> None:
        """Name the configurations.

        Args:
            client: Session with the API server.
            mutating: Names of MutatingWebhookConfigurations.
            validating: Names of ValidatingWebhookConfigurations.
            clock: Times the watches.
        """
        self.patched = 0
        self.changed = asyncio.Event()
        self.faults = ObjectFaults()
        self._client = client
        self._clock = clock or SystemClock()
        self._names: list[tuple[Kind, str]] = [(MUTATING_WEBHOOKS, name) for name in mutating]
        self._names += [(VALIDATING_WEBHOOKS, name) for name in validating]
        self._seen: dict[tuple[Kind, str], list[WebhookEntry]] = {}
        self._retries: RetryTimers[tuple[Kind, str]] = RetryTimers(lambda _: self.changed.set())
        self._missing: set[tuple[Kind, str]] = set()
        self._caches: list[WatchCache[dict[str, Any]]] = []

    @classmethod
    def of(
        cls, client: Client, settings: CertSettings, *, clock: Clock | None = None
    ) -> "Injector":
        """The injector that settings describe."""
        return cls(client, settings.mutating, settings.validating, clock=clock)

    # What is in effect

    @property
    def synced(self) -> bool:
        """Whether `run` has read all configurations for the first time."""
        return bool(self._caches) and all(each.synced.is_set() for each in self._caches)

    @property
    def entries(self) -> list[WebhookEntry]:
        """How the API server calls each webhook of each configuration, as last seen; duplicates are left out."""
        return list(dict.fromkeys(each for seen in self._seen.values() for each in seen))

    @property
    def bundles(self) -> list[bytes]:
        """The bundle of every entry of every configuration that exists, as last seen."""
        return [each.trust for seen in self._seen.values() for each in seen]

    def trusts(self, certificate: x509.Certificate) -> bool:
        """True if every entry trusts a CA, or if there are no entries."""
        return all(
            any(same(certificate, each) for each in certificates_in(bundle))
            for bundle in self.bundles
        )

    # Putting it into effect

    async def inject(self, trust: bytes | None) -> None:
        """Read all configurations, and patch those that have another bundle.

        A configuration that does not exist is left out. One that changes meanwhile, or whose patch the API server
        refuses, is tried again next time.

        Args:
            trust: The bundle as PEM; None to read only.
        """
        for kind, name in self._names:
            try:
                await self._inject_into(kind, name, trust)
            except (Conflict, Invalid):
                self.changed.set()
            except ApiError as error:
                logger.warning("injecting into %s %s: %s", kind.kind, name, error)
            except Exception as error:
                delay = self._retries.fail((kind, name))
                self.faults.failed(Reference(kind, name), _PLACE, error, delay)
            else:
                self._retries.drop((kind, name))
                self.faults.passed(Reference(kind, name), _PLACE)

    async def _inject_into(self, kind: Kind, name: str, trust: bytes | None) -> None:
        try:
            found = await self._client.get(kind, name)
        except NotFound:
            if (kind, name) not in self._missing:
                logger.warning("%s %s does not exist; waiting for it", kind.kind, name)
            self._missing.add((kind, name))
            self._seen.pop((kind, name), None)
            return
        self._missing.discard((kind, name))
        self._seen[kind, name] = entries_of(found)
        operations = patch_for(found, trust) if trust else []
        if operations:
            patched = await self._client.patch(
                kind, name, None, operations, content_type=JSON_PATCH
            )
            self._seen[kind, name] = entries_of(patched)
            self.patched += 1
            logger.info("trust bundle injected into %s %s", kind.kind, name)

    async def run(self) -> None:
        """Watch the configurations and set `changed` at each change, until cancelled."""
        self._caches = [self._watching(kind, name) for kind, name in self._names]
        try:
            async with asyncio.TaskGroup() as group:
                for cache in self._caches:
                    group.create_task(cache.run())
                await asyncio.Event().wait()
        finally:
            self._retries.close()

    def _watching(self, kind: Kind, name: str) -> WatchCache[dict[str, Any]]:
        cache: WatchCache[dict[str, Any]] = WatchCache(
            self._client,
            kind,
            dict[str, Any],
            field_selector=f"metadata.name={name}",
            clock=self._clock,
        )
        cache.faults = self.faults
        cache.subscribe(partial(self._see, kind, name))
        return cache

    def _see(self, kind: Kind, name: str, old: object, new: Object | None) -> None:
        """Record a change, so that readiness is right even while nothing can be injected."""
        del old
        if new is None:
            self._seen.pop((kind, name), None)
        else:
            self._seen[kind, name] = entries_of(new)
        self.changed.set()
