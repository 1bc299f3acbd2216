"""`pumice dev` end to end, in a process of its own, through kubectl where there is one."""

import asyncio
import base64
import json
import re
import signal
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pumice.api.kinds import (
    EVENT,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    POD,
    POD_GROUP,
    REPLICA_SET,
    Kind,
)
from pumice.cli.files.manifests import read_objects
from pumice.cluster.client import Client
from pumice.cluster.errors import Invalid
from tests.integration.cli.running import Running, kubectl_path, pumice, running
from tests.kit.waiting import until
from tests.support.ports import free_port

EXAMPLES = Path(__file__).parents[3] / "examples"
DASHBOARD = EXAMPLES.parent / "charts/pumice/files/dashboard.json"


@pytest.fixture(scope="module")
def dev() -> Iterator[tuple[Running, str]]:
    """A cluster like that of the example in `docs/design/task-topology-plugin.md` of Volcano, and its kubeconfig; one for all tests here."""
    with running("dev", "--nodes", "2,1,4", "--run-delay", "50ms") as process:
        yield process, process.line("export KUBECONFIG=").partition("=")[2]


def kubectl(config: str, *arguments: str, code: int = 0) -> str:
    """Run kubectl; its stdout, or its stderr where it is to fail."""
    path = kubectl_path()
    assert path is not None
    ran = subprocess.run(
        [path, "--kubeconfig", config, "--cache-dir", f"{config}.cache", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode != 0) == bool(code), ran.stderr
    return ran.stderr if code else ran.stdout


def through_client(config: str) -> dict[str, Any]:
    """What kubectl is used for below, by the Python client, where there is no kubectl."""

    async def submit() -> dict[str, Any]:
        async with Client.connect(config) as client:
            [job] = read_objects([EXAMPLES / "tensorflow.yaml"])
            await client.create(JOB, job, "default")

            async def completed() -> bool:
                found = await client.get(JOB, "train", "default")
                return bool(found.get("status", {}).get("state", {}).get("phase") == "Completed")

            await until(completed, "the Job is completed")
            return await client.list(POD, "default")

    return asyncio.run(submit())


async def refusal(config: str, file: Path) -> str:
    """What the API server says against a Job, by the Python client."""
    async with Client.connect(config) as client:
        [job] = read_objects([file])
        with pytest.raises(Invalid) as refused:
            await client.create(JOB, job, "default", dry_run=True)
        return str(refused.value)


def check_places(pods: dict[str, Any]) -> None:
    nodes = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in pods["items"]}
    assert len(nodes) == 6
    assert {nodes[f"train-{name}"] for name in ("ps-0", "worker-0", "worker-2")} == {"node3"}
    assert {nodes[f"train-{name}"] for name in ("ps-1", "worker-1")} == {"node1"}


def test_a_job_goes_its_way(dev: tuple[Running, str]) -> None:
    process, config = dev
    if kubectl_path() is None:
        check_places(through_client(config))
    else:
        applied = kubectl(config, "apply", "-f", str(EXAMPLES / "tensorflow.yaml"))
        assert applied == "job.batch.volcano.sh/train created\n"
        completed = "--for=jsonpath={.status.state.phase}=Completed"
        kubectl(config, "wait", "vcjob/train", completed, "--timeout=50s")
        assert "Completed" in kubectl(config, "get", "vcjob", "train")
        check_places(json.loads(kubectl(config, "get", "pods", "-o", "json")))
    assert process.process.poll() is None


async def test_a_gang_of_a_replica_set_runs(dev: tuple[Running, str]) -> None:
    async with Client.connect(dev[1]) as client:
        [manifest] = read_objects([EXAMPLES / "replicaset.yaml"])
        made = await client.create(REPLICA_SET, manifest, "default")
        name = f"podgroup-{made['metadata']['uid']}"

        async def minimum() -> int:
            group = await client.get(POD_GROUP, name, "default")
            return int(group["spec"]["minMember"])

        async def ready() -> int:
            found = await client.get(REPLICA_SET, "inference", "default")
            return int(found.get("status", {}).get("readyReplicas", 0))

        async def is_settled(replicas: int) -> bool:
            return await ready() == replicas == await minimum()

        await until(lambda: is_settled(4), "four pods", 20)
        await client.patch(REPLICA_SET, "inference", "default", {"spec": {"replicas": 2}})
        await until(lambda: is_settled(2), "two pods", 20)
        await client.delete(REPLICA_SET, "inference", "default")

        async def nothing() -> bool:
            left = [await client.list(kind, "default") for kind in (POD_GROUP, POD)]
            return "inference" not in str(left)

        await until(nothing, "nothing is left", 20)


async def test_a_pod_that_names_no_scheduler_is_placed(dev: tuple[Running, str]) -> None:
    """`kubectl run` makes such pods, and there is no kube-scheduler."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "single"},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    async with Client.connect(dev[1]) as client:
        await client.create(POD, pod, "default")

        async def runs() -> bool:
            found = await client.get(POD, "single", "default")
            return bool(found["status"]["phase"] == "Running")

        await until(runs, "the pod", 20)
        await client.delete(POD, "single", "default")


def test_the_metrics_of_the_dashboard_are_at_one_address() -> None:
    queries = re.findall(r'"expr": "(.*)"', DASHBOARD.read_text())
    shown = {
        name for each in queries for name in re.findall(r"(?:pumice|volcano)_[a-z0-9_]+", each)
    }
    wanted = {re.sub("_(total|bucket)$", "", name) for name in shown}
    with running("dev", "--nodes", "2,1,4", "--metrics-port", "0") as process:
        config = process.line("export KUBECONFIG=").partition("=")[2]
        through_client(config)
        said = process.process.stderr
        assert said is not None
        address = said.readline().rpartition(" ")[2].strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=20) as answer:
            found = {
                each.name: each for each in text_string_to_metric_families(answer.read().decode())
            }
    assert wanted - found.keys() == set()
    components = {each.labels["component"] for one in found.values() for each in one.samples}
    assert components == {"webhook", "controller", "scheduler"}
    reviews = found["pumice_admission_reviews"].samples
    assert any(each.labels["path"] == "/jobs/mutate" and each.value for each in reviews)


def end(process: Running, number: signal.Signals, config: str) -> str:
    """End it cleanly by a signal; what it said on stderr."""
    code, said = process.stop(number)
    assert code == 0
    assert "Traceback" not in said
    assert said.endswith("stopping\n")
    assert not Path(config).exists()
    return said


def test_a_flow_that_is_named_twice_ends_nothing() -> None:
    """A JobFlow with two flows of one name is admitted with a warning; what comes later runs."""
    with running("dev", "--nodes", "1") as process:
        config = process.line("export KUBECONFIG=").partition("=")[2]
        asyncio.run(apply_change_and_delete_a_flow(config))
        assert process.process.poll() is None
        said = end(process, signal.SIGINT, config)
    assert "set aside" not in said


async def apply_change_and_delete_a_flow(config: str) -> None:
    one_pod = {
        "name": "w",
        "replicas": 1,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
        },
    }
    spec = {"minAvailable": 1, "tasks": [one_pod]}
    flow_spec = {"jobRetainPolicy": "retain", "flows": [{"name": "a"}, {"name": "a"}]}

    def named(kind: Kind, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        return head | {"spec": spec}

    async with Client.connect(config) as client:

        async def is_running(name: str) -> bool:
            jobs = (await client.list(JOB, "default"))["items"]
            phases = {
                each["metadata"]["name"]: each.get("status", {}).get("state", {}).get("phase")
                for each in jobs
            }
            return phases.get(name) == "Running"

        await client.create(JOB_TEMPLATE, named(JOB_TEMPLATE, "a", spec), "default")
        await client.create(JOB_FLOW, named(JOB_FLOW, "dup", flow_spec), "default")
        await until(lambda: is_running("dup-a"), "the Job of the flow", 30)
        labels = {"metadata": {"labels": {"changed": "yes"}}}
        await client.patch(JOB_FLOW, "dup", "default", labels)
        await client.create(JOB, named(JOB, "later", spec), "default")
        await until(lambda: is_running("later"), "a Job after the change", 30)
        await client.delete(JOB_FLOW, "dup", "default")
        await client.create(JOB, named(JOB, "latest", spec), "default")
        await until(lambda: is_running("latest"), "a Job after the deletion", 30)


def test_a_bad_job_is_refused_with_all_its_mistakes(dev: tuple[Running, str]) -> None:
    _, config = dev
    file = EXAMPLES / "bad-job.yaml"
    if kubectl_path() is None:
        said = asyncio.run(refusal(config, file))
    else:
        said = kubectl(config, "apply", "--dry-run=server", "-f", str(file), code=1)
    for path in ("spec.queue", "spec.tasks[2].name", "spec.volumes[1].mountPath"):
        assert path in said


def private(file: str) -> Any:
    """A kubeconfig that only its owner can read."""
    assert Path(file).stat().st_mode & 0o077 == 0
    return yaml.safe_load(Path(file).read_text(encoding="utf-8"))


async def test_only_the_token_of_the_kubeconfig_opens_the_door(dev: tuple[Running, str]) -> None:
    """Neither another user of this machine nor a page in a browser has it, and a page names another host."""
    config = private(dev[1])
    [cluster], [user] = config["clusters"], config["users"]
    url, token = cluster["cluster"]["server"], user["user"]["token"]
    assert len(token) >= 32
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    tls = ssl.create_default_context(cadata=authority)
    right = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        for path in ("/api/v1/secrets", "/apis", "/version", "/healthz", "/none"):
            for headers, code in (
                ({}, 401),
                ({"Authorization": "Bearer pumice"}, 401),
                ({"Authorization": "Bearer \u00e9"}, 401),
                ({"Authorization": f"Basic {token}"}, 401),
                (right | {"Host": "rebound.example"}, 403),
                (right | {"Host": "127.0.0.1.example:80"}, 403),
            ):
                async with session.get(f"{url}{path}", headers=headers) as answer:
                    assert answer.status == code
                    assert (await answer.json())["kind"] == "Status"
            named = right | {"Host": "localhost:1"}
            for headers in (right, named):
                async with session.get(f"{url}{path}", headers=headers) as answer:
                    assert answer.status == (404 if path == "/none" else 200)


def test_a_job_that_waits_is_explained(dev: tuple[Running, str]) -> None:
    _, config = dev

    async def submit() -> None:
        async with Client.connect(config) as client:
            [job] = read_objects([EXAMPLES / "does-not-fit.yaml"])
            await client.create(JOB, job, "default")

            async def explained() -> bool:
                waiting = await client.get(JOB, "too-big", "default")
                told = waiting.get("status", {}).get("state", {}).get("message", "")
                events = (await client.list(EVENT, "default"))["items"]
                about = [each for each in events if "too-big" in each["involvedObject"]["name"]]
                return "Insufficient cpu" in told and bool(about)

            await until(explained, "why the Job waits is said")

    asyncio.run(submit())
    ran = pumice("explain", "job/too-big", "-o", "json", KUBECONFIG=config)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert "Insufficient cpu" in found["message"]
    assert found["events"]
    assert found["waiting"] is True
    assert found["phase"] == "Pending"
    assert found["podGroup"]["phase"] == "Inqueue"
    assert [pod["node"] for pod in found["pods"]] == ["", ""]
    assert {pod["phase"] for pod in found["pods"]} == {"Pending"}
    text = pumice("explain", "vcjob/too-big", "-n", "default", KUBECONFIG=config)
    assert text.stdout.startswith("Job default/too-big waits: ")
    assert "too-big-worker-1" in text.stdout
    missing = pumice("explain", "job/none", KUBECONFIG=config)
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    assert "no such Job in namespace default" in missing.stderr


def test_port_and_kubeconfig_can_be_chosen(tmp_path: Path) -> None:
    with socket.socket() as taken:
        port = str(free_port())
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", int(port)))
        taken.listen()
        ran = pumice("dev", "--port", port)
        assert ran.returncode == 2
        assert f"--port {port}: Address already in use; name another one\n" in ran.stderr
        assert "Traceback" not in ran.stderr
    config = tmp_path / "config"
    with running("dev", "--port", port, "--kubeconfig", str(config)) as process:
        assert process.line("export KUBECONFIG=") == f"export KUBECONFIG={config}"
        assert f"https://127.0.0.1:{port}" in config.read_text()
        assert config.stat().st_mode & 0o077 == 0
        end(process, signal.SIGTERM, str(config))
    ran = pumice("dev", "--kubeconfig", str(tmp_path / "no" / "such"))
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
