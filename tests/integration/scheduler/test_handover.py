"""A leader that is told to stop hands over; how soon is measured by `benchmarks/hand_over.py`."""

import asyncio
import contextlib
import copy

from pumice.api.kinds import LEASE
from pumice.cluster.lifecycle import run_until_stopped
from pumice.scheduler import load_config
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings
from tests.integration.scheduler.hooked import Hooked
from tests.integration.scheduler.stage import PERIOD, SchedulerStage


async def test_a_standby_goes_on_where_the_leader_stopped(stage: SchedulerStage) -> None:
    """Its Lease is not waited for: it is released, and gangs are bound one leader after the other."""
    stage.cluster.add_node("node1", cpu="64")
    stops: list[asyncio.Event] = []
    runs: list[asyncio.Task[None]] = []
    asked: list[tuple[str, str]] = []

    async with contextlib.AsyncExitStack() as stack:

        async def start(name: str) -> SchedulerWorker:
            client = Hooked(stage)
            client.binds = (
                asked  # a leader that ends does not count the last requests that it has sent
            )
            stack.push_async_callback(client.close)
            settings = WorkerSettings(period=PERIOD, leader_elect=True, identity=name)
            worker = SchedulerWorker(client, load_config(None), settings)
            stops.append(asyncio.Event())
            runs.append(
                asyncio.create_task(run_until_stopped(worker.tasks(), stop=stops[-1], signals=()))
            )
            return worker

        leader = await start("0")
        await stage.until(leader.started.is_set)
        for number in range(1, 4):
            standby = await start(str(number))
            await stage.until(lambda worker=standby: worker.ready)  # type: ignore[misc]
            assert standby.checks["state"]() is None, "its state is filled while another one leads"
            stops[-2].set()
            stage.gang(f"train{number}", 8)
            await runs[-2]
            await stage.until(lambda name=f"train{number}": stage.phase(name) == "Running")  # type: ignore[misc]
            assert standby.started.is_set()
            lease = stage.store.get(LEASE, "pumice-scheduler", "default") or {}
            assert lease["spec"]["holderIdentity"] == str(number)
            assert lease["spec"]["leaseTransitions"] == number
        stops[-1].set()
        await runs[-1]
    pods = [f"train{number}-{index}" for number in range(1, 4) for index in range(8)]
    assert sorted(pod for pod, _ in asked) == pods, "each pod is bound once"


async def test_a_scheduler_without_its_lease_shows_nothing_of_the_cluster(
    stage: SchedulerStage,
) -> None:
    """`max` over all processes is then what the leader shows."""
    stage.cluster.add_node("node1", cpu="1")
    stage.gang("large", 2)
    async with stage.scheduler(leader_elect=True, identity="0") as worker:

        def shown() -> list[float | None]:
            names = (
                "pumice_scheduler_pending_pod_groups",
                "pumice_scheduler_nodes",
                "volcano_unschedule_job_count",
            )
            return [worker.metrics.registry.get_sample_value(name) for name in names]

        await stage.until(lambda: shown() == [1, 1, 1])
        lease = copy.deepcopy(stage.store.get(LEASE, "pumice-scheduler", "default") or {})
        lease["spec"]["holderIdentity"] = "other"
        stage.store.update(lease)
        await stage.until(lambda: not worker.started.is_set())
        await stage.until(lambda: worker.ready)
        assert shown() == [0, 0, 0]
