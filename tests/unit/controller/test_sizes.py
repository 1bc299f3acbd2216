"""Statuses have room beside their Jobs, and their messages are bounded, whatever users write."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.jobs import Job
from pumice.api.kinds import JOB, POD
from pumice.api.messages import LONGEST
from pumice.controller.jobs.situation import PlanFailure
from pumice.webhook.rules.jobs.sizes import MOST, status_bytes
from tests.kit.builders import job, task
from tests.kit.examples import examples
from tests.unit.controller.fake_cluster import FakeCluster

Raw = dict[str, Any]


def size(value: object) -> int:
    return len(msgspec.json.encode(value))


def waiting(tasks: list[Raw]) -> FakeCluster:
    """A Job that the scheduler has admitted."""
    cluster = FakeCluster(job("train", tasks))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    return cluster


def test_hundreds_of_tasks_with_hundreds_of_dependencies_each() -> None:
    names = [f"{'d' * 50}-{number}" for number in range(300)]
    first = task("first")
    others = [task(f"t{each}", dependsOn={"name": ["first", *names]}) for each in range(250)]
    word, message = waiting([first, *others]).reason
    assert word == "DependsOn"
    assert message.startswith("task t0 waits for task first (0 of 1 pods ready) and task ddd")
    assert len(message.encode()) <= LONGEST
    waits = message.split("; ")
    assert re.fullmatch(r"and (\d+) more", waits[-1])
    assert len(waits) - 1 + int(waits[-1].split()[1]) == len(others)
    shown = waits[0].removeprefix("task t0 waits for ").split(" and ")
    assert len(shown) - 1 + int(shown[-1].removesuffix(" more")) == 1 + len(names)


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_message_of_the_api_server_with_hundreds_of_thousands_of_characters(letter: str) -> None:
    cluster = waiting([task("worker")])
    cluster.trouble = PlanFailure("FailedCreate", letter * 399_388)
    cluster.look()
    word, message = cluster.reason
    assert word == "FailedCreate"
    assert LONGEST - 4 < len(message.encode()) <= LONGEST
    assert message.startswith(letter * 1000)
    assert message.endswith("…")


def test_a_message_of_the_scheduler_with_hundreds_of_thousands_of_characters() -> None:
    cluster = waiting([task("worker")])
    cluster.condition("NotEnoughResources", "x" * 399_388)
    cluster.settle()
    assert len(cluster.reason[1].encode()) == LONGEST


TASKS = st.lists(
    st.builds(
        lambda length, needs, missing: (length, needs, missing),
        st.integers(1, 250),
        st.sets(st.integers(0, 30), max_size=20),
        st.integers(0, 60),
    ),
    min_size=1,
    max_size=30,
)


@examples(30)
@given(TASKS)
def test_any_launch_order(drawn: list[tuple[int, set[int], int]]) -> None:
    names = [f"{'t' * length}-{number}" for number, (length, _, _) in enumerate(drawn)]
    tasks = [
        task(
            name,
            dependsOn={
                "name": [names[each] for each in needs if each < number]
                + [f"{'m' * length}{each}" for each in range(missing)]
            },
        )
        for number, (name, (length, needs, missing)) in enumerate(zip(names, drawn, strict=True))
    ]
    cluster = waiting(tasks)
    _, message = cluster.reason
    assert len(message.encode()) <= LONGEST
    if "waits for" in message:
        assert message.startswith("task ")
        assert re.search(r"(\)|exist|and \d+ more)$", message)


@pytest.mark.parametrize("length", [4, 30])
def test_what_admission_keeps_free_for_a_status_is_enough(length: int) -> None:
    """With pods in every phase, and every note that a Job can have; the API server's notes of owners take as much again."""
    prefix = "t" * (length - 3)
    policies = [{"event": "PodEvicted", "action": "RestartTask", "timeout": "1h"}]
    made = job("train", [task(f"{prefix}{each:03}", 6, policies=policies) for each in range(60)])
    cluster = FakeCluster(made)
    cluster.settle()
    cluster.admit()
    cluster.settle()
    pods = cluster.names(POD)
    of_index = {index: [name for name in pods if name.endswith(f"-{index}")] for index in range(6)}
    cluster.run(*of_index[0], *of_index[1], *of_index[2], *of_index[3], *of_index[4])
    cluster.settle()
    cluster.succeed(*of_index[1])
    cluster.fail(*of_index[2])
    cluster.settle()
    cluster.reap(*of_index[1])
    for name in of_index[3]:
        cluster.evict(name)
    cluster.settle()
    status = cluster.objects[JOB, "train"]["status"]
    notes = {"pumice.dev/pods", "pumice.dev/succeeded", "pumice.dev/evicted"}
    assert notes <= status["controlledResources"].keys()
    phases = status["taskStatusCount"][f"{prefix}000"]["phase"]
    assert len(phases) >= 3
    assert 2 * size(status) <= status_bytes(msgspec.convert(made, Job))


def test_a_job_with_room_is_stored_with_its_status() -> None:
    assert MOST < 1.5 * 2**20
