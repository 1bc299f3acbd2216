"""Launch order inside a Job."""

from typing import Any

import pytest

from pumice.controller.jobs.depends import held_tasks
from pumice.controller.jobs.subject import read
from tests.kit.tables import table
from tests.unit.controller.rows import a_job, pods

Raw = dict[str, Any]


@pytest.mark.parametrize("case", table("controller/dependencies"), ids=lambda case: case["id"])
def test_who_waits_for_whom(case: Raw) -> None:
    held = held_tasks(read(a_job(case)), pods(case))
    assert [each.message for each in held] == case["waits"]
    assert [each.task for each in held if each.started] == case.get("started", [])
