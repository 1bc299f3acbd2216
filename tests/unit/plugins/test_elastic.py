"""A gang that is larger than the fewest pods of an elastic group."""

import pytest
from msgspec.structs import replace

from pumice.api.jobs import Job
from pumice.plugins import builtin, problems
from tests.unit.plugins.support import job, task


def told(found: Job) -> list[tuple[str, str]]:
    return [(each.path, each.message) for each in problems(found, builtin()).warnings]


def elastic(minimum: int | None, *, worker: int | None = None) -> Job:
    found = job(
        "j",
        task("master"),
        task("worker", 3),
        task("extra", 2),
        plugins={"pytorch": ["--elastic=2:4"]},
    )
    least = {"worker": worker}
    tasks = [replace(each, min_available=least.get(each.name)) for each in found.tasks]
    return replace(found, spec=replace(found.spec, tasks=tasks, min_available=minimum))


@pytest.mark.parametrize(
    ("minimum", "worker", "found"),
    [(None, None, 6), (6, None, 6), (5, None, 5), (None, 2, 5), (0, 2, 5)],
)
def test_a_gang_that_leaves_nothing_of_the_range_is_reported(
    minimum: int | None, worker: int | None, found: int
) -> None:
    text = (
        f"is {found} (by default the minimum of all tasks), and no pod starts before {found} pods fit, so --elastic=2:4 "
        "of plugin pytorch never starts with 2: let minAvailable of the tasks add up to 4"
    )
    assert told(elastic(minimum, worker=worker)) == [("spec.minAvailable", text)]


@pytest.mark.parametrize(("minimum", "worker"), [(4, None), (3, None), (None, 1), (4, 1)])
def test_one_that_leaves_it_is_not(minimum: int | None, worker: int | None) -> None:
    assert told(elastic(minimum, worker=worker)) == []


def test_without_a_range_the_gang_is_the_jobs_own_business() -> None:
    assert told(job("j", task("master"), task("worker", 3), plugins={"pytorch": []})) == []
