"""A real etcd goes back to a backup below running components: they list everything again, and new Jobs run."""

import contextlib
import json
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD, QUEUE
from tests.kit.builders import job, queue, task
from tests.kit.namespaces import Namespace
from tests.kit.waiting import wait_until
from tests.support.controlplane.backup import back_up, restore
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process, PumiceProcess
from tests.support.controlplane.start import started
from tests.support.ports import free_ports

pytestmark = pytest.mark.controlplane

Raw = dict[str, Any]
COMPONENTS = ("controller", "scheduler", "webhook")


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """A control plane of its own: the restore would take what other tests have."""
    with started(Builder().ensure()) as found:
        found.establish()
        found.apply(queue("default"))
        found.add_node("node1")
        yield found


@contextlib.contextmanager
def components(plane: ControlPlane, ports: Sequence[int]) -> Iterator[dict[str, Process]]:
    """Controller, scheduler and webhook as processes; the last port is that of the webhook's reviews."""
    given = {
        "controller": [f"--metrics-port={ports[0]}", "--leader-elect"],
        "scheduler": [f"--metrics-port={ports[1]}", "--leader-elect"],
        "webhook": [f"--port={ports[2]}", "--host=127.0.0.1"],
    }
    with contextlib.ExitStack() as stack:
        running: dict[str, Process] = {}
        for name in COMPONENTS:
            arguments = [name, *given[name], f"--kubeconfig={plane.kubeconfig}"]
            process = PumiceProcess(name, arguments, plane.folder)
            stack.callback(process.end)
            running[name] = process
        yield running


def admits(port: int, manifest: Raw) -> bool:
    """Whether the webhook's review admits the creation of a Job."""
    request = {
        "uid": "u",
        "kind": {"group": JOB.group, "version": JOB.version, "kind": JOB.kind},
        "resource": {"group": JOB.group, "version": JOB.version, "resource": JOB.plural},
        "operation": "CREATE",
        "namespace": "default",
        "name": manifest["metadata"]["name"],
        "object": manifest,
        "userInfo": {"username": "someone"},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/jobs/validate",
        json.dumps(review).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return bool(json.load(answer)["response"]["allowed"])


def submit(plane: ControlPlane, name: str) -> None:
    plane.apply(job(name, [task("w", 2)]))


def test_new_jobs_run_after_a_restore(plane: ControlPlane) -> None:
    ports = free_ports(3)
    with components(plane, ports) as running:
        parts = [*running.values(), *plane.processes]

        def runs(name: str) -> None:
            Namespace(plane, "default").await_phase(name, "Running", seconds=60, processes=parts)

        submit(plane, "early")
        runs("early")
        copy = back_up(plane)
        plane.apply(queue("lost"))
        for number in range(3):
            submit(plane, f"late-{number}")
        for number in range(3):
            runs(f"late-{number}")
        in_lost = job("j", [task("w", 1)], queue="lost")
        wait_until(lambda: admits(ports[2], in_lost), "the webhook to know the queue", 60, parts)

        restore(plane, copy)
        assert plane.request("GET", QUEUE.path("lost"))[0] == 404
        submit(plane, "new")
        runs("new")
        wait_until(lambda: not admits(ports[2], in_lost), "the webhook to forget it", 60, parts)
        status, pods = plane.request("GET", POD.collection("default"))
        assert status == 200
        assert {each["metadata"]["name"] for each in pods["items"]} >= {
            f"{name}-w-{number}" for name in ("early", "new") for number in range(2)
        }
        # Kubernetes' garbage collector, which does not run here, removes what was made for lost Jobs
        # in the moment in which pods were listed again and Jobs were not.
        status, jobs = plane.request("GET", JOB.collection("default"))
        there = {each["metadata"]["uid"]: each["metadata"]["name"] for each in jobs["items"]}
        assert {*there.values()} == {"early", "new"}
        for each in pods["items"]:
            (owner,) = each["metadata"]["ownerReferences"]
            assert owner["uid"] in there or owner["name"].startswith("late-")
