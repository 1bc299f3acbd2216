"""Which pods the real kube-apiserver asks about, and what becomes of them."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from pumice.webhook.groups.parsing import parse
from pumice.webhook.registrations import REGISTRATIONS, configuration
from pumice.webhook.server import FileCertificates, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.builders import pod
from tests.integration.webhook.serving import Pair, Raw, offline, running
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane

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


class Cluster:
    """The test's namespace, and the one webhook configuration that is about its pods."""

    def __init__(self, plane: ControlPlane, namespace: str, pair: Pair) -> None:
        self._plane = plane
        self._namespace = namespace
        self._pair = pair
        self._configuration = f"pods-mutate-{namespace}"

    async def kubectl(self, *arguments: str, obj: Raw | None = None) -> str:
        stdin = None if obj is None else json.dumps(obj)
        ran = await asyncio.to_thread(
            self._plane.kubectl, *arguments, stdin=stdin, namespace=self._namespace
        )
        return ran.stdout

    async def created(self, name: str, **fields: Any) -> Raw:
        """A pod's spec as it would be stored."""
        obj = pod(name, namespace=self._namespace, **fields)
        del obj["metadata"]["uid"], obj["status"]
        text = await self.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", obj=obj)
        spec: Raw = json.loads(text)["spec"]
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
        await self.kubectl("apply", "-f", "-", obj=manifest)
        await asyncio.sleep(1)  # the API server learns of configurations by watching

    async def uninstall(self) -> None:
        kind = "mutatingwebhookconfiguration"
        await self.kubectl("delete", kind, self._configuration, "--ignore-not-found")


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
    cluster = Cluster(controlplane, namespace, pair)
    certificates = FileCertificates(pair.certificate, pair.key)
    worker = offline(certificates=certificates, conf=conf, admission=SETTINGS)
    try:
        async with running(worker) as address:
            await cluster.install(address, conf.read_bytes())
            plain = await cluster.created("plain", annotations={"other": "x"})
            assert "nodeSelector" not in plain
            assert "schedulingGates" not in plain
            assert asked(worker) == 0

            found = await cluster.created("gpu", annotations={"volcano.sh/resource-group": "gpu"})
            assert found["nodeSelector"] == {"class": "gpu"}
            found = await cluster.created("team", annotations={"team": "a", GATE: "true"})
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
            await cluster.install(address, conf.read_bytes())
            await until(lambda: in_force(worker) == 3)
            found = await cluster.created("plain", annotations={"other": "x"})
            assert found["nodeSelector"] == {"class": "lab"}
    finally:
        await cluster.uninstall()
