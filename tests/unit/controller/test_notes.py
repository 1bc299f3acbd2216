"""Notes in a Job's status: they read as they were written, they stay short, and no text makes them long."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.controller.jobs import job_pods, podsets, restart_budgets
from pumice.controller.jobs.podsets import PodKey, PodNames
from pumice.controller.jobs.restart_budgets import RestartCount, RestartUnit
from pumice.controller.jobs.restart_targets import RESUME, WHOLE, Restart, parse
from pumice.controller.jobs.subject import read
from tests.kit.builders import job, task

NAMES = PodNames(read(job(tasks=[task("ps", 3), task("ps-1", 4), task("worker", 300)])))
SMALL = PodNames(read(job(tasks=[task("ps", 1), task("ps-1", 4), task("worker", 150)])))
X = PodNames(read(job("x", [task("a", 10), task("a-2", 1)])))

KEYS: st.SearchStrategy[tuple[str, int]] = st.one_of(
    st.tuples(st.just("ps"), st.integers(0, 2)),
    st.tuples(st.just("ps-1"), st.integers(0, 3)),
    st.tuples(st.just("worker"), st.integers(0, 299)),
)
PODS: st.SearchStrategy[str] = KEYS.map(lambda key: NAMES.name(*key))
UNITS: st.SearchStrategy[RestartUnit] = st.one_of(
    KEYS.map(lambda key: ("pod", key[0], str(key[1]))),
    st.sampled_from([("task", "ps", ""), ("partition", "worker", "3")]),
)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ([], ""),
        ([("worker", 0)], "worker/0"),
        ([("worker", 2), ("worker", 0), ("worker", 1), ("ps", 2)], "ps/2 worker/0-2"),
        ([("worker", 0), ("worker", 4), ("worker", 5)], "worker/0,4-5"),
    ],
)
def test_a_set_is_written_as_ranges(keys: list[PodKey], text: str) -> None:
    pods = {NAMES.name(*key) for key in keys}
    assert podsets.write(pods, NAMES) == text
    assert podsets.read(text, NAMES) == pods


@given(st.sets(PODS))
def test_a_set_reads_as_it_was_written(pods: set[str]) -> None:
    assert podsets.read(podsets.write(pods, NAMES), NAMES) == pods
    assert podsets.fits(podsets.write(pods, NAMES), NAMES)
    assert podsets.fits(podsets.write(pods, NAMES), SMALL) is all(map(SMALL.wants, pods))


@given(st.sets(PODS))
def test_a_restart_reads_as_it_was_written(pods: set[str]) -> None:
    restart = Restart(tasks=frozenset({"x"}), pods=frozenset(pods))
    assert parse(restart.note(NAMES), NAMES) == restart


@given(st.dictionaries(UNITS, st.builds(RestartCount, st.integers(1, 99), st.integers(0, 6))))
def test_tallies_read_as_they_were_written(tallies: dict[RestartUnit, RestartCount]) -> None:
    text = restart_budgets.write(tallies)
    assert restart_budgets.read(text, NAMES) == tallies
    most = max((each.count for each in tallies.values()), default=0)
    assert restart_budgets.most_restarted(text, NAMES)[0] == most


def test_an_entry_that_cannot_be_read_is_not_what_was_restarted_most() -> None:
    text = "task/ps/0=9/1 pod/worker/=8/1 pod/x/0=7/1 task/ps=2/1"
    assert list(restart_budgets.read(text, NAMES)) == [("task", "ps", "")]
    assert restart_budgets.most_restarted(text, NAMES) == (2, "task ps")


def test_a_restart_of_many_partitions_is_written_as_ranges() -> None:
    partitions = frozenset({("worker", str(at)) for at in range(300)} | {("worker", "named")})
    restart = Restart(partitions=partitions)
    assert restart.note(NAMES) == "partition/worker/named;partitions/worker/0-299"
    assert parse(restart.note(NAMES), NAMES) == restart


def test_a_partition_that_a_user_gave_a_name_counts_as_its_task() -> None:
    restart = Restart(partitions=frozenset({("worker", "named"), ("ps", "1")}))
    assert restart_budgets.restart_units(restart, NAMES) == [
        ("task", "worker", ""),
        ("partition", "ps", "1"),
    ]


@given(st.text(alphabet="worke/ps-0123456789,~=@ AZ_Zé٣", max_size=60))
def test_every_text_can_be_read(text: str) -> None:
    podsets.read(text, NAMES)
    podsets.fits(text, NAMES)
    restart_budgets.read(text, NAMES)
    parse(text, NAMES)


@pytest.mark.parametrize(
    "text",
    ["worker/0-1999999999", "worker/0-999999999999999999999", "worker/~" + "_" * 99_999],
)
def test_no_text_makes_more_pods_than_the_job_has(text: str) -> None:
    assert len(podsets.read(text, NAMES)) <= 300
    assert len(restart_budgets.read(f"pod/{text}=1/1", NAMES)) <= 300


def test_pods_that_the_job_does_not_want_are_not_read() -> None:
    assert podsets.read("gone/0-9 ps/0-9 worker/x worker/", NAMES) == {
        "train-ps-0",
        "train-ps-1",
        "train-ps-2",
    }


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("train-ps-0", ("ps", 0)),
        ("train-ps-1-0", ("ps-1", 0)),
        ("train-ps-1", ("ps", 1)),
        ("train-ps-01", None),
        ("train-ps-x", None),
        ("train-ps-٣", None),
        ("other-ps-0", None),
        ("train", None),
    ],
)
def test_a_name_tells_task_and_index(name: str, key: PodKey | None) -> None:
    assert NAMES.key(name) == key
    assert key is None or NAMES.name(*key) == name


def test_many_moments_of_evictions_are_distinguished_up_to_a_bound() -> None:
    made = read(job(tasks=[task("worker", 300)]))
    moments = {NAMES.name("worker", at): 1e9 + at for at in range(300)}
    noted = job_pods.read(made, (), 2e9).running(lambda _: False, moments, {})
    again = job_pods.read(_with(noted), (), 2e9)
    assert again.waiting["train-worker-99"] == 1e9 + 99
    assert {again.waiting[f"train-worker-{at}"] for at in range(100, 300)} == {1e9 + 299}


def _with(noted: dict[str, str]) -> Any:
    return read(job(tasks=[task("worker", 300)], status={"controlledResources": noted}))


@pytest.mark.parametrize(
    "restart",
    [
        WHOLE,
        RESUME,
        Restart(tasks=frozenset({"a", "b"})),
        Restart(partitions=frozenset({("a", "2")})),
        Restart(pods=frozenset({"x-a-0"})),
        Restart(pods=frozenset({"x-a-0", "x-a-1", "x-a-2", "x-a-9", "x-a-2-0"})),
        Restart(pods=frozenset({"x-a-0", "x-a-1", "odd", "x-a-01", "x-a-"})),
        Restart(tasks=frozenset({"b"}), pods=frozenset({"x-a-0"})),
    ],
)
def test_a_note_reads_as_it_was_written(restart: Restart) -> None:
    assert parse(restart.note(X), X) == restart


@pytest.mark.parametrize("note", ["", "nonsense", "task", "pod/a/b/c"])
def test_an_unreadable_note_means_the_whole_job(note: str) -> None:
    assert parse(note, X) == WHOLE
