"""What fails at one pod or gang outside of cycles sets that one aside; other gangs run, and it runs once the fault is gone."""

import asyncio
import logging
from typing import Any

import pytest

from pumice.api.kinds import EVENT, POD, POD_GROUP, QUEUE
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder
from pumice.scheduler import ClusterState, load_config
from pumice.scheduler.worker.bindings import Binder
from pumice.scheduler.worker.claim_bindings import ClaimBinder
from pumice.scheduler.worker.claim_checks import ClaimBatch, ClaimChecks
from pumice.scheduler.worker.claim_writes import BindingError
from pumice.scheduler.worker.evictions import Evictor
from pumice.scheduler.worker.gate_removals import GateOpener
from pumice.scheduler.worker.loop import _Leadership
from pumice.scheduler.worker.metrics import VolcanoMetrics
from pumice.scheduler.worker.queue_writes import QueueStatuses
from pumice.scheduler.worker.statuses import PodConditions, PodGroupStatuses
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.breakage import is_about_bad, pauses_grow
from tests.kit.builders import queue
from tests.kit.quick_loop import monotonic
from tests.unit.scheduler.scenarios import config_text


class Breakage:
    """A function that raises for what has `bad` in its arguments, and notes when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.broken = True
        self.tries = 0
        self.times: list[float] = []
        works = getattr(owner, name)

        def checked(*arguments: Any, **named: Any) -> Any:
            if self.broken and is_about_bad(arguments[1:]):
                self.tries += 1
                self.times.append(monotonic())
                raise ZeroDivisionError("oh")
            return works(*arguments, **named)

        monkeypatch.setattr(owner, name, checked)


REPORTED = [
    (ClusterState, "set_pod", "subscriber", POD.kind),
    (ClusterState, "set_pod_group", "subscriber", POD_GROUP.kind),
    (Binder, "_carry_out", "bindings", POD.kind),
    (Binder, "_decide", "claims", POD_GROUP.kind),
    (Client, "bind", "bindings", POD.kind),
    (Binder, "bind", "claims", POD_GROUP.kind),
    (ClaimBinder, "_bind_gangs", "claims", POD_GROUP.kind),
    (VolcanoMetrics, "bound", "", ""),
    (PodGroupStatuses, "_write", "PodGroup status", POD_GROUP.kind),
    (_Leadership, "_count_started", "", ""),
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
        (_Leadership, "_record", ""),
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
        evictor = worker._leadership
        assert evictor is not None
        stage.gang("bad", 1)
        stage.gang("good", 1)
        await stage.until(lambda: stage.phase("bad") == stage.phase("good") == "Running")
        evictor._evictor.evict(["default/bad-0", "default/good-0"])
        await stage.until(lambda: "good-0" not in stage.names(POD))
        errors = worker.faults.errors.labels(POD.kind, "evictions")._value
        await stage.until(lambda: errors.get() >= 1)
        assert "bad-0" in stage.names(POD)
        assert "default/bad-0" in evictor._context.state.pods.spared
        await asyncio.sleep(0)
        assert worker.ready


GATE = "scheduling.volcano.sh/queue-allocation-gate"


def is_gated(stage: SchedulerStage, name: str) -> bool:
    return bool(stage.find(POD, name)["spec"].get("schedulingGates"))


@pytest.mark.parametrize("name", ["_open", "_carry_out"])
async def test_a_gate_that_cannot_be_taken_away(
    stage: SchedulerStage,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The gangs have no node, so that each cycle names their gates."""
    breakage = Breakage(monkeypatch, GateOpener, name)
    async with stage.scheduler(opens_gates=True) as worker:
        for gang in ("bad", "good"):
            gates = [{"name": GATE}]
            stage.gang(gang, 1, annotations={GATE: "true"}, schedulingGates=gates)
        await stage.until(lambda: not is_gated(stage, "good-0"))
        await stage.until(lambda: breakage.tries >= 5)
        assert pauses_grow(breakage.times[:5], 0.35, 4)
        assert is_gated(stage, "bad-0")
        assert worker.faults.errors.labels(POD.kind, "gates")._value.get() == breakage.tries
        assert worker.faults.standing.labels(POD.kind)._value.get() == 1
        lines = [each.message for each in caplog.records if each.levelno >= logging.ERROR]
        assert len(lines) == 1
        assert lines[0].startswith("Pod default/bad-0 is set aside")
        await stage.until(lambda: stage.events("InternalError"))
        breakage.broken = False
        await stage.until(lambda: not is_gated(stage, "bad-0"))
        await stage.until(lambda: not worker.faults.standing.labels(POD.kind)._value.get())
        assert worker.ready


async def test_a_pod_that_goes_while_its_gate_is_set_aside(
    stage: SchedulerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakage = Breakage(monkeypatch, GateOpener, "_open")
    async with stage.scheduler(opens_gates=True) as worker:
        stage.gang("bad", 1, annotations={GATE: "true"}, schedulingGates=[{"name": GATE}])
        await stage.until(lambda: breakage.tries >= 2)
        stage.store.delete(POD, "bad-0", stage.namespace)
        await stage.until(lambda: not worker.faults.standing.labels(POD.kind)._value.get())
        assert worker._leadership is not None
        unqueued = worker._leadership._gates._unqueued
        await stage.until(lambda: not len(unqueued))


def gang_with_claim(stage: SchedulerStage, name: str) -> None:
    """A gang of one pod, whose claim a volume is to be made for."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{name}-data", "namespace": stage.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "made",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stage.store.create(claim)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": f"{name}-data"}}
    stage.gang(name, 1, volumes=[volume])


@pytest.mark.parametrize(
    "name", ["_begin_for", "_begin", "_write", "are_bound", "_is_due", "_pass_on", "_take_back"]
)
async def test_claims_that_cannot_be_bound(
    stage: SchedulerStage,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    owner = ClaimChecks if name == "are_bound" else ClaimBinder
    breakage = Breakage(monkeypatch, owner, name)
    if name == "_take_back":  # which is for what has failed
        are_bound = ClaimChecks.are_bound

        def never(self: ClaimChecks, batch: ClaimBatch) -> bool:
            if breakage.broken and batch.gang.endswith("/bad"):
                raise BindingError("no")
            return are_bound(self, batch)

        monkeypatch.setattr(ClaimChecks, "are_bound", never)
    stage.cluster.add_node("node1", cpu="8")
    stage.store.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "made"},
            "provisioner": "disk.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    predicates = {"predicates": None, "args": {"volumebinding.bindTimeoutSeconds": 600}}
    config = load_config(config_text([["gang"], [predicates]]))
    async with stage.scheduler(config=config) as worker:
        gang_with_claim(stage, "bad")
        if name != "_is_due":
            await stage.until(lambda: breakage.tries)
        gang_with_claim(stage, "good")
        await stage.until(lambda: stage.phase("good") == "Running")
        if name == "are_bound":  # the claim is bound meanwhile, so that nothing has to be awaited
            await stage.until(lambda: stage.phase("bad") == "Running")
            await stage.until(lambda: stage.events("InternalError"))
        elif name != "_is_due":
            errors = worker.faults.errors.labels(POD_GROUP.kind, "claims")._value
            await stage.until(lambda: errors.get() >= 5)
            await stage.until(lambda: pauses_grow(breakage.times, 0.17, 2))
            assert worker.faults.standing.labels(POD_GROUP.kind)._value.get() == 1
            lines = [each.message for each in caplog.records if each.levelno >= logging.ERROR]
            assert len(lines) == 1
            assert lines[0].startswith("PodGroup default/bad is set aside")
            await stage.until(lambda: stage.events("InternalError"))
            assert stage.nodes_of("bad") == [""]
        breakage.broken = False
        await stage.until(lambda: stage.phase("bad") == "Running")
        await stage.until(lambda: not worker.faults.standing.labels(POD_GROUP.kind)._value.get())
        assert worker.ready
