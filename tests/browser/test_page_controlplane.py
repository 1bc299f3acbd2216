"""The page of `pumice web` in a real browser, on a real kube-apiserver with controller and scheduler: as an administrator, and as a user who may read one namespace."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.driving import SECONDS, page_at
from tests.integration.cli.running import pumice, running
from tests.kit.builders import job, queue, task
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

GROUP = "rbac.authorization.k8s.io"


@pytest.fixture
def place(
    controlplane: ControlPlane, namespace: str, add_node: Callable[..., str]
) -> Iterator[str]:
    """A namespace in which a Job may run, on a node of its own."""
    controlplane.establish()
    add_node(f"{namespace}-node", cpu="4")
    admin = str(controlplane.kubeconfig)
    with ExitStack() as stack:
        for component in ("controller", "scheduler"):
            options = ("--kubeconfig", admin, "--no-leader-elect", "--metrics-port", "0")
            stack.enter_context(running(component, *options))
        controlplane.apply(queue(namespace, state=""))
        yield namespace
        controlplane.request("DELETE", f"/apis/scheduling.volcano.sh/v1beta1/queues/{namespace}")


def _job(name: str, namespace: str, cpu: str) -> dict[str, Any]:
    node = {
        "nodeSelector": {"kubernetes.io/hostname": f"{namespace}-node"},
        "restartPolicy": "Never",
    }
    work = task(replicas=2, cpu=cpu, spec=node)
    raw = job(name, [work], namespace=namespace, queue=namespace, minAvailable=2)
    raw["spec"]["schedulerName"] = "volcano"
    return raw


def _may_read(plane: ControlPlane, user: str, namespace: str) -> str:
    """A kubeconfig of a user who may read Jobs, gangs, pods and events of a namespace, and nothing else."""
    rules = [
        {
            "apiGroups": ["batch.volcano.sh", "scheduling.volcano.sh"],
            "resources": ["jobs", "podgroups"],
        },
        {"apiGroups": [""], "resources": ["pods", "pods/log", "events"]},
    ]
    role = {"kind": "Role", "name": user, "apiGroup": GROUP}
    bodies: dict[str, dict[str, Any]] = {
        "roles": {"rules": [each | {"verbs": ["get", "list", "watch"]} for each in rules]},
        "rolebindings": {
            "roleRef": role,
            "subjects": [{"kind": "User", "name": user, "apiGroup": GROUP}],
        },
    }
    for plural, body in bodies.items():
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/{plural}"
        status, answer = plane.request("POST", path, body | {"metadata": {"name": user}})
        assert status == 201, answer
    return str(plane.kubeconfig_for(user))


def test_a_job_waits_and_runs_and_users_see_what_they_may(
    browser: Browser, controlplane: ControlPlane, place: str
) -> None:
    admin, user = str(controlplane.kubeconfig), _may_read(controlplane, f"user-{place}", place)
    controlplane.apply(_job("large", place, "3"))

    def explained(kubeconfig: str) -> list[dict[str, Any]]:
        told = pumice("explain", "-n", place, "-o", "json", "--kubeconfig", kubeconfig)
        assert told.returncode == 0, told.stderr
        found: list[dict[str, Any]] = json.loads(told.stdout)["waiting"]
        return found

    wait_until(lambda: any("needs 6 cpu" in each["summary"] for each in explained(admin)))
    options = ("--no-browser", "-n", place, "--kubeconfig")
    with running("web", *options, admin) as whole, running("web", *options, user) as part:
        address = whole.line("http://127.0.0.1:")
        with page_at(browser, address) as page, page_at(browser, part.line("http://")) as limited:
            for shown, kubeconfig in ((page, admin), (limited, user)):
                row = shown.locator("tr", has=shown.get_by_role("link", name=f"{place}/large"))
                [gang] = explained(kubeconfig)
                expect(row.locator("summary").first).to_have_text(gang["summary"], timeout=SECONDS)
            said = limited.get_by_text("You may not read: nodes, ")
            expect(said).to_contain_text(f"Only namespace {place} is shown")
            base = limited.url.removesuffix("/waiting")
            limited.goto(f"{base}/nodes")
            expect(limited.locator("h1")).to_have_text("0 nodes")
            limited.goto(f"{base}/jobs")
            phase = limited.locator(".phase")
            expect(phase).to_have_text("Pending")

            path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{place}/jobs/large"
            controlplane.request("DELETE", path)
            controlplane.apply(_job("small", place, "1"))
            expect(phase).to_have_text("Running", timeout=SECONDS)
            expect(page.locator("h1")).to_have_text("0 gangs wait", timeout=SECONDS)
