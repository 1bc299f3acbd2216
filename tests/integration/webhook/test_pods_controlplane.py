"""Which pods the real kube-apiserver asks about, and what becomes of them."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from pumice.api import keys
from pumice.cluster.client import Client
from pumice.webhook.registrations import REGISTRATIONS, configuration
from pumice.webhook.resource_group_file import parse
from pumice.webhook.server import FileCertificates, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.serving import Pair, Raw, offline, running
from tests.kit.builders import pod
from tests.kit.namespaces import Namespace
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.webhook_canary import until_known

(MUTATION,) = [each for each in REGISTRATIONS if each.path == "/pods/mutate"]
SETTINGS = AdmissionSettings(scheduling_gates_queue_admission=True)
GATE = "scheduling.volcano.sh/queue-allocation-gate"


def asked(worker: WebhookWorker) -> float:
    """How many pods the API server has asked about."""
    outcomes = ("allowed", "patched")
    name = "pumice_admission_reviews_total"
    return sum(
        worker.metrics.registry.get_sample_value(
            name,
            {"path": MUTATION.path, "operation": "CREATE", "outcome": outcome, "code": "200"},
        )
        or 0.0
        for outcome in outcomes
    )


def in_force(worker: WebhookWorker) -> float | None:
    return worker.metrics.registry.get_sample_value("pumice_admission_resource_groups")


class PodWebhook:
    """The test's namespace, and the one webhook configuration that is about its pods."""

    def __init__(self, plane: ControlPlane, namespace: str, pair: Pair) -> None:
        self._inside = Namespace(plane, namespace)
        self._namespace = namespace
        self._pair = pair
        self._configuration = f"pods-mutate-{namespace}"

    async def created(self, name: str, **fields: Any) -> Raw:
        """A pod's spec as it would be stored."""
        obj = pod(name, namespace=self._namespace, **fields)
        del obj["metadata"]["uid"], obj["status"]
        stored = await asyncio.to_thread(self._inside.would_create, obj)
        spec: Raw = stored["spec"]
        return spec

    async def install(self, address: str, conf: bytes) -> None:
        """Have the webhook at this address asked about the pods of the file's groups."""
        ca = base64.b64encode(self._pair.authority).decode()
        client = {"url": f"https://{address}{MUTATION.path}", "caBundle": ca}
        known, _ = parse(conf)
        manifest = configuration(MUTATION, SETTINGS, client, groups=known)
        manifest["metadata"]["name"] = self._configuration
        (webhook,) = manifest["webhooks"]
        only = {"kubernetes.io/metadata.name": self._namespace}
        webhook["namespaceSelector"]["matchLabels"] = only
        await asyncio.to_thread(self._inside.apply, manifest)
        async with Client.connect(self._inside.plane.kubeconfig) as api:
            await until_known(api)

    async def uninstall(self) -> None:
        arguments = ("mutatingwebhookconfiguration", self._configuration, "--ignore-not-found")
        await asyncio.to_thread(self._inside.kubectl, "delete", *arguments)


async def test_pods_of_groups_are_asked_about_and_no_others(
    controlplane: ControlPlane, namespace: str, pair: Pair, tmp_path: Path
) -> None:
    conf = tmp_path / "volcano-admission.conf"
    groups: list[Raw] = [
        {"resourceGroup": "gpu", "labels": {"class": "gpu"}},
        {
            "resourceGroup": "team",
            "object": {"key": "annotation", "value": ["team: a"]},
            "tolerations": [{"key": "team", "operator": "Exists", "tolerationseconds": 60, "effect": "NoExecute"}],
            "affinity": '{"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}',
        },
    ]  # fmt: skip
    conf.write_text(json.dumps({"resourceGroups": groups}))
    asking = PodWebhook(controlplane, namespace, pair)
    certificates = FileCertificates(pair.certificate, pair.key)
    worker = offline(certificates=certificates, conf=conf, admission=SETTINGS)
    try:
        async with running(worker) as address:
            await asking.install(address, conf.read_bytes())
            plain = await asking.created("plain", annotations={"other": "x"})
            assert "nodeSelector" not in plain
            assert "schedulingGates" not in plain
            assert asked(worker) == 0

            found = await asking.created("gpu", annotations={"volcano.sh/resource-group": "gpu"})
            assert found["nodeSelector"] == {"class": "gpu"}
            found = await asking.created("team", annotations={"team": "a", GATE: "true"})
            assert found["affinity"]["podAntiAffinity"]
            assert found["schedulingGates"] == [{"name": GATE}]
            assert {"key": "team", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60} in found["tolerations"]  # fmt: skip
            assert len(found["tolerations"]) == len(plain["tolerations"]) + 1
            assert asked(worker) == 2

            groups.append(
                {
                    "resourceGroup": "lab",
                    "object": {"key": "namespace", "value": [namespace]},
                    "labels": {"class": "lab"},
                }
            )
            conf.write_text(json.dumps({"resourceGroups": groups}))
            await asking.install(address, conf.read_bytes())
            await until(lambda: in_force(worker) == 3)
            found = await asking.created("plain", annotations={"other": "x"})
            assert found["nodeSelector"] == {"class": "lab"}
    finally:
        await asking.uninstall()


async def test_pods_that_the_controller_leaves_out_are_not_asked_about_where_there_are_no_groups(
    controlplane: ControlPlane, namespace: str, pair: Pair, tmp_path: Path
) -> None:
    """They carry an annotation here that would be acted on, which shows that it is the label that counts."""
    left_out = {keys.ADMISSION: keys.ADMISSION_UNNEEDED}
    asking = PodWebhook(controlplane, namespace, pair)
    certificates = FileCertificates(pair.certificate, pair.key)
    worker = offline(certificates=certificates, admission=SETTINGS)
    group = {"object": {"key": "namespace", "value": [namespace]}, "labels": {"class": "lab"}}
    try:
        async with running(worker) as address:
            await asking.install(address, b"")
            found = await asking.created("one", annotations={GATE: "true"}, labels=left_out)
            assert "schedulingGates" not in found
            assert asked(worker) == 0
            found = await asking.created("two", annotations={GATE: "true"})
            assert found["schedulingGates"] == [{"name": GATE}]
            found = await asking.created(
                "three", annotations={GATE: "true"}, labels={keys.ADMISSION: "needed"}
            )
            assert found["schedulingGates"] == [{"name": GATE}]

            await asking.install(address, json.dumps({"resourceGroups": [group]}).encode())
            found = await asking.created("four", annotations={GATE: "true"}, labels=left_out)
            assert found["schedulingGates"] == [{"name": GATE}]
    finally:
        await asking.uninstall()
