"""A node whose pods are processes of this machine, in both modes; its objects are written by the test."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pumice.api import kinds
from pumice.embedded import EmbeddedCluster
from pumice.embedded.node.kubelet import Kubelet
from pumice.embedded.node.limits import Cgroups
from pumice.embedded.node.machine import Machine
from pumice.embedded.node.namespaces import Mode, Namespaces, mode_here
from pumice.embedded.node.pod import ProcessPod
from tests.kit.waiting import until

Raw = dict[str, Any]
NODE = "here"
SINGLE_USER = Mode(((0, 1000, 1),), ((0, 1000, 1),), helper=False, is_full=False)


@dataclass
class LocalNode:
    """The node and what its containers have written."""

    cluster: EmbeddedCluster
    machine: Machine
    kubelet: Kubelet
    lines: list[tuple[str, str]] = field(default_factory=list)

    def create(self, *objects: Raw) -> None:
        for each in objects:
            self.cluster.store.create(each)

    def run(self, name: str, spec: Raw, **metadata: Any) -> None:
        """Create a pod on the node."""
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 20, **spec}
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, **metadata},
                "spec": {**spec, "nodeName": NODE},
            }
        )

    def pod(self, name: str) -> Raw:
        found = self.cluster.store.get(kinds.POD, name, "default")
        assert found is not None
        return found

    def status(self, name: str) -> Raw:
        return self.pod(name).get("status") or {}

    def is_gone(self, name: str) -> bool:
        return self.cluster.store.get(kinds.POD, name, "default") is None

    def log(self, name: str) -> list[str]:
        return [line for title, line in self.lines if title == name]

    async def phase(self, name: str, *phases: str) -> str:
        def reached() -> str | None:
            phase = self.status(name).get("phase", "")
            return phase if phase in phases else None

        return str(await until(reached, f"{name} {phases}", around=lambda: self.status(name)))

    async def says(self, name: str, line: str) -> None:
        await until(
            lambda: line in self.log(name), f"{name}: {line}", around=lambda: self.log(name)
        )

    def events(self) -> list[str]:
        return [str(each["message"]) for each in self.cluster.store.list(kinds.EVENT)]


def container(*command: str, name: str = "main", **fields: Any) -> Raw:
    return {"name": name, "image": "any", "command": list(command), **fields}


def shell(script: str, **fields: Any) -> Raw:
    return container("sh", "-c", script, **fields)


def _modes() -> dict[str, Mode]:
    """The modes that can be had here; as root both."""
    here = mode_here()
    if here.is_full and not here.helper:
        return {"full": here, "single user": SINGLE_USER}
    return {"full" if here.is_full else "single user": here}


MODES = _modes()
FIRST = [*MODES][:1]
"""One of them, for what does not depend on the mode."""


def cgroups_here() -> bool:
    """Whether cgroups can be made."""
    made = Cgroups.make(f"pumice-probe-{os.getpid()}")
    if made is not None:
        made.close()
    return made is not None


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    return MODES[request.param]


@pytest.fixture
def folder() -> Iterator[Path]:
    with own_folder() as made:
        yield made


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder that other users may enter, as they may not enter those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="pumice-node-"))
    made.chmod(0o755)
    (made / "root").mkdir()
    (made / "data").mkdir()
    (made / "data/file").write_text("of the machine\n")
    yield made
    shutil.rmtree(made)


@pytest.fixture
async def node(mode: Mode, folder: Path) -> AsyncIterator[LocalNode]:
    async with local_node(mode, folder) as made:
        yield made


@contextlib.asynccontextmanager
async def local_node(mode: Mode, folder: Path) -> AsyncIterator[LocalNode]:
    """A node inside the block."""
    namespaces = await Namespaces.start(mode, folder / "root")
    cgroups = Cgroups.make(folder.name) if mode.is_full else None
    machine = Machine(
        namespaces=namespaces,
        mode=mode,
        folder=folder / "logs",
        images={},
        allowed=(folder / "data", folder),
        path="/usr/bin:/bin:/usr/sbin:/sbin",
        working="/",
        cgroups=cgroups,
        size=2**26,
        together=96 * 2**20,
    )
    lines: list[tuple[str, str]] = []

    def on_line(pod: ProcessPod, container: str, run: int, line: bytes) -> None:
        lines.append((pod.name, line.decode()))

    made: list[Kubelet] = []

    def runs_pods(store: Any, clock: Any) -> Kubelet:
        made.append(Kubelet(store, clock, machine, on_line))
        return made[0]

    try:
        async with EmbeddedCluster(nodes=runs_pods) as cluster:
            cluster.add_node(NODE, "4", "8Gi", 1000)
            yield LocalNode(cluster, machine, made[0], lines)
    finally:
        await namespaces.end()
        if cgroups is not None:
            cgroups.close()
