"""One sentence about a Job, from the nearest reason there is."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.live.explanation_text import current_condition, sentence
from tests.kit.builders import job, pod, pod_group, task


def a_job(phase: str = "", message: str = "") -> Job:
    status = {"state": {"phase": phase, "message": message}} if phase else None
    return msgspec.convert(job(tasks=[task(replicas=2)], status=status), Job)


def a_group(phase: str = "", *conditions: dict[str, Any]) -> PodGroup:
    raw = pod_group("pg", 2, phase=phase)
    raw.setdefault("status", {})["conditions"] = list(conditions)
    return msgspec.convert(raw, PodGroup)


def pods(*nodes: str, phase: str = "Pending") -> list[Pod]:
    return [
        msgspec.convert(pod(f"p-{n}", node=node, phase=phase), Pod) for n, node in enumerate(nodes)
    ]


UNSCHEDULABLE = {
    "type": "Unschedulable",
    "status": "True",
    "reason": "NotEnoughResources",
    "message": "2/2 tasks in gang unschedulable",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("found", "group", "made", "words"),
    [
        (a_job(), None, [], "waits: no controller has looked at it yet"),
        (a_job("Pending"), None, [], "waits: it has no PodGroup yet"),
        (a_job("Pending"), a_group(), [], "waits: the scheduler has not let it into queue default"),
        (a_job("Pending"), a_group("Inqueue"), [], "waits: 2 of 2 pods do not exist yet"),
        (a_job("Pending"), a_group("Inqueue"), pods("", ""), "waits: 2 of 2 pods do not run yet"),
        (
            a_job("Pending"),
            a_group("Inqueue"),
            pods("a", "b", phase="Running"),
            "waits: all of its pods have started",
        ),
        (a_job("Pending"), a_group("Inqueue", UNSCHEDULABLE), pods("", ""), "waits: 2/2 tasks in"),
        (
            a_job("Pending", "taken name"),
            a_group("Inqueue", UNSCHEDULABLE),
            [],
            "waits: taken name",
        ),
        (
            a_job("Running"),
            a_group("Running"),
            pods("a", "b", "b"),
            "runs on b (2 pods), a (1 pod)",
        ),
        (a_job("Running"), a_group("Running"), pods(""), "runs on no node yet"),
        (
            a_job("Completed", "2 of 2 pods succeeded"),
            None,
            pods("a", "a"),
            "is Completed: 2 of 2 pods succeeded; its pods were on a (2 pods)",
        ),
        (a_job("Aborted"), None, [], "is Aborted"),
    ],
)
def test_sentence(found: Job, group: PodGroup | None, made: list[Pod], words: str) -> None:
    said = sentence(found, group, made)
    assert said.startswith("Job default/train ")
    assert words in said


def test_the_newest_condition_counts() -> None:
    later = UNSCHEDULABLE | {"type": "Scheduled", "lastTransitionTime": "2026-01-01T00:00:01Z"}
    past = UNSCHEDULABLE | {"status": "False", "lastTransitionTime": "2026-01-01T00:00:02Z"}
    found = current_condition(a_group("Inqueue", UNSCHEDULABLE, later, past))
    assert found is not None
    assert found.type == "Scheduled"
    assert current_condition(None) is None
    assert current_condition(a_group("Inqueue", past)) is None
