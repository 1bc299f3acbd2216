"""The node's namespaces, from outside: the modes in which they can be had, and requests to their first process.

The kernel ends everything in a PID namespace with its first process, and that one ends when its socket closes. So nothing
outlives this process, however it ends.
"""

import asyncio
import errno
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pumice.api.meta import Raw

_START_SECONDS = 20.0
_EVERY = 4_294_967_295
_BOOT = """
import sys, types
for name in ("pumice", "pumice.embedded", "pumice.embedded.node"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [sys.argv[1] + name.removeprefix("pumice").replace(".", "/")]
from pumice.embedded.node.init import main
main(int(sys.argv[2]), sys.argv[3])
"""
"""Starts `init` without the packages above it, which import much more than it needs."""


class NodeError(RuntimeError):
    """Something that pods need cannot be had here; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Mode:
    """Which users pods may have.

    Attributes:
        users: Users inside and outside as `(inside, outside, count)`, for `uid_map`.
        groups: The same of groups.
        helper: Whether `newuidmap` writes the maps.
        is_full: Whether pods may change their user.
    """

    users: tuple[tuple[int, int, int], ...]
    groups: tuple[tuple[int, int, int], ...]
    helper: bool
    is_full: bool

    def __str__(self) -> str:
        if self.is_full:
            how = "newuidmap" if self.helper else "root"
            return f"full ({how}: pods may have any user)"
        return "single user (pods run as you, who are root in them)"

    def numbers(self, kind: str) -> list[range]:
        """Each `user`, or each `group`, that a pod may have; only in full mode may it have several groups."""
        extents = self.users if kind == "user" else self.groups
        return [range(inside, inside + count) for inside, _, count in extents]


def mode_here() -> Mode:
    """The mode for this process's user. A user namespace that has one user alone forbids its root to set groups."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and Path("/proc/self/setgroups").read_text().strip() != "deny":
        return Mode(_own_map("uid"), _own_map("gid"), helper=False, is_full=True)
    if user and shutil.which("newuidmap") and shutil.which("newgidmap"):
        users, groups = _subordinate("/etc/subuid", user), _subordinate("/etc/subgid", user)
        if users and groups:
            return Mode(
                ((0, user, 1), (1, *users)),
                ((0, group, 1), (1, *groups)),
                helper=True,
                is_full=True,
            )
    return Mode(((0, user, 1),), ((0, group, 1),), helper=False, is_full=False)


def _own_map(kind: str) -> tuple[tuple[int, int, int], ...]:
    """Every user that this process's own namespace has, as itself."""
    lines = [line.split() for line in Path(f"/proc/self/{kind}_map").read_text().splitlines()]
    return tuple((int(inside), int(inside), int(count)) for inside, _, count in lines)


def _subordinate(file: str, user: int) -> tuple[int, int] | None:
    """First and count of the subordinate ids of a user."""
    names = {str(user)}
    try:
        names.add(pwd.getpwuid(user).pw_name)
        lines = Path(file).read_text().splitlines()
    except (KeyError, OSError):
        return None
    for line in lines:
        name, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if name in names and first.isdecimal() and count.isdecimal():
            return int(first), min(int(count), _EVERY - int(first))
    return None


class Namespaces:
    """A node's first process.

    Attributes:
        on_event: Called with what it reports by itself.
        ended: Done when it has ended.
    """

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self._process = process
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._sending: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._answers: dict[int, asyncio.Future[Raw]] = {}
        self._number = 0
        self._rest = b""
        self.on_event: Callable[[Raw], None] = lambda _: None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(channel, self._receive)

    @classmethod
    async def start(cls, mode: Mode, folder: Path) -> Self:
        """Make the namespaces.

        Args:
            mode: The users in them.
            folder: An empty folder, at which nothing is written outside of the namespaces.

        Raises:
            NodeError: They cannot be made here.
        """
        process, near = _first_process(folder)
        near.settimeout(_START_SECONDS)
        try:
            await asyncio.to_thread(_begin, near, process, mode)
        except BaseException:  # the caller may have given up
            near.close()
            process.kill()
            process.wait()
            raise
        near.setblocking(False)
        return cls(process, near)

    @property
    def pid(self) -> int:
        """The process that has made the namespaces, and waits for the first one in them."""
        return self._process.pid

    async def ask(self, do: str, descriptors: Sequence[int] = (), **fields: Any) -> None:
        """Ask the first process for something, and wait until it is done.

        Args:
            do: What.
            descriptors: Open files that go with it, which may be closed as soon as this returns or raises.
            fields: Its arguments.

        Raises:
            NodeError: It failed.
        """
        if self.ended.done():
            raise NodeError("the node has ended")
        self._number += 1
        request = {"do": do, "number": self._number, "descriptors": len(descriptors), **fields}
        future = self._answers[self._number] = self._loop.create_future()
        kept = tuple(os.dup(each) for each in descriptors)
        self._sending.append((memoryview(json.dumps(request).encode() + b"\n"), kept))
        self._flush()
        answer = await future
        if "error" in answer:
            raise NodeError(answer["error"])

    async def signal(self, names: Sequence[str], number: int) -> None:
        """Send a signal to processes that run; the others are left out."""
        with suppress(NodeError):
            await self.ask("signal", names=list(names), signal=int(number))

    async def end(self) -> None:
        """End everything in the namespaces."""
        self._close()
        await asyncio.to_thread(self._process.wait)

    def _flush(self) -> None:
        while self._sending:
            data, descriptors = self._sending[0]
            try:
                sent = socket.send_fds(self._channel, [data], descriptors)
            except BlockingIOError:
                self._loop.add_writer(self._channel, self._flush)
                return
            except OSError:
                self._close()
                return
            for each in descriptors:
                os.close(each)
            if sent < len(data):
                self._sending[0] = (data[sent:], ())
            else:
                self._sending.popleft()
        self._loop.remove_writer(self._channel)

    def _receive(self) -> None:
        try:
            chunk = self._channel.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close()
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            future = self._answers.pop(answer.get("answers", 0), None)
            if future is None:
                self.on_event(answer)
            elif not future.done():
                future.set_result(answer)

    def _close(self) -> None:
        if self.ended.done():
            return
        self.ended.set_result(None)
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        for future in self._answers.values():
            if not future.done():
                future.set_result({"error": "the node has ended"})
        for _, descriptors in self._sending:
            for each in descriptors:
                os.close(each)
        self._sending.clear()


def _first_process(folder: Path) -> tuple[subprocess.Popen[bytes], socket.socket]:
    near, far = socket.socketpair()
    package = Path(__file__).parents[2]
    with far:
        process = subprocess.Popen(
            [sys.executable, "-IS", "-c", _BOOT, package, str(far.fileno()), folder],
            stdin=subprocess.DEVNULL,
            pass_fds=[far.fileno()],
            start_new_session=True,  # Ctrl-C is not meant for it
        )
    return process, near


def _begin(channel: socket.socket, process: subprocess.Popen[bytes], mode: Mode) -> None:
    """Write the maps of the user namespace, and wait until the node is ready."""
    answer = _line(channel)
    if "wants" in answer:
        _write_maps(process.pid, mode)
        channel.sendall(b"+")
        answer = _line(channel)
    if "ready" not in answer:
        raise NodeError(_why(answer))


def _line(channel: socket.socket) -> Raw:
    found = b""
    try:
        while not found.endswith(b"\n"):
            chunk = channel.recv(1)
            if not chunk:
                return {"message": "it ended at its start"}
            found += chunk
    except TimeoutError:
        return {"message": f"no answer within {_START_SECONDS:g} s"}
    answer: Raw = json.loads(found)
    return answer


def _write_maps(pid: int, mode: Mode) -> None:
    for kind, extents in (("uid", mode.users), ("gid", mode.groups)):
        words = [[str(each) for each in extent] for extent in extents]
        if mode.helper:
            numbers = [word for extent in words for word in extent]
            answer = subprocess.run(
                [f"new{kind}map", str(pid), *numbers], capture_output=True, text=True, check=False
            )
            if answer.returncode:
                raise NodeError(f"new{kind}map: {answer.stderr.strip()}")
            continue
        try:
            if kind == "gid" and not mode.is_full:
                Path(f"/proc/{pid}/setgroups").write_text("deny")
            lines = "\n".join(" ".join(extent) for extent in words)
            Path(f"/proc/{pid}/{kind}_map").write_text(f"{lines}\n")
        except OSError as error:
            raise NodeError(_why({"forbidden": error.errno, "message": str(error)})) from None


_LIMITS = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
)
"""Settings of the kernel that forbid user namespaces: the value that does, and one that does not."""


def _why(answer: Raw) -> str:
    """What a user can do where namespaces cannot be made."""
    said = f"user namespaces are not allowed here ({answer.get('message')})"
    for name, forbids, allows in _LIMITS:
        try:
            value = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue
        if value == forbids:
            setting = name.replace("/", ".")
            return f"{said}; `sudo sysctl -w {setting}={allows}` allows them"
    if answer.get("forbidden") in (errno.EPERM, errno.EACCES):
        return (
            f"{said}; in a container they need `docker run --privileged` or "
            "`--security-opt seccomp=unconfined --security-opt systempaths=unconfined`"
        )
    return f"the node does not start: {answer.get('message')}; it needs Linux 5.12 or newer"
