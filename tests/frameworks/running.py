"""Jobs that run on this machine: by `pumice run` to their end, or in a cluster whose pods a test reaches into."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pumice.api import kinds
from pumice.cli.development.dev_cluster import DevCluster, dev_cluster
from pumice.cli.development.dev_nodes import read_nodes
from pumice.embedded import Store
from pumice.embedded.node.kubelet import Kubelet
from pumice.embedded.node.machine import local_machine
from pumice.embedded.pod_streams import ContainerCommandRequest
from pumice.embedded.streams import Containers
from tests.kit.waiting import until

Raw = dict[str, Any]
Images = Mapping[str, Sequence[Path]]
"""Layers of images from the bottom up, by name."""

JSON_PATCH = "application/json-patch+json"
NODE = "8/16Gi/nvidia.com/gpu=8"
"""What this machine is for the scheduler: pods of these tests ask for what users' pods ask for, and need little of it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What `pumice run` has come to.

    Attributes:
        code: Its exit code.
        output: What the pods wrote, by pod, or by pod and container where it has several.
        said: What the command itself said.
    """

    code: int
    output: Mapping[str, Sequence[str]]
    said: str

    @property
    def text(self) -> str:
        """The output of all pods."""
        return "\n".join(line for lines in self.output.values() for line in lines)


def run_jobs(
    folder: Path, images: Images, *manifests: Raw, seconds: float = 150, code: int = 0
) -> Result:
    """Run manifests by `pumice run`, as a user does.

    Args:
        folder: Where their file is written.
        images: The images.
        manifests: Jobs, and what they need.
        seconds: How long they may take.
        code: The exit code that is expected.
    """
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    options = [f"--image={name}={':'.join(map(str, layers))}" for name, layers in images.items()]
    limit = (f"--timeout={int(seconds)}s", f"--nodes={NODE}")
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "run", str(file), *options, *limit],
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    output: defaultdict[str, list[str]] = defaultdict(list)
    for line in ran.stdout.splitlines():
        name, _, text = line.partition(" | ")
        output[name].append(text)
    assert ran.returncode == code, f"{ran.stderr}\n{ran.stdout}"
    return Result(ran.returncode, output, ran.stderr)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command in a container has come to.

    Attributes:
        code: Its exit code; None where it had not ended in time.
        stdout: What it wrote.
        stderr: Its errors.
    """

    code: int | None
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """What it wrote, a line an item."""
        return self.stdout.splitlines()


class Live:
    """A cluster as that of `pumice dev --run`, whose pods run on this machine, and a test's ways into them."""

    def __init__(self, cluster: DevCluster, containers: Containers) -> None:
        self._cluster = cluster
        self._containers = containers

    async def create(self, manifest: Raw) -> None:
        """Create an object in namespace `default`, as a user does."""
        kind = kinds.of_object(manifest)
        assert kind is not None
        await self._cluster.client.create(kind, manifest, "default")

    async def scale(self, job: str, task: int, replicas: int) -> None:
        """Change the replicas of one task of a Job."""
        patch = [{"op": "replace", "path": f"/spec/tasks/{task}/replicas", "value": replicas}]
        await self._cluster.client.patch(kinds.JOB, job, "default", patch, content_type=JSON_PATCH)

    async def started(self, *names: str) -> None:
        """Wait until exactly these pods exist, and run."""
        expected = dict.fromkeys(names, "Running")
        await until(lambda: self._phases() == expected, ", ".join(names), 60, around=self._phases)

    async def completed(self, number: int, seconds: float = 150) -> list[str]:
        """Wait until so many pods of any name have ended well; all that they wrote, by line."""
        await until(
            lambda: list(self._phases().values()) == ["Succeeded"] * number,
            f"{number} pods that have ended well",
            seconds,
            around=self._phases,
        )
        return [line for name in self._phases() for line in await self.log(name)]

    async def reads(self, pod: str, file: str, lines: int) -> None:
        """Wait until a file in a pod has so many lines."""

        async def does() -> bool:
            return len((await self.execute(pod, "cat", file)).lines) == lines

        await until(does, f"{pod}:{file}")

    async def log(self, pod: str) -> list[str]:
        """What a pod of one container has written, by line."""
        parts = [part async for part in self._cluster.client.log("default", pod, {})]
        return b"".join(parts).decode().splitlines()

    async def execute(self, pod: str, *words: str, seconds: float = 30) -> Ran:
        """Run a command in a pod, as `kubectl exec` does."""
        manifest = self._cluster.api.store.get(kinds.POD, pod, "default")
        assert manifest is not None
        container = manifest["spec"]["containers"][0]["name"]
        # Files, since what a command leaves in the background would keep a pipe open.
        with (
            tempfile.TemporaryFile() as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            streams = [nothing.fileno(), out.fileno(), err.fileno()]
            code = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    asked = ContainerCommandRequest("default", pod, container, words, frozenset())
                    code = await self._containers.execute(asked, streams)
            out.seek(0)
            err.seek(0)
            return Ran(code, out.read().decode(), err.read().decode())

    async def listens(self, pod: str, port: int) -> None:
        """Wait until a pod listens on a port."""
        told = f":{port:04X} 00000000:0000 0A"

        async def does() -> bool:
            return told in (await self.execute(pod, "cat", "/proc/net/tcp")).stdout

        await until(does, f"{pod}:{port}")

    def _phases(self) -> dict[str, str]:
        return {
            each["metadata"]["name"]: (each.get("status") or {}).get("phase", "Pending")
            for each in self._cluster.api.store.list(kinds.POD)
            if not each["metadata"].get("deletionTimestamp")
        }


@contextlib.asynccontextmanager
async def live_cluster(images: Images) -> AsyncIterator[Live]:
    """Run a cluster whose pods are processes of this machine."""
    made: list[Kubelet] = []
    async with local_machine(images, ()) as machine:

        def runs_pods(store: Store, clock: Callable[[], float]) -> Kubelet:
            made.append(Kubelet(store, clock, machine, lambda *_: None))
            return made[0]

        async with dev_cluster(read_nodes(NODE), runs_pods=runs_pods) as cluster:
            yield Live(cluster, made[0])
