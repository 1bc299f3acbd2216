"""`pumice explain` of a gang whose pods are left to another scheduler: the scheduler says so, and no numbers contradict it."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.live.explanations import of_job, of_pod, waiting_gangs
from pumice.cli.live.observed import ReadableCluster
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from tests.kit.builders import job, node, pod, pod_group

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


def test_the_list(seen: ReadableCluster) -> None:
    [found] = waiting_gangs(seen, load_config(None), 0.0)
    assert (found["summary"], found["message"], found["numbers"]) == (WHY, WHY, {})
