"""Pod shapes: exact columns, and one shape for pods that differ in their names only."""

from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from pumice.api.pods import Pod, PodSpec, PodStatus
from pumice.scheduler.model.axis import LARGEST, SCORED_CPU, SCORED_MEMORY, Axis
from pumice.scheduler.model.shapes import PodShape, ShapeTable
from tests.kit.counting import calls
from tests.unit.scheduler.scenarios import Scenario, case_id, load_cases


def _scenario(*options: dict[str, Any]) -> Scenario:
    return Scenario(
        {
            "pods": [
                ["ns", f"p{index}", "", "Pending", 1, "1Gi", "g", each]
                for index, each in enumerate(options)
            ]
        }
    )


@pytest.mark.parametrize("case", load_cases("resources.yaml"), ids=case_id)
def test_requests_in_columns(case: dict[str, Any]) -> None:
    row = ["ns", "p0", "", "Pending", 0, 0, "", {"resources": case["in"]}]
    scenario = Scenario({"pods": [row]})
    assert scenario.state.axis.amounts(scenario.state.tasks["ns/p0"].shape.vector) == case["out"]


def test_pods_that_ask_for_the_same_have_one_shape() -> None:
    scenario = _scenario({}, {"role": "other", "prio": 7, "labels": {"a": "b"}})
    assert len(scenario.state.shapes) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"resources": {"cpu": 2}},
        {"resources": {"nvidia.com/gpu": 1}},
        {"selector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"ports": [80]},
        {"affinity": {"nodeAffinity": {}}},
    ],
)
def test_what_makes_another_shape(options: dict[str, Any]) -> None:
    assert len(_scenario({}, options).state.shapes) == 2


def test_a_spec_is_read_once_for_pods_that_differ_in_their_nodes() -> None:
    """What the node of a pod reports about it makes another shape."""
    table = ShapeTable(Axis())
    asks = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}
    on = [Pod(spec=msgspec.convert(asks | {"nodeName": node}, PodSpec)) for node in ("", "a", "b")]
    first = calls(lambda: table.intern(on[0]))
    assert calls(lambda: table.intern(on[1])) < first / 2
    shape = table.intern(on[2])
    runs = {"name": "c", "resources": {"requests": {"cpu": 2}}, "allocatedResources": {"cpu": 2}}
    status = msgspec.convert({"phase": "Running", "containerStatuses": [runs]}, PodStatus)
    assert table.intern(Pod(spec=on[0].spec, status=status)) is not shape
    assert table.intern(on[0]) is shape


def test_a_spec_is_read_once_for_pods_that_come_between_others() -> None:
    """So many specs are remembered, unless they are long."""
    table = ShapeTable(Axis())

    def intern(cpu: int, image: str = "") -> PodShape:
        container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
        return table.intern(Pod(spec=msgspec.convert({"containers": [container]}, PodSpec)))

    shapes = [intern(cpu) for cpu in (1, 2)]
    known = calls(partial(intern, 1))
    long = "a" * 4096
    assert intern(2, long) is shapes[1]
    assert calls(partial(intern, 1, long)) > known + 10, "it is read"
    for cpu in range(1, 600):
        intern(cpu)
    assert calls(partial(intern, 1)) > known + 10
    assert [intern(cpu) for cpu in (1, 2)] == shapes
    assert intern(1, "\ud800") is shapes[0], "half of a character, which no text may hold"


def test_containers_without_requests_are_scored_with_a_little() -> None:
    scenario = Scenario({"pods": [["ns", "p", "", "Pending", 0, 0, "g"]]})
    shape = scenario.state.tasks["ns/p"].shape
    assert shape.is_empty
    assert shape.vector[SCORED_CPU] == 100
    assert shape.vector[SCORED_MEMORY] == 200 * 1024 * 1024


def test_needs_come_in_one_order_whichever_is_named_first() -> None:
    """CPU, memory, then the others by name: the first that lacks is the reason of a node."""
    first = Scenario({"pods": [["ns", "x", "", "Pending", 1, 0, "", {"resources": {"z/z": 1}}]]})
    row = ["ns", "p", "", "Pending", 1, "1Gi", "", {"resources": {"a/a": 1, "z/z": 1}}]
    for scenario in (first, Scenario({})):
        scenario.add_pod(row)
        needs = scenario.state.tasks["ns/p"].shape.needs
        assert [need.name for need in needs] == ["cpu", "memory", "a/a", "pods", "z/z"]


def test_amounts_beyond_reason_are_cut_off() -> None:
    assert Axis().vector({"memory": 2**70})[1] == LARGEST


def test_requests_are_rounded_up_and_what_a_node_has_down() -> None:
    amounts = {"cpu": 1500, "memory": 1500, "x/y": 1}
    assert Axis().vector(amounts).tolist() == [1500, 2, 0, 0, 0, 1]
    assert Axis().vector(amounts, has=True).tolist() == [1500, 1, 0, 0, 0, 0]


def test_the_memory_of_20_000_nodes_of_4_tib_can_be_summed_up() -> None:
    axis = Axis()
    four_tib = axis.vector({"memory": 4 * 2**40 * 1000}, has=True)[1]
    assert np.full(20_000, four_tib).sum() == 20_000 * 4 * 2**40
    assert np.full(250_000, LARGEST).sum() == 250_000 * LARGEST
