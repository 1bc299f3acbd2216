"""Where pods can be reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.plugins import address, addresses
from pumice.plugins.addresses import joined_size
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
