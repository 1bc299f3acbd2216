"""Jobs and gangs in the embedded API server, for the verbs that list and try them."""

import asyncio
from typing import Any

from pumice.api.kinds import COMMAND, JOB, NAMESPACE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from pumice.cluster.client import Client, Object
from tests.kit.builders import job, pod, pod_group, queue, task

RACK: Object = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "rack"},
    "spec": {
        "tier": 1,
        "members": [{"type": "Node", "selector": {"exactMatch": {"name": "elsewhere"}}}],
    },
}


def made(url: str, kind: Any, obj: Object, namespace: str | None = "default") -> Object:
    async def work() -> Object:
        async with Client.connect(server=url) as client:
            stored = await client.create(kind, obj, namespace)
            if kind is JOB and "status" in obj:
                name, status = obj["metadata"]["name"], {"status": obj["status"]}
                return await client.patch(kind, name, namespace, status, subresource="status")
            return stored

    return asyncio.run(work())


def removed(url: str, kind: Any, name: str) -> None:
    async def work() -> None:
        async with Client.connect(server=url) as client:
            await client.delete(kind, name, "default")

    asyncio.run(work())


def commands(url: str) -> list[Object]:
    async def work() -> list[Object]:
        async with Client.connect(server=url) as client:
            found: list[Object] = (await client.list(COMMAND))["items"]
            for each in found:
                await client.delete(COMMAND, each["metadata"]["name"], "default")
            return found

    return asyncio.run(work())


def a_job(name: str, phase: str, **spec: Any) -> Object:
    message = {"message": "pod x failed"} if phase == "Failed" else {}
    status = {"state": {"phase": phase} | message, "running": 2 if phase == "Running" else 0}
    return job(name, [task("w", 2, cpu="3")], minAvailable=2, status=status, **spec)


def fill(url: str) -> None:
    """Two Jobs that wait, a PodGroup of another namespace before both, one that runs and one that failed."""
    made(url, QUEUE, queue("default"), None)
    for name in ("elsewhere", "watched"):
        made(url, NAMESPACE, {"metadata": {"name": name}}, None)
    made(url, PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 9}, None)
    other = pod_group("other", 1, namespace="elsewhere", phase="Inqueue", priorityClassName="high")
    made(url, POD_GROUP, other, "elsewhere")
    made(
        url,
        POD,
        pod("other-0", namespace="elsewhere", group="other", cpu="9", priorityClassName="high"),
        "elsewhere",
    )
    for name in ("big", "more"):
        stored = made(url, JOB, a_job(name, "Pending"))
        group = pod_group(f"{name}-{stored['metadata']['uid']}", 2, phase="Inqueue")
        made(url, POD_GROUP, group)
        for number in range(2):
            labels = {"volcano.sh/job-name": name}
            each = pod(f"{name}-{number}", group=group["metadata"]["name"], cpu="3", labels=labels)
            made(url, POD, each)
    for name, phase in (("done", "Completed"), ("broken", "Failed"), ("busy", "Running")):
        raw = a_job(name, phase)
        raw["metadata"]["labels"] = {"waits": "no"}
        made(url, JOB, raw)
