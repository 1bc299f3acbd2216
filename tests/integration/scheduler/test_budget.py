"""What controller and scheduler write together for one Job."""

from collections import Counter
from typing import Any

from pumice.api import keys
from pumice.api.kinds import EVENT, NODE, POD
from pumice.embedded import EmbeddedCluster
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.worker.configuration import DELAYS
from pumice.scheduler.worker.queue_writes import STABLE_SECONDS
from tests.integration.controller.stage import ControllerStage
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import job, task
from tests.kit.requests import recorded


def _besides(writes: Counter[str]) -> Counter[str]:
    """Writes besides those that each pod needs."""
    return Counter({sort: n for sort, n in writes.items() if not sort.startswith("POST pods")})


async def test_twenty_pods_from_submission_to_completed(
    stage: SchedulerStage, cluster: EmbeddedCluster
) -> None:
    """Without the binding of each pod, all components together write thirty times at most.

    What queues hold is not written: the pods are gone before it has been stable for long enough.
    """
    jobs = ControllerStage(cluster, stage.client)
    cluster.add_node("node1", cpu="64")
    async with (
        recorded(cluster.url) as (ours, controller),
        recorded(cluster.url) as (theirs, scheduler),
        stage.scheduler(theirs, delays=DELAYS) as worker,
    ):
        await stage.until(lambda: worker.caches.queues.get("default"))
        async with jobs.controller(ours):
            await stage.calm()
            controller.sent.clear()
            scheduler.sent.clear()
            lasting = {keys.RUN_DURATION: "3s"}
            await jobs.submit(job("train", [task("worker", 20, annotations=lasting)]))
            await stage.until(lambda: jobs.phase() == "Completed")
            await stage.calm(STABLE_SECONDS + 1.5)
    writes = controller.writes + scheduler.writes
    assert writes["POST pods"] == 20
    assert writes["POST pods/binding"] == 20
    assert sum(writes.values()) - 20 <= 30, writes
    assert _besides(scheduler.writes).keys() == {"PATCH podgroups"}, scheduler.writes


async def test_pods_that_are_bound_soon_get_no_condition_and_no_event(
    stage: SchedulerStage, cluster: EmbeddedCluster
) -> None:
    """A gang waits for two seconds until a node has room."""
    delays = ReportDelays(cause=0.2, pods=DELAYS.pods, numbers=DELAYS.numbers, counts=DELAYS.counts)
    async with recorded(cluster.url) as (client, requests), stage.scheduler(client, delays=delays):
        stage.gang("train", 20)
        await stage.until(lambda: stage.conditions("train").get("Unschedulable"))
        cluster.add_node("node1", cpu="64")
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.until(lambda: len(stage.events("Scheduled")) == 1)
        await stage.calm()
    assert requests.writes["POST pods/binding"] == 20
    assert not requests.of("PATCH", "pods/status")
    told = {(each["involvedObject"]["kind"], each["reason"]) for each in stage.all(EVENT)}
    assert told == {("PodGroup", "Unschedulable"), ("PodGroup", "Scheduled")}
    assert all(each["spec"]["nodeName"] for each in stage.all(POD))


async def test_numbers_of_pods_are_written_together(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="64")
    async with (
        recorded(stage.cluster.url) as (client, requests),
        stage.scheduler(client, delays=DELAYS),
    ):
        stage.gang("train", 20)
        await stage.until(lambda: stage.find_running("train") == 20)
        await stage.calm()
    statuses = [each.body["status"] for each in requests.of("PATCH", "podgroups")]
    phases = [each["phase"] for each in statuses]
    assert phases[:2] == ["Inqueue", "Running"]
    assert len(statuses) <= 4, statuses


async def test_answers_leave_out_what_is_not_read(stage: SchedulerStage) -> None:
    """A gang loses its gates and is bound, another one waits; both queues are created, and get a status."""
    stage.cluster.add_node("node1", cpu="2")
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    gated: dict[str, Any] = {"annotations": {gate: "true"}, "schedulingGates": [{"name": gate}]}
    async with (
        recorded(stage.cluster.url) as (client, requests),
        stage.scheduler(client, opens_gates=True),
    ):
        stage.gang("train", 2, **gated)
        stage.gang("waits", 1, cpu="8")
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.until(lambda: stage.pod_condition("waits-0"))
        await stage.until(lambda: requests.of("PATCH", "queues/status"))
        await stage.until(lambda: requests.of("POST", "events"))
    writes = [each for each in requests.sent if each.method != "GET"]
    sorts = {f"{each.method} {each.resource}" for each in writes}
    bindings = "POST pods/binding"  # answered by a Status
    statuses = {"PATCH podgroups", "PATCH pods/status", "PATCH queues/status"}
    assert sorts >= {bindings, "PATCH pods", "POST queues", "POST events", *statuses}
    for each in writes:
        sort = f"{each.method} {each.resource}"
        if sort != bindings:
            assert "as=PartialObjectMetadata" in each.headers.get("Accept", ""), sort
        if sort in statuses:
            assert each.body["metadata"]["resourceVersion"], sort


async def test_what_says_nothing_new_about_pods_and_nodes_starts_no_cycle(
    stage: SchedulerStage,
) -> None:
    stage.cluster.add_node("node1", cpu="2")
    async with stage.scheduler(period=3600.0) as worker:
        stage.gang("train", 1)
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.calm(0.5)
        cycles = worker.metrics.cycles._value.get()
        for number in range(3):
            pod = stage.find(POD, "train-0")
            pod["status"]["podIP"] = f"10.9.9.{number}"
            stage.store.update_status(pod)
            node = stage.store.get(NODE, "node1") or {}
            moment = f"2026-01-01T00:00:0{number}Z"
            node["status"]["conditions"][0]["lastHeartbeatTime"] = moment
            stage.store.update_status(node)
        seen = stage.find(POD, "train-0")["metadata"]["resourceVersion"]
        await stage.until(lambda: int(worker.caches.pods.reflector.resource_version) >= int(seen))
        await stage.still(0.2)
        assert worker.metrics.cycles._value.get() == cycles
        stage.store.delete(POD, "train-0", "default", grace=0)
        await stage.until(lambda: worker.metrics.cycles._value.get() > cycles)
