"""A real API server that asks a webhook about one namespace."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from pumice.api.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, VOLCANO
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.cluster.client import Client
from pumice.plugins import builtin
from pumice.webhook.registrations import configurations
from pumice.webhook.server import KeptCertificates, StateSource, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.serving import QUICK, Raw, running
from tests.kit.namespaces import Namespace
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.webhook_canary import until_known

SETTINGS = AdmissionSettings()
NAMES = {
    name: kind
    for kind in VOLCANO
    for name in (
        kind.resource,
        f"{kind.kind.lower()}.{kind.group}",
        kind.kind.lower(),
        *kind.short_names,
    )
}
"""Kinds by what kubectl accepts for them."""
KINDS = {kind.kind: kind for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}


class JudgedNamespace:
    """A namespace about which the API server asks a webhook, as kubectl shows it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.namespace = namespace
        self.plane = plane
        self._inside = Namespace(plane, namespace)

    async def kubectl(self, *arguments: str, obj: Raw | None = None, check: bool = True) -> str:
        """Run kubectl in the namespace; what it printed, errors included."""
        return await asyncio.to_thread(self._inside.kubectl, *arguments, obj=obj, check=check)

    async def get(self, kind: str, name: str) -> Raw:
        """What `kubectl get KIND NAME -o json` shows of an object, without the 60 ms of processor time that it takes."""
        found = await asyncio.to_thread(self._inside.get, NAMES[kind], name)
        del found["metadata"]["managedFields"]
        return found

    async def merge(self, kind: str, name: str, change: Raw) -> None:
        """Send the request of `kubectl patch --type=merge`, of `kubectl label` and of `kubectl annotate`."""
        await self._patch("merge-patch+json", kind, name, change)

    async def server_side(self, kind: str, obj: Raw, **options: str) -> Raw:
        """Send the request of Flux, and of `kubectl apply --server-side`; the answer without `managedFields`."""
        query = urlencode({"fieldManager": "flux", "fieldValidation": "Strict", **options})
        name = f"{obj['metadata']['name']}?{query}"
        answer = await self._patch("apply-patch+yaml", kind, name, obj)
        del answer["metadata"]["managedFields"]
        return answer

    async def _patch(self, sort: str, kind: str, name: str, body: Raw) -> Raw:
        path = NAMES[kind].path(name, self.namespace)
        patch = partial(self.plane.request, content_type=f"application/{sort}")
        status, answer = await asyncio.to_thread(patch, "PATCH", path, body)
        assert status in (200, 201), answer
        return answer

    async def remove(self, kind: str, name: str) -> None:
        """Begin to delete an object, if it is there."""
        path = NAMES[kind].path(name, self.namespace)
        status, answer = await asyncio.to_thread(self.plane.request, "DELETE", path)
        assert status in (200, 202, 404), answer

    async def refused(self, *arguments: str, obj: Raw | None = None) -> str:
        """Run kubectl for something that must not succeed."""
        text = await self.kubectl(*arguments, obj=obj, check=False)
        assert "rror" in text or "denied" in text or "invalid" in text.lower(), text
        return text

    async def establish(self) -> None:
        """Install the CRDs."""
        await asyncio.to_thread(self.plane.establish)


def _bounded(manifests: Sequence[Raw], namespace: str) -> list[Raw]:
    """Configurations of a test of its own: for its namespace, beside whatever is installed."""
    for manifest in manifests:
        manifest["metadata"]["name"] += f"-{namespace}"
        for webhook in manifest["webhooks"]:
            if "namespaceSelector" in webhook:
                webhook["namespaceSelector"]["matchLabels"] = {
                    "kubernetes.io/metadata.name": namespace
                }
    return list(manifests)


@asynccontextmanager
async def answering(
    stage: JudgedNamespace, kubeconfig: Path, port: int = 0, settings: AdmissionSettings = SETTINGS
) -> AsyncIterator[int]:
    """A webhook with certificates of its own for as long as the block lasts."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    wanted = _bounded(configurations(SETTINGS, lambda _: {}), stage.namespace)
    for manifest in wanted:
        names[manifest["kind"]].append(manifest["metadata"]["name"])
    certificates = CertSettings(
        "webhook",
        stage.namespace,
        mutating=tuple(names[MUTATING_WEBHOOKS.kind]),
        validating=tuple(names[VALIDATING_WEBHOOKS.kind]),
        extra_addresses=("127.0.0.1",),
    )
    async with Client.connect(kubeconfig) as api:
        worker = WebhookWorker(
            StateSource.of_cluster(api),
            builtin(),
            settings,
            replace(QUICK, port=port),
            KeptCertificates(CertificateManager(api, certificates)),
        )
        async with running(worker) as address:
            manifests = _bounded(
                configurations(SETTINGS, lambda path: {"url": f"https://{address}{path}"}),
                stage.namespace,
            )
            await asyncio.to_thread(stage.plane.apply, *manifests)
            await until(lambda: worker.ready)
            await until_known(api)
            yield worker.listener.port


async def forget(stage: JudgedNamespace) -> None:
    """Take away the configurations of `answering`."""
    for manifest in _bounded(configurations(SETTINGS, lambda _: {}), stage.namespace):
        path = KINDS[manifest["kind"]].path(manifest["metadata"]["name"])
        await asyncio.to_thread(stage.plane.request, "DELETE", path)
