"""Whether a deleted pod had ended by itself, for each recorded deletion and whichever of its events were missed."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from pumice.api.meta import format_time
from pumice.api.pods import Pod
from pumice.controller.loop.job_memory import JobMemories
from tests.kit.tables import table
from tests.unit.controller.fake_cluster import START
from tests.unit.controller.rows import UID, a_pod

Raw = dict[str, Any]

KEY = ("default", "job1")
DELETIONS: list[Raw] = table("controller/deletions")


def _state(row: Raw, event: Raw) -> Pod:
    given: Raw = {"phase": event["phase"], "metadata": {}}
    if "requested" in event:
        grace = event["grace"]
        given["metadata"] = {
            "deletionTimestamp": format_time(START + event["requested"] + grace),
            "deletionGracePeriodSeconds": grace,
        }
    state: Raw = {"running": {}}
    (ended,) = [step["ended"] for step in row["steps"] if "ended" in step] or [None]
    if ended is not None and event["phase"] in ("Succeeded", "Failed"):
        code = int(event["phase"] == "Failed")
        state = {"terminated": {"exitCode": code, "finishedAt": format_time(START + ended)}}
    given["status"] = {"containerStatuses": [{"name": "main", "state": state}]}
    return msgspec.convert(a_pod("job1-task1-0", given), Pod)


def _seen(row: Raw) -> Iterator[tuple[int, ...]]:
    """All ways in which events are seen or missed."""
    at = range(len(row["events"]))
    for many in range(len(row["events"]) + 1):
        yield from itertools.combinations(at, many)


def _ended(row: Raw, seen: tuple[int, ...]) -> bool:
    """Whether the pod is remembered as ended when it is gone."""
    memory = JobMemories()
    memory.of(KEY, UID)
    states = [_state(row, {"phase": "Running"}), *(_state(row, row["events"][at]) for at in seen)]
    for at, (before, (old, new)) in zip(
        seen, zip((-1, *seen), itertools.pairwise(states), strict=False), strict=True
    ):
        memory.changed(KEY, old, new, watched=at == before + 1)
    memory.removed(KEY, states[-1])
    remembered = memory.of(KEY, UID)
    assert not remembered.requested
    return bool(remembered.ended)


@pytest.mark.parametrize("row", DELETIONS, ids=lambda row: row["id"])
def test_deletion(row: Raw) -> None:
    for seen in _seen(row):
        known = all(set(seen) & set(each) for each in row.get("known", ()))
        assert _ended(row, seen) == (row["itself"] and known), seen
