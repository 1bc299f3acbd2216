"""`pumice migrate check` against an API server: with all rights, and with those of a namespace's user."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, JOB, NAMESPACE, POD, QUEUE
from pumice.cluster.client import Client
from tests.integration.cli.servers import Server, ran
from tests.kit.builders import job, pod, queue

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: numa-aware}]}]\n"
CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
    "data": {"volcano-scheduler.conf": CONF},
}


async def fill(url: str) -> None:
    async with Client.connect(server=url) as client:
        await client.create(QUEUE, queue("default"))
        for namespace in ("vision", "volcano-system"):
            about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await client.create(NAMESPACE, about)
        claims: dict[str, Any] = {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        }
        template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]} | claims}
        tasks = [{"name": "w", "replicas": 1, "template": template}]
        for namespace in ("default", "vision"):
            await client.create(JOB, job(tasks=tasks, namespace=namespace), namespace)
            of_job = {"volcano.sh/job-name": "train"}
            made = pod("train-0", namespace=namespace, labels=of_job, **claims)
            await client.create(POD, made, namespace)
        await client.create(POD, pod("alone", **claims), "default")
        await client.create(CONFIG_MAP, CONFIG, "volcano-system")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as found:
        asyncio.run(fill(found.url))
        yield found


def checked(url: str) -> Any:
    told = ran("migrate", "check", "--master", url, "-o", "json")
    assert told.code == 1, told.err
    return told.json


def test_with_all_rights(server: Server) -> None:
    found = checked(server.url)
    assert [(each["harm"], each["object"], each["code"]) for each in found["findings"]] == [
        ("would not run", "Job/default/train", "NOT-HERE-YET"),
        ("would not run", "Job/vision/train", "NOT-HERE-YET"),
        ("would not run", "Pod/default/alone", "NOT-HERE-YET"),
        (
            "would run elsewhere or evict",
            "ConfigMap/volcano-system/volcano-scheduler-configmap",
            "NOT-HERE-YET",
        ),
    ]
    assert found["read"] == {"Job": 2, "Pod": 1, "PriorityClass": 2, "Queue": 1}
    assert found["notAllowed"] == []


def test_with_the_rights_of_a_namespace_the_rest_is_named(server: Server) -> None:
    found = checked(server.limited)
    assert [each["object"] for each in found["findings"]] == [
        "Job/default/train",
        "Pod/default/alone",
        "scheduler",
    ]
    assert found["read"] == {"Job": 1, "Pod": 1}
    missing = found["notAllowed"]
    assert "queues.scheduling.volcano.sh" in missing
    assert "jobs.batch.volcano.sh of other namespaces than default" in missing
    assert "ConfigMap volcano-system/volcano-scheduler-configmap" in missing

    text = ran("migrate", "check", "--master", server.limited)
    assert text.code == 1
    assert text.err.startswith("not allowed to read: queues.scheduling.volcano.sh, ")
    assert text.err.count("\n") == 1


def test_it_only_reads(server: Server) -> None:
    """The proxy answers GET requests alone, whatever it is asked."""
    server.limits = False
    server.paths.clear()
    try:
        found = checked(server.limited)
    finally:
        server.limits = True
    assert found["read"] == {"Job": 2, "Pod": 1, "PriorityClass": 2, "Queue": 1}
    assert len(server.paths) == 11


def test_an_api_server_that_is_not_there_is_one_line() -> None:
    told = ran("migrate", "check", "--master", "http://127.0.0.1:9")
    assert told.code == 2
    assert told.err.count("\n") == 1
