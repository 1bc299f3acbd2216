"""What the CRD bounds, the rules tell with what would be right; nothing is told twice."""

from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import queue

ADMISSION = Admission(AdmissionSettings(), Snapshot.of([queue("a")]), builtin())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"weight": 70000}, {("spec.weight", "Q-WEIGHT")}),
        ({"weight": -1}, {("spec.weight", "Q-WEIGHT")}),
        ({"priority": -1}, {("spec.priority", "Q-PRIORITY")}),
        ({"dequeueStrategy": "lifo"}, {("spec.dequeueStrategy", "Q-DEQUEUE")}),
        ({"type": "x" * 254}, {("spec.type", "SCHEMA-LENGTH")}),
        ({"parent": "Not_A_Name"}, {("spec.parent", "Q-PARENT-MISSING")}),
        ({"reclaimable": "yes"}, {("spec.reclaimable", "SCHEMA-TYPE")}),
        ({"weight": 65535, "priority": 0, "dequeueStrategy": "fifo", "type": "x" * 253}, set()),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_field_out_of_bounds_is_reported_once(
    spec: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    found = judge(ADMISSION, queue("new", **spec))
    assert {(error.path, error.code) for error in found.errors} == expected


def test_a_weight_of_nothing_becomes_one_with_a_warning() -> None:
    found = judge(ADMISSION, queue("new", weight=0))
    assert found.allowed
    assert found.patched["spec"]["weight"] == 1
    assert [warning.code for warning in found.warnings] == ["Q-ZERO"]
