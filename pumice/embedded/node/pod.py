"""One pod: its sandbox, init containers, sidecars, containers and their restarts, up to its end.

It does what kubelet does, with processes where kubelet has containers. Everything is decided here; the node's first process only
carries out. A task leads the pod to its end; its deletion cancels the task and stops the containers.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import structlog

from pumice.api.meta import Raw, format_time
from pumice.embedded.node import volumes
from pumice.embedded.node.environment import MissingObjectError, Objects
from pumice.embedded.node.hosts import host_name
from pumice.embedded.node.machine import Machine
from pumice.embedded.node.namespaces import NodeError
from pumice.embedded.node.pod_processes import PodProcesses
from pumice.embedded.node.pod_status import ContainerRun, status_of
from pumice.embedded.node.pod_volumes import PodVolumes
from pumice.embedded.node.specification import ContainerSpecification

_AGAIN = 0.5
"""Seconds until a missing object is looked for again."""
_GRACE = 30
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 300.0
_STEADY = 600.0
"""Seconds after which a container that ends counts as one that had run well."""

_log = structlog.get_logger(__name__)


class Host(Protocol):
    """What a pod needs of its node."""

    @property
    def machine(self) -> Machine:
        """What it runs on."""

    def objects(self, namespace: str) -> Objects:
        """ConfigMaps and Secrets."""

    def room(self, node: str) -> Mapping[str, str]:
        """What a node has of each resource."""

    def now(self) -> float:
        """The moment, in UNIX seconds."""

    def write_status(self, pod: "ProcessPod", status: Callable[[Raw], Raw]) -> None:
        """Change the status of the pod in the store."""

    def warn(self, pod: "ProcessPod", reason: str, message: str) -> None:
        """Write an event about the pod."""

    async def name(self, pod: "ProcessPod") -> None:
        """Write the host files in which the pod's names stand."""

    def names_changed(self) -> None:
        """Write host files soon."""

    def on_line(self, pod: "ProcessPod", container: str, run: int, line: bytes) -> None:
        """A container has written a line."""

    def gone(self, pod: "ProcessPod") -> None:
        """The pod has ended after its deletion."""


class ProcessPod:
    """One pod of the node.

    Attributes:
        manifest: The pod; the node replaces it when its metadata change.
        key: What tells it from all others in the node.
        address: Its address; empty before it has one.
        processes: The processes of its containers, and what they write.
        verdict: Phase, reason and message where something has ended it.
    """

    def __init__(self, host: Host, manifest: Raw, number: int) -> None:
        self.manifest = manifest
        self.key = f"pod{number}"
        self.address = ""
        self.verdict: Raw = {}
        self._host, self._number = host, number
        self._spec: Raw = manifest["spec"]
        self._policy = self._spec.get("restartPolicy") or "Always"
        self._init = [
            ContainerRun(each, is_sidecar=each.get("restartPolicy") == "Always")
            for each in self._spec.get("initContainers") or ()
        ]
        self._containers = [ContainerRun(each) for each in self._spec["containers"]]
        self._writing = asyncio.Lock()
        self._volumes = PodVolumes(host.machine, self.key, self._spec)
        self.processes = PodProcesses(
            host.machine, self.key, self.states, host.now, partial(host.on_line, self)
        )
        self._initialised = False
        self._is_dirty = False
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._main = asyncio.create_task(self._lead(), name=f"pod {self.name}")
        self._stopping: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        if (seconds := self._spec.get("activeDeadlineSeconds")) is not None:
            message = "Pod was active on the node longer than the specified deadline"
            self._deadline = self._loop.call_later(
                int(seconds), self.fail, "DeadlineExceeded", message
            )

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.manifest["metadata"]["namespace"])

    @property
    def is_ready(self) -> bool:
        """Whether all its containers run."""
        return all(each.runs for each in self._containers) and not self.verdict

    @property
    def states(self) -> list[ContainerRun]:
        """Its init containers and containers."""
        return [*self._init, *self._containers]

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return bool(self.verdict) or all(each.is_over for each in self._containers)

    async def refresh(self) -> None:
        """Bring the files of volumes up to date, if they have changed."""
        if self.address and not self.is_over and self._stopping is None:
            with suppress(MissingObjectError, NodeError):
                await self._write_files()

    async def _write_files(self) -> None:
        """Write the files of volumes as they should be now, one writer after another, so that none writes what is out of date."""
        async with self._writing:
            await self._volumes.write(self._read_files())

    def fail(self, reason: str, message: str) -> None:
        """End the pod as failed, at once."""
        if self.is_over or self._stopping is not None:
            return
        self.verdict = {"phase": "Failed", "reason": reason, "message": message}
        self._host.warn(self, reason, message)
        self._stop_main()
        self._stopping = asyncio.create_task(self._stop(0, is_deleted=False))

    def delete(self, grace: float) -> None:
        """End the pod because it is deleted; a second call may shorten the grace."""
        if self._stopping is not None:
            self._stopping.cancel()
        self._stop_main()
        self._stopping = asyncio.create_task(self._stop(grace, is_deleted=True))

    async def close(self) -> None:
        """Cancel all tasks and close the logs, and write no status: the node ends."""
        self._stop_main()
        tasks = [self._main, *self._tasks, *([self._stopping] if self._stopping else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.processes.close()

    def _stop_main(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        for task in (self._main, *self._tasks):
            task.cancel()

    async def _lead(self) -> None:
        try:
            await self._make_sandbox()
            if await self._initialise():
                await self._run_containers()
        except NodeError as error:
            self._loop.call_soon(self.fail, "NodeError", str(error))
        except Exception as error:  # of a pod that no other server would have admitted
            _log.exception("a pod cannot be run", pod=f"{self.namespace}/{self.name}")
            self._loop.call_soon(self.fail, "NodeError", f"{type(error).__name__}: {error}")
        else:
            await self._finish()

    async def _make_sandbox(self) -> None:
        """Namespaces, volumes and names."""
        machine = self._host.machine
        await self._when_there(self._read_files)
        high, low = divmod(self._number % 65_000 + 2, 256)
        address = f"10.244.{high}.{low}"
        await machine.namespaces.ask(
            "pod",
            pod=self.key,
            hostname=host_name(self.manifest),
            interface=f"veth{self._number}",
            address=address,
            most=machine.size,
            together=machine.together,
        )
        self.address = address
        await self._write_files()
        await self._volumes.make_empty()
        await self._host.name(self)

    def _objects(self) -> Objects:
        return self._host.objects(self.namespace)

    async def _when_there(self, make: Callable[[], Any]) -> Any:
        """What a function makes, as soon as the objects that it needs are there."""
        told = ""
        while True:
            try:
                made = make()
            except MissingObjectError as error:
                if str(error) != told:
                    told = str(error)
                    self._host.warn(self, "FailedMount", told)
                    self._wait({"reason": "ContainerCreating", "message": told})
                await asyncio.sleep(_AGAIN)
            else:
                if told:
                    self._wait({"reason": "PodInitializing"})
                return made

    def _wait(self, why: Raw) -> None:
        """Say why those containers wait that have not begun."""
        for each in self._containers:
            if "waiting" in each.state:
                each.state = {"waiting": why}
        self.publish()

    def _wired(self) -> Raw:
        """The pod with its addresses."""
        return self.manifest | {"status": {"hostIP": "127.0.0.1", "podIP": self.address}}

    def _read_files(self) -> dict[str, volumes.Files]:
        return self._volumes.read(self._wired(), self._objects(), self._room())

    def _room(self) -> Mapping[str, str]:
        return self._host.room(self._spec.get("nodeName", ""))

    async def _initialise(self) -> bool:
        """Run the init containers, one after the other; whether all have done their work."""
        for each in self._init:
            if each.is_sidecar:
                started = self._loop.create_future()
                self._tasks.append(asyncio.create_task(self._repeat(each, "Always", started)))
                await started
                continue
            policy = "OnFailure" if self._policy != "Never" else "Never"
            await self._repeat(each, policy)
            if each.code:
                for other in self._containers:
                    other.state = {"waiting": {"reason": "PodInitializing"}}
                message = f'init container "{each.name}" ended with {each.code}'
                self.verdict = {"phase": "Failed", "message": message}
                return False
        self._initialised = True
        return True

    async def _run_containers(self) -> None:
        loops = []
        for each in self._containers:
            started = self._loop.create_future()
            task = asyncio.create_task(self._repeat(each, self._policy, started))
            self._tasks.append(task)
            loops.append(task)
            await started
        await asyncio.gather(*loops)

    async def _finish(self) -> None:
        """The containers have ended for good: stop the sidecars, and say so."""
        for task in self._tasks:
            task.cancel()
        await self.processes.stop(float(self._spec.get("terminationGracePeriodSeconds", _GRACE)))
        if self._deadline is not None:
            self._deadline.cancel()
        self.publish()
        await self._remove_sandbox()

    async def _repeat(
        self, each: ContainerRun, policy: str, started: "asyncio.Future[None] | None" = None
    ) -> None:
        """Run a container, and again as its policy says."""
        pause = 0.0
        while True:
            begun = self._loop.time()
            await self._run_once(each, started)
            again = policy == "Always" or (policy == "OnFailure" and each.code != 0)
            if not again:
                each.is_over = True
                self.publish()
                return
            if self._loop.time() - begun > _STEADY:
                pause = 0.0
            if pause:
                each.last, ended = each.state, each.state["terminated"]
                message = f"back-off {pause:g}s restarting container {each.name}, which ended with {ended['exitCode']}"
                each.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
                self.publish()
                await asyncio.sleep(pause)
            else:
                each.last = each.state
            pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            each.restarts += 1

    async def _run_once(self, each: ContainerRun, started: "asyncio.Future[None] | None") -> None:
        """Run a container to its end."""
        spec = await self._when_there(
            lambda: self.specification(each).of_start(self._volumes.files)
        )
        try:
            process = await self.processes.start(each, spec, self.specification(each).limits())
        except NodeError as error:
            if self._host.machine.namespaces.ended.done():
                raise
            self._host.warn(self, "Failed", f"{each.name}: {error}")
        else:
            self.publish()
            self._host.names_changed()
            if started is not None and not started.done():
                started.set_result(None)
            await self.processes.finished(process)
        if started is not None and not started.done():
            started.set_result(None)
        self.publish()
        self._host.names_changed()

    def specification(self, each: ContainerRun) -> ContainerSpecification:
        """What the node's first process needs to know of a container."""
        number = next(n for n, other in enumerate(self.states) if other is each)
        machine, objects = self._host.machine, self._objects()
        return ContainerSpecification(
            machine, self._wired(), each.manifest, number, objects, self._room()
        )

    async def _stop(self, grace: float, *, is_deleted: bool) -> None:
        """Stop what runs, and say that the pod has ended."""
        await self.processes.stop(grace)
        for each in self.states:
            each.is_over = each.is_over or not each.runs
        await self._remove_sandbox()
        if is_deleted:
            if not self.verdict and any(each.code for each in self._containers):
                self.verdict = {"phase": "Failed"}
            self._host.gone(self)
        else:
            self.publish()
        self._host.names_changed()

    async def _remove_sandbox(self) -> None:
        with suppress(NodeError):
            await self._host.machine.namespaces.ask("remove", pod=self.key)
        self.address = ""
        self._host.names_changed()

    def publish(self) -> None:
        """Write the status, once for all changes of a moment."""
        if not self._is_dirty:
            self._is_dirty = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_dirty = False
        moment = format_time(self._host.now())
        self._host.write_status(
            self,
            lambda before: status_of(
                before,
                self._init,
                self._containers,
                moment,
                address=self.address,
                is_initialised=self._initialised,
                verdict=self.verdict,
            ),
        )
