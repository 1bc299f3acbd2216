"""What a cluster has and the test control plane has not, for the pods of a release: nodes that run them.

While it stands, two nodes played by kwok are there. Every component whose Deployment wants pods runs as a
process here; once that is ready, and no sooner, the pods are bound, and kwok says that they are ready.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.waiting import NotReadyError, wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import COMPONENTS, NAMESPACE, RELEASE, Installation
from tests.support.ports import free_ports

NODES = ("node-1", "node-2")
PAUSE_SECONDS = 0.3
"""Between two looks at the release, if nothing waits for one."""
_APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_NODES = "/api/v1/nodes"


class Kubelet:
    """Runs the release in its namespace, whatever becomes of it.

    Attributes:
        url: Where the webhook listens, for `webhook.url`.
        problem: Why a component did not come up; empty as long as all did.
    """

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        ports = free_ports(1 + len(COMPONENTS))
        self.url = f"https://127.0.0.1:{ports[0]}"
        self.problem = ""
        self._plane = plane
        self._installation = Installation(plane, folder, ports, forked=True)
        self._running: dict[str, list[str]] = {}
        self._passes = 0
        self._over = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop looking, and kill what runs."""
        self._over = True
        self._due.set()
        self._thread.join(timeout=90)
        for process in self._installation.processes.values():
            process.end()

    def settle(self) -> None:
        """Wait until what runs is what is wanted by now."""
        seen = self._passes

        def settled() -> bool:
            self._due.set()
            return self._passes >= seen + 2  # the pass that is under way may have looked before

        wait_until(settled, "the components to settle", 90)

    def _work(self) -> None:
        while not self._over:
            wanted = self._wanted()
            for component in COMPONENTS:
                try:
                    self._run(component, wanted.get(component, []))
                except (AssertionError, OSError, NotReadyError) as error:
                    # A Deployment may go while its pod starts; else the page's next command fails.
                    self.problem = str(error)
            self._bind()
            self._passes += 1
            self._due.wait(PAUSE_SECONDS)
            self._due.clear()

    def _wanted(self) -> dict[str, list[str]]:
        """Arguments of the components that should run, by component."""
        found = self._plane.request("GET", _APPS)[1]
        return {
            each["metadata"]["name"].removeprefix(f"{RELEASE}-"): _arguments(each)
            for each in found.get("items", ())
            if each["spec"].get("replicas") and not each["metadata"].get("deletionTimestamp")
        }

    def _run(self, component: str, wanted: list[str]) -> None:
        running = self._running.get(component, [])
        if wanted == running:
            return
        if running:
            self._running.pop(component)
            self._installation.stop(component)
        if wanted:
            try:
                self._installation.start(component)
            except BaseException:
                with contextlib.suppress(KeyError):
                    self._installation.stop(component)
                raise
            self._running[component] = wanted
            self.problem = ""

    def _bind(self) -> None:
        """Give pods that wait a node that takes some, if their component is ready."""
        waiting = [
            metadata["name"]
            for metadata in self._metadata(f"{_PODS}?fieldSelector=spec.nodeName=")
            if metadata.get("labels", {}).get("app.kubernetes.io/component") in self._running
        ]
        if not waiting:
            return
        schedulable = self._metadata(f"{_NODES}?fieldSelector=spec.unschedulable=false")
        free = [each["name"] for each in schedulable if each["name"] in NODES]
        for number, name in enumerate(waiting if free else ()):
            target = {"apiVersion": "v1", "kind": "Node", "name": free[number % len(free)]}
            binding = {"metadata": {"name": name}, "target": target}
            self._plane.request("POST", f"{_PODS}/{name}/binding", binding)

    def _metadata(self, path: str) -> list[dict[str, Any]]:
        return [each["metadata"] for each in self._plane.request("GET", path)[1].get("items", ())]


def _arguments(deployment: dict[str, Any]) -> list[str]:
    arguments: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return arguments


@contextmanager
def kubelet(plane: ControlPlane, folder: Path) -> Iterator[Kubelet]:
    """Nodes that run the pods of the release as long as the block lasts."""
    for name in NODES:
        plane.add_node(name)
    stands = Kubelet(plane, folder)
    stands.start()
    try:
        yield stands
    finally:
        stands.stop()
        for name in NODES:
            plane.remove_node(name)
