"""What would be enough for a gang that waits."""

from typing import Any

import pytest

from pumice.scheduler import load_config
from pumice.scheduler.advice import Advice, advise
from pumice.scheduler.simulate import ClusterObjects, Simulation
from tests.unit.scheduler.scenarios import (
    NOW,
    case_id,
    expand,
    load_cases,
    node,
    pod,
    pod_group,
    queue,
)


def advice_for(case: dict[str, Any], **settings: bool) -> Advice:
    rows = [*case.get("pods", []), *(row for each in case["pod_sets"] for row in expand(each))]
    objects = ClusterObjects(
        nodes=[node(row) for row in case["nodes"]],
        queues=[queue(row) for row in case.get("queues", [])],
        pod_groups=[pod_group(row) for row in case["podgroups"]],
        pods=[pod(row) for row in rows],
    )
    simulation = Simulation(objects, load_config(None))
    found = advise(simulation, objects, objects.pod_groups[0], NOW, **settings)
    assert advise(simulation, objects, objects.pod_groups[0], NOW, **settings) == found, "undone"
    return found


@pytest.mark.parametrize("case", load_cases("advice.yaml"), ids=case_id)
def test_advice(case: dict[str, Any]) -> None:
    found = advice_for(case)
    assert found.fits == case.get("fits", False)
    assert [text for text, _ in found.enough] == case.get("enough", [])
    assert list(found.ahead) == case.get("ahead", [])
    assert found.enters == case.get("enters", False)
    assert advice_for(case) == found


def test_queues_that_could_not_be_read_are_not_recommended() -> None:
    (case,) = (each for each in load_cases("advice.yaml") if each["title"] == "another queue")
    assert advice_for(case, other_queues=False).enough == ()
