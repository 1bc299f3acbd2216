"""What the scheduler writes into the status of queues."""

import asyncio

import pytest

from pumice.api.kinds import POD, QUEUE
from pumice.scheduler.worker.queue_writes import LATEST_SECONDS, STABLE_SECONDS
from tests.integration.scheduler.stage import Raw, SchedulerStage
from tests.kit.builders import queue
from tests.kit.requests import Requests, recorded

NOTHING = {"cpu": "0", "memory": "0", "pods": "0"}


def writes(requests: Requests) -> list[tuple[str, Raw]]:
    """Names of queues, and what was written of them, in the order of the writes."""
    return [
        (each.path.split("/")[-2], each.body["status"]["allocated"])
        for each in requests.of("PATCH", "queues/status")
    ]


def allocated(stage: SchedulerStage, name: str) -> Raw:
    status: Raw = (stage.store.get(QUEUE, name) or {}).get("status") or {}
    return status.get("allocated") or {}


async def until_pods(stage: SchedulerStage, number: str, *names: str) -> None:
    """Wait until queues say that they hold so many pods."""
    await stage.until(lambda: {allocated(stage, name).get("pods") for name in names} == {number})


async def test_a_queue_says_what_its_pods_hold_and_those_of_the_queues_below_it(
    stage: SchedulerStage,
) -> None:
    stage.cluster.add_node("node1", cpu="8", resources={"nvidia.com/gpu": 8})
    stage.store.create(queue("team", reclaimable=True))
    stage.store.create(queue("night", parent="team"))
    stage.store.create(queue("quiet"))
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client):
        resources = {"requests": {"cpu": "500m", "nvidia.com/gpu": "2"}}
        container = {"name": "main", "image": "busybox:1.36", "resources": resources}
        stage.gang("train", 3, queue="night", containers=[container])
        await stage.until(lambda: stage.phase("train") == "Running")
        expected = {"cpu": "1500m", "memory": "0", "pods": "3", "nvidia.com/gpu": "6"}
        await until_pods(stage, "3", "night", "team", "root")
        for name in ("night", "team", "root"):
            assert allocated(stage, name) == expected
        await stage.calm(STABLE_SECONDS + 1.5)
        assert {name for name, _ in writes(requests)} == {"night", "team", "root"}
        assert not allocated(stage, "quiet")
        for number in range(3):
            stage.store.delete(POD, f"train-{number}", "default")
        await until_pods(stage, "0", "night", "team", "root")
        for name in ("night", "team", "root"):
            assert allocated(stage, name) == NOTHING, "no device is left over"


async def test_changes_of_a_second_are_one_write(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="64")
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client):
        for number in range(10):
            stage.gang(f"train{number}", 1)
            await asyncio.sleep(0.05)
        await until_pods(stage, "10", "default", "root")
        await stage.calm(STABLE_SECONDS + 1.5)
    assert len([name for name, _ in writes(requests) if name == "default"]) <= 2
    assert len(writes(requests)) <= 4


async def test_a_change_that_is_over_within_seconds_is_not_written(stage: SchedulerStage) -> None:
    """The metrics show it at once."""
    stage.cluster.add_node("node1", cpu="64")
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client) as worker:
        stage.gang("train", 2)
        await stage.until(lambda: stage.phase("train") == "Running")
        count = worker.metrics.registry.get_sample_value
        held = "volcano_queue_allocated_milli_cpu"
        await stage.until(lambda: count(held, {"queue_name": "default"}) == 2000)
        await asyncio.sleep(STABLE_SECONDS - 2.0)
        for number in range(2):
            stage.store.delete(POD, f"train-{number}", "default")
        await stage.until(lambda: count(held, {"queue_name": "default"}) == 0)
        await asyncio.sleep(LATEST_SECONDS + 1.0)
        assert not [body for name, body in writes(requests) if body["pods"] != "0"]
        assert len(writes(requests)) <= 2, "each queue says once that it holds nothing"


async def test_a_queue_that_goes_on_changing_is_written_now_and_then(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="64")
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client):
        for number in range(int(2 * LATEST_SECONDS / 2.0)):
            stage.gang(f"train{number}", 1)
            await asyncio.sleep(2.0)
        assert 1 <= len([name for name, _ in writes(requests) if name == "default"]) <= 2
        await until_pods(stage, "15", "default", "root")
        assert len([name for name, _ in writes(requests) if name == "default"]) <= 3


async def test_a_restart_writes_nothing_that_is_there(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="64")
    async with stage.scheduler():
        stage.gang("train", 2)
        await until_pods(stage, "2", "default", "root")
        await stage.calm()
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client) as worker:
        await stage.until(worker.started.is_set)
        await stage.calm(STABLE_SECONDS + 1.5)
        assert not writes(requests)
        stage.store.delete(POD, "train-1", "default")
        await until_pods(stage, "1", "default", "root")


async def test_a_queue_that_changed_meanwhile_is_written_again(stage: SchedulerStage) -> None:
    """The Job controller and users write Queues, too."""
    stage.cluster.add_node("node1", cpu="64")
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client) as worker:
        await stage.until(lambda: worker.caches.queues.get("default"))

        def meddle(request: object) -> None:
            if getattr(request, "resource", "") == "queues/status":
                requests.refuse = lambda _: None
                found = stage.store.get(QUEUE, "default") or {}
                stage.store.update({**found, "spec": {**found["spec"], "weight": 7}})
                found = stage.store.get(QUEUE, "root") or {}
                stage.store.update({**found, "spec": {**found["spec"], "weight": 7}})

        requests.refuse = meddle
        stage.gang("train", 2)
        await until_pods(stage, "2", "default", "root")
        assert (stage.store.get(QUEUE, "default") or {})["spec"]["weight"] == 7
        count = worker.metrics.registry.get_sample_value
        name = "pumice_scheduler_status_writes_total"
        assert count(name, {"kind": "queue", "result": "conflict"})


async def test_a_watch_that_has_yet_to_show_a_write_does_not_hide_a_change(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that holds nothing comes to hold two pods, and then nothing again, before the watch shows the two."""
    stage.cluster.add_node("node1", cpu="64")
    async with stage.scheduler() as worker:
        await stage.until(lambda: worker.caches.queues.get("default"))
        before = worker.caches.queues.get("default")
        with monkeypatch.context() as late:
            get = worker.caches.queues.get
            late.setattr(
                worker.caches.queues, "get", lambda name: before if name == "default" else get(name)
            )
            stage.gang("train", 2)
            await until_pods(stage, "2", "default", "root")
            for number in range(2):
                stage.store.delete(POD, f"train-{number}", "default")
            await until_pods(stage, "0", "root")
            await asyncio.sleep(2.5)
            assert allocated(stage, "default")["pods"] == "2"
        await until_pods(stage, "0", "default")


async def test_a_queue_that_is_gone_is_not_written(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="64")
    stage.store.create(queue("team"))
    async with recorded(stage.cluster.url) as (client, requests), stage.scheduler(client) as worker:
        stage.gang("train", 2, queue="team")
        await stage.until(lambda: stage.phase("train") == "Running")
        stage.store.delete(QUEUE, "team")
        await stage.until(lambda: worker.caches.queues.get("team") is None)
        await stage.calm(STABLE_SECONDS + 1.5)
        assert "team" not in [name for name, _ in writes(requests)]
        metrics = worker.metrics.registry.get_sample_value
        assert metrics("volcano_queue_weight", {"queue_name": "team"}) is None
        assert metrics("volcano_queue_weight", {"queue_name": "default"}) == 1


async def test_a_scheduler_at_work_fills_volcanos_metrics(
    stage: SchedulerStage,
) -> None:
    stage.cluster.add_node("node1", cpu="4")
    async with stage.scheduler() as worker:
        stage.gang("train", 2)
        stage.gang("waits", 4)
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.until(lambda: stage.conditions("waits").get("Unschedulable"))
        metrics = worker.metrics.registry
        shown = {
            sample.name: sample.value
            for metric in metrics.collect()
            for sample in metric.samples
            if metric.name.startswith("volcano_") and sample.value
        }
        queue_name = {"queue_name": "default"}
        assert metrics.get_sample_value("volcano_queue_allocated_milli_cpu", queue_name) == 2000
        assert metrics.get_sample_value("volcano_queue_request_milli_cpu", queue_name) == 6000
    for name in (
        "e2e_scheduling_latency_milliseconds_count",
        "open_session_duration_milliseconds_count",
        "action_scheduling_latency_milliseconds_count",
        "plugin_scheduling_latency_milliseconds_count",
        "e2e_job_scheduling_latency_milliseconds_count",
        "task_scheduling_latency_milliseconds_count",
        "schedule_attempts_total",
        "unschedule_job_count",
    ):
        assert f"volcano_{name}" in shown
    assert not [
        sample
        for metric in metrics.collect()
        for sample in metric.samples
        if "queue_name" in sample.labels
    ], "this process schedules no more"
