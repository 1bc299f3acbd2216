"""An API server in memory, in a thread beside the test, so that commands run in the test's own process."""

import asyncio
import contextlib
import io
import threading
from abc import ABC, abstractmethod
from typing import Self

import aiohttp
from aiohttp import web

from pumice.api.crds import all_crds
from pumice.cli import main
from pumice.cli.files.checking import registry
from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.controller.worker import ControllerWorker
from pumice.embedded import EmbeddedCluster, NodeTimings
from pumice.scheduler import load_config
from pumice.scheduler.worker import SchedulerWorker
from tests.unit.cli.conftest import Ran


def ran(*arguments: str) -> Ran:
    """Run `pumice ARGUMENTS…` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Ran(code, out.getvalue(), err.getvalue())


class InThread(ABC):
    """A server that answers from a thread of its own inside the block."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._ready, self._end = threading.Event(), asyncio.Event()
        # What is left of connections when the block ends is closed before the loop is.
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            await self._begin(stack)
            self._ready.set()
            await self._end.wait()

    @abstractmethod
    async def _begin(self, stack: contextlib.AsyncExitStack) -> None:
        """Start what the stack ends."""


async def serving(stack: contextlib.AsyncExitStack, server: web.Server) -> str:
    """Serve until the stack ends, and return the address."""
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


class Server(InThread):
    """An embedded cluster, and a proxy that counts requests and lets only namespace `default` through.

    Attributes:
        url: Address of the API server.
        limited: Address of the proxy.
        limits: Whether the proxy forbids what is outside the namespace.
        is_down: Whether the proxy ends connections without an answer.
        paths: What the proxy was asked for.
    """

    url: str
    limited: str

    def __init__(self, *nodes: str, components: bool = False) -> None:
        """Make a cluster.

        Args:
            nodes: The CPUs of its nodes.
            components: Whether a controller and a scheduler work in it.
        """
        self.limits = True
        self.is_down = False
        self.paths: list[str] = []
        self._nodes, self._components = nodes, components
        super().__init__()

    async def _begin(self, stack: contextlib.AsyncExitStack) -> None:
        timings = NodeTimings(start=0.0, stop=0.0)
        cluster = await stack.enter_async_context(EmbeddedCluster(all_crds(), timings=timings))
        for number, cpu in enumerate(self._nodes, 1):
            cluster.add_node(f"node{number}", cpu=cpu)
        self.url = cluster.url
        self._session = await stack.enter_async_context(aiohttp.ClientSession(cluster.url))
        if self._components:
            await self._start(stack)
        self.limited = await serving(stack, web.Server(self._forward, handler_cancellation=True))

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        client = await stack.enter_async_context(Client.connect(server=self.url))
        controller = ControllerWorker(client, registry())
        scheduler = SchedulerWorker(client, load_config(None))
        stop = asyncio.Event()
        tasks = [*controller.tasks(), *scheduler.tasks()]
        running = asyncio.create_task(run_until_stopped(tasks, stop=stop, signals=()))

        async def end() -> None:
            stop.set()
            await running

        stack.push_async_callback(end)

    async def _forward(self, request: web.BaseRequest) -> web.StreamResponse:
        self.paths.append(request.path)
        if self.is_down and request.transport is not None:
            request.transport.abort()
        if self.limits and "/namespaces/default/" not in request.path:
            resource = request.path.rpartition("/")[2]
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "Forbidden",
                "message": f'{resource} is forbidden: User "ann" cannot list it at the cluster scope',
                "code": 403,
            }
            return web.json_response(status, status=403)
        async with self._session.get(
            request.path_qs, headers={"Accept": "application/json"}
        ) as got:
            answer = web.StreamResponse(status=got.status)
            answer.content_type = "application/json"
            await answer.prepare(request)
            with contextlib.suppress(ConnectionError):  # the client has closed its watch
                async for chunk in got.content.iter_any():
                    await answer.write(chunk)
            return answer
