"""A plugin that fails ends neither the process nor the scheduling of other gangs."""

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import queue
from tests.kit.faulty import Fault, faulty_config


async def test_a_gang_that_a_plugin_fails_on_waits_and_the_others_run(
    stage: SchedulerStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    fault = Fault("job_ready", "bad")
    async with stage.scheduler(config=faulty_config(fault)) as worker:
        stage.gang("bad", 1)
        await stage.until(lambda: stage.events("SchedulingError"))
        stage.gang("good", 1)
        await stage.until(lambda: stage.phase("good") == "Running")
        await stage.until(lambda: "Unschedulable" in stage.conditions("bad"))
        condition = stage.conditions("bad")["Unschedulable"]
        assert condition["reason"] == "SchedulingError"
        assert "ZeroDivisionError: fault at job_ready" in condition["message"]
        assert stage.nodes_of("bad") == [""]
        sample = worker.metrics.registry.get_sample_value
        assert (sample("pumice_scheduler_errors_total", {"scope": "gang"}) or 0) >= 1
        assert any(record.exc_info for record in caplog.records)
        assert worker.ready
        fault.gangs.clear()
        await stage.until(lambda: stage.phase("bad") == "Running")


async def test_a_failure_of_whole_cycles_makes_the_process_unready_until_one_succeeds(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.store.create(queue("other"))  # the order of queues is asked for where two of them wait
    stage.gang("train", 1)
    stage.gang("later", 1, queue="other")
    fault = Fault("queue_order", "any")
    async with stage.scheduler(config=faulty_config(fault)) as worker:
        await stage.until(lambda: worker.started.is_set() and not worker.ready)
        assert worker.checks["caches"]() is None
        problem = worker.checks["cycles"]() or ""
        assert "cycles in a row failed: ZeroDivisionError: fault at queue_order" in problem
        sample = worker.metrics.registry.get_sample_value
        assert (sample("pumice_scheduler_errors_total", {"scope": "cycle"}) or 0) >= 1
        fault.gangs.clear()
        await stage.until(lambda: stage.phase("train") == "Running")
        assert worker.ready


class _Slow(Fault):
    """A plugin that takes processor time for each pod of some gangs."""

    def _fail(self, about: Any) -> None:
        if about.job.partition("/")[2] in self.gangs:
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                pass


async def test_a_gang_that_takes_several_budgets_is_set_aside_and_the_others_run(
    stage: SchedulerStage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.cluster.add_node("node1", cpu="64")
    fault = _Slow("on_allocate", "bad")
    async with stage.scheduler(config=faulty_config(fault), cycle_budget=0.05) as worker:
        stage.gang("bad", 20)
        await stage.until(lambda: stage.events("SchedulingTooSlow"))
        stage.gang("good", 1)
        await stage.until(lambda: stage.phase("good") == "Running")
        await stage.until(lambda: "Unschedulable" in stage.conditions("bad"))
        condition = stage.conditions("bad")["Unschedulable"]
        assert condition["reason"] == "SchedulingTooSlow"
        assert "took more than 0.15 s" in condition["message"]
        assert stage.nodes_of("bad") == [""] * 20
        assert any("took too long; again in" in each.getMessage() for each in caplog.records)
        assert worker.ready
        fault.gangs.clear()
        await stage.until(lambda: stage.phase("bad") == "Running")


async def test_cycles_that_do_not_reach_all_gangs_follow_each_other_until_they_have(
    stage: SchedulerStage,
) -> None:
    stage.cluster.add_node("node1", cpu="64")
    names = [f"slow{number}" for number in range(12)]
    config = faulty_config(_Slow("on_allocate", *names))
    for name in names:
        stage.gang(name, 1)
    async with stage.scheduler(config=config, cycle_budget=0.05, period=60.0) as worker:
        await stage.until(lambda: all(stage.phase(name) == "Running" for name in names))
        sample = worker.metrics.registry.get_sample_value
        assert (sample("pumice_scheduler_cycles_total") or 0) >= 3
        await stage.until(lambda: sample("pumice_scheduler_unreached_pod_groups") == 0)


class _Timed(Fault):
    """Notes when it fails."""

    def __init__(self, point: str, *gangs: str) -> None:
        super().__init__(point, *gangs)
        self.moments: list[float] = []

    def _asked(self, answer: Any) -> Callable[..., Any]:
        asked = super()._asked(answer)

        def timed(*arguments: Any) -> Any:
            try:
                return asked(*arguments)
            except ZeroDivisionError:
                self.moments.append(asyncio.get_running_loop().time())
                raise

        return timed


@pytest.mark.parametrize(
    ("point", "gang", "first"),
    [("job_valid", "bad", 1.0), ("queue_order", "any", 0.5)],
    ids=["gang", "cycle"],
)
async def test_what_fails_is_tried_again_with_growing_delays(
    stage: SchedulerStage, point: str, gang: str, first: float
) -> None:
    fault = _Timed(point, gang)
    stage.cluster.add_node("node1", cpu="8")
    stage.store.create(queue("other"))
    stage.gang("bad", 1)
    stage.gang("later", 1, queue="other")
    async with stage.scheduler(config=faulty_config(fault)):
        await stage.until(lambda: len(fault.moments) == 4)
        gaps = [later - earlier for earlier, later in pairwise(fault.moments)]
        assert all(gap > 0.69 * first * 2**number for number, gap in enumerate(gaps)), gaps
