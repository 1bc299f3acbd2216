"""Amounts of queues in columns: what stands there for resources that a queue does not name."""

import pytest

from pumice.api.queues import Queue
from pumice.scheduler.model.axis import Axis, Ints
from pumice.scheduler.model.queue_specs import QueueAmounts, QueueLimits
from tests.unit.scheduler.scenarios import Raw, load_cases, queue

NAMES = {"c": "cpu", "m": "memory", "s1": "scalar.test/scalar1", "h": "hugepages-test"}
CASES = [
    pytest.param(section, case, id=case["id"])
    for section in ("capability within", "deserved partly less", "capability partly less")
    for case in load_cases("queue_amounts.yaml", section)
]


def _read(field: str, rows: list[Raw]) -> Ints:
    """A field of queues, by row and column."""
    axis = Axis()
    axis.vector(dict.fromkeys(NAMES.values(), 0))
    specs = [{NAMES[key]: _quantity(key, value) for key, value in row.items()} for row in rows]
    queues: list[Queue] = [queue([f"q{n}", {field: spec}]) for n, spec in enumerate(specs)]
    amounts = {each.metadata.name: QueueAmounts.of(each) for each in queues}
    found: Ints = getattr(QueueLimits.of(queues, amounts, axis), field)
    return found


def _quantity(key: str, value: int) -> str:
    return f"{value}m" if key == "c" else str(value)


@pytest.mark.parametrize(("section", "case"), CASES)
def test_comparisons(section: str, case: Raw) -> None:
    field, _, question = section.partition(" ")
    one, other = _read(field, case["amounts"])
    answer = (one <= other).all() if question == "within" else (one < other).any()
    assert bool(answer) is case["expect"]
