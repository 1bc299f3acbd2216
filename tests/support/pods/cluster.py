"""A Job that runs: its pods on one node, with the names that its headless Service would give them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kit.waiting import wait_until
from tests.support.pods.node import Node
from tests.support.pods.pod import Pod
from tests.support.pods.wired import Wired

__all__ = ["Running"]

Raw = dict[str, Any]
_DOMAIN = "svc.cluster.local"


class Running:
    """The pods of one Job.

    Args:
        node: Where they run.
        job: What Pumice made of the Job.
        images: Layers by image.
        folder: Where the pods keep what they need.
    """

    def __init__(
        self, node: Node, job: Wired, images: Mapping[str, tuple[Path, ...]], folder: Path
    ) -> None:
        self.pods: dict[str, Pod] = {}
        self._node = node
        self._job = job
        self._images = images
        self._folder = folder

    def __getitem__(self, name: str) -> Pod:
        return self.pods[name]

    def start(self, *names: str) -> None:
        """Start pods, all that there are unless named: sandboxes, init containers, containers."""
        wanted = [each for each in self._job.pods if not names or each["metadata"]["name"] in names]
        fresh = []
        for manifest in wanted:
            name = manifest["metadata"]["name"]
            if name not in self.pods:
                place = self._folder / name
                pod = Pod(
                    self._node, manifest, self._images, place, lambda *key: self._job.get(*key)
                )
                self.pods[name] = pod
                fresh.append(pod)
        self._resolve()
        # Those that wait for nobody are not held up by those that do.
        for pod in sorted(
            fresh, key=lambda each: bool(each.manifest["spec"].get("initContainers"))
        ):
            pod.initialise()
            pod.start()
            self._resolve()

    def await_port(self, name: str, port: int) -> None:
        """Wait until a pod listens on a port."""
        told = f":{port:04X} 00000000:0000 0A"
        wait_until(
            lambda: told in self[name].run("cat", "/proc/net/tcp").stdout, f"{name}:{port}", 30
        )

    def become(self, job: Wired) -> None:
        """Go on with what Pumice makes of the changed Job: volumes follow, running pods stay as they are."""
        job.keep("Secret", self._job)
        self._job = job
        for pod in self.pods.values():
            pod.refresh()

    def _resolve(self) -> None:
        """Write every pod's hosts file, as kubelet and the cluster's DNS would answer.

        A name resolves as soon as the pod has an address where its Service publishes pods that are not
        ready, and once its container runs where it does not.
        """
        for pod in self.pods.values():
            own = f"{pod.address} {self._names(pod)[0]} {pod.manifest['spec'].get('hostname', pod.name)}\n"
            others = "".join(
                f"{other.address} {' '.join(self._names(other))}\n"
                for other in self.pods.values()
                if self._published(other)
            )
            # In place, because containers have mounted this very file.
            with pod.hosts.open("r+") as file:
                file.write(f"127.0.0.1 localhost\n{own}{others}")
                file.truncate()

    def _names(self, pod: Pod) -> list[str]:
        """All forms of a pod's name, the full one first."""
        spec = pod.manifest["spec"]
        if not spec.get("subdomain"):
            return [pod.name]
        short = f"{spec['hostname']}.{spec['subdomain']}"
        namespace = pod.manifest["metadata"]["namespace"]
        return [
            f"{short}.{namespace}.{_DOMAIN}",
            f"{short}.{namespace}.svc",
            f"{short}.{namespace}",
            short,
        ]

    def _published(self, pod: Pod) -> bool:
        service = self._job.get("Service", pod.manifest["spec"].get("subdomain", ""))
        if service is None:
            return False
        labels = pod.manifest["metadata"].get("labels") or {}
        if not service["spec"]["selector"].items() <= labels.items():
            return False
        return bool(service["spec"].get("publishNotReadyAddresses")) or pod.running
