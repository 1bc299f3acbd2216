"""Which changes of a pod call for a look at its Job, and how its Job is found."""

import copy
from typing import Any

import msgspec
import pytest

from pumice.api.pods import Pod
from pumice.controller.loop.caches import differs
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
    assert differs(*_with(path, value)) is matters
