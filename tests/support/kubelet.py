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
            for component in COMPONENTS:
                try:
                    self._run(component, self._wanted(component))
                except (AssertionError, OSError, NotReadyError) as error:
                    # A Deployment may go while its pod starts; else the page's next command fails.
                    self.problem = str(error)
            self._bind()
            self._passes += 1
            self._due.wait(PAUSE_SECONDS)
            self._due.clear()

    def _wanted(self, component: str) -> list[str]:
        """Arguments of the component, nothing while it should not run."""
        status, found = self._plane.request("GET", f"{_APPS}/{RELEASE}-{component}")
        going = status != 200 or found["metadata"].get("deletionTimestamp")
        if going or not found["spec"].get("replicas"):
            return []
        arguments: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
        return arguments

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
        status, found = self._plane.request("GET", f"{_PODS}?fieldSelector=spec.nodeName=")
        free = [name for name in NODES if self._takes_pods(name)]
        for number, pod in enumerate(found.get("items", ()) if status == 200 and free else ()):
            metadata: dict[str, Any] = pod["metadata"]
            if metadata.get("labels", {}).get("app.kubernetes.io/component") in self._running:
                target = {"apiVersion": "v1", "kind": "Node", "name": free[number % len(free)]}
                binding = {"metadata": {"name": metadata["name"]}, "target": target}
                self._plane.request("POST", f"{_PODS}/{metadata['name']}/binding", binding)

    def _takes_pods(self, node: str) -> bool:
        status, found = self._plane.request("GET", f"/api/v1/nodes/{node}")
        return status == 200 and not found["spec"].get("unschedulable")


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
