"""What the scheduler writes when the cluster changes between a decision and its write."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from pumice.api.kinds import LEASE, NODE, POD, POD_GROUP, Kind
from pumice.cluster.backoff import Backoff
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import ApiError, Conflict, NotFound, TooManyRequests, Unavailable
from pumice.cluster.leader import LeaderElection
from pumice.embedded import EmbeddedCluster
from pumice.embedded.storage import StoredWrite
from pumice.scheduler import CycleResult, run_cycle
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.worker import SchedulerWorker, loop
from tests.integration.scheduler.stage import SchedulerStage

Hook = Callable[..., Coroutine[Any, Any, None]]


class Hooked(Client):
    """A client that lets the test act before a write is sent."""

    def __init__(self, stage: SchedulerStage) -> None:
        super().__init__(stage.client.connection)
        self.before_bind: Hook | None = None
        self.before_evict: Hook | None = None
        self.before_patch: Hook | None = None
        self.after_get: Hook | None = None
        self.binds: list[tuple[str, str]] = []
        self.evictions: list[str] = []

    async def bind(self, namespace: str, pod: str, node: str, uid: str | None = None) -> None:
        self.binds.append((pod, node))
        if self.before_bind is not None:
            await self.before_bind(pod, node)
        await super().bind(namespace, pod, node, uid)

    async def evict(
        self, namespace: str, pod: str, *, uid: str | None = None, grace: int | None = None
    ) -> None:
        self.evictions.append(pod)
        if self.before_evict is not None:
            await self.before_evict(pod)
        await super().evict(namespace, pod, uid=uid, grace=grace)

    async def get(self, kind: Kind, name: str, *arguments: Any, **named: Any) -> Object:
        found = await super().get(kind, name, *arguments, **named)
        if self.after_get is not None and kind == POD:
            await self.after_get(name)
        return found

    async def patch(self, kind: Kind, name: str, *arguments: Any, **named: Any) -> Object:
        if self.before_patch is not None:
            await self.before_patch(kind, name, arguments[1])
        return await super().patch(kind, name, *arguments, **named)


@pytest.fixture
async def hooked(stage: SchedulerStage) -> AsyncIterator[Hooked]:
    client = Hooked(stage)
    yield client
    await client.close()


def sample(worker: SchedulerWorker, name: str, **labels: str) -> float:
    return worker.metrics.registry.get_sample_value(f"pumice_scheduler_{name}", labels) or 0.0


@asynccontextmanager
async def terms(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[loop._Term]]:
    """The terms that begin within the block."""
    begun: list[loop._Term] = []

    class Noted(loop._Term):
        def __init__(self, worker: SchedulerWorker) -> None:
            super().__init__(worker)
            begun.append(self)

    monkeypatch.setattr(loop, "_Term", Noted)
    yield begun


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
    async with terms(monkeypatch) as begun, stage.scheduler(hooked):
        await stage.until(lambda: hooked.before_patch is None)
        queue = begun[0]._conditions._queue
        await stage.until(lambda: not queue._failures)
        await stage.calm()
        assert stage.pod_condition("train-0") == {}


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


@pytest.mark.parametrize("change", ["removed", "cordoned"])
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
        if change == "removed":
            stage.store.delete(NODE, "node1")
        else:
            node = stage.store.get(NODE, "node1") or {}
            stage.store.update({**node, "spec": {**node["spec"], "unschedulable": True}})
        stage.cluster.add_node("node2", cpu="2")
        await stage.until(lambda: len(worker.caches.nodes) == (1 if change == "removed" else 2))
        await stage.until(lambda: worker.caches.nodes.get("node2"))
        await stage.until(
            lambda: (found := worker.caches.nodes.get("node1")) is None or found.spec.unschedulable
        )
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


# -- evictions -------------------------------------------------------------------------------


def evict_once(monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
    """Let the next cycle evict pods, as an action would."""
    wanted = list(keys)

    def evicting(*arguments: Any) -> CycleResult:
        result = run_cycle(*arguments)
        state = arguments[0]
        for key in wanted:
            task = state.tasks[key]
            record = state.nodes.records[task.node]
            state.nodes.discard(task)
            state.jobs[task.job].move(task, SchedulingStatus.RELEASING)
            state.nodes.add(task, record)
        state.assume_pods(wanted)
        result.evicted.extend(wanted)
        wanted.clear()
        return result

    monkeypatch.setattr(loop, "run_cycle", evicting)


async def test_a_refused_eviction_leaves_no_ghost_of_a_pod_that_went_meanwhile(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("victim", 1)

    async def refused(pod: str) -> None:
        stage.store.delete(POD, pod, "default")
        await stage.until(lambda: worker.caches.pods.get(pod, "default") is None)
        raise TooManyRequests(429, "TooManyRequests", "disruption budget")

    hooked.before_evict = refused
    async with stage.scheduler(hooked) as worker:
        await stage.until(lambda: stage.phase("victim") == "Running")
        evict_once(monkeypatch, "default/victim-0")
        await stage.until(lambda: sample(worker, "evictions_total", result="failed") == 1)
        stage.gang("next", 1)
        await stage.until(lambda: stage.phase("next") == "Running")


@pytest.mark.parametrize(
    "error",
    [
        TooManyRequests(429, "TooManyRequests", "disruption budget"),
        Conflict(409, "Conflict", "the pod was modified"),
    ],
    ids=["429", "409"],
)
async def test_a_refused_eviction_is_taken_back_and_not_asked_again_before_its_delay(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch, error: ApiError
) -> None:
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("victim", 1)

    async def refused(pod: str) -> None:
        del pod
        raise error

    hooked.before_evict = refused
    async with terms(monkeypatch) as begun, stage.scheduler(hooked):
        await stage.until(lambda: stage.phase("victim") == "Running")
        state = begun[0]._context.state
        begun[0]._evictor._backoff = Backoff(base=60.0, cap=60.0)
        for _ in range(5):
            evict_once(monkeypatch, "default/victim-0")
            begun[0]._news.set()
            cycles = state.cycles
            await stage.until(lambda before=cycles: state.cycles > before)  # type: ignore[misc]
            await stage.until(
                lambda: state.tasks["default/victim-0"].status is SchedulingStatus.RUNNING
            )
        assert hooked.evictions == ["victim-0"]
        uid = state.tasks["default/victim-0"].uid
        assert state.spared["default/victim-0"][0] == uid


async def test_an_eviction_of_a_pod_that_is_gone_is_no_refusal(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server knows that the pod was deleted before the watch shows it."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("victim", 1)

    async def deleted(pod: str) -> None:
        stage.store.delete(POD, pod, "default")
        raise NotFound(404, "NotFound", f'pods "{pod}" not found')

    hooked.before_evict = deleted
    async with terms(monkeypatch) as begun, stage.scheduler(hooked) as worker:
        await stage.until(lambda: stage.phase("victim") == "Running")
        evict_once(monkeypatch, "default/victim-0")
        begun[0]._news.set()
        await stage.until(lambda: hooked.evictions)
        await stage.until(lambda: not begun[0]._evictor._decisions)
        assert sample(worker, "evictions_total", result="failed") == 0
        assert not begun[0]._context.state.spared


def hold_evictions(hooked: Hooked) -> asyncio.Event:
    """Send no eviction before the event that is returned is set."""
    goes_on = asyncio.Event()

    async def hold(_: str) -> None:
        await goes_on.wait()

    hooked.before_evict = hold
    return goes_on


async def test_a_status_event_does_not_end_an_eviction(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("victim", 1)
    goes_on = hold_evictions(hooked)
    async with terms(monkeypatch) as begun, stage.scheduler(hooked) as worker:
        await stage.until(lambda: stage.phase("victim") == "Running")
        evict_once(monkeypatch, "default/victim-0")
        await stage.until(lambda: hooked.evictions)
        found = stage.find(POD, "victim-0")
        found["status"]["message"] = "busy"
        stage.store.update_status(found)
        version = stage.find(POD, "victim-0")["metadata"]["resourceVersion"]
        await stage.until(
            lambda: (
                (seen := worker.caches.pods.get("victim-0", "default")) is not None
                and seen.metadata.resource_version == version
            )
        )
        assert (
            begun[0]._context.state.tasks["default/victim-0"].status is SchedulingStatus.RELEASING
        )
        goes_on.set()
        await stage.until(lambda: not stage.names(POD))


async def test_only_some_evictions_are_under_way_at_once(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("victim", 6)
    goes_on = hold_evictions(hooked)
    async with stage.scheduler(hooked, concurrent_evictions=2):
        await stage.until(lambda: stage.phase("victim") == "Running")
        evict_once(monkeypatch, *(f"default/victim-{number}" for number in range(6)))
        await stage.until(lambda: len(hooked.evictions) == 2)
        await asyncio.sleep(0.2)
        assert len(hooked.evictions) == 2
        goes_on.set()
        await stage.until(lambda: not stage.names(POD))
