"""`pumice explain`: no numbers contradict what the scheduler says of pods that are left to another one, nor those of a queue each other."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cli.explain import text_of
from pumice.cli.live.explanations import of_job, of_pod, of_queue, waiting_gangs
from pumice.cli.live.observed import ReadableCluster
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from tests.kit.builders import job, node, pod, pod_group, queue

WHY = (
    "Not enough valid tasks; 1 pod names schedulerName other; this scheduler places pods of volcano"
)
NAME = "train-u"


@pytest.fixture
def seen() -> ReadableCluster:
    """A gang of one pod that would have room."""
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "OtherScheduler",
        "message": WHY,
    }
    group = pod_group(NAME, phase="Inqueue")
    group["status"]["conditions"] = [condition]
    stranger = pod("train-w-0", group=NAME, labels={"volcano.sh/job-name": "train"}, cpu="1")
    stranger["spec"]["schedulerName"] = "other"
    objects = ClusterObjects(
        nodes=msgspec.convert([node()], list[Node]),
        pod_groups=msgspec.convert([group], list[PodGroup]),
        pods=msgspec.convert([stranger], list[Pod]),
    )
    return ReadableCluster("default", objects)


def assert_explained(found: dict[str, Any]) -> None:
    assert (found["summary"], found["fits"], found["enough"]) == (WHY, False, [])


def test_a_job(seen: ReadableCluster) -> None:
    status = {"state": {"phase": "Pending", "message": WHY}}
    found = of_job(msgspec.convert(job(uid="u", status=status), Job), seen, load_config(None), 0.0)
    assert found["message"] == f"Job default/train waits: {WHY}"
    assert_explained(found)


def test_a_pod(seen: ReadableCluster) -> None:
    assert_explained(of_pod(seen.objects.pods[0], seen, load_config(None), 0.0))


def test_what_is_not_acted_on_yet_is_said_of_a_job_and_a_pod(seen: ReadableCluster) -> None:
    topology = {"mode": "soft", "highestTierAllowed": 1}
    found = of_job(
        msgspec.convert(job(networkTopology=topology), Job), seen, load_config(None), 0.0
    )
    (text,) = found["notHereYet"]
    assert text.startswith("spec.networkTopology is not acted on yet: it has no effect; prefer ")
    assert f"\n\n{text}\n" in text_of(found)

    claiming = msgspec.convert(pod("p", resourceClaims=[{"name": "gpu"}]), Pod)
    (told,) = of_pod(claiming, seen, load_config(None), 0.0)["notHereYet"]
    assert told.startswith("spec.resourceClaims is not acted on yet: devices of claims")

    topologies = pod_group("near", networkTopology=topology)
    near = ReadableCluster(
        "default", ClusterObjects(pod_groups=[msgspec.convert(topologies, PodGroup)])
    )
    grouped = msgspec.convert(pod("p", group="near"), Pod)
    (told,) = of_pod(grouped, near, load_config(None), 0.0)["notHereYet"]
    assert told.startswith("PodGroup near: spec.networkTopology is not acted on yet: it has no")


def test_the_list(seen: ReadableCluster) -> None:
    [found] = waiting_gangs(seen, load_config(None), 0.0)
    assert (found["summary"], found["message"], found["numbers"]) == (WHY, WHY, {})


def test_a_queue_with_pods_on_a_node_that_is_not_ready() -> None:
    """They are used, and no part of what it deserves."""
    lost = node("lost", "12")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    running = pod("train-0", group="train", cpu="12", node="lost", phase="Running")
    team = msgspec.convert(queue("team"), Queue)
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "4"), lost], list[Node]),
        queues=[team],
        pod_groups=[
            msgspec.convert(pod_group("train", 1, queue="team", phase="Running"), PodGroup)
        ],
        pods=msgspec.convert([running, pod("train-1", group="train", cpu="5")], list[Pod]),
    )
    found = of_queue(team, ReadableCluster("default", objects), load_config(None), 0.0)
    cpu = found["resources"]["cpu"]
    assert (cpu["used"], cpu["deserved"]) == ("12", "4")
    assert found["message"].endswith("; on nodes that are not ready its pods hold 12 cpu")
