"""What fails at one object, in whatever controller, sets that object aside: it is reported, tried again, and heals."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pumice.api import keys
from pumice.api.kinds import (
    CRON_JOB,
    EVENT,
    HYPER_NODE,
    INDEXED_JOB,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    POD,
    POD_GROUP,
    QUEUE,
    Kind,
)
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder
from pumice.cluster.set_aside import ObjectFaults
from pumice.controller.hypernodes import NodeCounter
from pumice.controller.jobs.status import COUNT_SECONDS
from pumice.controller.worker.cronjobs import CronJobController
from pumice.controller.worker.execution import Executor
from pumice.controller.worker.hypernodes import HyperNodeController
from pumice.controller.worker.jobflows import JobFlowController, JobTemplateController
from pumice.controller.worker.jobs import JobController
from pumice.controller.worker.metrics import ControllerMetrics
from pumice.controller.worker.podgroups import PodGroupController
from pumice.controller.worker.queues import QueueController
from pumice.controller.worker.steps import StepSender
from pumice.controller.worker.wiring import WiringController
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.breakage import is_about_bad, pauses_grow
from tests.kit.builders import job, pod, queue

Raw = dict[str, Any]


def about(name: str, kind: Kind, **fields: Any) -> Raw:
    meta: Raw = {"name": name} | ({"namespace": "default"} if kind.namespaced else {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta} | fields


def a_pod(name: str) -> Raw:
    made = pod(name)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


SPEC = job()["spec"]
INDEXED = {
    "completions": 1,
    "completionMode": "Indexed",
    "template": {
        "metadata": {"annotations": {keys.PLUGINS: '{"env": []}'}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    },
}


def hyper_node(name: str) -> Raw:
    member = {"type": "Node", "selector": {"exactMatch": {"name": "node1"}}}
    return about(name, HYPER_NODE, spec={"tier": 1, "members": [member]})


CONTROLLERS: dict[str, tuple[type[Any], Kind, Callable[[str], Raw]]] = {
    "jobs": (JobController, JOB, job),
    "cron jobs": (
        CronJobController,
        CRON_JOB,
        lambda name: about(
            name, CRON_JOB, spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": SPEC}}
        ),
    ),
    "queues": (QueueController, QUEUE, lambda name: queue(name, state="")),
    "job flows": (
        JobFlowController,
        JOB_FLOW,
        lambda name: about(name, JOB_FLOW, spec={"flows": [{"name": "a"}]}),
    ),
    "job templates": (
        JobTemplateController,
        JOB_TEMPLATE,
        lambda name: about(name, JOB_TEMPLATE, spec=SPEC),
    ),
    "hypernodes": (
        HyperNodeController,
        HYPER_NODE,
        hyper_node,
    ),
    "owners": (WiringController, INDEXED_JOB, lambda name: about(name, INDEXED_JOB, spec=INDEXED)),
    "pods of other owners": (PodGroupController, POD_GROUP, a_pod),
}


class Breakage:
    """A function that raises for the key `bad`, and notes when."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        owner: Any,
        name: str,
        *,
        first: int = 1,
        last: int = 2,
    ) -> None:
        self.broken = True
        self.tries: list[float] = []
        self.passed: list[Any] = []
        works, loop = getattr(owner, name), asyncio.get_running_loop()

        def checked(*arguments: Any, **named: Any) -> Any:
            if self.broken and is_about_bad(arguments[first : last + 1]):
                self.tries.append(loop.time())
                raise ZeroDivisionError("oh")
            self.passed.append(arguments[1:3])
            return works(*arguments, **named)

        monkeypatch.setattr(owner, name, checked)


def sample(faults: ObjectFaults, place: str, kind: Kind) -> tuple[float, float]:
    """Values of the two metrics: errors at a place, and objects of a kind that are set aside."""
    return (
        faults.errors.labels(kind.kind, place)._value.get(),
        faults.standing.labels(kind.kind)._value.get(),
    )


@pytest.mark.parametrize("controller", CONTROLLERS)
async def test_a_pass_that_fails(
    cluster: EmbeddedCluster,
    client: Client,
    controller: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made_by, kind, made = CONTROLLERS[controller]
    breakage = Breakage(monkeypatch, made_by, "_observe" if controller == "jobs" else "plan")
    stage = ControllerStage(cluster, client)
    async with stage.controller(namespace=None) as worker:
        for name in ("bad", "good"):
            await client.create(
                POD if made_by is PodGroupController else kind, made(name), "default" if kind.namespaced else None
            )  # fmt: skip
        await stage.until(
            lambda: "good" in str(breakage.passed), "the other object to have its turn"
        )
        await stage.until(lambda: len(breakage.tries) >= 4)
        await stage.until(lambda: pauses_grow(breakage.tries, 0.09))
        errors, standing = sample(worker.faults, controller, kind)
        assert errors >= 4
        assert standing == 1
        lines = [each for each in caplog.records if each.levelno >= logging.ERROR]
        assert len(lines) == 1
        assert "is set aside" in lines[0].message
        await stage.until(
            lambda: [each for each in stage.all(EVENT) if each["reason"] == "ReconcileError"]
        )
        events = [each for each in stage.all(EVENT) if each["reason"] == "ReconcileError"]
        assert {each["involvedObject"]["kind"] for each in events} == {kind.kind}
        assert len({each["involvedObject"]["name"] for each in events}) == 1
        assert "ZeroDivisionError: oh" in events[0]["message"]
        breakage.broken = False
        await stage.until(lambda: is_about_bad(breakage.passed), "it to have its turn")
        await stage.until(lambda: sample(worker.faults, controller, kind)[1] == 0)
        assert worker.ready


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (StepSender, "_status"),
        (StepSender, "_create"),
        (Executor, "carry_out"),
        (ControllerMetrics, "entered"),
        (Client, "patch"),
        (Client, "create"),
        (EventRecorder, "_write"),
        (JobController, "_note_pod"),
        (JobController, "_note_change"),
        (JobController, "carried_out"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
async def test_whatever_fails_at_one_job_others_run_and_it_runs_later(
    cluster: EmbeddedCluster, client: Client, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breakage = Breakage(monkeypatch, owner, name)
    stage = ControllerStage(cluster, client)
    async with stage.controller():
        playing = asyncio.create_task(stage.schedule())
        breakage.broken = False
        await stage.submit(job("bad"))
        breakage.broken = True
        await stage.submit(job("good"))
        await stage.until(lambda: stage.phase("good") == "Running")
        await asyncio.sleep(2 * COUNT_SECONDS)
        breakage.broken = False
        await stage.until(lambda: stage.phase("bad") == "Running")
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


@pytest.mark.parametrize("at", ["decoder", "counter"])
async def test_a_hypernode_whose_nodes_cannot_be_counted(
    cluster: EmbeddedCluster,
    client: Client,
    at: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if at == "decoder":
        breakage = Breakage(monkeypatch, msgspec, "convert", first=0)
    else:
        breakage = Breakage(monkeypatch, NodeCounter, "_selected_by", last=1)
    stage = ControllerStage(cluster, client)

    def count(name: str) -> int:
        found = stage.store.get(HYPER_NODE, name) or {}
        return int((found.get("status") or {}).get("nodeCount") or 0)

    async with stage.controller(namespace=None) as worker:
        await client.create(HYPER_NODE, hyper_node("bad"))
        await stage.until(lambda: breakage.tries)
        await client.create(HYPER_NODE, hyper_node("good"))
        await stage.until(lambda: count("good") == 1)
        await stage.until(lambda: len(breakage.tries) >= 6)
        await stage.until(lambda: pauses_grow(breakage.tries, 0.09))

        def counted() -> bool:  # a try in another thread counts when the thread is done
            found = sample(worker.faults, "node count", HYPER_NODE)
            return found == (len(breakage.tries), 1)

        await stage.until(counted)
        lines = [each.message for each in caplog.records if each.levelno >= logging.ERROR]
        assert len(lines) == 1
        assert lines[0].startswith("HyperNode bad is set aside")
        await stage.until(lambda: "ZeroDivisionError: oh" in str(stage.store.list(EVENT)))
        assert count("bad") == 0
        breakage.broken = False
        await stage.until(lambda: count("bad") == 1)
        await stage.until(lambda: sample(worker.faults, "node count", HYPER_NODE)[1] == 0)
        assert worker.ready
