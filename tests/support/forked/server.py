"""A server whose forked children run Pumice, which it has imported: each saves the start of a Python and all imports.

Run as `python server.py SOCKET`, it serves until its standard input ends. Who connects sends the length of an order in four bytes,
with the three standard streams as file descriptors, and the order: its working folder, the number of arguments, these, and the
environment, with zero bytes between them. The answers are the child's process id, and how it ended as `os.waitpid` has it, in four
bytes each. A child is the leader of a session, and is killed when who asked for it closes the connection, or when the server ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import io
import os
import pkgutil
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pumice
from pumice.cli import lean, main

PR_SET_PDEATHSIG = 1
STREAMS = ("stdin", "stdout", "stderr")


@dataclass(frozen=True)
class Order:
    """What a child is to be.

    Attributes:
        streams: File descriptors of its standard streams.
        folder: Where it works.
        arguments: Of the command, the program's name first.
        environment: Its whole environment.
    """

    streams: list[int]
    folder: bytes
    arguments: list[bytes]
    environment: dict[bytes, bytes]


def preload() -> None:
    """Import all of Pumice, as a verb does it."""
    with lean.importing_http():
        for module in pkgutil.walk_packages(pumice.__path__, "pumice."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def serve(path: str, starter: BinaryIO) -> bool:
    """Fork children until the starter is gone.

    Args:
        path: Where the server listens.
        starter: Ends with the starter.

    Returns:
        Whether this is a child, which then runs what was ordered.
    """
    server = os.getpid()
    running: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        woken, waker = map(stack.enter_context, socket.socketpair())
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        selector = stack.enter_context(selectors.DefaultSelector())
        stack.callback(_close_all, running)
        stack.enter_context(starter)
        for each in (woken, waker):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker.fileno())
        listening.bind(f"{path}.new")
        listening.listen(64)
        Path(f"{path}.new").rename(path)  # who waits for the path can connect
        for source in (listening, woken, starter):
            selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is starter:
                    return False
                if key.fileobj is woken:
                    woken.recv(4096)
                    _reap(running, selector)
                elif key.fileobj is listening:
                    connection, _ = listening.accept()
                    order = _received(connection)
                    pid = os.fork()
                    running[pid] = connection
                    if not pid:
                        _become(order, server)
                        connection.sendall(os.getpid().to_bytes(4, sys.byteorder))
                        return True
                    for stream in order.streams:
                        os.close(stream)
                    selector.register(connection, selectors.EVENT_READ, pid)
                elif key.data in running:
                    selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)


def _close_all(running: dict[int, socket.socket]) -> None:
    for each in running.values():
        each.close()


def _received(connection: socket.socket) -> Order:
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    wanted = int.from_bytes(length, sys.byteorder)
    content = b""
    while len(content) < wanted and (part := connection.recv(wanted - len(content))):
        content += part
    folder, count, *words = content.split(b"\0")
    arguments, variables = words[: int(count)], words[int(count) :]
    return Order(streams, folder, arguments, dict(each.split(b"=", 1) for each in variables))


def _reap(running: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    """Tell those who asked for them how children ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as connection, contextlib.suppress(OSError):
            with contextlib.suppress(KeyError):  # who asked for it is gone
                selector.unregister(connection)
            connection.sendall(status.to_bytes(4, sys.byteorder))


def _become(order: Order, server: int) -> None:
    """Be what was ordered: what a process has from its start."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            sys.exit(1)
    for number, (stream, name) in enumerate(zip(order.streams, STREAMS, strict=True)):
        os.dup2(stream, number)
        os.close(stream)
        _open(number, name, unbuffered=b"PYTHONUNBUFFERED" in order.environment)
    os.chdir(order.folder)
    os.environb.clear()
    os.environb.update(order.environment)
    time.tzset()
    sys.argv = [os.fsdecode(each) for each in order.arguments]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    if os.environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()


def _open(number: int, name: str, *, unbuffered: bool) -> None:
    """Have a standard stream again, as Python opens it."""
    old = getattr(sys, name)
    content: io.FileIO | io.BufferedReader | io.BufferedWriter
    content = io.FileIO(number, "w" if number else "r", closefd=False)
    if name == "stdin":
        content = io.BufferedReader(content)
    elif not unbuffered:
        content = io.BufferedWriter(content)
    lines = name == "stderr" or os.isatty(number)
    new = io.TextIOWrapper(
        content, old.encoding, old.errors, line_buffering=lines, write_through=unbuffered
    )
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    until = os.fdopen(os.dup(0), "rb", buffering=0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    preload()
    if serve(sys.argv[1], until):
        sys.exit(main())
