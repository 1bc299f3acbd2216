"""Carrying plans out: what is guarded, what is learned, what is refused."""

import asyncio
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import COMMAND, CONFIG_MAP, EVENT, JOB, NAMESPACE, POD
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireAbsent,
    Step,
    UpdateObject,
)
from pumice.controller.worker.execution import Executor
from pumice.controller.worker.memory import PlanOutcome
from pumice.controller.worker.metrics import ControllerMetrics
from pumice.embedded import EmbeddedCluster
from tests.kit.builders import bare_pod, job

Raw = dict[str, Any]

MAP: Raw = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "map", "namespace": "default"},
    "data": {"key": "value"},
}


class Hands:
    """An executor and the Job that it works for."""

    def __init__(self, client: Client, made: Raw) -> None:
        self.client = client
        self.job = made
        self.recorder = EventRecorder(client, "test")
        self._executor = Executor(client, self.recorder, ControllerMetrics(), concurrent=4)

    async def do(self, *stages: list[Step]) -> PlanOutcome:
        return await self._executor.carry_out(Plan.of(*stages), self.job)


@pytest.fixture
async def hands(cluster: EmbeddedCluster, client: Client) -> Hands:
    return Hands(client, await client.create(JOB, job()))


async def test_it_creates_and_reports_what_the_server_made_of_it(hands: Hands) -> None:
    outcome = await hands.do([CreateObject(CONFIG_MAP, MAP)])
    (written,) = outcome.written
    assert written[:3] == (CONFIG_MAP, "default", "map")
    stored = await hands.client.get(CONFIG_MAP, "map", "default")
    assert (written.uid, written.version) == (
        stored["metadata"]["uid"],
        stored["metadata"]["resourceVersion"],
    )
    assert outcome.complete


class StumblingClient(Client):
    """One whose requests are cancelled from inside."""

    async def get(self, *args: Any, **named: Any) -> Raw:
        raise asyncio.CancelledError

    async def create(self, *args: Any, **named: Any) -> Raw:
        raise asyncio.CancelledError


@pytest.mark.parametrize(
    "step", [CreateObject(CONFIG_MAP, MAP), RequireAbsent(CONFIG_MAP, "default", "map")]
)
async def test_a_request_that_is_cancelled_from_inside_is_not_done(
    cluster: EmbeddedCluster, hands: Hands, step: Step
) -> None:
    async with StumblingClient.connect(server=cluster.url) as client:
        outcome = await Hands(client, hands.job).do([step])
    assert not outcome.complete


async def test_a_name_that_is_taken_is_looked_at_and_ends_the_plan(hands: Hands) -> None:
    taken = await hands.client.create(CONFIG_MAP, MAP)
    later = MAP | {"metadata": {"name": "later", "namespace": "default"}}
    outcome = await hands.do([CreateObject(CONFIG_MAP, MAP)], [CreateObject(CONFIG_MAP, later)])
    ((kind, found),) = outcome.finds
    assert (kind, found["metadata"]["uid"]) == (CONFIG_MAP, taken["metadata"]["uid"])
    assert outcome.complete
    assert outcome.written == []


async def test_only_the_incarnation_that_is_meant_is_deleted(
    cluster: EmbeddedCluster, hands: Hands
) -> None:
    made = await hands.client.create(CONFIG_MAP, MAP)
    outcome = await hands.do([DeleteObject(CONFIG_MAP, "default", "map", "another uid")])
    assert outcome.outdated
    assert cluster.store.get(CONFIG_MAP, "map", "default") is not None
    outcome = await hands.do([DeleteObject(CONFIG_MAP, "default", "map", made["metadata"]["uid"])])
    assert outcome.complete
    assert cluster.store.get(CONFIG_MAP, "map", "default") is None


async def test_only_the_state_that_is_meant_is_deleted(hands: Hands) -> None:
    """A Job whose time to live was changed meanwhile is not deleted (XGC-2)."""
    meta = hands.job["metadata"]
    await hands.client.patch(JOB, "train", "default", {"spec": {"ttlSecondsAfterFinished": 99}})
    version = meta["resourceVersion"]
    step = DeleteObject(JOB, "default", "train", meta["uid"], resource_version=version)
    assert (await hands.do([step])).outdated


async def test_deleting_what_is_gone_is_done(hands: Hands) -> None:
    assert (await hands.do([DeleteObject(POD, "default", "ghost", "u")])).complete


async def test_a_patch_is_guarded_by_what_it_names(hands: Hands) -> None:
    made = await hands.client.create(CONFIG_MAP, MAP)
    meta = made["metadata"]
    for guard in ({"uid": "another"}, {"uid": meta["uid"], "resourceVersion": "1"}):
        patch = {"metadata": guard, "data": {"key": "changed"}}
        assert (await hands.do([UpdateObject(CONFIG_MAP, "default", "map", patch)])).outdated
    patch = {"metadata": {"uid": meta["uid"]}, "data": {"key": None, "more": "x"}}
    assert (await hands.do([UpdateObject(CONFIG_MAP, "default", "map", patch)])).complete
    assert (await hands.client.get(CONFIG_MAP, "map", "default"))["data"] == {"more": "x"}


@pytest.mark.parametrize("owner", ["job", "another", None])
async def test_what_the_caches_do_not_show_is_looked_up(hands: Hands, owner: str | None) -> None:
    """A pod that exists all the same is remembered, and the rest of the plan is dropped."""
    plan: list[list[Step]] = [
        [RequireAbsent(POD, "default", "train-worker-0")],
        [CreateObject(CONFIG_MAP, MAP)],
    ]
    if owner is not None:
        made = bare_pod("train-worker-0")
        uid = hands.job["metadata"]["uid"] if owner == "job" else "u9"
        head = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": "train"}
        made["metadata"]["ownerReferences"] = [head | {"uid": uid, "controller": True}]
        await hands.client.create(POD, made)
    outcome = await hands.do(*plan)
    assert outcome.complete
    found = [(kind, obj["metadata"]["name"]) for kind, obj in outcome.finds]
    assert found == ([(POD, "train-worker-0")] if owner == "job" else [])
    assert bool(outcome.written) is (owner != "job")
    assert outcome.absent == (set() if owner == "job" else {"train-worker-0"})


async def test_what_cannot_be_looked_up_stops_the_plan() -> None:
    async with Client.connect(server="http://127.0.0.1:9") as nowhere:
        lost = Hands(nowhere, job(uid="u1"))
        outcome = await lost.do([RequireAbsent(POD, "default", "train-worker-0")])
    assert outcome.broken


async def test_patching_what_is_gone_calls_for_another_look(hands: Hands) -> None:
    patch = {"metadata": {"annotations": {keys.OUT_OF_SYNC: "true"}}}
    assert (await hands.do([UpdateObject(POD, "default", "ghost", patch)])).outdated


async def test_a_status_is_written_only_on_what_was_observed(hands: Hands) -> None:
    status = {"state": {"phase": "Pending"}}
    assert (await hands.do([PatchStatus(status)])).complete
    stored = await hands.client.get(JOB, "train", "default")
    assert stored["status"]["state"]["phase"] == "Pending"
    outcome = await hands.do([PatchStatus(status)], [CreateObject(CONFIG_MAP, MAP)])
    assert outcome.outdated
    assert outcome.written == []  # what follows an old picture is not done


async def test_no_job_is_created_or_ended_on_an_old_picture(hands: Hands) -> None:
    """No status is written before that could be refused."""
    await hands.client.patch(JOB, "train", "default", {"metadata": {"labels": {"a": "b"}}})
    named = {"name": "other", "namespace": "default"}
    for kind in (JOB, COMMAND):
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": named}
        outcome = await hands.do([CreateObject(kind, head)])
        assert outcome.outdated
        assert not outcome.written


async def test_a_refusal_is_kept_for_the_user(hands: Hands) -> None:
    bad = MAP | {"metadata": {"name": "Not A Name", "namespace": "default"}}
    outcome = await hands.do([CreateObject(CONFIG_MAP, bad)])
    assert outcome.trouble is not None
    assert outcome.trouble.reason == "FailedCreate"
    assert outcome.trouble.message.startswith("cannot create ConfigMap: ")
    assert not outcome.broken


async def test_a_namespace_that_is_being_deleted_is_named_as_the_reason(
    cluster: EmbeddedCluster, hands: Hands
) -> None:
    held = {"name": "going", "finalizers": ["example.com/held"]}
    cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": held})
    cluster.store.delete(NAMESPACE, "going")
    there = MAP | {"metadata": {"name": "map", "namespace": "going"}}
    outcome = await hands.do([CreateObject(CONFIG_MAP, there)])
    assert outcome.trouble is not None
    assert outcome.trouble.reason == "NamespaceTerminating"


async def test_a_server_that_does_not_answer_is_no_trouble_of_the_job(hands: Hands) -> None:
    async with Client.connect(server="http://127.0.0.1:9") as nowhere:
        lost = Hands(nowhere, hands.job)
        outcome = await lost.do([CreateObject(CONFIG_MAP, MAP)])
    assert outcome.broken
    assert outcome.trouble is None


async def test_the_nearest_moment_counts(hands: Hands) -> None:
    outcome = await hands.do([RequeueAfter(30)], [RequeueAfter(3)])
    assert outcome.after == 3


async def test_events_are_about_the_job(cluster: EmbeddedCluster, hands: Hands) -> None:
    await hands.do([RecordEvent("Warning", "Example", "it happened")])
    await hands.recorder.flush()
    (event,) = cluster.store.list(EVENT, "default")
    assert (event["reason"], event["involvedObject"]["name"]) == ("Example", "train")
    assert event["involvedObject"]["uid"] == hands.job["metadata"]["uid"]
