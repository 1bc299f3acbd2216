"""A pod of real processes: one sandbox with name and address, and in it one container after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.waiting import wait_until
from tests.support.images.finishing import HOMES
from tests.support.pods.environment import command, environment
from tests.support.pods.node import Node
from tests.support.pods.volumes import Objects, Volume

__all__ = ["Pod", "Ran"]

Raw = dict[str, Any]
_CONTAINER = Path(__file__).with_name("container.py")
_SANDBOX = 'hostname "$1"; echo $$ > "$0"; exec sleep infinity'


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command in a container has come to.

    Attributes:
        code: Its exit code; None where it had not ended in time.
    """

    code: int | None
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """What it printed, a line an item."""
        return self.stdout.splitlines()


class Pod:
    """One pod, from its sandbox on; nothing runs in it before `start`.

    Attributes:
        name: Its name.
        manifest: The pod as it was admitted and wired.
        address: Its address.
    """

    def __init__(
        self,
        node: Node,
        manifest: Raw,
        images: Mapping[str, tuple[Path, ...]],
        folder: Path,
        objects: Objects,
    ) -> None:
        self.manifest = manifest
        self.name = str(manifest["metadata"]["name"])
        self._node = node
        self._images = images
        self._folder = folder
        self._objects = objects
        self._spec = manifest["spec"]
        self._context = self._spec.get("securityContext") or {}
        self._running: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        self.hosts = folder / "hosts"
        self.hosts.touch()
        group = self._context.get("fsGroup")
        self._volumes = {
            each["name"]: Volume(each, folder / "volumes" / each["name"], group)
            for each in self._spec.get("volumes", ())
        }
        self.refresh()
        self._sandbox = self._begin()
        self.address = node.connect(self._sandbox)

    def refresh(self) -> None:
        """Bring the volumes up to date, as kubelet does now and then."""
        for volume in self._volumes.values():
            volume.update(self._objects)

    def initialise(self) -> None:
        """Run the init containers, one after the other; each must succeed."""
        for container in self._spec.get("initContainers", ()):
            process = self._popen(container)
            code = process.wait(timeout=60)
            assert code == 0, (
                f"{self.name}/{container['name']} ended with {code}:\n{self.log(container['name'])}"
            )

    def start(self) -> None:
        """Start its only container, and wait until it is what its image and its manifest say."""
        (container,) = self._spec["containers"]
        self._running = self._popen(container)
        told = self._told(container)
        wait_until(
            lambda: (told.exists() and told.read_text() != "") or not self.running,
            f"{self.name}'s container",
            60,
        )

    @property
    def running(self) -> bool:
        """Whether its container runs."""
        return self._running is not None and self._running.poll() is None

    def log(self, container: str = "") -> str:
        """What its container has written, or another of its containers."""
        name = container or self._spec["containers"][0]["name"]
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def wait(self, seconds: float) -> str:
        """Wait for the container to end well, and return what it wrote.

        Raises:
            AssertionError: It failed, or did not end in time.
        """
        assert self._running is not None
        try:
            code = self._running.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} runs after {seconds} s:\n{self.log()}") from None
        assert code == 0, f"{self.name} ended with {code}:\n{self.log()}"
        return self.log()

    def run(self, *words: str, seconds: float = 30) -> Ran:
        """Run a command beside the container's, as `kubectl exec` does: same user, same environment."""
        (container,) = self._spec["containers"]
        first = self._first_process(container)
        user, groups = self._user(container)
        env = environment(self.manifest, container, HOMES.get(user, "/"), self._objects)
        listed = ",".join(map(str, groups))
        enter = [
            "nsenter",
            f"--target={first}",
            "--mount",
            "--net",
            "--pid",
            "--ipc",
            "--uts",
            "--root",
            "--wd",
        ]
        become = ["/usr/sbin/chroot", f"--userspec={user}:{user}", f"--groups={listed}", "/"]
        assigned = [f"{key}={value}" for key, value in env.items()]
        inside = [
            *enter,
            *become,
            "/usr/bin/env",
            "-i",
            f"--chdir={HOMES.get(user, '/')}",
            *assigned,
            *words,
        ]
        # Files, since whoever is left behind of a command that is ended would keep a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                self._node.inside(inside),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            code = None
            try:
                code = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            err.seek(0)
            return Ran(code, out.read().decode(), err.read().decode())

    def _begin(self) -> str:
        """Start the sandbox; its number in the node."""
        told = self._folder / "sandbox"
        unshare = ["unshare", "--net", "--ipc", "--uts"]
        name = self._spec.get("hostname") or self.name
        program: list[str | Path] = ["sh", "-c", _SANDBOX, told, str(name)]
        self._node.spawn([*unshare, *program], self._folder / "sandbox.log")
        wait_until(
            lambda: told.exists() and told.read_text().endswith("\n"), f"{self.name}'s sandbox", 20
        )
        return told.read_text().strip()

    def _popen(self, container: Raw) -> subprocess.Popen[bytes]:
        name = container["name"]
        scratch = self._folder / f"{name}.root"
        scratch.mkdir(exist_ok=True)
        user, groups = self._user(container)
        home = HOMES.get(user, "/")
        env = environment(self.manifest, container, home, self._objects)
        spec = {
            "layers": [str(layer) for layer in self._layers(container["image"])],
            "scratch": str(scratch),
            "told": str(self._told(container)),
            "hosts": str(self.hosts),
            "mounts": [self._mount(each) for each in container.get("volumeMounts", ())],
            "folder": container.get("workingDir", "/"),
            "user": user,
            "group": user,
            "groups": groups,
            "command": command(container, env),
            "environment": env,
        }
        file = self._folder / f"{name}.json"
        file.write_text(json.dumps(spec))
        sandbox = ["nsenter", f"--target={self._sandbox}", "--net", "--ipc", "--uts"]
        fresh = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        program: list[str | Path] = [sys.executable, "-IS", _CONTAINER, file]
        return self._node.spawn([*sandbox, *fresh, *program], self._folder / f"{name}.log")

    def _mount(self, mount: Raw) -> Raw:
        source = self._volumes[mount["name"]].folder / mount.get("subPath", "")
        read_only = "emptyDir" not in self._named(mount["name"])
        return {
            # A file that is mounted by itself is the one of now, not the link to that of later.
            "source": str(source.resolve() if mount.get("subPath") else source),
            "target": mount["mountPath"],
            "read_only": read_only,
        }

    def _named(self, volume: str) -> Raw:
        return next(each for each in self._spec["volumes"] if each["name"] == volume)

    def _layers(self, image: str) -> tuple[Path, ...]:
        # busybox has a shell to wait with, and so has every image of ours.
        return self._images[image] if image in self._images else self._images["base"]

    def _user(self, container: Raw) -> tuple[int, list[int]]:
        """The user, which is its own group too, and further groups."""
        own = container.get("securityContext") or {}
        user = int(own.get("runAsUser", self._context.get("runAsUser", 0)))
        group = self._context.get("fsGroup")
        return user, [user] if group is None else [user, int(group)]

    def _first_process(self, container: Raw) -> str:
        """Number of the container's first process in the node, once it has become the container's."""
        assert self.running, f"{self.name} has ended:\n{self.log()}"
        return self._told(container).read_text()

    def _told(self, container: Raw) -> Path:
        return self._folder / f"{container['name']}.pid"
