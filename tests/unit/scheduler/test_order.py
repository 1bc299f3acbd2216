"""Names in the order in which people count."""

import pytest

from pumice.scheduler.model.tasks import natural, order_of


def test_numbers_in_names_are_numbers() -> None:
    names = ["w-10", "w-2", "w", "2-w", "w-2-b", "w-2-a10", "w-2-a9"]
    assert sorted(names, key=natural) == ["2-w", "w", "w-2", "w-2-a9", "w-2-a10", "w-2-b", "w-10"]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("job-worker-12", 12), ("job-7-worker-012", 12), ("a-b-c-3", 3), ("a--3", 3), ("web-3", 0), ("-3", 0), ("web", 0),
        ("job-worker-x", 0), ("job-worker-x3", 0), ("job-worker-\N{SUPERSCRIPT TWO}", 0), ("", 0),
    ],
)  # fmt: skip
def test_index_of_a_pod(name: str, index: int) -> None:
    assert order_of(name, "1970-01-01T00:00:05Z") == (index, 5.0, natural(name))


def test_names_of_thousands_of_digits_have_an_order() -> None:
    """Files of simulations may have such names."""
    assert sorted(["a-" + "9" * 5_000, "a-9", "a-x"], key=natural)[:1] == ["a-9"]
    assert order_of("a-b-" + "9" * 5_000, None)[0] > 0
