"""`pumice explain` against the embedded server: with all rights, and with those of a namespace's user."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api import keys
from pumice.api.kinds import HYPER_NODE, JOB_FLOW, JOB_TEMPLATE, NODE, POD, POD_GROUP, QUEUE
from pumice.cluster.client import Client
from tests.integration.cli.running import SECONDS, running
from tests.integration.cli.servers import Server, ran
from tests.kit.builders import job, node, pod, pod_group, queue
from tests.unit.scheduler.network_trees import hyper_node

_NUMBERS = "needs 2 × 3 cpu; 1 pod has a place; the largest place left is 1 cpu (node1); nodes have room for 1 of 2 such pods, even when empty"


async def fill(url: str) -> None:
    async with Client.connect(server=url) as client:
        await client.create(QUEUE, queue("default"))
        raw = pod_group("big", 2, phase="Inqueue")
        raw["status"] = {
            "phase": "Inqueue",
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "reason": "NotEnoughResources",
                    "message": "2/2 tasks in gang unschedulable",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        await client.create(POD_GROUP, raw, "default")
        for number in range(2):
            await client.create(POD, pod(f"big-{number}", group="big", cpu="3"), "default")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("4") as found:
        asyncio.run(fill(found.url))
        yield found


def explained(url: str, *arguments: str) -> dict[str, Any]:
    told = ran("explain", *arguments, "--master", url, "-o", "json")
    assert told.code == 0, told.err
    found: dict[str, Any] = told.json
    return found


def test_yaml_says_what_json_says(server: Server) -> None:
    told = ran("explain", "pod", "big-0", "--master", server.url, "-o", "yaml")
    assert told.code == 0, told.err
    assert yaml.safe_load(told.out) == explained(server.url, "pod", "big-0")


def test_a_pod_with_all_rights(server: Server) -> None:
    found = explained(server.url, "pod", "big-0")
    assert found["summary"] == _NUMBERS
    assert found["notAllowed"] == []
    assert found["numbers"]["largestFree"] == {"node": "node1", "resource": "cpu", "free": "1"}
    assert [each["change"] for each in found["enough"]][-1] == {"minAvailable": 1}
    assert "addNode" in found["enough"][0]["change"]


def test_a_pod_with_the_rights_of_a_namespace(server: Server) -> None:
    found = explained(server.limited, "pod/big-0")
    assert found["podGroup"]["conditions"][0]["message"] == "2/2 tasks in gang unschedulable"
    assert (found["summary"], found["enough"]) == ("", [])
    assert "nodes" in found["notAllowed"]
    assert "queues" in found["notAllowed"]
    told = ran("explain", "pod/big-0", "--master", server.limited)
    assert told.out.startswith("Pod default/big-0 waits")
    assert "Not allowed to read: nodes, " in told.out


def test_waiting_gangs(server: Server) -> None:
    [gang] = explained(server.url, "-A")["waiting"]
    assert (gang["podGroup"], gang["owner"], gang["summary"]) == ("default/big", None, _NUMBERS)
    [limited] = explained(server.limited)["waiting"]
    assert limited["summary"] == "2/2 tasks in gang unschedulable"
    refused = ran("explain", "-A", "--master", server.limited)
    assert refused.code == 2
    assert "not allowed: podgroups is forbidden" in refused.err
    assert refused.err.count("\n") == 1


def test_a_queue(server: Server) -> None:
    found = explained(server.url, "queue", "default")
    assert found["resources"]["cpu"]["asked"] == "6"
    assert found["resources"]["cpu"]["deserved"] == "4", "what proportion gives to the only queue"
    assert [each["podGroup"] for each in found["waiting"]] == ["default/big"]
    missing = ran("explain", "queue/none", "--master", server.url)
    assert missing.code == 2
    assert "queue/none: there is no such Queue" in missing.err
    for word in ("queue", "queues", "q"):
        nameless = ran("explain", word, "--master", server.url)
        assert (nameless.code, nameless.out) == (2, "")
        assert nameless.err.endswith("; of a kind, name one: `pumice explain queue NAME`\n")
    refused = ran("explain", "queue", "default", "--master", server.limited)
    assert "is forbidden" in refused.err


def test_what_another_configuration_would_change_says_so(server: Server, tmp_path: Path) -> None:
    """The scheduler said something else than the cycle here, and its configuration was not named."""
    tree = tmp_path / "scheduler.yaml"
    plugins = "[{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]"
    tree.write_text(f'{{actions: "allocate, reclaim", tiers: [{{plugins: {plugins}}}]}}')

    async def create() -> None:
        async with Client.connect(server=server.url) as client:
            await client.create(QUEUE, queue("limited", deserved={"cpu": "1"}))
            condition = {"type": "Unschedulable", "status": "True", "message": "no quota: cpu"}
            group = pod_group("odd", phase="Pending", queue="limited")
            group["status"]["conditions"] = [condition]
            await client.create(POD_GROUP, group, "default")
            await client.create(POD, pod("odd-0", group="odd", cpu="9"), "default")

    asyncio.run(create())
    for words in ("queue limited", "pod odd-0"):
        told = ran("explain", *words.split(), "--master", server.url).out
        assert (
            "\nThis is computed with Pumice's default configuration; if the scheduler has" in told
        )
        named = ran("explain", *words.split(), "--config", str(tree), "--master", server.url)
        assert (named.code, "default configuration" in named.out) == (0, False)


def test_hyper_nodes(server: Server) -> None:
    async def create() -> None:
        async with Client.connect(server=server.url) as client:
            await client.create(HYPER_NODE, hyper_node("s0", nodes=["node1"]))

    asyncio.run(create())
    found = explained(server.url, "hypernodes")
    assert [(each["name"], each["nodes"]) for each in found["hyperNodes"]] == [("s0", 1)]
    assert found["hyperNodes"][0]["free"]["cpu"] == "4"
    assert found["notAllowed"] == []
    refused = ran("explain", "hypernodes", "--master", server.limited)
    assert refused.code == 2
    assert "hypernodes is forbidden" in refused.err
    assert refused.err.count("\n") == 1


def test_a_job_flow(server: Server) -> None:
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}, {"name": "c"}]
    template = {"metadata": {"name": "a"}, "spec": job()["spec"]}

    async def fill_flows() -> None:
        async with Client.connect(server=server.url) as client:
            head: dict[str, Any] = {"metadata": {"name": "f"}, "spec": {"flows": flows}}
            for kind, each in ((JOB_FLOW, head), (JOB_TEMPLATE, template)):
                about = {"apiVersion": kind.api_version, "kind": kind.kind}
                await client.create(kind, about | each, "default")
            again = {"name": "again", "annotations": {keys.FLOW_RETRIES: "2"}}
            head |= {"apiVersion": JOB_FLOW.api_version, "kind": JOB_FLOW.kind, "metadata": again}
            await client.create(JOB_FLOW, head, "default")
            failed = {"status": {"state": {"phase": "Running"}, "failedJobs": ["again-a"]}}
            await client.patch(JOB_FLOW, "again", "default", failed, subresource="status")

    asyncio.run(fill_flows())
    for url in (server.url, server.limited):
        found = explained(url, "jobflow", "f")
        assert found["message"] == "JobFlow default/f is Pending: 0 of 3 Jobs have completed"
        assert [(each["job"], each["reason"]) for each in found["flows"]] == [
            ("f-a", ""),
            ("f-b", "WaitingForTargets"),
            ("f-c", "WaitingForTemplate"),
        ]
        assert found["notAllowed"] == []
    text = ran("explain", "jf/f", "--master", server.url).out
    assert "waits until a (not started) completes" in text
    retried, waiting, _ = explained(server.url, "jobflow", "again")["flows"]
    assert (retried["job"], retried["message"].partition(":")[0]) == (
        "again-a-retry-1",
        "retry 1 of 2",
    )
    assert waiting["reason"] == "WaitingForTargets"


def test_it_prints_again_after_a_change() -> None:
    async def add_node(url: str) -> None:
        async with Client.connect(server=url) as client:
            await client.create(NODE, node("node2", "2"))

    with Server("4") as own:
        asyncio.run(fill(own.url))
        with running(
            "explain", "pod", "big-0", "--watch", "-o", "json", "--master", own.url
        ) as process:
            assert json.loads(process.line("{"))["summary"] == _NUMBERS
            asyncio.run(add_node(own.url))
            assert "2 cpu (node2)" in json.loads(process.line("{"))["summary"]
            code, said = process.stop()
    assert (code, said) == (130, "")


@pytest.mark.parametrize("verb", ["explain -A", "job list -A"])
def test_a_watch_ends_as_soon_as_nobody_reads_it(server: Server, verb: str) -> None:
    """As behind `| head`, also while nothing changes; 141 is what a shell has for SIGPIPE."""
    with running(*verb.split(), "--watch", "--master", server.url) as command:
        command.line("PODGROUP" if verb == "explain -A" else "no Jobs")
        assert command.process.stdout is not None
        command.process.stdout.close()
        command.process.stdout = None
        assert command.process.wait(SECONDS) == 141
        assert command.process.stderr is not None
        assert command.process.stderr.read() == ""
