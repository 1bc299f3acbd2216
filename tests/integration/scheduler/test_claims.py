"""Claims that wait for their first consumer: bound before the pods of their gang, as a whole, or given back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from pumice.api.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Kind
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import Unavailable
from pumice.embedded.storage import StoredWrite
from pumice.scheduler import load_config
from tests.integration.scheduler.stage import SchedulerStage
from tests.unit.scheduler.scenarios import config_text

Raw = dict[str, Any]
C = TypeVar("C", bound=Client)

SELECTED = "volume.kubernetes.io/selected-node"


def _config(timeout: int = 600) -> Any:
    predicates = {"predicates": None, "args": {"volumebinding.bindTimeoutSeconds": timeout}}
    return load_config(config_text([["gang"], [predicates]]))


def _class(stage: SchedulerStage, name: str, provisioner: str = "disk.example.com") -> None:
    stage.store.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


def _claim(stage: SchedulerStage, name: str, storage_class: str) -> None:
    stage.store.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": stage.namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )


def _volume(stage: SchedulerStage, name: str, storage_class: str, **spec: Any) -> None:
    stage.store.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "storageClassName": storage_class,
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "5Gi"},
                "hostPath": {"path": "/x"},
                **spec,
            },
        }
    )


def _gang(stage: SchedulerStage, storage_class: str, size: int = 3) -> None:
    """A gang each of whose pods mounts a claim of its own."""
    for number in range(size):
        _claim(stage, f"data-{number}", storage_class)
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": stage.namespace},
        "spec": {"minMember": size, "queue": "default"},
        "status": {"phase": "Pending"},
    }
    stage.store.create(group)
    for number in range(size):
        mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{number}"}}]
        stage.store.create(stage.pod(f"train-{number}", group="train", cpu="1", volumes=mounted))


def _gang_without_volumes(stage: SchedulerStage, size: int = 3) -> None:
    """A gang that fits on the only node, and whose volumes are not provisioned yet."""
    stage.cluster.add_node("node1", cpu="8")
    _class(stage, "made")
    _gang(stage, "made", size)
    stage.cluster._volumes.stop()


def _claims(stage: SchedulerStage) -> list[str]:
    return [str((each.get("status") or {}).get("phase")) for each in stage.all(PERSISTENT_VOLUME_CLAIM)]  # fmt: skip


def _selected(stage: SchedulerStage) -> list[str]:
    return [
        (each["metadata"].get("annotations") or {}).get(SELECTED, "")
        for each in stage.all(PERSISTENT_VOLUME_CLAIM)
    ]


def _owners(stage: SchedulerStage) -> list[str]:
    volumes = stage.store.list(PERSISTENT_VOLUME)
    return [(each["spec"].get("claimRef") or {}).get("name", "") for each in volumes]


def _watch_order(stage: SchedulerStage) -> list[str]:
    """What happens, in order: claims that become bound and pods that get a node."""
    summary: list[str] = []

    def note(change: StoredWrite) -> None:
        new, old = change.new.obj, change.old.obj if change.old else {}
        if change.resource == ("", "persistentvolumeclaims"):
            before = (old.get("status") or {}).get("phase")
            if (new.get("status") or {}).get("phase") == "Bound" != before:
                summary.append("claim")
        had_node = (old.get("spec") or {}).get("nodeName")
        if change.resource == ("", "pods") and new["spec"].get("nodeName") and not had_node:
            summary.append("pod")

    stage.store.storage.listen(note)
    return summary


async def test_the_claims_of_a_gang_are_bound_before_its_pods(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="8")
    _class(stage, "made")
    _gang(stage, "made")
    summary = _watch_order(stage)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: stage.phase("train") == "Running")
        assert summary == ["claim"] * 3 + ["pod"] * 3
        assert _selected(stage) == ["node1"] * 3
        await stage.calm()
        assert await stage.still()


async def test_volumes_that_exist_are_reserved_each_for_one_claim(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="8")
    _class(stage, "local", "kubernetes.io/no-provisioner")
    for number in range(4):
        _volume(stage, f"disk-{number}", "local")
    _gang(stage, "local")
    summary = _watch_order(stage)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: stage.phase("train") == "Running")
        assert summary == ["claim"] * 3 + ["pod"] * 3
        assert _owners(stage) == ["data-0", "data-1", "data-2", ""]
        assert _selected(stage) == [""] * 3


async def test_a_gang_whose_claims_are_not_bound_in_time_gives_everything_back(
    stage: SchedulerStage,
) -> None:
    stage.cluster.add_node("node1", cpu="3")
    _class(stage, "nobody")
    _class(stage, "local", "kubernetes.io/no-provisioner")
    _volume(stage, "disk", "local")
    stage.cluster._volumes.stop()
    _gang(stage, "nobody", 2)
    _claim(stage, "data-2", "local")
    mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "data-2"}}]
    stage.store.create(stage.pod("train-2", group="train", cpu="1", volumes=mounted))
    async with stage.scheduler(config=_config(5)):
        await stage.until(lambda: _selected(stage) == ["node1", "node1", ""])
        await stage.until(lambda: "VolumeBindingFailed" in str(stage.conditions("train")))
        assert _selected(stage) == [""] * 3
        assert _owners(stage) == [""]
        volume = stage.store.get(PERSISTENT_VOLUME, "disk")
        assert volume is not None
        assert not volume["metadata"].get("annotations")
        assert stage.nodes_of("train") == [""] * 3
        message = stage.conditions("train")["Unschedulable"]["message"]
        assert (
            'timed out after 5 s for persistentvolumeclaim "data-0", "data-1", "data-2"' in message
        )
        # Others may use what the gang held, and it is tried again later.
        stage.gang("other", 3)
        await stage.until(lambda: stage.phase("other") == "Running")
        for number in range(3):
            stage.store.delete(POD, f"other-{number}", "default")
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.phase("train") == "Running")


@pytest.mark.parametrize("storage_class", ["made", "local"])
@pytest.mark.parametrize("writes", [0, 1, 2, 3])
async def test_a_new_process_goes_on_from_any_write(
    stage: SchedulerStage, storage_class: str, writes: int
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    _class(stage, "made")
    _class(stage, "local", "kubernetes.io/no-provisioner")
    for number in range(3):
        _volume(stage, f"disk-{number}", "local")
    _gang(stage, storage_class)
    stage.cluster._volumes.stop()
    async with (
        closing(_Limited(stage, writes)) as client,
        stage.scheduler(client, config=_config()),
    ):
        await stage.until(lambda: client.sent >= 3)
    stage.cluster._volumes.start()
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: stage.phase("train") == "Running")
        assert "" not in stage.nodes_of("train")
        assert _claims(stage) == ["Bound"] * 3


async def test_a_write_that_fails_gives_back_the_others(stage: SchedulerStage) -> None:
    _gang_without_volumes(stage)
    async with closing(_Limited(stage, 2)) as client, stage.scheduler(client, config=_config()):
        await stage.until(lambda: client.sent >= 3)
        await stage.until(lambda: "VolumeBindingFailed" in str(stage.conditions("train")))
        assert _selected(stage) == [""] * 3
        client.limit = 1000
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.phase("train") == "Running")


async def test_a_provisioner_that_refuses_has_the_gang_placed_anew(stage: SchedulerStage) -> None:
    _gang_without_volumes(stage, 2)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _selected(stage) == ["node1"] * 2)
        await stage.calm()
        claim = stage.find(PERSISTENT_VOLUME_CLAIM, "data-0")
        del claim["metadata"]["annotations"][SELECTED]
        stage.store.update(claim)
        await stage.until(lambda: "provisioning failed" in str(stage.conditions("train")))
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.phase("train") == "Running")


async def test_a_pod_that_goes_meanwhile_gives_back_the_claims(stage: SchedulerStage) -> None:
    _gang_without_volumes(stage, 2)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _selected(stage) == ["node1"] * 2)
        stage.store.delete(POD, "train-1", "default")
        await stage.until(lambda: _selected(stage) == [""] * 2)
        assert stage.nodes_of("train") == [""]


async def test_a_node_that_goes_meanwhile_gives_back_the_claims_at_once(
    stage: SchedulerStage,
) -> None:
    _gang_without_volumes(stage, 2)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _selected(stage) == ["node1"] * 2)
        await stage.calm()
        stage.store.delete(NODE, "node1")
        await stage.until(lambda: _selected(stage) == [""] * 2)
        message = 'node "node1" has been deleted'
        await stage.until(lambda: message in str(stage.events("VolumeBindingFailed")))
        stage.cluster.add_node("node2", cpu="8")
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.nodes_of("train") == ["node2"] * 2)


async def test_a_node_that_is_cordoned_meanwhile_gets_none_of_the_pods(
    stage: SchedulerStage,
) -> None:
    """A drain begins while volumes are provisioned for the pods of a gang."""
    _gang_without_volumes(stage, 2)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _selected(stage) == ["node1"] * 2)
        await stage.calm()
        cordoned = stage.store.get(NODE, "node1") or {}
        stage.store.update({**cordoned, "spec": {**cordoned["spec"], "unschedulable": True}})
        stage.cluster.add_node("node2", cpu="8")
        message = 'node "node1" has been cordoned'
        await stage.until(lambda: message in str(stage.events("VolumeBindingFailed")))
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.nodes_of("train") == ["node2"] * 2)


async def test_pods_that_come_later_wait_for_the_claims_of_a_gang_that_is_not_complete(
    stage: SchedulerStage,
) -> None:
    _gang_without_volumes(stage, 2)
    async with stage.scheduler(config=_config(20)):
        await stage.until(lambda: _selected(stage) == ["node1"] * 2)
        stage.store.create(stage.pod("train-2", group="train", cpu="1"))
        await stage.until(lambda: "VolumeBindingFailed" in str(stage.conditions("train")))
        assert stage.nodes_of("train") == [""] * 3
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.nodes_of("train") == ["node1"] * 3)
        # The gang has its minimum: who comes now waits for its own claims alone.
        stage.cluster._volumes.stop()
        _claim(stage, "data-3", "made")
        mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "data-3"}}]
        stage.store.create(stage.pod("train-3", group="train", cpu="1", volumes=mounted))
        await stage.until(lambda: _selected(stage)[2:] == ["node1"])
        stage.store.create(stage.pod("train-4", group="train", cpu="1"))
        await stage.until(lambda: stage.nodes_of("train") == [*["node1"] * 3, "", "node1"])


async def test_a_pod_that_is_replaced_meanwhile_takes_the_claims_over(
    stage: SchedulerStage,
) -> None:
    _gang_without_volumes(stage, 2)
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _selected(stage) == ["node1"] * 2)
        stage.store.delete(POD, "train-1", "default")
        mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": "data-1"}}]
        stage.store.create(stage.pod("train-1", group="train", cpu="1", volumes=mounted))
        await stage.calm()
        assert stage.nodes_of("train") == [""] * 2
        stage.cluster._volumes.start()
        await stage.until(lambda: stage.nodes_of("train") == ["node1"] * 2)


async def test_a_gang_follows_a_volume_that_was_made_elsewhere(stage: SchedulerStage) -> None:
    for name in ("node1", "node2"):
        stage.cluster.add_node(name, cpu="8", labels={"kubernetes.io/hostname": name})
    _class(stage, "made")
    _gang(stage, "made", 1)
    stage.cluster._volumes.stop()
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _selected(stage) == ["node1"])
        there = [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node2"]}]
        claim = stage.find(PERSISTENT_VOLUME_CLAIM, "data-0")
        owner = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
        near = {"required": {"nodeSelectorTerms": [{"matchExpressions": there}]}}
        _volume(stage, "elsewhere", "made", claimRef=owner, nodeAffinity=near)
        claim["spec"]["volumeName"] = "elsewhere"
        stage.store.update_status({**stage.store.update(claim), "status": {"phase": "Bound"}})
        await stage.until(lambda: "does not reach" in str(stage.conditions("train")))
        await stage.until(lambda: stage.nodes_of("train") == ["node2"])


async def test_a_claim_that_changed_meanwhile_is_written_again(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="8")
    _class(stage, "made")
    _gang(stage, "made")
    async with closing(_Late(stage)) as client, stage.scheduler(client, config=_config()):
        await stage.until(lambda: stage.phase("train") == "Running")
        assert client.conflicts == 1
        assert stage.events("VolumeBindingFailed") == []


async def test_a_claim_that_changes_before_each_write_does_not_hold_its_gang_forever(
    stage: SchedulerStage,
) -> None:
    _gang_without_volumes(stage)
    async with (
        closing(_Late(stage, conflicts=10**9)) as client,
        stage.scheduler(client, config=_config(1)),
    ):
        await stage.until(lambda: stage.events("VolumeBindingFailed"))
        assert _selected(stage) == [""] * 3


@asynccontextmanager
async def closing(client: C) -> AsyncIterator[C]:
    yield client
    await client.close()


class _Late(Client):
    """A client that writes a claim when it has just been changed by another component."""

    def __init__(self, stage: SchedulerStage, conflicts: int = 1) -> None:
        super().__init__(stage.client.connection)
        self._stage = stage
        self._wanted = conflicts
        self.conflicts = 0

    async def patch(self, kind: Kind, name: str, *arguments: Any, **named: Any) -> Object:
        if kind == PERSISTENT_VOLUME_CLAIM and name == "data-1" and self.conflicts < self._wanted:
            self.conflicts += 1
            claim = self._stage.find(PERSISTENT_VOLUME_CLAIM, name)
            claim["metadata"]["labels"] = {"changed": str(self.conflicts)}
            self._stage.store.update(claim)
        return await super().patch(kind, name, *arguments, **named)


class _Limited(Client):
    """A client for which the API server answers a limited number of patches of claims and volumes."""

    def __init__(self, stage: SchedulerStage, limit: int) -> None:
        super().__init__(stage.client.connection)
        self.limit = limit
        self.sent = 0

    async def patch(self, kind: Kind, name: str, *arguments: Any, **named: Any) -> Object:
        if kind in (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM) and "null" not in str(arguments):
            body = arguments[1]
            is_taken_back = None in (body["metadata"].get("annotations") or {}).values()
            if not is_taken_back:
                self.sent += 1
                if self.sent > self.limit:
                    raise Unavailable(503, "ServiceUnavailable", "not now")
        return await super().patch(kind, name, *arguments, **named)
