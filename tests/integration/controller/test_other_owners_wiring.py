"""What plugins want beside the pods of other controllers, on the embedded API server.

It has no other controllers; their kinds are CRDs here that take every field, and nobody makes pods.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pumice.api.crds import all_crds
from pumice.api.kinds import (
    CONFIG_MAP,
    CRD,
    EVENT,
    INDEXED_JOB,
    LEADER_WORKER_SET,
    NAMESPACE,
    NETWORK_POLICY,
    SECRET,
    SERVICE,
    Kind,
)
from pumice.cluster.cache import wait_synced
from pumice.cluster.client import Client
from pumice.controller.worker.process import Watches
from pumice.controller.worker.wiring import WiringCaches
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage

Raw = dict[str, Any]


def crd(kind: Kind) -> Raw:
    """A kind as a CRD that takes every field."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural, "listKind": f"{kind.kind}List"},
            "versions": [version],
        },
    }


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    kinds = [crd(INDEXED_JOB), crd(LEADER_WORKER_SET)]
    async with EmbeddedCluster([*all_crds(), *kinds]) as found:
        yield found


def template(plugins: str) -> Raw:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    return {"metadata": {"annotations": {"pumice.dev/plugins": plugins}}, "spec": spec}


def indexed_job(plugins: str, name: str = "train", **spec: Any) -> Raw:
    wanted = {
        "completions": 3,
        "parallelism": 3,
        "completionMode": "Indexed",
        "template": template(plugins),
    }
    return {
        "apiVersion": INDEXED_JOB.api_version,
        "kind": INDEXED_JOB.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": wanted | spec,
    }


def owner_of(obj: Raw) -> tuple[str, str, str, bool]:
    [owner] = obj["metadata"]["ownerReferences"]
    return owner["apiVersion"], owner["kind"], owner["uid"], owner["controller"]


def messages(stage: ControllerStage) -> list[str]:
    return [each["message"] for each in stage.all(EVENT)]


async def submit(client: Client, kind: Kind, manifest: Raw) -> Raw:
    return await client.create(kind, manifest, "default")


async def test_an_indexed_job_gets_what_its_plugins_want(
    stage: ControllerStage, client: Client
) -> None:
    made = await submit(client, INDEXED_JOB, indexed_job("mpi"))
    await stage.until(lambda: "train-ssh" in stage.names(SECRET), "a Secret")
    await stage.until(lambda: "train-mpi" in stage.names(CONFIG_MAP), "hosts")
    await stage.calm()

    objects = {
        (kind.kind, each["metadata"]["name"]): each
        for kind in (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)
        for each in stage.all(kind)
        if each["metadata"].get("labels", {}).get("pumice.dev/wired-for") == "Job"
    }
    assert sorted(objects) == [
        ("ConfigMap", "train-mpi"),
        ("ConfigMap", "train-svc"),
        ("NetworkPolicy", "train"),
        ("Secret", "train-ssh"),
        ("Service", "train"),
    ]
    for each in objects.values():
        assert owner_of(each) == ("batch/v1", "Job", made["metadata"]["uid"], True)
        assert "volcano.sh/job-name" not in each["metadata"]["labels"]
    service = objects["Service", "train"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"] == {"batch.kubernetes.io/job-name": "train"}
    hosts = objects["ConfigMap", "train-mpi"]["data"]["hostfile"]
    assert hosts == "train-1.train slots=1\ntrain-2.train slots=1\n"
    private = base64.b64decode(objects["Secret", "train-ssh"]["data"]["id_rsa"])
    assert private.startswith(b"-----BEGIN RSA PRIVATE KEY-----")


async def test_a_change_is_followed_and_what_a_user_changes_is_repaired(
    stage: ControllerStage, client: Client
) -> None:
    await submit(client, INDEXED_JOB, indexed_job("mpi"))
    await stage.until(lambda: "train-ssh" in stage.names(SECRET), "a Secret")
    [before] = [each for each in stage.all(SECRET) if each["metadata"]["name"] == "train-ssh"]

    def hosts() -> str:
        found = stage.store.get(CONFIG_MAP, "train-svc", "default") or {}
        return str((found.get("data") or {}).get("VC_WORKER_NUM"))

    await stage.until(lambda: hosts() == "2", "hosts")
    await client.patch(
        INDEXED_JOB, "train", "default", {"spec": {"completions": 5, "parallelism": 5}}
    )
    await stage.until(lambda: hosts() == "4", "more hosts")
    await client.patch(
        CONFIG_MAP, "train-svc", "default", {"data": {"VC_WORKER_NUM": "9", "x": "y"}}
    )
    await stage.until(lambda: hosts() == "4", "the hosts again")
    await client.delete(SERVICE, "train", "default")
    await stage.until(lambda: "train" in stage.names(SERVICE), "the Service again")
    await stage.calm()
    after = stage.store.get(SECRET, "train-ssh", "default")
    assert after is not None
    assert after["data"]["id_rsa"] == before["data"]["id_rsa"]
    assert "y" not in str(stage.store.get(CONFIG_MAP, "train-svc", "default"))


async def test_objects_go_with_their_owner(stage: ControllerStage, client: Client) -> None:
    await submit(client, INDEXED_JOB, indexed_job("svc"))
    await stage.until(lambda: "train" in stage.names(NETWORK_POLICY), "a policy")
    await client.delete(INDEXED_JOB, "train", "default")
    left = (SERVICE, CONFIG_MAP, NETWORK_POLICY)
    await stage.until(
        lambda: not any("train" in str(stage.names(each)) for each in left), "nothing"
    )


async def test_an_owner_reference_does_not_reach_into_another_namespace(client: Client) -> None:
    """Everybody can write the uid of an owner into an object of their own namespace."""
    made = await submit(client, INDEXED_JOB, indexed_job("svc"))
    uid = made["metadata"]["uid"]
    await client.create(NAMESPACE, {"metadata": {"name": "other"}})
    # Of a kind that is not known here, so that garbage collection leaves the objects alone.
    reference = {"apiVersion": "example.com/v1", "kind": "Owner", "name": "train", "uid": uid}
    for namespace in ("default", "other"):
        named = {
            "name": "train-svc",
            "namespace": namespace,
            "labels": {"pumice.dev/wired-for": "Job"},
            "ownerReferences": [reference | {"controller": True}],
        }
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}
        await client.create(CONFIG_MAP, obj, namespace)
    caches = WiringCaches(Watches(client))
    running = [asyncio.create_task(each.run()) for each in caches.objects.values()]
    try:
        await wait_synced(*caches.objects.values())
        owned = caches.owned_by("default", uid)
    finally:
        for each in running:
            each.cancel()
    assert [each["metadata"]["namespace"] for each in owned] == ["default"]


async def test_every_group_of_a_leader_worker_set_has_its_own_and_loses_it(
    stage: ControllerStage, client: Client
) -> None:
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template("svc")}}
    manifest = {
        "apiVersion": LEADER_WORKER_SET.api_version,
        "kind": LEADER_WORKER_SET.kind,
        "metadata": {"name": "lws", "namespace": "default"},
        "spec": spec,
    }
    await submit(client, LEADER_WORKER_SET, manifest)
    both = ["lws-0", "lws-1"]
    await stage.until(lambda: stage.names(NETWORK_POLICY) == both, "two policies")
    assert [
        each["metadata"]["labels"]["pumice.dev/wired-for"] for each in stage.all(NETWORK_POLICY)
    ] == ["LeaderWorkerSet"] * 2
    assert not {"lws", *both} & set(stage.names(SERVICE))
    await client.patch(LEADER_WORKER_SET, "lws", "default", {"spec": {"replicas": 1}})
    await stage.until(lambda: stage.names(NETWORK_POLICY) == both[:1], "one policy")
    await stage.until(lambda: "lws-1-svc" not in stage.names(CONFIG_MAP), "its hosts gone")
    assert "lws-0-svc" in stage.names(CONFIG_MAP)


async def test_what_belongs_to_another_owner_is_left_alone_and_told_once(
    stage: ControllerStage, client: Client
) -> None:
    mine = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "train-svc", "namespace": "default"},
        "data": {"mine": "yes"},
    }
    await client.create(CONFIG_MAP, mine, "default")
    await submit(client, INDEXED_JOB, indexed_job("svc"))
    await stage.until(
        lambda: any("does not belong" in each for each in messages(stage)), "an event"
    )
    await stage.until(lambda: "train" in stage.names(NETWORK_POLICY), "the rest")
    await stage.calm()
    stored = stage.store.get(CONFIG_MAP, "train-svc", "default")
    assert stored is not None
    assert stored["data"] == {"mine": "yes"}
    [event] = [each for each in stage.all(EVENT) if "does not belong" in each["message"]]
    assert (event["reason"], event["involvedObject"]["apiVersion"]) == ("NameConflict", "batch/v1")


@pytest.mark.parametrize(
    ("manifest", "piece"),
    [
        (indexed_job("pytroch"), "unable to find job plugin"),
        (indexed_job("svc", completionMode="NonIndexed"), "completionMode"),
        (indexed_job("svc", name="1st"), 'a Service "1st"'),
    ],
)
async def test_what_cannot_be_wired_is_reported(
    stage: ControllerStage, client: Client, manifest: Raw, piece: str
) -> None:
    await submit(client, INDEXED_JOB, manifest)
    await stage.until(lambda: any(piece in each for each in messages(stage)), "an event")
    assert not [each for each in stage.names(CONFIG_MAP) if each.endswith("-svc")]


async def test_a_server_without_these_kinds_is_nothing_to_speak_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        EmbeddedCluster(all_crds()) as bare,
        Client.connect(server=bare.url) as client,
        ControllerStage(bare, client).controller() as worker,
    ):
        await ControllerStage(bare, client).until(lambda: worker.ready)
        await ControllerStage(bare, client).calm()
    assert "jobsets" not in "".join(
        each.getMessage() for each in caplog.records if each.levelno >= 30
    )


async def test_doubts_are_reported(stage: ControllerStage, client: Client) -> None:
    await submit(client, INDEXED_JOB, indexed_job("svc", parallelism=1))
    await stage.until(lambda: any("1 of 3 pods" in each for each in messages(stage)), "an event")


async def test_a_job_that_has_ended_or_names_no_plugins_gets_nothing(
    stage: ControllerStage, client: Client
) -> None:
    ended = indexed_job("svc", name="ended")
    await submit(client, INDEXED_JOB, indexed_job("", name="plain"))
    await submit(client, INDEXED_JOB, ended | {"spec": ended["spec"] | {"template": {}}})
    condition = {"type": "Complete", "status": "True"}
    status = {"status": {"conditions": [condition]}}
    await client.patch(INDEXED_JOB, "ended", "default", status, subresource="status")
    await client.patch(INDEXED_JOB, "ended", "default", {"spec": {"template": template("svc")}})
    await submit(client, INDEXED_JOB, indexed_job("svc", name="last"))
    await stage.until(lambda: "last" in stage.names(NETWORK_POLICY), "a policy")
    await stage.calm()
    assert stage.names(NETWORK_POLICY) == ["last"]


async def test_an_owner_may_ask_for_as_many_pods_as_a_job(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller(max_pods_per_job=3):
        await submit(client, INDEXED_JOB, indexed_job("svc", "many", completions=4))
        await submit(client, INDEXED_JOB, indexed_job("svc", "few"))
        await stage.until(lambda: "few" in stage.names(SERVICE), "a Service")
        await stage.until(lambda: bool(stage.all(EVENT)), "an event")
        await stage.calm()
    assert stage.names(SERVICE) == ["few"]
    assert "asks for 4 pods, expected at most 3 (max-pods-per-job)" in messages(stage)[0]
