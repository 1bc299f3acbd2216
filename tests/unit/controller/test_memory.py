"""When an own write shows, and what is forgotten."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from pumice.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, POD, SECRET, Kind
from pumice.api.pods import Pod
from pumice.controller.worker.memory import (
    WRITE_SECONDS,
    CacheOf,
    JobMemories,
    ObjectMemory,
    OwnWrite,
    OwnWrites,
)
from tests.kit.builders import pod
from tests.unit.controller.rows import a_pod

Raw = dict[str, Any]


def _write(kind: Kind, version: str) -> OwnWrite:
    return OwnWrite(kind, "default", "x", "u1", version)


@pytest.mark.parametrize(("kind", "is_kept"), [(POD, False), (SECRET, True)])
def test_of_pods_only_the_version_is_remembered(kind: Kind, is_kept: bool) -> None:
    meta = {"name": "x", "uid": "u1", "resourceVersion": "7", "labels": {"large": "x" * 63}}
    written = OwnWrite.of(kind, "default", {"metadata": meta})
    assert written == OwnWrite(kind, "default", "x", "u1", "7", written.made)
    assert (written.made is not None) == is_kept


class Picture:
    """One cache with at most one object, at a state."""

    def __init__(self, kind: Kind, version: str, stored: Any = None) -> None:
        self.kind = kind
        self.reflector = SimpleNamespace(resource_version=version)
        self._stored = stored

    def of(self, kind: Kind) -> "Picture | None":
        return self if kind == self.kind else None

    def get(self, name: str, namespace: str) -> Any:
        return self._stored


def _map(version: str, uid: str = "u1") -> Raw:
    return {"metadata": {"name": "x", "uid": uid, "resourceVersion": version}}


def _pod(version: str, *, leaving: bool = False) -> Pod:
    raw = pod("x")
    raw["metadata"] |= {"uid": "u1", "resourceVersion": version}
    if leaving:
        raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert(raw, Pod)


@pytest.mark.parametrize(
    ("kind", "written", "at", "stored", "shows"),
    [
        (CONFIG_MAP, "7", "5", None, False),
        (CONFIG_MAP, "7", "5", _map("6"), False),
        (CONFIG_MAP, "7", "7", _map("7"), True),
        (CONFIG_MAP, "7", "6", _map("7"), True),
        (CONFIG_MAP, "7", "9", None, True),
        (CONFIG_MAP, "7", "6", _map("8", "u2"), True),
        (CONFIG_MAP, "7", "5", _map("4", "u0"), False),
        (POD, "", "9", None, True),
        (POD, "", "9", _pod("3"), False),
        (POD, "", "9", _pod("3", leaving=True), True),
        (CONFIG_MAP, "", "9", _map("8", "u2"), True),
        (PERSISTENT_VOLUME_CLAIM, "7", "1", None, True),
    ],
    ids=[
        "not there yet",
        "an older state",
        "this state",
        "this state before its bookmark",
        "made and removed since",
        "followed by another",
        "an earlier object of the name",
        "deleted and gone",
        "deleted and still there",
        "deleted and leaving",
        "deleted and followed by another",
        "not watched",
    ],
)
def test_when_a_write_shows(kind: Kind, written: str, at: str, stored: Any, shows: bool) -> None:
    watched = POD if kind == POD else CONFIG_MAP
    writes = OwnWrites()
    writes.add(_write(kind, written), 0.0)
    picture = cast("CacheOf", Picture(watched, at, stored).of)
    assert (writes.unseen(picture, 0.0) is None) is shows


def test_a_write_that_never_shows_is_waited_for_no_longer_than_it_says() -> None:
    writes = OwnWrites()
    writes.add(_write(CONFIG_MAP, "7"), 5.0)
    picture = cast("CacheOf", Picture(CONFIG_MAP, "5").of)
    assert writes.unseen(picture, 9.0) == WRITE_SECONDS - 4.0
    assert writes.unseen(picture, 5.0 + WRITE_SECONDS) is None
    assert not writes


def test_a_find_is_believed_for_a_while() -> None:
    memory = ObjectMemory("u1")
    memory.finds[CONFIG_MAP, "x"] = (_map("1"), 100.0)
    assert len(memory.found(124.0, 25.0)) == 1
    assert memory.found(125.0, 25.0) == []


def test_nothing_is_remembered_of_an_earlier_job_of_the_name() -> None:
    memory = JobMemories()
    key = ("default", "train")
    memory.of(key, "u1").failures = 3
    assert memory.of(key, "u1").failures == 3
    assert memory.of(key, "u2").failures == 0


def test_nothing_is_remembered_of_a_job_that_is_gone() -> None:
    memory = JobMemories()
    memory.of(("default", "train"), "u1").failures = 3
    memory.forget(("default", "train"))
    assert memory.of(("default", "train"), "u1").failures == 0


@pytest.mark.parametrize(
    ("about", "remembered"),
    [
        ({}, True),
        ({"phase": "Failed"}, True),
        ({"phase": "Failed", "leaving": True}, False),
        ({"phase": "Running"}, False),
        ({"uid": "another"}, False),
        ({"marked": True}, False),
        ({"leaving": True}, False),
    ],
)
def test_a_pod_that_ended_is_remembered_until_that_is_written(about: Raw, remembered: bool) -> None:
    memory = JobMemories()
    job = memory.of(("default", "job1"), "u1")
    given = {"phase": "Succeeded"} | about
    gone = msgspec.convert(a_pod("job1-task1-0", given | {"owner": about.get("uid", "u1")}), Pod)
    memory.removed(("default", "job1"), gone)
    assert list(job.ended.values()) == [gone] * remembered
    later = msgspec.convert(a_pod("job1-task1-0", given), Pod)
    job.noted([later], "Running")
    assert list(job.ended.values()) == [gone] * remembered, "another pod of that name"
    job.noted([gone], "Restarting")
    fails = gone.status.phase == "Failed"
    assert list(job.ended.values()) == [gone] * (remembered and fails), "no policy was asked"
    job.noted([gone], "Running", "Restarting")
    assert list(job.ended.values()) == [gone] * (remembered and fails), "no time was noted"
    job.noted([gone], "Running")
    assert not job.ended
