"""What the scheduler writes when the cluster changes between a decision and its write."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from pumice.api.kinds import LEASE, NODE, POD, POD_GROUP, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import NotFound, Unavailable
from pumice.cluster.leader import LeaderElection
from pumice.embedded import EmbeddedCluster
from pumice.embedded.storage import StoredWrite
from tests.integration.scheduler.hooked import Hooked, leaderships, sample
from tests.integration.scheduler.stage import SchedulerStage

# -- statuses --------------------------------------------------------------------------------


async def test_a_late_status_does_not_undo_a_reset(stage: SchedulerStage, hooked: Hooked) -> None:
    """The Job controller resets a PodGroup while its status Running is on the way."""
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 1)
    phases: list[str] = []

    def note(change: StoredWrite) -> None:
        if change.resource[1] == "podgroups":
            phases.append((change.new.obj.get("status") or {}).get("phase", ""))

    async def reset(kind: Kind, name: str, body: Any) -> None:
        if kind == POD_GROUP and body["status"]["phase"] == "Running":
            hooked.before_patch = None
            stage.store.storage.listen(note)
            stage.store.delete(POD, "train-0", "default")
            group = stage.find(POD_GROUP, name)
            stage.store.update({**group, "status": {"phase": "Pending"}})

    hooked.before_patch = reset
    async with stage.scheduler(hooked) as worker:
        await stage.until(lambda: phases)
        await stage.calm()
        assert "Running" not in phases
        assert stage.phase("train") == "Inqueue"
        writes = "status_writes_total"
        assert sample(worker, writes, kind="podgroup", result="conflict") == 1


async def test_a_late_condition_does_not_reach_the_next_pod_of_the_same_name(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write fails, and before it is repeated the pod is replaced by one that only waits for the rest of its gang."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("train", 1, cpu="2")

    async def replaced(kind: Kind, name: str, body: Any) -> None:
        if kind == POD and "conditions" in body["status"]:
            hooked.before_patch = None
            stage.store.delete(POD, name, "default")
            group = stage.find(POD_GROUP, "train")
            stage.store.update({**group, "spec": {**group["spec"], "minMember": 2}})
            stage.store.create(stage.pod(name, group="train"))
            raise Unavailable(503, "ServiceUnavailable", "try again")

    hooked.before_patch = replaced
    async with leaderships(monkeypatch) as begun, stage.scheduler(hooked):
        await stage.until(lambda: hooked.before_patch is None)
        queue = begun[0]._conditions.queue
        await stage.until(lambda: not queue._failures)
        await stage.calm()
        assert stage.pod_condition("train-0") == {}


async def test_a_late_condition_does_not_reach_a_pod_that_was_bound_meanwhile(
    stage: SchedulerStage, hooked: Hooked
) -> None:
    """Another scheduler binds it while the condition is on the way."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("train", 1, cpu="2")

    async def bound(kind: Kind, name: str, body: Any) -> None:
        if kind == POD and "conditions" in body["status"]:
            hooked.before_patch = None
            await Client.bind(hooked, "default", name, "node1")

    hooked.before_patch = bound
    async with stage.scheduler(hooked) as worker:
        await stage.until(
            lambda: sample(worker, "status_writes_total", kind="pod", result="conflict")
        )
        await stage.calm()
        assert stage.pod_condition("train-0")["status"] == "True"


# -- bindings --------------------------------------------------------------------------------


async def test_a_pod_that_the_server_does_not_know_is_tried_with_growing_delays(
    stage: SchedulerStage, hooked: Hooked
) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 1)

    moments: list[float] = []

    async def missing(pod: str, node: str) -> None:
        del node
        moments.append(asyncio.get_running_loop().time())
        raise NotFound(404, "NotFound", f'pods "{pod}" not found')

    hooked.before_bind = missing
    async with stage.scheduler(hooked) as worker:
        await stage.until(lambda: len(moments) == 4)
        hooked.before_bind = None
        gaps = [later - earlier for earlier, later in pairwise(moments)]
        assert all(gap > 0.17 * 2**number for number, gap in enumerate(gaps)), gaps
        await stage.until(lambda: stage.phase("train") == "Running")
        assert sample(worker, "binds_total", result="gone") >= 1


async def test_a_binding_is_for_the_pod_that_it_was_decided_for(
    stage: SchedulerStage, hooked: Hooked
) -> None:
    """Another one of its name, for which no node has room, has taken its place meanwhile."""
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 1)

    async def replaced(pod: str, _node: str) -> None:
        hooked.before_bind = None
        stage.store.delete(POD, pod, "default")
        stage.store.create(stage.pod(pod, group="train", cpu="8"))

    hooked.before_bind = replaced
    async with stage.scheduler(hooked):
        await stage.until(lambda: stage.pod_condition("train-0"))
        assert hooked.binds == [("train-0", "node1")]
        assert stage.nodes_of("train") == [""]


async def test_a_gang_is_bound_to_its_end_though_its_first_pod_has_failed(
    stage: SchedulerStage, hooked: Hooked
) -> None:
    """Binding the second pod is refused once; the first one fails before the second is bound."""
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 2)

    async def refused(pod: str, _node: str) -> None:
        if pod == "train-1":
            hooked.before_bind = None
            await stage.until(lambda: stage.find(POD, "train-0")["status"]["phase"] == "Running")
            first = stage.find(POD, "train-0")
            stage.store.update_status({**first, "status": {**first["status"], "phase": "Failed"}})
            raise Unavailable(503, "ServiceUnavailable", "try again")

    hooked.before_bind = refused
    async with stage.scheduler(hooked):
        await stage.until(lambda: all(stage.nodes_of("train")))
        assert stage.find(POD, "train-0")["status"]["phase"] == "Failed"


@pytest.mark.parametrize("change", ["removed", "replaced", "cordoned"])
async def test_queued_bindings_do_not_go_to_a_node_that_was(
    stage: SchedulerStage, hooked: Hooked, change: str
) -> None:
    stage.cluster.add_node("node1", cpu="2")
    stage.gang("train", 2)
    holds, goes_on = asyncio.Event(), asyncio.Event()

    async def hold(pod: str, node: str) -> None:
        del pod, node
        holds.set()
        await goes_on.wait()

    hooked.before_bind = hold
    async with stage.scheduler(hooked, concurrent_binds=1) as worker:
        await holds.wait()
        first = hooked.binds[0][0]
        seen = worker.caches.nodes.get("node1")
        if change != "cordoned":
            stage.store.delete(NODE, "node1")
        if change == "replaced":
            stage.cluster.add_node("node1", cpu="1")
        elif change == "cordoned":
            node = stage.store.get(NODE, "node1") or {}
            stage.store.update({**node, "spec": {**node["spec"], "unschedulable": True}})
        stage.cluster.add_node("node2", cpu="2")
        await stage.until(lambda: len(worker.caches.nodes) == (1 if change == "removed" else 2))
        await stage.until(lambda: worker.caches.nodes.get("node2"))
        await stage.until(lambda: worker.caches.nodes.get("node1") != seen)
        goes_on.set()
        await stage.until(lambda: len(hooked.binds) == 2)
        assert hooked.binds[0] == (first, "node1")
        assert hooked.binds[1][1] == "node2"
        await stage.until(lambda: sample(worker, "binds_total", result="node") == 1)


async def test_nothing_is_bound_once_the_lease_has_run_out(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stood still finds its queue full, and the Lease expired by its own clock."""
    stage.cluster.add_node("node1", cpu="4")
    async with stage.scheduler(hooked, leader_elect=True) as worker:
        await stage.until(worker.started.is_set)
        monkeypatch.setattr(LeaderElection, "leading", False)
        stage.gang("train", 1)
        await stage.until(lambda: worker.caches.pods.get("train-0", "default") is not None)
        await asyncio.sleep(0.3)
        assert (hooked.binds, stage.phase("train")) == ([], "")
        monkeypatch.undo()
        await stage.until(lambda: stage.phase("train") == "Running")


async def test_a_bound_pod_that_was_deleted_since_it_was_read_leaves_no_ghost(
    stage: SchedulerStage, hooked: Hooked
) -> None:
    """The answer to a binding got lost, and the pod goes while it is looked up."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("train", 1)
    async with stage.scheduler(hooked) as worker:

        async def lost(pod: str, node: str) -> None:
            hooked.before_bind = None
            await Client.bind(hooked, "default", pod, node)
            raise Unavailable(0, "Timeout", "no answer")

        async def deleted(pod: str) -> None:
            stage.store.delete(POD, pod, "default")
            await stage.until(lambda: worker.caches.pods.get(pod, "default") is None)

        hooked.before_bind, hooked.after_get = lost, deleted
        await stage.until(lambda: not stage.names(POD))
        stage.gang("next", 1)
        await stage.until(lambda: stage.phase("next") == "Running")


async def test_the_lease_is_given_up_after_the_bindings_under_way(
    stage: SchedulerStage, hooked: Hooked, cluster: EmbeddedCluster
) -> None:
    stage.cluster.add_node("node1", cpu="4")
    stage.gang("train", 1)
    holds = asyncio.Event()
    order: list[str] = []

    async def slow(pod: str, node: str) -> None:
        del pod, node
        holds.set()
        await asyncio.sleep(0.2)

    def note(change: StoredWrite) -> None:
        if change.resource[1] == "pods" and change.new.obj["spec"].get("nodeName"):
            order.append("bound")
        if change.resource[1] == "leases" and not change.new.obj["spec"].get("holderIdentity"):
            order.append("released")

    cluster.store.storage.listen(note)
    hooked.before_bind = slow
    async with stage.scheduler(hooked, leader_elect=True):
        await holds.wait()
    assert stage.store.get(LEASE, "pumice-scheduler", "default")
    assert "released" in order
    assert order.index("bound") < order.index("released")
