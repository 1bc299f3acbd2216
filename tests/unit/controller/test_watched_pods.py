"""Which changes of a pod call for a look at its Job, and how its Job is found."""

import copy
from typing import Any

import msgspec
import pytest

from pumice.api.pods import Pod
from pumice.controller.jobs.lifetimes import end_of
from pumice.controller.worker.caches import differs, trim
from tests.kit.builders import pod

Raw = dict[str, Any]


def _with(path: str, value: Any) -> tuple[Pod, Pod]:
    before = pod("train-worker-0")
    before["status"] = {"phase": "Running", "conditions": [_ready("True")]}
    after = copy.deepcopy(before)
    *parents, last = path.split("/")
    inner = after
    for each in parents:
        inner = inner.setdefault(each, {})
    inner[last] = value
    return msgspec.convert(before, Pod), msgspec.convert(after, Pod)


def _ready(status: str, at: str = "2026-01-01T00:00:00Z", type_: str = "Ready") -> Raw:
    return {"type": type_, "status": status, "lastTransitionTime": at}


@pytest.mark.parametrize(
    ("path", "value", "matters"),
    [
        ("status/phase", "Failed", True),
        ("status/containerStatuses", [{"name": "main", "restartCount": 1}], True),
        ("status/initContainerStatuses", [{"name": "main", "restartCount": 1}], True),
        ("status/startTime", "2026-01-01T00:00:00Z", True),
        ("status/conditions", [_ready("True"), _ready("True", type_="PodScheduled")], True),
        ("spec/nodeName", "node1", True),
        ("metadata/deletionTimestamp", "2026-01-01T00:00:00Z", True),
        ("metadata/labels", {"a": "b"}, True),
        ("metadata/annotations", {"a": "b"}, True),
        ("metadata/uid", "another", True),
        ("metadata/ownerReferences", [{"uid": "u", "kind": "Job", "name": "x"}], True),
        ("metadata/resourceVersion", "99", False),
        ("metadata/finalizers", ["a/b"], False),
        ("status/podIP", "10.0.0.1", False),
        ("status/conditions", [_ready("False")], False),
        ("status/message", "x", False),
        ("status/nominatedNodeName", "node1", False),
    ],
)
def test_what_matters(path: str, value: Any, matters: bool) -> None:
    before, after = _with(path, value)
    assert differs(before, after) is matters
    for each in (before, after):
        trim(each)
    assert differs(before, after) is matters


def test_what_is_dropped_is_not_missed_at_the_end_of_a_pod() -> None:
    """A pod without container statuses ended when its last condition changed, whichever that is."""
    raw = pod("train-worker-0")
    raw["status"] = {
        "phase": "Failed",
        "conditions": [
            _ready("True", "2026-01-01T00:00:00Z", "PodScheduled"),
            _ready("False", "2026-01-01T00:07:00Z"),
            _ready("True", "2026-01-01T00:01:00Z", "Initialized"),
        ],
    }
    whole, kept = msgspec.convert(raw, Pod), msgspec.convert(raw, Pod)
    trim(kept)
    assert end_of(kept) == end_of(whole)
    assert [each.type for each in kept.status.conditions or ()] == ["PodScheduled", "Ready"]
    assert kept.spec.containers is None
