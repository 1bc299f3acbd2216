"""What becomes of evictions that are refused, late, or many at once."""

import asyncio
from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.cluster.clock import Backoff
from pumice.cluster.errors import ApiError, Conflict, NotFound, TooManyRequests
from pumice.cluster.leader import LeaderElection
from pumice.scheduler import CycleResult, run_cycle
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.worker import loop
from tests.integration.scheduler.hooked import Hooked, leaderships, sample
from tests.integration.scheduler.stage import SchedulerStage


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
        state.pods.assume(wanted)
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
    async with leaderships(monkeypatch) as begun, stage.scheduler(hooked):
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
        assert state.pods.spared["default/victim-0"][0] == uid


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
    async with leaderships(monkeypatch) as begun, stage.scheduler(hooked) as worker:
        await stage.until(lambda: stage.phase("victim") == "Running")
        evict_once(monkeypatch, "default/victim-0")
        begun[0]._news.set()
        await stage.until(lambda: hooked.evictions)
        await stage.until(lambda: not begun[0]._evictor._decisions)
        assert sample(worker, "evictions_total", result="failed") == 0
        assert not begun[0]._context.state.pods.spared


async def test_an_eviction_is_for_the_pod_that_it_was_decided_for(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one of its name has taken its place before the request is sent."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("victim", 1)

    async def replaced(pod: str) -> None:
        stage.store.delete(POD, pod, "default")
        stage.store.create(stage.pod(pod, group="victim"))

    hooked.before_evict = replaced
    async with leaderships(monkeypatch) as begun, stage.scheduler(hooked):
        await stage.until(lambda: stage.phase("victim") == "Running")
        evict_once(monkeypatch, "default/victim-0")
        await stage.until(lambda: hooked.evictions)
        await stage.until(lambda: not begun[0]._evictor._decisions)
        await stage.until(lambda: stage.nodes_of("victim") == ["node1"])


async def test_nothing_is_evicted_once_the_lease_has_run_out(
    stage: SchedulerStage, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the pod count as one whose eviction was refused."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("victim", 1)
    async with (
        leaderships(monkeypatch) as begun,
        stage.scheduler(hooked, leader_elect=True) as worker,
    ):
        await stage.until(lambda: stage.phase("victim") == "Running")
        with monkeypatch.context() as standing_still:
            standing_still.setattr(LeaderElection, "leading", False)
            evict_once(standing_still, "default/victim-0")
            await stage.until(lambda: begun[0]._evictor._decisions)
            await asyncio.sleep(0.2)
            assert hooked.evictions == []
        await stage.until(lambda: not stage.names(POD))
        assert sample(worker, "evictions_total", result="failed") == 0


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
    async with leaderships(monkeypatch) as begun, stage.scheduler(hooked) as worker:
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
