"""Missing pods are counted without listing them, and listed a window at a time."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.api.pods import Pod
from pumice.controller.jobs import job_pods
from pumice.controller.jobs.replicas import Missing, PodCreations, Replicas, leaving
from pumice.controller.jobs.subject import UnusableError, read
from tests.kit.builders import job, pod, task
from tests.kit.counting import calls

Raw = dict[str, Any]


def _job(**sizes: int) -> Job:
    return read(job("train", [task(name, size) for name, size in sizes.items()]), 10**12)


def _replicas(wanted: Job, pods: Sequence[Pod]) -> Replicas:
    return Replicas(wanted, job_pods.read(wanted, pods, 0.0))


def _lacking(wanted: Job, replicas: Replicas) -> list[str]:
    return [each.name for each in wanted.tasks if replicas.lacks(each)]


def _pods(*names: str) -> list[Pod]:
    return [msgspec.convert(pod(name), Pod) for name in names]


def _names(replicas: Replicas, limit: int, **options: Any) -> list[str]:
    return [each.name for each in replicas.window(limit, **options)]


def test_what_is_missing_is_listed_in_the_order_of_the_spec() -> None:
    wanted = _job(ps=1, worker=3, done=1)
    replicas = _replicas(wanted, _pods("train-worker-1", "train-done-0"))
    assert (replicas.missing, _lacking(wanted, replicas)) == (3, ["ps", "worker"])
    assert _names(replicas, 10) == ["train-ps-0", "train-worker-0", "train-worker-2"]


def test_pods_that_were_tried_are_not_built_again_when_they_are_created() -> None:
    built = []

    def make(each: Missing) -> Raw:
        built.append(each.name)
        return pod(each.name)

    missing = _replicas(_job(ps=2, worker=1), []).window(10)
    stage = PodCreations(missing, make)
    assert not stage.problem()
    assert sorted(built) == ["train-ps-0", "train-worker-0"]
    assert [step.name for step in stage] == ["train-ps-0", "train-ps-1", "train-worker-0"]
    assert built[2:] == ["train-ps-1"]


def test_every_task_has_a_share_of_a_window() -> None:
    replicas = _replicas(_job(a=100, b=2, c=100), [])
    assert _names(replicas, 6) == [
        f"train-{name}" for name in ("a-0", "a-1", "b-0", "b-1", "c-0", "c-1")
    ]
    assert len(_names(replicas, 50)) == 50


def test_tasks_that_wait_and_names_that_are_taken_are_left_out() -> None:
    replicas = _replicas(_job(a=3, b=3), [])
    assert _names(replicas, 9, held={"b"}, taken={"train-a-1"}) == ["train-a-0", "train-a-2"]
    assert replicas.missing == 6


@pytest.mark.parametrize(
    "name",
    ["train-worker-3", "train-worker-00", "train-worker-", "train-worker--1", "train-worker-x"],
)
def test_what_the_job_does_not_want(name: str) -> None:
    present = _pods("train-worker-0", name)
    replicas = _replicas(_job(worker=3), present)
    assert replicas.is_surplus(present[1])
    assert not replicas.is_missing(name)
    assert [each.metadata.name for each in leaving(replicas, present)] == [name]


def test_names_of_tasks_with_dashes() -> None:
    replicas = _replicas(_job(**{"a": 2, "a-1": 2}), _pods("train-a-1-0", "train-a-1"))
    assert _names(replicas, 9) == ["train-a-0", "train-a-1-1"]


def test_the_cost_follows_from_the_pods_that_exist() -> None:
    """Not from the number that the spec asks for."""

    def cost(size: int) -> int:
        wanted, present = _job(worker=size), _pods("train-worker-0")

        def work() -> None:
            replicas = _replicas(wanted, present)
            assert replicas.missing == size - 1
            assert len(replicas.window(10)) == 10
            assert leaving(replicas, present) == []

        return calls(work)

    assert cost(2_000_000_000) == cost(20)


def test_a_job_may_ask_for_so_many_pods() -> None:
    raw = job("train", [task("a", 60_000), task("b", 40_000)])
    assert read(raw).replicas == 100_000
    raw["spec"]["tasks"][0]["replicas"] += 1
    with pytest.raises(UnusableError, match="the tasks ask for 100001 pods, expected at most"):
        read(raw)
