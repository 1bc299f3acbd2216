"""What controller and scheduler write together for one Job."""

from collections import Counter

from pumice.api import keys
from pumice.api.kinds import EVENT, POD
from pumice.embedded import EmbeddedCluster
from pumice.scheduler.reports import ReportDelays
from pumice.scheduler.worker.queue_statuses import STABLE_SECONDS
from pumice.scheduler.worker.settings import DELAYS
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
