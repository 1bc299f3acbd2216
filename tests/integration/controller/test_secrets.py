"""Secrets are read by name, where a plugin needs one, and neither listed nor watched."""

from typing import Any

import pytest

from pumice.api.kinds import INDEXED_JOB, JOB, POD, SECRET, Kind
from pumice.cluster.client import Client
from pumice.cluster.clock import SystemClock
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.controller.worker.secrets import MOST, SECONDS, KnownSecrets
from pumice.plugins import builtin
from tests.integration.controller.stage import ControllerStage
from tests.integration.controller.test_other_owners_wiring import indexed_job, submit
from tests.kit.builders import job, task
from tests.kit.requests import Requests, recorded


def _asked(requests: Requests) -> list[tuple[str, str]]:
    """Requests about Secrets: the method, and the last part of the path."""
    return [
        (each.method, each.path.rpartition("/")[2])
        for each in requests.sent
        if each.resource == "secrets"
    ]


@pytest.mark.parametrize("secrets", [True, False])
async def test_none_are_watched(stage: ControllerStage, secrets: bool) -> None:
    worker = ControllerWorker(stage.client, builtin(), ControllerSettings(secrets=secrets))
    watched = [each.kind for each in (*worker.watches.required, *worker.watches.optional)]
    assert SECRET not in watched


async def test_a_job_without_such_a_plugin_asks_for_none(scheduled: ControllerStage) -> None:
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(job("train", [task("worker", 2)], plugins={"svc": [], "env": []}))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.calm()
    assert _asked(requests) == []


async def test_that_of_a_new_job_is_made_and_not_asked_for(scheduled: ControllerStage) -> None:
    """However many passes there are: twenty pods start and end one after the other."""
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(job("train", [task("worker", 20)], plugins={"ssh": []}))
        await scheduled.until(lambda: scheduled.status("running") == 20)
        for pod in scheduled.names(POD):
            scheduled.finish(pod)
        await scheduled.until(lambda: scheduled.phase() == "Completed")
        await scheduled.until(lambda: not scheduled.names(SECRET))
        await scheduled.calm()
    assert _asked(requests) == [("POST", "secrets"), ("DELETE", "train-ssh")]


async def test_a_controller_that_starts_reads_it_once_by_its_name(
    scheduled: ControllerStage,
) -> None:
    async with scheduled.controller():
        await scheduled.submit(job("train", [task("worker", 3)], plugins={"ssh": []}))
        await scheduled.submit(job("plain", [task("worker", 1)]))
        await scheduled.until(lambda: scheduled.phase() == scheduled.phase("plain") == "Running")
        await scheduled.calm()
    before = scheduled.all(SECRET)
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.client.delete(POD, "train-worker-1", scheduled.namespace, grace=0)
        await scheduled.until(lambda: len(scheduled.all(POD)) == 4, "the pod again")
        await scheduled.calm()
        assert _asked(requests) == [("GET", "train-ssh")]
        assert scheduled.all(SECRET) == before
        for pod in scheduled.names(POD):
            scheduled.finish(pod)
        await scheduled.until(lambda: scheduled.phase() == "Completed")
        await scheduled.calm()
    assert _asked(requests) == [("GET", "train-ssh"), ("DELETE", "train-ssh")]
    assert ("Warning", "KeysReplaced") not in scheduled.events()


async def test_one_that_is_gone_is_made_again_before_pods_need_it(
    scheduled: ControllerStage,
) -> None:
    async with scheduled.controller() as worker:
        await scheduled.submit(job("train", [task("worker", 2)], plugins={"ssh": []}))
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.client.delete(SECRET, "train-ssh", scheduled.namespace)
        await worker.clock.sleep(SECONDS + 1)
        await scheduled.client.delete(POD, "train-worker-1", scheduled.namespace, grace=0)
        await scheduled.until(lambda: "train-ssh" in scheduled.names(SECRET), "the Secret again")
        await scheduled.until(lambda: ("Warning", "KeysReplaced") in scheduled.events(), "an event")


async def test_that_of_pods_of_other_owners_is_read_by_its_name(scheduled: ControllerStage) -> None:
    async with scheduled.controller():
        await submit(scheduled.client, INDEXED_JOB, indexed_job("mpi"))
        await scheduled.until(lambda: "train-ssh" in scheduled.names(SECRET), "a Secret")
        await scheduled.calm()
    before = scheduled.all(SECRET)
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        scale = {"spec": {"completions": 5, "parallelism": 5}}
        await scheduled.client.patch(INDEXED_JOB, "train", "default", scale)
        await scheduled.calm()
    assert _asked(requests) == [("GET", "train-ssh"), ("PATCH", "train-ssh")]
    [after] = scheduled.all(SECRET)
    assert after["data"]["id_rsa"] == before[0]["data"]["id_rsa"]


async def test_one_that_somebody_else_has_changed_is_read_again(scheduled: ControllerStage) -> None:
    """A write that names the version before it is refused; the next pass begins with what there is."""
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await submit(scheduled.client, INDEXED_JOB, indexed_job("mpi"))
        await scheduled.until(lambda: "train-ssh" in scheduled.names(SECRET), "a Secret")
        await scheduled.calm()
        before = scheduled.all(SECRET)
        label = {"metadata": {"labels": {"a": "b"}}}
        await scheduled.client.patch(SECRET, "train-ssh", "default", label)
        scale = {"spec": {"completions": 5, "parallelism": 5}}
        await scheduled.client.patch(INDEXED_JOB, "train", "default", scale)
        await scheduled.until(
            lambda: scheduled.all(SECRET)[0]["data"]["config"] != before[0]["data"]["config"],
            "more hosts",
        )
        await scheduled.calm()
    assert _asked(requests)[-3:] == [
        ("PATCH", "train-ssh"),
        ("GET", "train-ssh"),
        ("PATCH", "train-ssh"),
    ]
    assert scheduled.all(SECRET)[0]["data"]["id_rsa"] == before[0]["data"]["id_rsa"]


async def test_a_job_that_is_made_again_under_its_name_has_a_secret_of_its_own(
    scheduled: ControllerStage,
) -> None:
    """Within the minute in which what is known counts, and without a pass in between."""
    manifest = job("train", [task("worker", 2)], plugins={"ssh": []})
    async with recorded(scheduled.cluster.url) as (client, requests), scheduled.controller(client):
        await scheduled.submit(manifest)
        await scheduled.until(lambda: scheduled.phase() == "Running")
        await scheduled.calm()
        before = scheduled.all(SECRET)
        scheduled.store.delete(JOB, "train", scheduled.namespace)
        for pod in scheduled.names(POD):
            scheduled.store.delete(POD, pod, scheduled.namespace)
        if scheduled.names(SECRET):
            scheduled.store.delete(SECRET, "train-ssh", scheduled.namespace)
        scheduled.store.create(manifest)
        await scheduled.until(lambda: scheduled.phase() == "Running", "the second one runs")
        await scheduled.calm()
    assert [each for each in _asked(requests) if each[0] != "DELETE"] == [("POST", "secrets")] * 2
    [after] = scheduled.all(SECRET)
    [owner] = after["metadata"]["ownerReferences"]
    assert owner["uid"] == scheduled.job()["metadata"]["uid"]
    assert after["data"] != before[0]["data"]


async def test_an_owner_that_is_made_again_under_its_name_has_a_secret_of_its_own(
    scheduled: ControllerStage,
) -> None:
    async with scheduled.controller():
        await submit(scheduled.client, INDEXED_JOB, indexed_job("mpi"))
        await scheduled.until(lambda: "train-ssh" in scheduled.names(SECRET), "a Secret")
        await scheduled.calm()
        scheduled.store.delete(INDEXED_JOB, "train", "default")
        if scheduled.names(SECRET):
            scheduled.store.delete(SECRET, "train-ssh", "default")
        await submit(scheduled.client, INDEXED_JOB, indexed_job("mpi"))
        await scheduled.until(lambda: "train-ssh" in scheduled.names(SECRET), "a second Secret")
        await scheduled.calm()
    [after] = scheduled.all(SECRET)
    [owner] = after["metadata"]["ownerReferences"]
    assert owner["uid"] == scheduled.find(INDEXED_JOB, "train")["metadata"]["uid"]


class Counting(Client):
    """A client that answers for every Secret, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, metadata_only: bool = False
    ) -> Any:
        self.asked.append(name)
        return {"metadata": {"name": name, "namespace": namespace}}


async def test_so_many_are_known_and_the_oldest_is_read_again() -> None:
    client = Counting()
    known = KnownSecrets(client, SystemClock())
    names = [f"s{number}" for number in range(MOST)]
    assert len(await known.read("default", names)) == MOST
    await known.read("default", ["s0", f"s{MOST - 1}"])
    assert client.asked == names
    await known.read("default", ["one more"])
    await known.read("default", [f"s{MOST - 1}", "s64", "s0"])
    assert client.asked == [*names, "one more", "s0"]
