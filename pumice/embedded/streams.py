"""Logs of containers, and commands in them, over HTTP.

kube-apiserver passes such requests to the node's kubelet; here `Containers` stands for all kubelets. A command's
streams share one WebSocket, and the first byte of each message names the stream.

Source: KEP-4006, "Transition from SPDY to WebSockets"; `k8s.io/apimachinery/pkg/util/remotecommand`.
"""

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from socket import AF_UNIX, SOCK_STREAM, fromfd, recv_fds, socketpair
from typing import Annotated, Protocol, Self

import msgspec
import structlog
from aiohttp import WSMsgType, web

from pumice.embedded import statuses
from pumice.embedded.pod_streams import (
    STDERR,
    STDIN,
    STDOUT,
    ContainerCommandRequest,
    ContainerLogRequest,
)
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, encode

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STATUS, _RESIZE, _CLOSE = 3, 4, 255
_CHUNK = 32 * 1024
_END_OF_INPUT = b"\x04"
_PATIENCE = 2.0
"""Seconds that output may take after its command has ended: what it left in the background may hold the pipe."""

_log = structlog.get_logger(__name__)


class Containers(Protocol):
    """The containers of all nodes, as their kubelets give access to them."""

    def read_log(self, asked: ContainerLogRequest) -> AsyncIterator[bytes]:
        """Lines of a container's log; with `follow` until the container has ended.

        Raises:
            ApiStatusError: 400: there is no such log.
        """

    async def execute(self, asked: ContainerCommandRequest, descriptors: Sequence[int]) -> int:
        """Run a command beside the container's own and return its exit code; cancellation kills it.

        Args:
            asked: The command.
            descriptors: Standard input, output and error; with a terminal a socket, over which our end of the terminal is sent.

        Raises:
            ApiStatusError: 400: the container does not run, or has no such program.
        """


async def stream_log(
    request: web.BaseRequest, asked: ContainerLogRequest, containers: Containers
) -> web.StreamResponse:
    """Answer with a log, as its lines come.

    Raises:
        ApiStatusError: 400: there is no such log.
    """
    lines = containers.read_log(asked)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    # Most logs that are followed end because the client closes the connection.
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        async for part in lines:
            await response.write(part)
        await response.write_eof()
    return response


async def run_command(
    request: web.BaseRequest, asked: ContainerCommandRequest, containers: Containers
) -> web.StreamResponse:
    """Run a command whose streams are a WebSocket's, and end with its Status.

    Raises:
        ApiStatusError: 400: the client opens no WebSocket.
    """
    socket = web.WebSocketResponse(protocols=PROTOCOLS)
    found = socket.can_prepare(request)
    if not found.ok or found.protocol not in PROTOCOLS:
        message = f"streams need a WebSocket with the protocol {' or '.join(PROTOCOLS)}: use kubectl 1.31 or newer"
        raise statuses.bad_request(message)
    await socket.prepare(request)
    pipes = _Pipes.open(asked)
    try:
        with contextlib.suppress(ConnectionError):
            status = await _run(socket, asked, containers, pipes)
            if status is not None:
                await socket.send_bytes(bytes([_STATUS]) + encode(status))
                await socket.close()
    finally:
        pipes.close_all()
    return socket


async def _run(
    socket: web.WebSocketResponse,
    asked: ContainerCommandRequest,
    containers: Containers,
    pipes: "_Pipes",
) -> Obj | None:
    """Run the command; its Status, None if the client left before it ended."""
    command = asyncio.create_task(containers.execute(asked, pipes.theirs))
    try:
        await pipes.take_terminal(command)
    except BaseException:
        command.cancel()
        raise
    client = asyncio.create_task(_receive(socket, pipes))
    outputs = [
        asyncio.create_task(_send(socket, stream, source))
        for stream, source in pipes.outputs.items()
    ]
    try:
        await asyncio.wait([command, client], return_when=asyncio.FIRST_COMPLETED)
        if not command.done():
            return None
        pipes.close(*pipes.theirs)
        if outputs:
            await asyncio.wait(outputs, timeout=_PATIENCE)
        return _ended(command)
    finally:
        tasks = (command, client, *outputs)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _ended(command: asyncio.Task[int]) -> Obj:
    """The Status of a command that has ended, as kubelet words it."""
    try:
        code = command.result()
    except ApiStatusError as error:
        return error.body()
    except Exception as error:
        _log.exception("a command in a container failed")
        return statuses.internal(f"{type(error).__name__}: {error}").body()
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code & 0xFF)}]},
    }


@dataclass(slots=True)
class _Pipes:
    """A command's streams: pipes, or one terminal.

    Attributes:
        theirs: The command's ends: standard input, output and error, or a socket over which our end of the terminal comes.
        input: Where the client's input is written; None when it sends none, or no more.
        outputs: Where output is read from, by stream.
        terminal: Our end of the terminal.
        channel: Our end of the socket.
    """

    theirs: tuple[int, ...]
    input: int | None
    outputs: dict[int, int]
    terminal: int | None = None
    channel: int | None = None
    _closed: set[int] = field(default_factory=set)

    @classmethod
    def open(cls, asked: ContainerCommandRequest) -> Self:
        """Open what the client wants to use."""
        if asked.tty:
            ours, theirs = (each.detach() for each in socketpair())
            os.set_blocking(ours, False)
            return cls((theirs,), None, {}, channel=ours)
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        theirs_in, into = os.pipe()
        pipes = cls((theirs_in, theirs_out, theirs_err), into, {STDOUT: out, STDERR: err})
        for mine in (into, out, err):
            os.set_blocking(mine, False)
        if STDIN not in asked.streams:
            pipes.end_input()
        return pipes

    async def take_terminal(self, command: asyncio.Task[int]) -> None:
        """Wait for our end of the terminal, if there is to be one; the command may end before it makes one."""
        if self.channel is None:
            return
        there = asyncio.create_task(_ready(self.channel))
        await asyncio.wait([command, there], return_when=asyncio.FIRST_COMPLETED)
        there.cancel()
        await asyncio.gather(there, return_exceptions=True)
        receiver = fromfd(self.channel, AF_UNIX, SOCK_STREAM)
        with receiver, contextlib.suppress(BlockingIOError):
            _, descriptors, _, _ = recv_fds(receiver, 1, 1)
            for each in descriptors:
                os.set_blocking(each, False)
                self.input = self.terminal = self.outputs[STDOUT] = each

    def end_input(self) -> None:
        """Let the command read the end of its input."""
        self.close(self.input)
        self.input = None

    def close(self, *descriptors: int | None) -> None:
        """Close descriptors that are not closed yet."""
        for each in {*descriptors} - self._closed:
            if each is not None:
                self._closed.add(each)
                os.close(each)

    def close_all(self) -> None:
        """Close what is still open."""
        self.close(*self.theirs, self.input, *self.outputs.values(), self.terminal, self.channel)


async def _send(socket: web.WebSocketResponse, stream: int, source: int) -> None:
    """Send what the command writes, up to its end."""
    while True:
        await _ready(source)
        try:
            part = os.read(source, _CHUNK)
        except OSError:  # a terminal that no process has open any more
            return
        if not part:
            return
        await socket.send_bytes(bytes([stream]) + part)


async def _receive(socket: web.WebSocketResponse, pipes: _Pipes) -> None:
    """Pass on what the client sends, until it leaves."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        stream, content = message.data[0], message.data[1:]
        if stream == STDIN:
            await _write(pipes, content)
        elif stream == _RESIZE and pipes.terminal is not None:
            _resize(pipes.terminal, content)
        elif stream == _CLOSE and content[:1] == bytes([STDIN]):
            if pipes.terminal is None:
                pipes.end_input()
            else:
                await _write(pipes, _END_OF_INPUT)


async def _write(pipes: _Pipes, content: bytes) -> None:
    while content and pipes.input is not None:
        await _ready(pipes.input, write=True)
        content = content[os.write(pipes.input, content) :]


def _resize(terminal: int, content: bytes) -> None:
    try:
        size = msgspec.json.decode(content, type=_Size)
    except msgspec.DecodeError:  # ValidationError is one, too
        return
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.Height, size.Width, 0, 0))


class _Size(msgspec.Struct):
    """Size of a terminal in characters, as clients send it."""

    Width: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]
    Height: Annotated[int, msgspec.Meta(ge=0, lt=1 << 16)]


async def _ready(descriptor: int, *, write: bool = False) -> None:
    """Wait until a descriptor can be read, or written to."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (
        (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    )
    add(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(descriptor)
