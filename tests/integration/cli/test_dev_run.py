"""`pumice dev --run`: kubectl against pods that are processes of this machine."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.cli.running import Running, children, pumice, running
from tests.kit.waiting import wait_until
from tests.support.controlplane.builder import Builder

pytestmark = pytest.mark.binaries

FOREVER = "while sleep 0.2; do echo again; done"


class Kubectl:
    """kubectl with the cluster's kubeconfig."""

    def __init__(self, config: str) -> None:
        self._program = [str(Builder().ensure()["kubectl"]), "--kubeconfig", config]
        self._program += ["--cache-dir", f"{config}.cache"]

    def __call__(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        """What it prints, on both channels."""
        ran = subprocess.run(
            [*self._program, *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == code, ran.stdout
        return ran.stdout

    def on_terminal(self, *arguments: str, stdin: str) -> str:
        """What it prints on a terminal."""
        ran = subprocess.run(
            [
                "script",
                "--quiet",
                "--return",
                "--command",
                " ".join([*self._program, *arguments]),
                "/dev/null",
            ],
            input=stdin,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        return ran.stdout

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        late = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < late
            time.sleep(0.2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with running("dev", "--run", "--nodes", "2x4") as process:
        yield process


@pytest.fixture(scope="module")
def kubectl(cluster: Running) -> Kubectl:
    return Kubectl(cluster.line("export KUBECONFIG=").partition("=")[2])


def run(kubectl: Kubectl, name: str, script: str, *options: str) -> None:
    options = ("--image=any", *(options or ("--restart=Never",)))
    kubectl("run", name, *options, "--command", "--", "sh", "-c", script)


def test_logs(kubectl: Kubectl) -> None:
    run(kubectl, "talks", "echo one; echo two; sleep 1; echo three")
    assert kubectl("logs", "talks", "-f", "--pod-running-timeout=30s") == "one\ntwo\nthree\n"
    assert kubectl("logs", "talks", "--tail=1") == "three\n"
    assert kubectl("logs", "talks", "-c", "talks", "--limit-bytes=3") == "one"
    assert kubectl("logs", "talks", "--timestamps").splitlines()[0].endswith("Z one")
    why = 'previous terminated container "talks" in pod "talks" not found'
    assert why in kubectl("logs", "talks", "--previous", code=1)
    assert "container other is not valid" in kubectl("logs", "talks", "-c", "other", code=1)


def test_logs_from_before_a_restart(kubectl: Kubectl) -> None:
    run(kubectl, "restarts", "echo run; exit 1", "--restart=Always")
    kubectl.until(
        lambda: (
            kubectl(
                "get",
                "pod",
                "restarts",
                "-o",
                "jsonpath={.status.containerStatuses[0].restartCount}",
            )
            > "0"
        )
    )
    assert kubectl("logs", "restarts", "--previous") == "run\n"
    kubectl("delete", "pod", "restarts", "--now")


def test_exec(kubectl: Kubectl) -> None:
    run(kubectl, "stays", FOREVER)
    kubectl("wait", "pod/stays", "--for=condition=Ready", "--timeout=30s")
    assert kubectl("exec", "stays", "--", "hostname") == "stays\n"
    assert kubectl("exec", "-i", "stays", "--", "wc", "-c", stdin="12345") == "5\n"
    assert "exit code 7" in kubectl("exec", "stays", "--", "sh", "-c", "exit 7", code=7)
    assert "/no/such" in kubectl("exec", "stays", "--", "/no/such", code=1)
    shown = kubectl.on_terminal("exec", "-it", "stays", "--", "sh", stdin="tty && hostname\nexit\n")
    assert "/dev/pts/0\nstays\n" in shown.replace("\r", "")
    kubectl("delete", "pod", "stays", "--grace-period=1")
    assert "NotFound" in kubectl("exec", "stays", "--", "hostname", code=1)


def test_a_deployment_is_scaled(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=any", "--", "sh", "-c", FOREVER)
    kubectl("scale", "deployment", "web", "--replicas=3")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=60s")
    wait_until(lambda: "again" in kubectl("logs", "deployment/web", "--tail=1"), "a line")
    kubectl(
        "delete", "deployment", "web", "--cascade=foreground", "--grace-period=1", "--timeout=60s"
    )
    assert kubectl("get", "pods", "-l", "app=web", "-o", "name") == ""


def test_a_job_is_run(kubectl: Kubectl, tmp_path: Path) -> None:
    container = {"name": "c", "image": "any", "command": ["hostname", "-f"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "two"},
        "spec": {
            "plugins": {"svc": []},
            "tasks": [{"name": "main", "replicas": 2, "template": template}],
        },
    }
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(job))
    kubectl("create", "-f", str(file))
    kubectl("wait", "vcjob/two", "--for=jsonpath={.status.state.phase}=Completed", "--timeout=60s")
    assert kubectl("logs", "two-main-1") == "two-main-1.two.default.svc.cluster.local\n"


def test_nodes_are_shown_as_what_they_are(kubectl: Kubectl) -> None:
    shown = kubectl("get", "node", "node1", "-o", "jsonpath={.status.nodeInfo.kubeletVersion}")
    assert shown == "processes"


def test_the_end_of_the_node_ends_the_cluster_with_a_sentence(
    cluster: Running, kubectl: Kubectl
) -> None:
    kubectl("version")
    (node,) = children(cluster.process.pid)
    (first,) = children(node)
    os.kill(first, signal.SIGKILL)
    _, said = cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 1
    assert said.splitlines()[-1] == "the first process of the node has ended, and all pods with it"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--image", "a=/"], "--image and --allow-host-path are of pods that run; add --run"),
        (
            ["--run", "--run-delay", "1s"],
            "--run-delay is of simulated nodes; leave it out beside --run",
        ),
        (["--run", "--image", "a=/no/such"], "--image a=/no/such: there is no directory /no/such"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], why: str) -> None:
    ended = pumice("dev", *options)
    assert (ended.returncode, ended.stderr.strip()) == (2, f"pumice dev: {why}")
