"""The first process of a node: it makes namespaces, forks containers, and ends with the process that started it.

It runs with the standard library alone, so that it starts and forks in a few milliseconds. It is the first process of the
node's PID namespace: when it ends, the kernel kills every process of every pod, and mounts and interfaces go with the last of them.
Requests come over a socket, a line of JSON each, with descriptors beside them. When the socket closes, because its other
end has ended in whatever way, this process ends, too.
"""

import array
import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import time
from collections.abc import Callable
from typing import NoReturn

from pumice.embedded.node import syscalls
from pumice.embedded.node.container import become, join
from pumice.embedded.node.links import Links
from pumice.embedded.node.pod_files import (
    FILES,
    Raw,
    make_empty,
    rewrite,
    too_much,
    write_files,
)

BRIDGE = "pods"
GATEWAY, PREFIX = "10.244.0.1", 16
_SANDBOX = {"net": syscalls.NEW_NET, "uts": syscalls.NEW_UTS, "ipc": syscalls.NEW_IPC}
_MOST_MESSAGE = 4096
"""Bytes of a termination message, as in Kubernetes."""
NAME_SERVER = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
"""There is none: what is not in the host file is not known, at once."""
_TICK = 1.0
"""Seconds between two looks at what pods use."""
_MOST_DESCRIPTORS = 16
_POD_SIZE = 64
"""MiB of a pod's own files: of names, of termination messages, of ConfigMaps and the like."""


def main(control: int, folder: str) -> None:
    """Make the node's namespaces and serve requests until the socket closes.

    Args:
        control: Descriptor of the socket.
        folder: An empty folder, over which the node's tmpfs is mounted.
    """
    os.umask(0o022)
    os.set_inheritable(control, False)
    channel = socket.socket(fileno=control)
    try:
        _enter_namespaces(channel)
    except OSError as error:
        _send(channel, {"forbidden": error.errno, "message": str(error)})
        os._exit(1)
    child = os.fork()
    if child:
        channel.close()
        os.waitpid(child, 0)
        os._exit(0)
    syscalls.end_with_parent()
    try:
        FirstProcess(channel, folder).serve()
    except OSError as error:
        with contextlib.suppress(OSError):
            _send(channel, {"forbidden": error.errno, "message": str(error)})
    os._exit(1)


def _enter_namespaces(channel: socket.socket) -> None:
    """A user namespace, of which the other end writes the maps, and the others in it."""
    syscalls.unshare(syscalls.NEW_USER)
    _send(channel, {"wants": "maps"})
    if channel.recv(1) != b"+":
        os._exit(1)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    kinds = (syscalls.NEW_MOUNT, syscalls.NEW_PID, *_SANDBOX.values())
    syscalls.unshare(sum(kinds))


def _send(channel: socket.socket, answer: Raw) -> None:
    channel.sendall(json.dumps(answer).encode() + b"\n")


class _Process:
    """A process that was forked for the other end.

    Attributes:
        pod: Its pod.
        told: A file with its termination message, if it is a container.
        pipe: Where it says why it could not become its program; -1 once it has.
    """

    def __init__(self, name: str, pod: str, told: str, pipe: int, request: int) -> None:
        self.name = name
        self.pod = pod
        self.told = told
        self.pipe = pipe
        self.request = request
        self.said = b""


class FirstProcess:
    """The node, as its first process sees it."""

    def __init__(self, channel: socket.socket, folder: str) -> None:
        self._channel = channel
        self._folder = folder
        self._sandboxes: dict[str, dict[str, int]] = {}
        self._processes: dict[int, _Process] = {}
        self._pids: dict[str, int] = {}
        self._limits: dict[str, dict[str, str]] = {}
        self._most: dict[str, int] = {}
        self._together = 0
        self._selector = selectors.DefaultSelector()
        self._descriptors: list[int] = []
        self._operations: dict[str, Callable[[Raw, list[int]], Raw | None]] = {
            "pod": self._add_pod,
            "files": self._write_files,
            "empty": self._make_empty,
            "hosts": self._write_hosts,
            "start": self._start,
            "execute": self._execute,
            "signal": self._signal,
            "remove": self._remove_pod,
        }

    def serve(self) -> None:
        """Answer requests, and report what ends."""
        self._prepare()
        reading, writing = socket.socketpair()
        for each in (reading, writing):
            each.setblocking(False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._channel, selectors.EVENT_READ)
        self._selector.register(reading, selectors.EVENT_READ)
        _send(self._channel, {"ready": True})
        rest, looked = b"", time.monotonic()
        while True:
            for key, _ in self._selector.select(_TICK):
                if key.fileobj is self._channel:
                    chunk = self._receive()
                    if not chunk:
                        os._exit(0)
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        self._answer(json.loads(line))
                elif key.fileobj is reading:
                    with contextlib.suppress(BlockingIOError):
                        reading.recv(4096)
                    self._reap()
                elif key.data.pipe == key.fd:  # unless it has been reaped a moment ago
                    self._hear(key.fd)
            if time.monotonic() - looked >= _TICK:
                self._look_at_usage()
                looked = time.monotonic()

    def _prepare(self) -> None:
        syscalls.make_private()
        syscalls.mount("proc", "/proc")
        syscalls.mount("tmpfs", self._folder, f"mode=755,size=64m,nr_inodes={FILES}")
        socket.sethostname("node")
        self._own = {
            name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in (*_SANDBOX, "pid")
        }
        self._links = Links()
        self._links.set_up("lo")
        self._links.add_bridge(BRIDGE)
        self._links.add_address(BRIDGE, GATEWAY, PREFIX)
        self._links.set_up(BRIDGE)
        with open("/proc/sys/net/ipv4/ip_forward", "w") as file:
            file.write("1")  # so that pods hear at once that an address elsewhere is not reached
        self._bridge = socket.if_nametoindex(BRIDGE)

    def _receive(self) -> bytes:
        space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * 4)
        chunk, extra, _, _ = self._channel.recvmsg(1 << 18, space, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                received = array.array("i")
                received.frombytes(data[: len(data) - len(data) % received.itemsize])
                self._descriptors += received
        return chunk

    def _answer(self, request: Raw) -> None:
        count = request.get("descriptors", 0)
        given, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        try:
            answer = self._operations[request["do"]](request, given)
        except Exception as error:  # one pod's request must not end the others
            answer = {"error": _told(error)}
        finally:
            for each in given:
                os.close(each)
        if answer is not None:
            _send(self._channel, {"answers": request["number"], **answer})

    def _add_pod(self, request: Raw, _: list[int]) -> Raw:
        """Make a pod's namespaces, which descriptors keep."""
        pod = request["pod"]
        self._most[pod], self._together = request["most"], request["together"]
        folder = f"{self._folder}/{pod}"
        os.mkdir(folder)
        syscalls.mount("tmpfs", folder, f"mode=755,size={_POD_SIZE}m,nr_inodes={FILES}")
        message = f"its host file, messages and files of volumes take more than {_POD_SIZE} MiB"
        self._limits[pod] = {folder: message}
        os.mkdir(f"{folder}/volumes")
        rewrite(f"{self._folder}/{pod}/resolv.conf", NAME_SERVER)
        syscalls.unshare(sum(_SANDBOX.values()))
        try:
            socket.sethostname(request["hostname"])
            found = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in _SANDBOX}
            self._sandboxes[pod] = found
            self._links.add_pair(request["interface"], self._bridge, "eth0", found["net"])
            links = Links()
            links.set_up("lo")
            links.add_address("eth0", request["address"], PREFIX)
            links.set_up("eth0")
            links.add_default_route(GATEWAY)
            links.close()
        finally:
            for name, kind in _SANDBOX.items():
                syscalls.setns(self._own[name], kind)
        return {}

    def _write_files(self, request: Raw, _: list[int]) -> Raw:
        write_files(self._volume(request), request)
        return {}

    def _make_empty(self, request: Raw, _: list[int]) -> Raw:
        volume = self._volume(request)
        make_empty(volume, request["size"], request["group"])
        self._limits[request["pod"]][volume] = request["message"]
        return {}

    def _volume(self, request: Raw) -> str:
        return f"{self._folder}/{request['pod']}/volumes/{request['volume']}"

    def _write_hosts(self, request: Raw, _: list[int]) -> Raw:
        """Rewrite host files."""
        for pod, text in request["files"].items():
            if pod in self._sandboxes:
                with contextlib.suppress(OSError):  # as one that is full, and ends soon
                    rewrite(f"{self._folder}/{pod}/hosts", text)
        return {}

    def _start(self, request: Raw, given: list[int]) -> None:
        """Fork a container; the answer comes when it has become its program, or has failed."""
        pod, name = request["pod"], request["name"]
        scratch = f"{self._folder}/{pod}/{name}"
        os.makedirs(scratch, exist_ok=True)
        told = f"{self._folder}/{pod}/{name}.message"
        with open(told, "w") as file:
            os.fchmod(file.fileno(), 0o666)
        for each in request["mounts"]:
            each["base"] = each["base"] or f"{self._folder}/{pod}/{each['own']}"
        request |= {"scratch": scratch, "hidden": os.path.realpath(self._folder)}
        sandbox = [(self._sandboxes[pod][each], kind) for each, kind in _SANDBOX.items()]
        syscalls.unshare(syscalls.NEW_PID)
        try:
            self._fork(request, told, lambda: become(request, sandbox, given))
        finally:
            syscalls.setns(self._own["pid"], syscalls.NEW_PID)

    def _execute(self, request: Raw, given: list[int]) -> Raw | None:
        first = self._pids.get(request["container"])
        if first is None:
            return {"error": "the container does not run"}
        self._fork(request, "", lambda: join(request, first, given))
        return None

    def _fork(self, request: Raw, told: str, run: Callable[[], NoReturn]) -> None:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                signal.set_wakeup_fd(-1)
                os.setsid()
                run()
            except BaseException as error:
                os.write(writing, _told(error).encode())
            finally:
                os._exit(127)
        os.close(writing)
        process = _Process(request["id"], request["pod"], told, reading, request["number"])
        self._processes[pid] = process
        self._pids[process.name] = pid
        self._selector.register(reading, selectors.EVENT_READ, process)

    def _hear(self, descriptor: int) -> None:
        """What a fork says before it becomes its program; its silence is a success."""
        process: _Process = self._selector.get_key(descriptor).data
        chunk = os.read(descriptor, 4096)
        process.said += chunk
        if chunk:
            return
        self._selector.unregister(descriptor)
        os.close(descriptor)
        process.pipe = -1
        answer: Raw = {"answers": process.request}
        if process.said:
            answer["error"] = process.said.decode(errors="replace")
        _send(self._channel, answer)

    def _reap(self) -> None:
        while self._processes:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            process = self._processes.pop(pid, None)
            if process is None:
                continue
            if self._pids.get(process.name) == pid:
                del self._pids[process.name]
            while process.pipe >= 0:
                self._hear(process.pipe)
            if process.said:
                continue
            code = os.waitstatus_to_exitcode(status)
            event = {
                "ended": process.name,
                "code": code if code >= 0 else 128 - code,
                "signal": -code if code < 0 else 0,
                "message": _read(process.told),
            }
            _send(self._channel, event)

    def _signal(self, request: Raw, _: list[int]) -> Raw:
        for name in request["names"]:
            pid = self._pids.get(name)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, request["signal"])
        return {}

    def _remove_pod(self, request: Raw, _: list[int]) -> Raw:
        pod = request["pod"]
        for pid, process in self._processes.items():
            if process.pod == pod:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for descriptor in self._sandboxes.pop(pod, {}).values():
            os.close(descriptor)
        self._most.pop(pod, None)
        if self._limits.pop(pod, None):
            syscalls.unmount(f"{self._folder}/{pod}")  # with the volumes in it
        shutil.rmtree(f"{self._folder}/{pod}", ignore_errors=True)
        return {}

    def _look_at_usage(self) -> None:
        """Report pods that have filled a volume or their root, hold too much, or run too many processes."""
        containers = {
            pid: each.pod for pid, each in self._processes.items() if each.told and each.pipe < 0
        }
        for pod, message in too_much(self._limits, containers, self._most, self._together):
            _send(self._channel, {"full": pod, "message": message})


def _told(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return repr(error)
    text = error.strerror or str(error)
    return f"{error.filename}: {text}" if error.filename else text


def _read(file: str) -> str:
    with contextlib.suppress(OSError), open(file, "rb") as stream:
        return stream.read(_MOST_MESSAGE).decode(errors="replace")
    return ""
