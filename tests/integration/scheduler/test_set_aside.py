"""What fails at one pod or gang outside of cycles sets that one aside; other gangs run, and it runs once the fault is gone."""

import asyncio
import logging
from typing import Any

import pytest

from pumice.api.kinds import EVENT, POD, POD_GROUP, QUEUE
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder
from pumice.scheduler import ClusterState
from pumice.scheduler.worker.bindings import Binder
from pumice.scheduler.worker.conditions import PodConditions
from pumice.scheduler.worker.evictions import Evictor
from pumice.scheduler.worker.loop import _Term
from pumice.scheduler.worker.queue_statuses import QueueStatuses
from pumice.scheduler.worker.statuses import PodGroupStatuses
from pumice.scheduler.worker.volcano_metrics import VolcanoMetrics
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import queue


class Breakage:
    """A function that raises for what has `bad` in its arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.broken = True
        self.tries = 0
        works = getattr(owner, name)

        def checked(*arguments: Any, **named: Any) -> Any:
            if self.broken and "bad" in str(arguments[1:]):
                self.tries += 1
                raise ZeroDivisionError("oh")
            return works(*arguments, **named)

        monkeypatch.setattr(owner, name, checked)


REPORTED = [
    (ClusterState, "set_pod", "subscriber", POD.kind),
    (ClusterState, "set_pod_group", "subscriber", POD_GROUP.kind),
    (Binder, "_carry_out", "bindings", POD.kind),
    (Binder, "_decide", "claims", POD_GROUP.kind),
    (Client, "bind", "bindings", POD.kind),
    (VolcanoMetrics, "bound", "", ""),
    (PodGroupStatuses, "_write", "PodGroup status", POD_GROUP.kind),
    (_Term, "_count_started", "", ""),
]


@pytest.mark.parametrize(
    ("owner", "name", "place", "kind"), REPORTED, ids=[f"{a.__name__}.{b}" for a, b, *_ in REPORTED]
)
async def test_others_run_and_it_runs_later(
    stage: SchedulerStage,
    owner: Any,
    name: str,
    place: str,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    breakage = Breakage(monkeypatch, owner, name)
    async with stage.scheduler() as worker:
        stage.gang("bad", 2)
        await stage.until(lambda: breakage.tries)
        stage.gang("good", 2)
        await stage.until(lambda: stage.phase("good") == "Running")
        if place:
            errors = worker.faults.errors.labels(kind, place)._value
            await stage.until(lambda: errors.get() >= 2, "it to be tried again")
            assert worker.faults.standing.labels(kind)._value.get() >= 1
            lines = [each.message for each in caplog.records if each.levelno >= logging.ERROR]
            objects = {line.split(" ")[1] for line in lines}
            assert len(lines) == len(objects)
            assert all(each.startswith("default/bad") for each in objects)
            await stage.until(
                lambda: [
                    each
                    for each in stage.all(EVENT)
                    if each["reason"] == "InternalError"
                    and each["involvedObject"]["kind"] == kind
                    and each["involvedObject"]["name"].startswith("bad")
                ]
            )
        breakage.broken = False
        await stage.until(lambda: stage.phase("bad") == "Running")
        await stage.until(lambda: stage.find_running("bad") == 2)
        await stage.until(lambda: not kind or not worker.faults.standing.labels(kind)._value.get())
        assert worker.ready


@pytest.mark.parametrize(
    ("owner", "name", "place"),
    [
        (PodConditions, "_write_status", "pod condition"),
        (PodConditions, "_uid", ""),
        (_Term, "_record", ""),
        (EventRecorder, "_write", ""),
    ],
)
async def test_pods_that_wait(
    stage: SchedulerStage, owner: Any, name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakage = Breakage(monkeypatch, owner, name)
    async with stage.scheduler() as worker:
        for gang in ("bad", "good"):
            stage.gang(gang, 1)
        if place:
            await stage.until(
                lambda: worker.faults.errors.labels(POD.kind, place)._value.get() >= 2
            )
        else:
            await stage.until(lambda: breakage.tries)
        await stage.until(lambda: stage.phase("good"))
        breakage.broken = False
        await stage.until(lambda: stage.pod_condition("bad-0") if place else True)
        stage.cluster.add_node("node1", cpu="8")
        await stage.until(lambda: stage.phase("bad") == stage.phase("good") == "Running")
        assert worker.ready


async def test_a_queue_whose_status_cannot_be_written(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="8")
    for name in ("bad", "good"):
        stage.store.create(queue(name))
    breakage = Breakage(monkeypatch, QueueStatuses, "_write")
    async with stage.scheduler() as worker:
        for name in ("bad", "good"):
            stage.gang(f"in-{name}", 1, queue=name)
        await stage.until(
            lambda: (stage.store.get(QUEUE, "good") or {}).get("status", {}).get("allocated")
        )
        errors = worker.faults.errors.labels(QUEUE.kind, "queue status")._value
        await stage.until(lambda: errors.get() >= 2)
        breakage.broken = False
        await stage.until(
            lambda: (stage.store.get(QUEUE, "bad") or {}).get("status", {}).get("allocated")
        )
        await stage.until(lambda: not worker.faults.standing.labels(QUEUE.kind)._value.get())


@pytest.mark.parametrize("name", ["_evict", "_carry_out"])
async def test_a_victim_that_cannot_be_evicted_is_spared(
    stage: SchedulerStage, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cluster.add_node("node1", cpu="1")
    stage.cluster.add_node("node2", cpu="1")
    Breakage(monkeypatch, Evictor, name)
    async with stage.scheduler() as worker:
        await worker.started.wait()
        evictor = worker._term
        assert evictor is not None
        stage.gang("bad", 1)
        stage.gang("good", 1)
        await stage.until(lambda: stage.phase("bad") == stage.phase("good") == "Running")
        evictor._evictor.evict(["default/bad-0", "default/good-0"])
        await stage.until(lambda: "good-0" not in stage.names(POD))
        errors = worker.faults.errors.labels(POD.kind, "evictions")._value
        await stage.until(lambda: errors.get() >= 1)
        assert "bad-0" in stage.names(POD)
        assert "default/bad-0" in evictor._context.state.spared
        await asyncio.sleep(0)
        assert worker.ready
