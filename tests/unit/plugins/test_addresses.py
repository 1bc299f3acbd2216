"""Where pods can be reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.jobs import JobSpec
from pumice.api.meta import ObjectMeta
from pumice.plugins import address, addresses
from pumice.plugins.addresses import (
    Hostnames,
    OwnerJob,
    OwnerTask,
    hostname_pattern,
    hostnames,
    joined_size,
    labels_of_task,
)
from tests.unit.plugins.support import job, task


@pytest.mark.parametrize(
    ("hostname", "subdomain", "expected"),
    [
        ("", "", ["j-w-0.j", "j-w-1.j"]),
        ("", "sub", ["j-w-0.sub", "j-w-1.sub"]),
        ("fixed", "", ["fixed.j"]),
        ("h", "s", ["h.s"]),
    ],
)
def test_addresses_of_a_task(hostname: str, subdomain: str, expected: list[str]) -> None:
    train = job("j", task("w", 2, hostname, subdomain))

    assert addresses(train, train.tasks[0]) == expected
    assert address(train, train.tasks[0], 1) == expected[-1]


def test_a_name_that_is_no_text_is_none() -> None:
    train = job("j", task("w", 1, hostname=3, subdomain=["s"]))  # type: ignore[arg-type]

    assert addresses(train, train.tasks[0]) == ["j-w-0.j"]


@given(st.integers(0, 1200), st.sampled_from(["", "fixed"]), st.sampled_from(["", "sub"]))
def test_the_size_is_known_without_making_them(
    replicas: int, hostname: str, subdomain: str
) -> None:
    train = job("j", task("w", replicas, hostname, subdomain))

    found = ",".join(addresses(train, train.tasks[0]))

    assert joined_size(train, train.tasks[0]) == len(found)


@given(st.integers(0, 1200), st.integers(0, 1200), st.sampled_from([0, 1, 7]), st.booleans())
def test_pods_of_other_controllers_go_by_their_names(
    replicas: int, first: int, per_job: int, leader: bool
) -> None:
    named = Hostnames("stem", first, per_job, leader and not per_job)
    workers = OwnerTask(name="w", replicas=replicas, hostnames=named, labels={"role": "w"})
    train = OwnerJob(metadata=ObjectMeta(name="j"), subdomain="d", labels={"of": "j"})

    found = addresses(train, workers)

    assert found == [f"{each}.d" for each in hostnames(train, workers)]
    assert len(set(found)) == replicas
    assert joined_size(train, workers) == len(",".join(found))


def test_what_other_controllers_pods_are_called() -> None:
    assert [Hostnames("s", 1).at(index) for index in range(2)] == ["s-1", "s-2"]
    assert [Hostnames("s", 1, 2).at(index) for index in range(3)] == ["s-0-1", "s-1-0", "s-1-1"]
    leader = Hostnames("s", leader=True)
    assert [leader.at(index) for index in range(2)] == ["s", "s-1"]
    task = OwnerTask(name="w", replicas=2, hostnames=leader, labels={"role": "w"})
    train = OwnerJob(labels={"of": "j"}, subdomain="d")
    assert hostname_pattern(train, task) == "s s-*"


def test_labels_of_a_task_that_nothing_tells_apart_are_those_of_the_job() -> None:
    task = OwnerTask(name="w", replicas=2, hostnames=Hostnames("s"))
    train = OwnerJob(spec=JobSpec(tasks=[task]), labels={"of": "j"})
    assert labels_of_task(train, "w") == {"of": "j"}
