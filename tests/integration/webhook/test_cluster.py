"""The webhook of a cluster: caches, the live look for a queue, certificates that the cluster trusts."""

import base64
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from pumice.api.kinds import (
    EVENT,
    JOB,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    POD_GROUP,
    QUEUE,
    VALIDATING_WEBHOOKS,
)
from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.cluster.client import Client
from pumice.plugins import builtin
from pumice.webhook.registrations import configurations
from pumice.webhook.server import KeptCertificates, StateSource, WebhookWorker
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.serving import QUICK, Raw, running, session
from tests.kit.builders import job, pod_group, queue
from tests.kit.waiting import until
from tests.unit.webhook.reviewing import operations, request, review

JSON = {"Content-Type": "application/json"}
CRON_JOB = {
    "metadata": {"name": "nightly", "namespace": "default"},
    "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job()["spec"]}},
}
JOB_TEMPLATE = {"metadata": {"name": "step", "namespace": "default"}, "spec": job()["spec"]}


def worker_of(api: Client, *assignments: str) -> WebhookWorker:
    levels = AdmissionSettings.from_assignments(assignments)
    return WebhookWorker(StateSource.of_cluster(api), builtin(), levels, settings=QUICK)


async def ask(
    client: aiohttp.ClientSession, address: str, path: str, obj: Raw, query: str = ""
) -> Raw:
    url = f"http://{address}{path}{query}"
    async with client.post(url, data=review(request(path, obj)), headers=JSON) as answer:
        response: Raw = (await answer.json())["response"]
        return response


async def test_what_happens_in_the_cluster_is_seen(
    api: Client, client: aiohttp.ClientSession
) -> None:
    await api.create(QUEUE, queue("default"))
    worker = worker_of(api)
    async with running(worker) as address:
        await until(lambda: worker.ready)
        assert (await ask(client, address, "/jobs/validate", job()))["allowed"]

        await api.create(QUEUE, queue("team", parent="default"))
        await until(lambda: worker.source.view.queue("team"))
        response = await ask(client, address, "/jobs/validate", job())
        assert "JOB-QUEUE-NOT-LEAF" in response["status"]["message"]

        await api.delete(QUEUE, "team")
        await until(lambda: worker.source.view.queue("team") is None)
        assert (await ask(client, address, "/jobs/validate", job()))["allowed"]
        age = worker.metrics.registry.get_sample_value(
            "pumice_cache_age_seconds", {"kind": "queues"}
        )
        assert age is not None
        assert 0 <= age < 60


async def test_it_is_ready_once_it_has_seen_the_cluster(
    api: Client, client: aiohttp.ClientSession
) -> None:
    worker = worker_of(api)
    async with (
        running(worker, only_ports=True) as address,
        client.get(f"http://{address}/readyz?verbose") as answer,
    ):
        assert answer.status == 503
        assert await answer.text() == (
            "[+]draining: ok\n"
            "[-]caches: not synced yet: queues, namespaces, priorityclasses, podgroups\n"
        )
    worker = worker_of(api)
    async with running(worker) as address:
        await until(lambda: worker.ready)
        async with client.get(f"http://{address}/readyz") as answer:
            assert answer.status == 200


async def test_the_queue_of_a_namespace(api: Client, client: aiohttp.ClientSession) -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "lab",
            "annotations": {"scheduling.volcano.sh/queue-name": "research"},
        },
    }
    worker = worker_of(api)
    await api.create(NAMESPACE, namespace)
    async with running(worker) as address:
        await until(lambda: worker.ready)
        response = await ask(client, address, "/podgroups/mutate", pod_group(namespace="lab"))
        assert operations(response) == [{"op": "add", "path": "/spec/queue", "value": "research"}]


@asynccontextmanager
async def blind(api: Client, *assignments: str) -> AsyncIterator[tuple[str, WebhookWorker]]:
    """A webhook whose caches have seen nothing."""
    worker = worker_of(api, *assignments)
    async with running(worker, only_ports=True) as address:
        yield address, worker


def lookups(worker: WebhookWorker) -> Raw:
    found = {}
    for result in ("found", "missing", "failed"):
        name = "pumice_admission_queue_lookups_total"
        found[result] = worker.metrics.registry.get_sample_value(name, {"result": result}) or 0
    return found


async def test_a_queue_that_the_cache_lacks_is_asked_for(
    api: Client, client: aiohttp.ClientSession
) -> None:
    await api.create(QUEUE, queue("default"))
    await api.create(QUEUE, queue("above"))
    await api.create(QUEUE, queue("middle", parent="above"))
    async with blind(api) as (address, worker):
        assert (await ask(client, address, "/jobs/validate", job()))["allowed"]
        assert lookups(worker) == {"found": 1, "missing": 0, "failed": 0}
        # All that are above it are found in one look.
        below = queue("below", parent="middle")
        assert (await ask(client, address, "/queues/validate", below))["allowed"]
        assert lookups(worker) == {"found": 2, "missing": 0, "failed": 0}
        response = await ask(client, address, "/queues/validate", queue("below", parent="gone"))
        assert 'parent queue "gone" not found' in response["status"]["message"]
        assert lookups(worker) == {"found": 2, "missing": 1, "failed": 0}


async def test_a_queue_whose_parent_the_cache_lacks_is_judged_with_all_above_and_beside_it(
    api: Client, client: aiohttp.ClientSession
) -> None:
    def claims(name: str, cpus: int, parent: str = "root") -> Raw:
        resources = {"cpu": str(cpus)}
        return queue(name, parent=parent, guarantee={"resource": resources}, deserved=resources)

    for each in (claims("dept", 4), claims("dept-a", 3, "dept"), queue("busy")):
        await api.create(QUEUE, each)
    status = {"status": {"state": "Open", "allocated": {"pods": "3"}}}
    await api.patch(QUEUE, "busy", "", status, subresource="status")
    for level in range(1, 7):
        await api.create(QUEUE, queue(f"l{level}", parent=f"l{level - 1}" if level > 1 else "root"))

    async with blind(api) as (address, _), blind(api, "rule.Q-DEPTH=off") as (deep, _):

        async def codes(obj: Raw, address: str = address) -> list[str]:
            response = await ask(client, address, "/queues/validate", obj)
            message = response.get("status", {}).get("message", "")
            return re.findall(r"\[([A-Z-]+)\]", message)

        assert await codes(claims("dept-b", 3, "dept")) == ["Q-SIB-GUAR", "Q-SIB-DES"]
        assert await codes(claims("dept-b", 1, "dept")) == []
        assert await codes(queue("below", parent="busy")) == ["Q-PARENT-BUSY"]
        await api.create(QUEUE, queue("beside", parent="busy"))  # it is a parent already
        assert await codes(queue("below", parent="busy")) == []
        assert await codes(queue("l7", parent="l6")) == ["Q-DEPTH"]
        assert await codes(queue("l7", parent="l6"), deep) == []


async def test_what_is_admitted_with_a_warning_is_not_worth_a_look(
    api: Client, client: aiohttp.ClientSession
) -> None:
    none = {"found": 0, "missing": 0, "failed": 0}
    await api.create(QUEUE, queue("default"))
    async with blind(api, "rule.JOB-QUEUE-MISSING=warn") as (address, worker):
        response = await ask(client, address, "/jobs/validate", job())
        assert response["allowed"]
        assert "[JOB-QUEUE-MISSING]" in response["warnings"][0]
        assert lookups(worker) == none
    async with blind(api) as (address, worker):
        for path, obj in (
            ("/cronjobs/validate", CRON_JOB),
            ("/jobtemplates/validate", JOB_TEMPLATE),
        ):
            response = await ask(client, address, path, obj)
            assert response["allowed"]
            assert "[JOB-QUEUE-LATER]" in response["warnings"][0]
            assert lookups(worker) == none
    async with blind(api, "rule.JOB-QUEUE-MISSING=off") as (address, worker):
        response = await ask(client, address, "/jobs/validate", job(queue="gone"))
        assert (response["allowed"], response.get("warnings")) == (True, None)
        assert lookups(worker) == {"found": 0, "missing": 0, "failed": 0}


async def test_a_dry_run_writes_nothing(api: Client, client: aiohttp.ClientSession) -> None:
    await api.create(QUEUE, queue("default"))
    worker = worker_of(api)
    async with running(worker) as address:
        await until(lambda: worker.ready)
        before = await everything(api)
        good, bad = job(), job(queue="gone", minAvailable=7, minSuccess=9)
        for path, obj in (
            ("/jobs/mutate", good),
            ("/jobs/validate", good),
            ("/jobs/validate", bad),
            ("/queues/validate", queue("below", parent="gone")),
            ("/podgroups/mutate", pod_group()),
        ):
            answers = []
            for dry in (True, False):
                body = review(request(path, obj) | {"dryRun": dry})
                url = f"http://{address}{path}"
                async with client.post(url, data=body, headers=JSON) as answer:
                    answers.append((answer.status, await answer.json()))
            assert answers[0] == answers[1]
        assert await everything(api) == before


async def everything(api: Client) -> list[Raw]:
    """All objects that a review could touch, events among them, and the version of the store."""
    return [await api.list(kind) for kind in (QUEUE, JOB, POD_GROUP, NAMESPACE, EVENT)]


async def test_a_queue_that_does_not_exist_is_asked_for_once(
    api: Client, client: aiohttp.ClientSession
) -> None:
    async with blind(api) as (address, worker):
        response = await ask(client, address, "/jobs/validate", job(queue="gone"))
        assert "[JOB-QUEUE-MISSING]" in response["status"]["message"]
        assert lookups(worker) == {"found": 0, "missing": 1, "failed": 0}
        # What is refused for something else as well is refused in any case; what is not, costs no look.
        both = job(queue="gone", minAvailable=9)
        response = await ask(client, address, "/jobs/validate", both)
        assert "[JOB-QUEUE-MISSING]" in response["status"]["message"]
        assert lookups(worker) == {"found": 0, "missing": 1, "failed": 0}
        assert (await ask(client, address, "/jobs/mutate", job(queue="gone")))["allowed"]
        assert lookups(worker) == {"found": 0, "missing": 1, "failed": 0}


async def test_without_an_api_server_it_is_to_be_tried_again(
    client: aiohttp.ClientSession,
) -> None:
    async with Client.connect(server="http://127.0.0.1:1") as api, blind(api) as (address, worker):
        response = await ask(client, address, "/jobs/validate", job(), "?timeout=2s")
        assert (response["allowed"], response["status"]["code"]) == (False, 504)
        assert lookups(worker) == {"found": 0, "missing": 0, "failed": 1}


async def test_certificates_of_our_own_are_trusted_before_it_is_ready(api: Client) -> None:
    wanted = configurations(
        AdmissionSettings(),
        lambda path: {"service": {"name": "webhook", "namespace": "system", "path": path}},
    )
    kinds = {kind.kind: kind for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)}
    await api.create(NAMESPACE, {"metadata": {"name": "system"}})
    names: dict[str, list[str]] = {kind: [] for kind in kinds}
    for manifest in wanted:
        await api.create(kinds[manifest["kind"]], manifest)
        names[manifest["kind"]].append(manifest["metadata"]["name"])
    settings = CertSettings(
        "webhook",
        "system",
        mutating=tuple(names["MutatingWebhookConfiguration"]),
        validating=tuple(names["ValidatingWebhookConfiguration"]),
        extra_addresses=("127.0.0.1",),
    )
    keeper = CertificateManager(api, settings)
    worker = WebhookWorker(
        StateSource.of_cluster(api),
        builtin(),
        settings=QUICK,
        certificates=KeptCertificates(keeper),
    )
    async with running(worker) as address:
        await until(lambda: worker.ready)
        found = await api.get(VALIDATING_WEBHOOKS, names["ValidatingWebhookConfiguration"][0])
        bundle = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        async with (
            session(ssl.create_default_context(cadata=bundle)) as client,
            client.get(f"https://{address}/readyz?verbose") as answer,
        ):
            assert await answer.text() == ("[+]draining: ok\n[+]caches: ok\n[+]certificate: ok\n")
