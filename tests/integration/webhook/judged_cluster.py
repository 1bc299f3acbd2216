"""A real cluster that becomes what a row of a case table finds, and is then asked what the row asks.

The webhook judges only what the user `judged` sends, so that everything else, an administrator's work,
may bring about states that admission would not let come to be.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pumice.api.kinds import (
    HYPER_NODE,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    VALIDATING_WEBHOOKS,
    Kind,
    of_object,
)
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.cluster.client import JSON_PATCH, Client
from pumice.cluster.errors import ApiError, NotFound
from pumice.plugins import builtin
from pumice.webhook.registrations import configurations
from pumice.webhook.resource_group_file import parse
from pumice.webhook.rules.resource_groups import ResourceGroups
from pumice.webhook.server import KeptCertificates, StateSource, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.serving import QUICK, Raw, running
from tests.kit.waiting import until
from tests.support.webhook_canary import until_known
from tests.unit.webhook.reviewing import KINDS, Row, merged

Identity = tuple[Kind, str, str]

JUDGED = {"Impersonate-User": "judged", "Impersonate-Group": "system:masters"}
_IS_JUDGED = {"name": "is-judged", "expression": "request.userInfo.username == 'judged'"}
_METHODS = {"CREATE": "POST", "UPDATE": "PUT", "DELETE": "DELETE"}
_REQUIRED: dict[Kind, Raw] = {HYPER_NODE: {"spec": {"tier": 1}}}
"""What the schema of a kind demands and the tables leave out."""
_ALWAYS_THERE = [
    {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}, "spec": {}}
    for name in ("root", "default")
]


@dataclass(frozen=True)
class Verdict:
    """What the API server makes of a request: the object as it would be stored, or why not."""

    stored: Raw = field(default_factory=dict)
    error: ApiError | None = None

    @property
    def by_webhook(self) -> bool:
        """Whether a webhook refused it, and not the API server itself."""
        return self.error is not None and "denied the request" in self.error.message


def sent(row: Row, obj: Raw) -> Raw:
    """An object of a row as an API server hands it on: complete, in its namespace, keys in order."""
    kind, namespace = KINDS[row.path], row.request["namespace"]
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    if namespace:
        metadata["namespace"] = namespace
    whole = obj | {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    ordered: Raw = json.loads(json.dumps(merged(_REQUIRED.get(kind, {}), whole), sort_keys=True))
    return ordered


class JudgedCluster:
    """The cluster of one row after the other."""

    def __init__(self, api: Client, ensure: Callable[[str], None]) -> None:
        """Open it.

        Args:
            api: An administrator's session.
            ensure: Sees to it that there is a namespace.
        """
        self._api = api
        self._ensure = ensure
        self._given: dict[Identity, Raw] = {}
        self._stored: dict[Identity, Raw] = {}
        self._namespaces: dict[str, Raw] = {}
        self._classes: list[Raw] = []

    async def begin(self) -> None:
        """Take away what tests before have left and rules may look at."""
        for kind in (QUEUE, HYPER_NODE, POD_GROUP):
            for each in (await self._api.list(kind))["items"]:
                metadata = each["metadata"]
                with suppress(NotFound):
                    await self._api.delete(kind, metadata["name"], metadata.get("namespace"))
        self._classes = (await self._api.list(PRIORITY_CLASS))["items"]

    def objects(self) -> list[Raw]:
        """Everything that rules may look at, as it is stored."""
        return [*self._classes, *self._namespaces.values(), *self._stored.values()]

    def stored(self, row: Row) -> Raw | None:
        """The object that a row changes or deletes; None when there is none."""
        return self._stored.get(_target(row))

    async def become(self, row: Row) -> None:
        """Become the row's cluster.

        Raises:
            Invalid: No cluster can be like that, because of a schema.
            Forbidden: No cluster can be like that, because of a rule of the API server's own.
        """
        wanted: dict[Identity, Raw] = {}
        namespaces: dict[str, Raw] = {}
        for manifest in (*_ALWAYS_THERE, *row.state):
            kind, metadata = of_object(manifest), manifest["metadata"]
            assert kind is not None
            if kind == NAMESPACE:
                namespaces[metadata["name"]] = metadata.get("annotations", {})
            else:
                wanted[kind, metadata.get("namespace", ""), metadata["name"]] = manifest
        old = row.request["oldObject"]
        if old is not None and row.request["operation"] != "CREATE":
            wanted[_target(row)] = sent(row, old)
        for name in {row.request["namespace"], *(namespace for _, namespace, _ in wanted)} - {""}:
            await self._annotate(name, namespaces.get(name, {}))
        for identity in [each for each in self._given if self._given[each] != wanted.get(each)]:
            await self._remove(identity)
        for identity in [each for each in wanted if each not in self._given]:
            await self._add(identity, wanted[identity])

    async def ask(self, row: Row) -> Verdict:
        """Ask what the row asks, as a dry run."""
        kind, _, name = _target(row)
        namespace, operation = row.request["namespace"] or None, row.request["operation"]
        body = None if operation == "DELETE" else sent(row, row.request["object"])
        path = kind.collection(namespace) if operation == "CREATE" else kind.path(name, namespace)
        stored = self.stored(row)
        if body is not None and stored is not None:
            body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        try:
            answer = await self._api.raw(
                _METHODS[operation], path, body, query={"dryRun": "All"}, headers=JUDGED
            )
        except ApiError as error:
            return Verdict(error=error)
        return Verdict(msgspec.json.decode(answer))

    async def clear(self) -> None:
        """Take everything away but the namespaces."""
        for identity in list(self._given):
            await self._remove(identity)
        for name in list(self._namespaces):
            await self._annotate(name, {})

    async def _annotate(self, name: str, annotations: Raw) -> None:
        """Have a namespace with just these annotations."""
        known = self._namespaces.get(name)
        if known is None:
            await asyncio.to_thread(self._ensure, name)
        if known is None or known["metadata"].get("annotations", {}) != annotations:
            patch = [{"op": "add", "path": "/metadata/annotations", "value": annotations}]
            self._namespaces[name] = await self._api.patch(
                NAMESPACE, name, None, patch, content_type=JSON_PATCH
            )

    async def _add(self, identity: Identity, manifest: Raw) -> None:
        kind, namespace, _ = identity
        stored = await self._api.create(kind, manifest, namespace or None)
        self._given[identity], self._stored[identity] = manifest, stored
        if kind.status and manifest.get("status"):
            status = {"status": manifest["status"]}
            self._stored[identity] = await self._api.patch(
                kind, stored["metadata"]["name"], namespace or None, status, subresource="status"
            )

    async def _remove(self, identity: Identity) -> None:
        del self._given[identity], self._stored[identity]
        kind, namespace, name = identity
        await self._api.delete(kind, name, namespace or None, grace=0)


def _target(row: Row) -> Identity:
    return KINDS[row.path], row.request["namespace"], row.request["name"]


@asynccontextmanager
async def judging(
    api: Client,
    ensure: Callable[[str], None],
    namespace: str,
    assignments: tuple[str, ...],
    conf: bytes,
) -> AsyncIterator[JudgedCluster]:
    """A cluster with a webhook of these settings and resource groups, for as long as the block lasts.

    Args:
        api: An administrator's session with the control plane.
        ensure: Sees to it that there is a namespace.
        namespace: Holds the webhook's certificate.
        assignments: Settings of admission.
        conf: The file of resource groups.
    """
    settings, (groups, _) = AdmissionSettings.from_assignments(assignments), parse(conf)
    manifests = partial(_registered, settings, groups, namespace)
    names: dict[str, list[str]] = {MUTATING_WEBHOOKS.kind: [], VALIDATING_WEBHOOKS.kind: []}
    for manifest in manifests("127.0.0.1:1"):
        names[manifest["kind"]].append(manifest["metadata"]["name"])
    certificates = CertSettings(
        "webhook",
        namespace,
        mutating=tuple(names[MUTATING_WEBHOOKS.kind]),
        validating=tuple(names[VALIDATING_WEBHOOKS.kind]),
        extra_addresses=("127.0.0.1",),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "volcano-admission.conf"
        file.write_bytes(conf)
        worker = WebhookWorker(
            StateSource.of_cluster(api),
            builtin(),
            settings,
            QUICK,
            KeptCertificates(CertificateManager(api, certificates)),
            conf=file,
        )
        cluster = JudgedCluster(api, ensure)
        await cluster.begin()
        async with running(worker) as address:
            try:
                for manifest in manifests(address):
                    await api.create(_configuration(manifest), manifest)
                await until(lambda: worker.ready)
                await until_known(api)
                yield cluster
            finally:
                for manifest in manifests(address):
                    await api.delete(_configuration(manifest), manifest["metadata"]["name"])
                await cluster.clear()


def _registered(
    settings: AdmissionSettings, groups: ResourceGroups, suffix: str, address: str
) -> list[Raw]:
    """Configurations beside whatever is installed, for what is judged alone."""
    found = configurations(
        settings, lambda path: {"url": f"https://{address}{path}"}, groups=groups
    )
    for manifest in found:
        manifest["metadata"]["name"] += f"-{suffix}"
        for webhook in manifest["webhooks"]:
            webhook["matchConditions"] = [*webhook.get("matchConditions", ()), _IS_JUDGED]
    return found


def _configuration(manifest: Any) -> Kind:
    found = of_object(manifest)
    assert found is not None
    return found
