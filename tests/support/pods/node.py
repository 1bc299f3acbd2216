"""A node without kubelet or root: namespaces in which pods are real processes with addresses of their own.

The first process of the node's PID namespace is on this process's leash, and the kernel ends everything in
the namespace with it, so nothing outlives the tests. Who is not root needs `newuidmap` (Debian's package
`uidmap`) and a range of uids in `/etc/subuid`, because ssh servers and pods with an `fsGroup` change users.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kit.waiting import NotReadyError, wait_until
from tests.support.controlplane.processes import Process

__all__ = ["Node", "NodeError"]

PROGRAMS = ("ip", "mount", "nsenter", "unshare")
_BRIDGE = "pods"
_NETWORK = "10.244.0"
_SETUP = f"""
set -e
mount -t proc proc /proc
ip link set lo up
ip link add {_BRIDGE} type bridge
ip address add {_NETWORK}.1/24 dev {_BRIDGE}
ip link set {_BRIDGE} up
touch "$0"
exec sleep infinity
"""


class NodeError(RuntimeError):
    """This machine lets nobody make namespaces, or lacks a program; the message says which."""


class Node:
    """Namespaces with a bridge, to which pods are connected.

    Args:
        folder: Where it keeps what it needs.
    """

    def __init__(self, folder: Path) -> None:
        # iproute2 lies where not every user's PATH leads.
        os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        if missing:
            raise NodeError(f"install iproute2 and util-linux: there is no {', '.join(missing)}")
        self.folder = folder
        self._addresses = 1
        self._spawned: list[subprocess.Popen[bytes]] = []
        ready = folder / "ready"
        unshare = str(shutil.which("unshare"))
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user", "--map-auto"]
        kinds = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
        command = [unshare, *user, *kinds, "sh", "-c", _SETUP, str(ready)]
        self._process = Process("node", command, folder)
        try:
            wait_until(ready.exists, "the node's namespaces", 20, (self._process,))
            self._pid = self._first_process()
        except NotReadyError as error:
            self.end()
            raise NodeError(
                f"namespaces cannot be made here ({error}); run as root, outside of containers that "
                "lack CAP_SYS_ADMIN, or install uidmap and give your user a range in /etc/subuid"
            ) from None

    def _first_process(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return int(children.split()[0])

    def inside(self, command: Sequence[str | Path]) -> list[str]:
        """The command line that runs a command in the node."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        enter = ["nsenter", f"--target={self._pid}", *user]
        return [*enter, "--mount", "--net", "--pid", "--ipc", "--uts", *map(str, command)]

    def run(self, *command: str | Path) -> str:
        """Run a command in the node and return what it printed.

        Raises:
            NodeError: It failed.
        """
        answer = subprocess.run(
            self.inside(command), capture_output=True, text=True, check=False, cwd=self.folder
        )
        if answer.returncode:
            raise NodeError(f"{' '.join(map(str, command))}: {answer.stderr.strip()}")
        return answer.stdout

    def spawn(self, command: Sequence[str | Path], log: Path) -> subprocess.Popen[bytes]:
        """Start a command in the node, which writes to a file; it ends with the node at the latest."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                self.inside(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        self._spawned.append(process)
        return process

    def connect(self, sandbox: str) -> str:
        """Give a pod's network namespace an interface.

        Args:
            sandbox: A process of the pod, as numbered in the node.

        Returns:
            Its address.
        """
        self._addresses += 1
        address, outer = f"{_NETWORK}.{self._addresses}", f"veth{self._addresses}"
        script = f"""
        set -e
        ip link add {outer} type veth peer name eth0 netns {sandbox}
        ip link set {outer} master {_BRIDGE} up
        in_pod() {{ nsenter --target={sandbox} --net "$@"; }}
        in_pod ip address add {address}/24 dev eth0
        in_pod ip link set eth0 up
        in_pod ip link set lo up
        in_pod ip route add default via {_NETWORK}.1
        """
        self.run("sh", "-c", script)
        return address

    def end(self) -> None:
        """End it and everything in it."""
        self._process.end()
        for process in self._spawned:
            process.wait()
