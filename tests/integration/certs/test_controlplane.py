"""On the real kube-apiserver, with no more rights than the chart gives: names, not kinds."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count, islice

import pytest
from aiohttp import web

from pumice.api.kinds import CONFIG_MAP, SECRET, VALIDATING_WEBHOOKS
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import Forbidden
from tests.kit.http import serving
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.webhook_canary import until_known

SECRETS = "pumice-webhook-certs"


def rules(name: str) -> list[dict[str, object]]:
    return [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [SECRETS],
            "verbs": ["get", "update"],
        },
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": [name],
            "verbs": ["get", "list", "watch", "patch"],
        },
    ]


def configuration(name: str, namespace: str, port: int) -> Object:
    return {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "configmaps.pumice.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": {"url": f"https://127.0.0.1:{port}/validate"},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                    }
                ],
            }
        ],
    }


@pytest.fixture
def name(controlplane: ControlPlane, namespace: str) -> Iterator[str]:
    """A configuration's name, and a service account that may only do with it what it needs to."""
    name = f"certs-{namespace}"
    account = {"kind": "ServiceAccount", "name": "keeper", "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    manifests = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "keeper"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules(name),
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [account],
        },
    ]
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    controlplane.kubectl("apply", "-f", "-", stdin=bundle, namespace=namespace)
    yield name
    for kind in ("validatingwebhookconfiguration", "clusterrole", "clusterrolebinding"):
        controlplane.kubectl("delete", kind, name, "--ignore-not-found")


async def allow(request: web.BaseRequest) -> web.Response:
    review = await request.json()
    answer = {"uid": review["request"]["uid"], "allowed": True}
    return web.json_response({**review, "request": None, "response": answer})


@asynccontextmanager
async def working(keeper: CertificateManager) -> AsyncIterator[int]:
    """The keeper at work, and on this port a webhook with its certificate."""
    async with serving(allow, keeper.serving.context) as port:
        tasks = [asyncio.create_task(part.run()) for part in (keeper, keeper.injector)]
        try:
            await keeper.started.wait()
            yield port
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class Reviews:
    """Whoever has the API server call the webhook."""

    def __init__(self, admin: Client, namespace: str) -> None:
        self._admin = admin
        self._namespace = namespace
        self._numbers = count()

    async def ask(self, times: int = 1) -> None:
        """Create what the webhook is asked about; it fails where the API server does not trust it."""
        for number in islice(self._numbers, times):
            meta = {"name": f"c{number}", "namespace": self._namespace}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
            await self._admin.create(CONFIG_MAP, obj)


async def test_the_api_server_calls_through_rotation_and_reset(
    controlplane: ControlPlane, namespace: str, name: str
) -> None:
    settings = CertSettings(
        "webhook", namespace, SECRETS, validating=(name,), extra_addresses=("127.0.0.1",)
    )
    account = controlplane.token("keeper", namespace)
    kubeconfig = controlplane.kubeconfig_for_token(account)
    async with (
        Client.connect(kubeconfig) as client,
        Client.connect(controlplane.kubeconfig) as admin,
    ):
        keeper = CertificateManager(client, settings)
        reviews = Reviews(admin, namespace)
        async with working(keeper) as port:
            await admin.create(VALIDATING_WEBHOOKS, configuration(name, namespace, port))
            await until(lambda: keeper.ready)
            await until_known(admin)
            await reviews.ask()

            # Somebody applies the manifest again, without a bundle.
            found = await admin.get(VALIDATING_WEBHOOKS, name)
            found["webhooks"][0]["clientConfig"].pop("caBundle")
            await admin.update(VALIDATING_WEBHOOKS, found)
            patched = keeper.injector.patched
            await until(lambda: keeper.injector.patched > patched)
            await until_known(admin)
            await reviews.ask()

            # The Secret is lost, and comes back as it was.
            before = await admin.get(SECRET, SECRETS, namespace)
            await admin.delete(SECRET, SECRETS, namespace)
            await keeper.look()
            assert (await admin.get(SECRET, SECRETS, namespace))["data"] == before["data"]

            # The next CA takes over: longer durations make the current one due at once.
            bundle = keeper.bundle
            assert bundle is not None
            assert bundle.next is not None
            keeper._settings = replace(settings, ca_duration=settings.ca_duration * 3.2)
            swaps = keeper.serving.swaps
            await keeper.look()
            assert keeper.bundle is not None
            assert keeper.bundle.current.certificate != bundle.current.certificate
            await reviews.ask(times=3)
            keeper._settings = replace(keeper._settings, settle_seconds=0.0)
            await keeper.look()
            assert keeper.serving.swaps > swaps
            assert keeper.ready
            await reviews.ask(times=3)

            with pytest.raises(Forbidden):
                await client.list(SECRET, namespace)
