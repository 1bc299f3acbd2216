"""Notes that a user wrote into a Job's status, or on its pods, neither stop the controller nor keep it busy."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
import pytest

from pumice.api import keys, kinds
from pumice.controller.jobs import job_events, job_pods, podsets, restart_budgets, restart_targets
from pumice.controller.jobs.podsets import PodNames
from pumice.controller.jobs.subject import read
from pumice.controller.other_owners import owners
from tests.kit.builders import job, task
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import a_job, policy, running

SIZE = 1000
NAMES = PodNames(read(job("train", [task("worker", SIZE)])))


def _moments(text: str) -> Any:
    made = read(
        job(
            "train",
            [task("worker", SIZE)],
            status={"controlledResources": {job_pods.EVICTED: text}},
        )
    )
    return job_pods.read(made, (), 2e9).waiting


READERS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "restart": (";", "pods/train-worker/{}", lambda text: restart_targets.parse(text, NAMES).pods),
    "restart of what is no task": (
        ";",
        "pods/odd/{}",
        lambda text: restart_targets.parse(text, NAMES).pods,
    ),
    "restart of partitions": (
        ";",
        "partitions/worker/{}",
        lambda text: restart_targets.parse(text, NAMES).partitions,
    ),
    "retries of partitions": (
        " ",
        "partition/worker/{}=1/1",
        lambda text: restart_budgets.read(text, NAMES),
    ),
    "pods": (" ", "worker/{}", lambda text: podsets.read(text, NAMES)),
    "retries": (" ", "pod/worker/{}=1/1", lambda text: restart_budgets.read(text, NAMES)),
    "evicted": (" ", "worker/{}@2001-01-01T00:00:00Z", _moments),
}


@pytest.fixture
def indexes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indexes that were read out of notes."""
    found: list[int] = []
    original = podsets.read_indexes

    def counted(text: str, size: int) -> Iterator[int]:
        for index in original(text, size):
            found.append(index)
            yield index

    monkeypatch.setattr(podsets, "read_indexes", counted)
    return found


@pytest.mark.parametrize("indexes", ["0-199999", "~" + "_" * 4000])
@pytest.mark.parametrize("reader", READERS)
def test_a_note_costs_no_more_than_the_pods_of_the_job(
    reader: str, indexes: str, indexes_read: list[int]
) -> None:
    separator, entry, reads = READERS[reader]
    found = reads(separator.join([entry.format(indexes)] * 500))
    assert len(found) <= SIZE
    assert len(indexes_read) <= SIZE


def test_a_moment_that_has_not_come_counts_as_now() -> None:
    cluster = running(
        task("worker", 2), policies=[policy("PodEvicted", "RestartPod", timeout="1m")]
    )
    cluster.vanish("train-worker-0")
    cluster.look()
    cluster.status["controlledResources"]["pumice.dev/evicted"] = "worker/0@9000-01-01T00:00:00Z"
    cluster.look()
    assert (
        cluster.status["controlledResources"]["pumice.dev/evicted"]
        == "worker/0@2027-01-15T08:00:00Z"
    )


def test_a_moment_before_all_that_can_be_written_is_left_out() -> None:
    cluster = running(
        task("worker", 2), policies=[policy("PodEvicted", "RestartPod", timeout="1m")]
    )
    cluster.status["controlledResources"]["pumice.dev/evicted"] = (
        "worker/0@0001-01-01T00:00:00+23:00"
    )
    cluster.fail("train-worker-1")
    cluster.look()
    assert "pumice.dev/evicted" not in cluster.status["controlledResources"]


def test_a_streak_without_end_waits_as_long_as_the_longest() -> None:
    cluster = running(task("worker", 2), policies=[policy("PodFailed", "RestartPod")])
    cluster.status["controlledResources"]["pumice.dev/retries"] = "pod/worker/0=1/9999999999999999"
    cluster.fail("train-worker-0")
    cluster.look()
    assert cluster.requeues[-1] == 300.0


def test_ranges_that_repeat_are_read_once() -> None:
    text = ",".join(["0-199"] * 1000)
    assert list(islice(podsets.read_indexes(text, 200), 1000)) == list(range(200))


def test_a_moment_that_cannot_be_written_is_left_out() -> None:
    cluster = running(
        task("worker", 2), policies=[policy("PodEvicted", "RestartPod", timeout="1h")]
    )
    cluster.vanish("train-worker-0")
    cluster.look()
    cluster.status["controlledResources"]["pumice.dev/evicted"] = (
        "worker/0@9999-12-31T23:59:59-23:59"
    )
    cluster.vanish("train-worker-1")
    cluster.look()
    assert cluster.phase == "Pending"


def test_numbers_of_thousands_of_digits_on_pods_and_group_do_not_stop_their_job() -> None:
    cluster = FakeCluster(
        a_job(task("worker", 3), policies=[policy("PodFailed", "RestartPod"), policy("Unknown", "AbortJob")])
    )  # fmt: skip
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    digits = {keys.TASK_INDEX: "9" * 5_000, keys.JOB_VERSION: "9" * 5_000}
    for obj in (cluster.pods["train-worker-0"], cluster.group):
        assert obj is not None
        obj["metadata"]["annotations"] |= digits
        cluster.touch(obj)
    cluster.fail("train-worker-1")
    cluster.settle()
    assert "train-worker-1" not in cluster.pods  # it is being replaced
    group = {"metadata": {"annotations": digits}}
    assert job_events._of_group(group).version is None


def test_a_number_of_thousands_of_digits_on_an_owner_does_not_count() -> None:
    metadata = {"annotations": {owners.DESIRED_REPLICAS: "9" * 5_000}}
    workload = msgspec.convert({"metadata": metadata, "spec": {"replicas": 2}}, owners.PodOwner)
    assert workload.whole_size(kinds.REPLICA_SET) == 2
