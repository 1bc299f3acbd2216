"""What verbs say where a name, a namespace or a kind is not the one that was meant."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pumice.api.kinds import INDEXED_JOB, JOB, POD, POD_GROUP, QUEUE
from pumice.cli.development import detached
from pumice.cli.development.detached import Detached
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.cli.servers import Server, ran
from tests.kit.builders import job, pod, pod_group, queue


async def fill(url: str) -> None:
    async with Client.connect(server=url) as client:
        await client.create(QUEUE, queue("research"))
        train = await client.create(JOB, job("train"), "default")
        labels = {"volcano.sh/job-name": "train"}
        await client.create(POD, pod("train-worker-0", labels=labels), "default")
        group = pod_group("train-4a84eb03-8d1f-49b7-8d2b-9deb1beb3711")
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"}
        group["metadata"]["ownerReferences"] = [owner | {"uid": train["metadata"]["uid"]}]
        await client.create(POD_GROUP, group, "default")
        other = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hello"}}
        spec = pod("x")["spec"] | {"restartPolicy": "Never"}
        await client.create(INDEXED_JOB, other | {"spec": {"template": {"spec": spec}}}, "default")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("4") as found:
        asyncio.run(fill(found.url))
        yield found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            "explain trian",
            'job/trian: there is no such Job in namespace default (did you mean "train"?)',
        ),
        ("job get trian", 'in namespace default (did you mean "train"?)'),
        ("job logs trian", 'in namespace default (did you mean "train"?)'),
        ("job suspend trian", 'in namespace default (did you mean "train"?)'),
        ("explain pod train-worker-9", '(did you mean "train-worker-0"?)'),
        ("explain queue reserach", 'there is no such Queue (did you mean "research"?)'),
        ("queue close reserach", '(did you mean "research"?)'),
        ("explain other", "job/other: there is no such Job in namespace default"),
        (
            "explain hello",
            "in namespace default, only one of batch/v1; explain one of its pods: pod/NAME",
        ),
        (
            "job logs train-worker-0",
            "in namespace default, but a pod of job/train; `pumice explain pod/train-worker-0` explains it",
        ),
        (
            "explain train-4a84eb03-8d1f-49b7-8d2b-9deb1beb3711",
            "but a PodGroup of job/train; a PodGroup is explained with its Job, or with one of its pods",
        ),
        (
            "explain tr%61in",
            'job/tr%61in: there is no such Job in namespace default (did you mean "train"?)',
        ),
        ("explain pod \udcff", "pod/\\udcff: there is no such Pod in namespace default"),
        ("job logs \udcff", "job/\\udcff: there is no such Job in namespace default"),
        ("job suspend é", "job/é: there is no such Job in namespace default"),
        ("explain train -n kube-system", "there is no such Job in namespace kube-system"),
        (
            "explain queue ..",
            'invalid name of a Queue "..": expected one without "/" that is not empty, "." or ".."',
        ),
        (
            "job list -n default/jobs/train",
            'invalid namespace "default/jobs/train": expected one without "/" that is not empty, "." or ".."',
        ),
        (
            "explain train -n ..",
            'invalid namespace "..": expected one without "/" that is not empty, "." or ".."',
        ),
        (
            "web -n a/b --no-browser",
            'invalid namespace "a/b": expected one without "/" that is not empty, "." or ".."',
        ),
        (
            "explain train -n defualt",
            "there is no such Job in namespace defualt, and no such namespace either",
        ),
    ],
)
def test_what_was_meant_is_said(server: Server, arguments: str, expected: str) -> None:
    told = ran(*arguments.split(), "--master", server.url)
    assert (told.code, told.out) == (2, "")
    assert told.err.endswith(f"{expected}\n")


def test_a_cluster_without_the_kind_is_named() -> None:
    async def served() -> str:
        async with EmbeddedCluster(()) as cluster:
            return (await asyncio.to_thread(ran, "job", "get", "x", "--master", cluster.url)).err

    assert asyncio.run(served()).endswith(
        "the cluster has no kind Job (batch.volcano.sh/v1alpha1): install Pumice, or its CRDs\n"
    )


def test_without_a_kubeconfig_the_cluster_in_the_background_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = [Detached(1, "", f"/tmp/{name}", "", 0) for name in ("a", "b")]
    for running, end in (
        ([], "run in a pod with a service account\n"),
        (found[:1], "account; `pumice dev` runs one: `export KUBECONFIG=/tmp/a`\n"),
        (found, "one: `export KUBECONFIG=/tmp/a` or `export KUBECONFIG=/tmp/b`\n"),
    ):
        monkeypatch.setattr(detached, "running", lambda running=running: running)
        told = ran("job", "list")
        assert told.code == 2
        assert told.err.startswith("pumice job list: no API server known: ")
        assert told.err.endswith(end)
        assert json.dumps(told.err).count("\\n") == 1
