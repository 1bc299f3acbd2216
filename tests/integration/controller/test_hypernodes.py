"""HyperNodes by labels of Nodes, on the embedded API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from pumice.api.kinds import CONFIG_MAP, EVENT, HYPER_NODE, NODE
from pumice.cluster.client import Client
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.embedded import EmbeddedCluster
from pumice.plugins import builtin
from tests.integration.controller.mortal import MortalClient, mortal_client
from tests.integration.controller.stage import ControllerStage
from tests.kit.stage import quick_cluster

Raw = dict[str, Any]

NAMESPACE = "volcano-system"
NAME = "volcano-controller-configmap"


def configuration(*keys: str, enabled: bool = True) -> str:
    levels = [{"nodeLabel": key} for key in (*keys, "kubernetes.io/hostname")]
    source = {
        "source": "label",
        "enabled": enabled,
        "config": {"networkTopologyTypes": {"fabric": levels}},
    }
    return yaml.safe_dump({"networkTopologyDiscovery": [source]})


def config_map(text: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {"volcano-controller.conf": text},
    }


class Fabric(ControllerStage):
    """Four Nodes in two racks of a cluster."""

    @asynccontextmanager
    async def controller(  # type: ignore[override]  # of the whole cluster, without plugins
        self, client: Client | None = None
    ) -> AsyncIterator[ControllerWorker]:
        settings = ControllerSettings(controllers=frozenset({"hyperNode-controller"}))
        worker = ControllerWorker(client or self.client, builtin(), settings)
        async with self.alive(worker):
            yield worker

    def sizes(self) -> dict[str, int]:
        """The number of Nodes by value of the label."""
        return {
            next(value for key, value in _labels(each).items() if key.startswith("net/")): (
                each.get("status") or {}
            ).get("nodeCount", 0)
            for each in self.store.list(HYPER_NODE)
        }

    def configure(self, text: str) -> None:
        stored = self.store.get(CONFIG_MAP, NAME, NAMESPACE)
        if stored is None:
            self.store.create(config_map(text))
        else:
            self.store.update(stored | {"data": {"volcano-controller.conf": text}})

    async def taken(self, worker: ControllerWorker) -> None:
        """Wait until a controller has the ConfigMap as it is stored: Nodes come by another watch, which may be faster."""
        [cache] = [each for each in worker.watches.optional if each.kind == CONFIG_MAP]

        def version(found: Raw | None) -> str:
            return "" if found is None else str(found["metadata"]["resourceVersion"])

        stored = version(self.store.get(CONFIG_MAP, NAME, NAMESPACE))
        await self.until(lambda: version(cache.get(NAME, NAMESPACE)) == stored)

    def label(self, node: str, **labels: str | None) -> None:
        found = self.store.get(NODE, node)
        assert found is not None
        for key, value in labels.items():
            _labels(found).pop(f"net/{key}", None)
            if value is not None:
                _labels(found)[f"net/{key}"] = value
        self.store.update(found)


def _labels(obj: Raw) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"]["labels"]
    return found


def _add_nodes(cluster: EmbeddedCluster) -> None:
    for index in range(4):
        labels = {"net/rack": f"r{index // 2}", "net/cluster": "c0"}
        cluster.add_node(f"n{index}", labels=labels)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with quick_cluster() as found:
        found.store.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
        _add_nodes(found)
        yield found


@pytest.fixture
def fabric(cluster: EmbeddedCluster, client: Client) -> Fabric:
    return Fabric(cluster, client)


async def test_the_network_is_discovered_and_followed(fabric: Fabric) -> None:
    async with fabric.controller():
        fabric.configure(configuration("net/cluster", "net/rack"))
        await fabric.until(lambda: fabric.sizes() == {"r0": 2, "r1": 2, "c0": 4})
        names = {each["metadata"]["name"] for each in fabric.store.list(HYPER_NODE)}
        assert await fabric.still(3.0)

        fabric.label("n1", rack="r1")
        await fabric.until(lambda: fabric.sizes() == {"r0": 1, "r1": 3, "c0": 4})
        fabric.label("n0", rack=None)
        await fabric.until(lambda: fabric.sizes() == {"r1": 3, "c0": 3})
        fabric.store.delete(NODE, "n3")
        await fabric.until(lambda: fabric.sizes() == {"r1": 2, "c0": 2})
        fabric.label("n0", rack="r0")
        await fabric.until(lambda: fabric.sizes() == {"r0": 1, "r1": 2, "c0": 3})
        assert {each["metadata"]["name"] for each in fabric.store.list(HYPER_NODE)} == names

        for name in names:
            fabric.store.delete(HYPER_NODE, name)
        await fabric.until(lambda: fabric.sizes() == {"r0": 1, "r1": 2, "c0": 3})
        assert {each["metadata"]["name"] for each in fabric.store.list(HYPER_NODE)} == names

        fabric.configure(configuration("net/rack"))
        await fabric.until(lambda: fabric.sizes() == {"r0": 1, "r1": 2})


async def test_a_change_takes_no_more_writes_than_there_are_differences(fabric: Fabric) -> None:
    fabric.configure(configuration("net/cluster", "net/rack"))
    async with fabric.controller():
        await fabric.until(lambda: fabric.sizes() == {"r0": 2, "r1": 2, "c0": 4})
        await fabric.calm()
        before = {each["metadata"]["name"]: each for each in fabric.store.list(HYPER_NODE)}
        revision = fabric.store.storage.revision
        for number in range(5):
            fabric.label("n0", other=f"{number}")
        fabric.label("n1", rack="r1")
        await fabric.calm(3.0)
        assert fabric.sizes() == {"r0": 1, "r1": 3, "c0": 4}
        # Six by the test; two members, two counts.
        assert fabric.store.storage.revision - revision == 10
        generations = {
            each["metadata"]["name"]: each["metadata"]["generation"]
            - before[each["metadata"]["name"]]["metadata"]["generation"]
            for each in fabric.store.list(HYPER_NODE)
        }
        assert sorted(generations.values()) == [0, 1, 1]


async def test_what_was_discovered_stays_when_discovery_stops_or_is_misconfigured(
    fabric: Fabric,
) -> None:
    fabric.configure(configuration("net/rack"))
    async with fabric.controller() as worker:
        await fabric.until(lambda: fabric.sizes() == {"r0": 2, "r1": 2})
        fabric.configure("networkTopologyDiscovery: [")
        await fabric.until(lambda: ("Warning", "InvalidDiscovery") in _events(fabric))
        fabric.label("n1", rack="r1")  # the last configuration goes on
        await fabric.until(lambda: fabric.sizes() == {"r0": 1, "r1": 3})
        for text in (
            configuration("net/cluster", enabled=False),
            "",
            "networkTopologyDiscovery: [",
        ):
            fabric.configure(text)
            await fabric.taken(worker)
            fabric.label("n0", rack=None)
            await fabric.calm(3.0)
            assert fabric.sizes() == {"r0": 1, "r1": 3}
            fabric.label("n0", rack="r0")
        fabric.store.delete(CONFIG_MAP, NAME, NAMESPACE)
        await fabric.taken(worker)
        fabric.label("n0", rack=None)
        await fabric.calm(3.0)
        assert fabric.sizes() == {"r0": 1, "r1": 3}
    async with fabric.controller():
        await fabric.calm(3.0)
        assert fabric.sizes() == {"r0": 1, "r1": 3}


async def test_a_source_that_is_not_built_is_reported_once(fabric: Fabric) -> None:
    ufm = {"source": "ufm", "enabled": True, "config": {"endpoint": "https://ufm.example.com"}}
    label = yaml.safe_load(configuration("net/rack"))["networkTopologyDiscovery"]
    fabric.configure(yaml.safe_dump({"networkTopologyDiscovery": [ufm, *label]}))
    async with fabric.controller():
        await fabric.until(lambda: fabric.sizes() == {"r0": 2, "r1": 2})
        fabric.label("n1", rack="r1")
        await fabric.until(lambda: fabric.sizes() == {"r0": 1, "r1": 3})
        [event] = [
            each for each in fabric.store.list(EVENT) if each["reason"] == "DiscoverySourceNotBuilt"
        ]
        assert event["count"] == 1
        assert event["involvedObject"]["name"] == NAME


async def test_nodes_of_hyper_nodes_made_by_hand_are_counted(fabric: Fabric) -> None:
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[0-9]+$"}}}
    fabric.store.create(
        {
            "apiVersion": HYPER_NODE.api_version,
            "kind": HYPER_NODE.kind,
            "metadata": {"name": "by-hand", "labels": {"net/hand": "all"}},
            "spec": {"tier": 1, "members": [member]},
        }
    )
    async with fabric.controller():
        await fabric.until(lambda: fabric.sizes() == {"all": 4})
        fabric.cluster.add_node("n10")
        await fabric.until(lambda: fabric.sizes() == {"all": 5})


async def _discovers(fabric: Fabric) -> None:
    fabric.configure(configuration("net/cluster", "net/rack"))
    await fabric.until(lambda: fabric.sizes() == {"r0": 2, "r1": 2, "c0": 4})
    fabric.label("n0", rack="r2")
    fabric.label("n1", rack="r2")
    await fabric.until(lambda: fabric.sizes() == {"r1": 2, "r2": 2, "c0": 4})


async def _killed(number: int | None, after: bool) -> tuple[dict[str, Raw], MortalClient]:
    """What there is in the end if the controller is killed at a write."""
    async with quick_cluster() as cluster:
        head = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        cluster.store.create(head)
        _add_nodes(cluster)
        async with (
            Client.connect(server=cluster.url) as client,
            mortal_client(cluster, MortalClient, number, after=after) as mortal,
        ):
            fabric = Fabric(cluster, client)
            telling = asyncio.create_task(_discovers(fabric))
            async with fabric.controller(mortal):
                await mortal.until_dead_or(telling)
            async with fabric.controller():
                await telling
                await fabric.calm(2.0)
        return {
            each["metadata"]["name"]: {key: each[key] for key in ("spec", "status")}
            for each in cluster.store.list(HYPER_NODE)
        }, mortal


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_whenever_the_controller_is_killed_the_end_is_the_same(after: bool) -> None:
    expected, calm = await _killed(None, after)
    assert calm.certain == 5  # three, then one for another
    assert calm.writes >= 10
    for number in range(calm.writes):
        end, mortal = await _killed(number, after)
        assert end == expected, f"killed at write {number}"
        assert mortal.dead.is_set()


def _events(fabric: Fabric) -> list[tuple[str, str]]:
    return [(each["type"], each["reason"]) for each in fabric.store.list(EVENT)]
