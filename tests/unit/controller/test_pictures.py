"""What the controller knows of Jobs, and when it asks about one, as the case tables have it."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.crds import all_crds
from pumice.api.kinds import COMMAND, JOB, POD, POD_GROUP
from pumice.cluster.cache import wait_synced
from pumice.cluster.client import Client
from pumice.cluster.turns import first_part
from pumice.cluster.workqueue import WorkQueue
from pumice.controller.jobs import job_pods
from pumice.controller.jobs.replicas import Replicas
from pumice.controller.jobs.restart_targets import restart_of
from pumice.controller.jobs.subject import read
from pumice.controller.worker.caches import BY_JOB, JobCaches
from pumice.controller.worker.memory import ObjectKey
from pumice.controller.worker.process import Watches
from pumice.embedded import ApiStatusError, EmbeddedCluster
from tests.kit.builders import job, pod_group, task
from tests.kit.tables import table
from tests.kit.waiting import until
from tests.unit.controller.rows import NAME, a_pod

Raw = dict[str, Any]

TOPOLOGY = {"mode": "hard", "highestTierAllowed": 1}
POLICY = {"totalPartitions": 1, "partitionSize": 2, "networkTopology": TOPOLOGY}


class Picture:
    """A server, what is known of it, and which Jobs are to be looked at."""

    def __init__(self, cluster: EmbeddedCluster, caches: JobCaches) -> None:
        self.store = cluster.store
        self.caches = caches
        self.jobs: WorkQueue[ObjectKey] = WorkQueue("jobs", first_part)

    @property
    def job(self) -> Raw | None:
        return self.caches.jobs.get(NAME, "default")

    async def step(self, step: str | Raw) -> None:
        if step == "worked":
            while len(self.jobs):
                self.jobs.done(await self.jobs.get())
            return
        assert isinstance(step, dict)
        ((verb, given),) = step.items()
        await getattr(self, verb)(**given)

    async def add(self, **given: Any) -> None:
        made = self.store.create(self._manifest(given))
        if made["kind"] in ("Job", "Pod"):
            made = self.store.update_status(made | {"status": self._manifest(given)["status"]})
        await self._shows(made)

    async def change(self, **given: Any) -> None:
        manifest = self._manifest(given)
        stored = self._stored(manifest)
        write = self.store.update if manifest["kind"] == "PodGroup" else self.store.update_status
        await self._shows(write(stored | {"status": manifest["status"]}))

    async def remove(self, **given: Any) -> None:
        ((word, name),) = given.items()
        kind = {"pod": POD, "job": JOB}[word]
        self.store.delete(kind, name, "default")
        left = self.store.get(kind, name, "default")
        cache = next(each for each in self.caches.all if each.kind == kind)
        if left is not None:
            await self._shows(left)
        await until(lambda: (cache.get(name, "default") is None) is (left is None))

    async def stale(self, **given: Any) -> None:
        manifest = self._manifest(given)
        stored = self._stored(manifest)
        old = stored["metadata"] | {"resourceVersion": "1"}
        self.store.update_status(stored | {"metadata": old, "status": manifest["status"]})

    async def refused(self, **step: Any) -> None:
        """The server does not let it happen."""
        with pytest.raises(ApiStatusError):
            await self.step(step)

    def _manifest(self, given: Raw) -> Raw:
        match given:
            case {"job": phase}:
                return _job(phase, given.get("called", NAME))
            case {"pod": name}:
                pod = a_pod(name, {"owner": ""} | given)
                if given.get("lingers"):
                    pod["metadata"]["finalizers"] = ["example.com/lingers"]
                return pod
            case {"group": phase}:
                group = pod_group(f"{NAME}-u1", phase=phase)
                stored = self.store.get(JOB, NAME, "default")
                if stored is not None and not given.get("nobodys"):
                    owner = {"apiVersion": JOB.api_version, "kind": "Job", "controller": True}
                    owner |= {"name": NAME, "uid": stored["metadata"]["uid"]}
                    group["metadata"]["ownerReferences"] = [owner]
                return group
            case {"command": action}:
                return _command(action, given.get("about", "Job"))
        raise AssertionError(given)

    def _stored(self, manifest: Raw) -> Raw:
        kind = {each.kind: each for each in (JOB, POD, POD_GROUP)}[manifest["kind"]]
        return self.store.get(kind, manifest["metadata"]["name"], "default") or manifest

    async def _shows(self, obj: Raw) -> None:
        """Wait until a cache has this state of an object, where it watches it at all."""
        kind = {each.kind: each for each in (JOB, POD, POD_GROUP, COMMAND)}[obj["kind"]]
        cache = next(each for each in self.caches.all if each.kind == kind)
        meta = obj["metadata"]
        if kind != POD or keys.JOB_NAME in (meta.get("labels") or {}):
            version = meta["resourceVersion"]
            await until(lambda: _version(cache.get(meta["name"], "default")) == version)


def _job(phase: str, name: str = NAME) -> Raw:
    tasks = [task("task1", 2, partitionPolicy=POLICY)]
    return job(name, tasks, status={"state": {"phase": phase}})


def _command(action: str, about: str) -> Raw:
    api_version = JOB.api_version if about == "Job" else "scheduling.volcano.sh/v1beta1"
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {"name": "c1" if action else "", "namespace": "default"},
        "action": action,
        "target": {"apiVersion": api_version, "kind": about, "name": NAME, "uid": "u1"},
    }


def _version(stored: Any) -> str:
    if stored is None:
        return ""
    meta = stored["metadata"] if isinstance(stored, dict) else None
    return str(meta["resourceVersion"] if meta else stored.metadata.resource_version)


@pytest.fixture
async def picture() -> AsyncIterator[Picture]:
    async with EmbeddedCluster(all_crds()) as cluster, Client.connect(server=cluster.url) as client:
        caches = JobCaches(Watches(client))
        watching = [asyncio.create_task(cache.run()) for cache in caches.all]
        await wait_synced(*caches.all)
        picture = Picture(cluster, caches)
        with ExitStack() as stack:
            for cache, changed in caches.sources(picture.jobs.add, picture.jobs.add):
                stack.callback(await cache.replay(changed))
            yield picture
        for each in watching:
            each.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


@pytest.mark.parametrize("case", table("controller/pictures"), ids=lambda case: case["id"])
async def test_what_is_known(case: Raw, picture: Picture) -> None:
    for step in case["steps"]:
        await picture.step(step)
    pods = picture.caches.pods.indexed(BY_JOB, ("default", NAME))
    if "job" in case:
        stored = picture.job
        assert (stored and stored["status"]["state"]["phase"]) == case["job"]
    if "pods" in case:
        assert {each.metadata.name: each.status.phase for each in pods} == case["pods"]
    for number, names in case.get("partitions", {}).items():
        partition = restart_of([("partition", "task1", number)])
        assert [each.metadata.name for each in pods if partition.replaces(each)] == names
    if "missing" in case:
        wanted = read(_known(picture))
        absent = Replicas(wanted, job_pods.read(wanted, pods, 0.0)).window(100)
        assert [each.name for each in absent] == case["missing"]
    if "reads" in case:
        _reads(_known(picture), case["reads"])
    if "asks" in case:
        asked = []
        while len(picture.jobs):
            asked.append((await picture.jobs.get())[1])
        assert asked == case["asks"]


def _known(picture: Picture) -> Raw:
    assert picture.job is not None
    return picture.job


def _reads(stored: Raw, expected: Raw) -> None:
    """What is decided on is a copy, equal in everything that counts; what is known stays as it is."""
    before = copy.deepcopy(stored)
    found = read(stored)
    policy = found.tasks[0].partition_policy
    assert policy is not None
    assert policy.network_topology is not None
    assert expected == {
        "namespace": found.metadata.namespace,
        "name": found.metadata.name,
        "mode": policy.network_topology.mode,
        "tier": policy.network_topology.highest_tier_allowed,
        "size": policy.partition_size,
    }
    assert stored == before
