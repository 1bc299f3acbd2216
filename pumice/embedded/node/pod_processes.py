"""The processes of a pod's containers: how each starts with a log and a cgroup, how it ends and why, and how those that run are stopped."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pumice.api.meta import Raw, format_time
from pumice.embedded.node.logs import ContainerLog
from pumice.embedded.node.machine import Machine
from pumice.embedded.node.namespaces import NodeError
from pumice.embedded.node.pod_status import ContainerRun, terminated

_DRAIN_SECONDS = 2.0
_FALLBACK_LINES, _FALLBACK_BYTES = 80, 2048


@dataclass(slots=True)
class _ContainerProcess:
    """The first process of a container.

    Attributes:
        run: The container.
        log: What it writes.
        begun: When it was started.
        end: How it has ended.
        is_up: Whether it has become its program.
    """

    run: ContainerRun
    log: ContainerLog
    begun: str
    end: asyncio.Future[Raw]
    is_up: bool = False


class PodProcesses:
    """The processes of one pod.

    Args:
        machine: What they run on.
        key: What tells the pod from all others in the node.
        states: The pod's init containers and containers.
        now: Gives the moment in UNIX seconds.
        on_line: Called with each line that a container writes: its name, its run, the line.

    Attributes:
        logs: The logs of containers by name, run by run; at most the last two.
    """

    def __init__(
        self,
        machine: Machine,
        key: str,
        states: Sequence[ContainerRun],
        now: Callable[[], float],
        on_line: Callable[[str, int, bytes], None],
    ) -> None:
        self.logs: dict[str, list[ContainerLog]] = {}
        self._machine = machine
        self._key = key
        self._states = states
        self._now = now
        self._on_line = on_line
        self._processes: dict[str, _ContainerProcess] = {}
        self._starts: set[asyncio.Future[None]] = set()

    def ended(self, event: Raw) -> None:
        """A process has ended."""
        process = self._processes.get(event["ended"])
        if process is not None and not process.end.done():
            process.end.set_result(event)

    def of(self, container: str) -> str:
        """The process of a container that runs; empty if none does."""
        found = self._processes.items()
        return next((key for key, each in found if each.is_up and each.run.name == container), "")

    async def start(self, run: ContainerRun, spec: Raw, limits: tuple[int | None, ...]) -> str:
        """Start a container, and return its process.

        Args:
            run: The container.
            spec: What the node needs to know of it.
            limits: Bytes of memory and thousandths of a processor.

        Raises:
            NodeError: It does not start, which is its state now.
        """
        key = f"{self._key}/{self._states.index(run)}/{run.restarts}"
        end = asyncio.get_running_loop().create_future()
        process = _ContainerProcess(run, self._new_log(run), format_time(self._now()), end)
        self._processes[key] = process
        try:
            start = asyncio.ensure_future(self._begin(key, process, spec, limits))
            self._starts.add(start)
            start.add_done_callback(self._starts.discard)
            await asyncio.shield(start)  # a task that stops the pod waits for it
        except NodeError as error:
            process.log.close()
            del self._processes[key]
            begun = process.begun
            run.state = terminated(128, 0, begun, begun, "StartError", str(error))
            raise
        return key

    async def finished(self, key: str) -> None:
        """Wait until a process has ended, and note how."""
        process = self._processes[key]
        await asyncio.shield(process.end)  # a task that stops the pod waits for it, too
        await self._note_end(key, process)

    async def stop(self, grace: float) -> None:
        """SIGTERM to all that run, and after the grace SIGKILL."""
        if self._starts:
            await asyncio.wait(self._starts)
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
            running = {key: each for key, each in self._processes.items() if each.is_up}
            if number == signal.SIGTERM and not grace:
                continue
            if not running:
                return
            await self._machine.namespaces.signal(list(running), number)
            await asyncio.wait([each.end for each in running.values()], timeout=seconds)
            for key, each in running.items():
                if each.end.done():
                    await self._note_end(key, each)
                    each.run.is_over = True

    def close(self) -> None:
        """Close the logs."""
        for runs in self.logs.values():
            for each in runs:
                each.close()

    async def _begin(
        self, key: str, process: _ContainerProcess, spec: Raw, limits: tuple[int | None, ...]
    ) -> None:
        """Start a container's first process, with its output going to its log.

        Raises:
            NodeError: It does not start.
        """
        reading, writing = os.pipe()
        descriptors = [writing]
        try:
            cgroups = self._machine.cgroups
            if cgroups is not None:
                cgroup = key.replace("/", "-")
                cgroups.add(cgroup, *limits)
                descriptors.extend(os.open(file, os.O_WRONLY) for file in cgroups.files(cgroup))
            process.log.follow(reading)
            name = f"c{self._states.index(process.run)}"
            await self._machine.namespaces.ask(
                "start", descriptors, id=key, pod=self._key, name=name, **spec
            )
            process.run.state = {"running": {"startedAt": format_time(self._now())}}
            process.is_up = True
        except OSError as error:
            raise NodeError(f"cgroup: {error.strerror}") from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    async def _note_end(self, key: str, process: _ContainerProcess) -> None:
        """Read what a container that has ended has left in the pipe, and note why it ended."""
        await asyncio.wait([process.log.drained], timeout=_DRAIN_SECONDS)
        event = process.end.result()
        code, message = event["code"], event["message"]
        reason = "Completed" if code == 0 else "Error"
        cgroups, cgroup = self._machine.cgroups, key.replace("/", "-")
        if cgroups is not None:
            if code == 128 + signal.SIGKILL and cgroups.has_killed(cgroup):
                reason = "OOMKilled"
            cgroups.remove(cgroup)
        policy = process.run.manifest.get("terminationMessagePolicy")
        if not message and code and policy == "FallbackToLogsOnError":
            message = "\n".join(process.log.tail(_FALLBACK_LINES))[-_FALLBACK_BYTES:]
        began = process.run.state.get("running", {}).get("startedAt", process.begun)
        now = format_time(self._now())
        process.run.state = terminated(code, event["signal"], began, now, reason, message)
        self._processes.pop(key, None)

    def _new_log(self, run: ContainerRun) -> ContainerLog:
        name, number = run.name, run.restarts
        file = self._machine.folder / self._key / f"{self._states.index(run)}-{number}.log"
        runs = self.logs.setdefault(name, [])
        runs.append(ContainerLog(file, lambda line: self._on_line(name, number, line)))
        for old in runs[:-2]:
            old.remove()
        del runs[:-2]
        return runs[-1]
