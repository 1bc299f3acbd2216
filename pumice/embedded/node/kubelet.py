"""Nodes of an embedded cluster on which pods are processes of this machine.

It stands where `SimulatedNodes` stands: a pod that is bound runs, its status follows, and it goes when it is deleted. All
nodes are this machine, under several names.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from pumice.api import kinds
from pumice.api.meta import format_time
from pumice.embedded.node.demands import problems
from pumice.embedded.node.environment import MissingObjectError, Objects
from pumice.embedded.node.hosts import NamedPod, host_files
from pumice.embedded.node.machine import Machine
from pumice.embedded.node.namespaces import NodeError
from pumice.embedded.node.pod import ProcessPod
from pumice.embedded.node_objects import ready_node, warn
from pumice.embedded.pod_streams import ContainerCommandRequest, ContainerLogRequest
from pumice.embedded.statuses import ApiStatusError, bad_request
from pumice.embedded.storage import Obj, StoredWrite
from pumice.embedded.store import Store
from pumice.embedded.streams import Containers

_KINDS = {"ConfigMap": kinds.CONFIG_MAP, "Secret": kinds.SECRET}
_PODS = (kinds.POD.group, kinds.POD.plural)
_NODES = (kinds.NODE.group, kinds.NODE.plural)
_SERVICES = (kinds.SERVICE.group, kinds.SERVICE.plural)
_FILES = {(kind.group, kind.plural) for kind in _KINDS.values()}
MOST_PODS = 1000
"""Pods that run at a time: a bridge of Linux has 1,024 ports."""
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
_SOON = 0.05
"""Seconds in which changes of names are gathered."""


class Kubelet:
    """Runs the pods that are bound to its nodes.

    Args:
        store: Where pods and nodes are.
        clock: Gives the moment in UNIX seconds.
        machine: What pods run on.
        on_line: Called with each line that a container writes: the pod, the container's name, its run, the line.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        machine: Machine,
        on_line: Callable[[ProcessPod, str, int, bytes], None],
    ) -> None:
        self.containers: Containers | None = self
        self.machine = machine
        self.on_line = on_line
        self._store = store
        self._clock = clock
        self._numbers = count(0)
        self._names: set[str] = set()
        self._pods: dict[str, ProcessPod] = {}
        self._by_key: dict[str, ProcessPod] = {}
        self._hosts: dict[str, str] = {}
        self._naming: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._executions: dict[str, asyncio.Future[Obj]] = {}
        store.storage.listen(self._note)

    def add(
        self, name: str, capacity: dict[str, str], labels: dict[str, str], taints: list[Obj]
    ) -> Obj:
        """Register a node that is ready."""
        moment = format_time(self._clock())
        node = ready_node(
            name, capacity, labels, taints, moment, "127.0.0.1", "processes", _ARCHITECTURE
        )
        made = self._store.create(node)
        self.adopt(name)
        return made

    def adopt(self, name: str) -> None:
        """Run the pods of a node that exists."""
        self._names.add(name)

    def start(self) -> None:
        """Take care of pods from now on, those already bound included."""
        self._loop = asyncio.get_running_loop()
        self.machine.namespaces.on_event = self._hear
        for pod in self._store.list(kinds.POD):
            self._attend(pod)

    async def stop(self) -> None:
        """Let go of all pods; their processes end with the namespaces."""
        self._loop = None
        if self._naming is not None:
            self._naming.cancel()
        everyone = {*self._by_key.values(), *self._pods.values()}
        await asyncio.gather(*(pod.close() for pod in everyone))
        for task in self._tasks:
            task.cancel()

    def pod(self, namespace: str, name: str) -> ProcessPod | None:
        """A pod that this node runs, or has run and that still exists."""
        found = self._store.get(kinds.POD, name, namespace)
        return self._pods.get(found["metadata"]["uid"]) if found else None

    def read_log(self, asked: ContainerLogRequest) -> AsyncIterator[bytes]:
        """What a container has written.

        Raises:
            ApiStatusError: There is no such container, or it has not run (400).
        """
        pod, container = self.pod(asked.namespace, asked.pod), asked.container
        runs = pod.processes.logs.get(container, []) if pod else []
        if asked.previous:
            states = pod.states if pod else ()
            restarts = next((each.restarts for each in states if each.name == container), 0)
            if not restarts or len(runs) < 2:
                raise bad_request(
                    f'previous terminated container "{container}" in pod "{asked.pod}" not found'
                )
            return runs[-2].read(asked)
        if not runs:
            raise bad_request(
                f'container "{container}" in pod "{asked.pod}" is waiting to start: ContainerCreating'
            )
        return runs[-1].read(asked)

    async def execute(self, asked: ContainerCommandRequest, descriptors: Sequence[int]) -> int:
        """Run a program in a container, and return its exit code; see `Containers`.

        Raises:
            ApiStatusError: The container does not run (400), or there is no such program.
        """
        pod, container = self.pod(asked.namespace, asked.pod), asked.container
        process = pod.processes.of(container) if pod else ""
        if pod is None or not process:
            raise bad_request(f'container "{container}" of pod "{asked.pod}" does not run')
        state = next(each for each in pod.states if each.name == container)
        key = f"exec{next(self._numbers)}"
        ended = self._executions[key] = asyncio.get_running_loop().create_future()
        opened: list[int] = []
        try:
            if self.machine.cgroups is not None:
                files = self.machine.cgroups.files(process.replace("/", "-"))
                opened.extend(os.open(file, os.O_WRONLY) for file in files)
            await self.machine.namespaces.ask(
                "execute",
                [*descriptors, *opened],
                id=key,
                pod=pod.key,
                container=process,
                tty=asked.tty,
                command=list(asked.command),
                **pod.specification(state).of_execution(),
            )
            return int((await ended)["code"])
        except asyncio.CancelledError:
            self._spawn(self.machine.namespaces.signal([key], signal.SIGKILL))
            raise
        except (NodeError, MissingObjectError) as error:
            raise bad_request(str(error)) from None
        except OSError as error:  # the container has just ended
            raise bad_request(f"{error.filename}: {error.strerror}") from None
        finally:
            self._executions.pop(key, None)
            for each in opened:
                os.close(each)

    def objects(self, namespace: str) -> Objects:
        """ConfigMaps and Secrets of a namespace."""
        return lambda kind, name: self._store.get(_KINDS[kind], name, namespace)

    def room(self, node: str) -> Mapping[str, str]:
        """What a node has of each resource."""
        found = self._store.get(kinds.NODE, node) or {}
        return (found.get("status") or {}).get("allocatable") or {}

    def now(self) -> float:
        """The moment, in UNIX seconds."""
        return self._clock()

    def write_status(self, pod: ProcessPod, status: Callable[[Obj], Obj]) -> None:
        """Change the status of a pod in the store."""
        found = self._store.get(kinds.POD, pod.name, pod.namespace)
        if found is None or found["metadata"]["uid"] != pod.manifest["metadata"]["uid"]:
            return
        found["status"] = status(found.get("status") or {})
        with suppress(ApiStatusError):  # it has just gone
            self._store.update_status(found)

    def warn(self, pod: ProcessPod, reason: str, message: str) -> None:
        """Write an event about a pod."""
        moment = format_time(self._clock())
        warn(self._store, pod.manifest, reason, message, moment, "kubelet")

    async def name(self, pod: ProcessPod) -> None:
        """Write the host files in which a pod's names stand, before its containers start."""
        await self._write_hosts(pod)
        self.names_changed()

    def names_changed(self) -> None:
        """Write host files soon."""
        if self._loop is not None and self._naming is None:
            self._naming = self._loop.call_later(_SOON, self._rename)

    def gone(self, pod: ProcessPod) -> None:
        """Remove a pod that has ended after its deletion."""
        found = self._store.get(kinds.POD, pod.name, pod.namespace)
        if found is not None and found["metadata"]["uid"] == pod.manifest["metadata"]["uid"]:
            if found["metadata"].get("finalizers"):
                # It stays because of its finalizers; it must not seem to run.
                pod.verdict = pod.verdict or {"phase": "Succeeded"}
                pod.publish()
            with suppress(ApiStatusError):
                self._store.delete(kinds.POD, pod.name, pod.namespace, grace=0)
        self._by_key.pop(pod.key, None)

    def _rename(self) -> None:
        self._naming = None
        self._spawn(self._write_hosts())

    async def _write_hosts(self, only: ProcessPod | None = None) -> None:
        named = [
            NamedPod(each.key, each.manifest, each.address, each.is_ready)
            for each in self._by_key.values()
            if each.address
        ]
        files = host_files(named, self._store.list(kinds.SERVICE))
        if only is not None:
            files = {key: text for key, text in files.items() if key == only.key}
        changed = {key: text for key, text in files.items() if self._hosts.get(key) != text}
        if changed:
            self._hosts |= changed
            with suppress(NodeError):
                await self.machine.namespaces.ask("hosts", files=changed)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hear(self, event: Obj) -> None:
        """What the node's first process reports."""
        if "full" in event:
            if pod := self._by_key.get(event["full"]):
                pod.fail("Evicted", event["message"])
        elif ended := self._executions.get(event.get("ended", "")):
            if not ended.done():
                ended.set_result(event)
        elif pod := self._by_key.get(event.get("ended", "").partition("/")[0]):
            pod.processes.ended(event)

    def _note(self, change: StoredWrite) -> None:
        if self._loop is None:
            return
        if change.resource == _PODS:
            if change.type == "DELETED":
                self._loop.call_soon(self._forget, change.new.obj)
            else:
                self._loop.call_soon(self._attend, change.new.obj)
        elif change.resource == _SERVICES:
            self.names_changed()
        elif change.resource in _FILES:
            self._loop.call_soon(self._refresh, change.key[0])
        elif change.resource == _NODES and change.type == "DELETED":
            self._names.discard(change.key[1])

    def _attend(self, manifest: Obj) -> None:
        if self._loop is None or manifest["spec"].get("nodeName") not in self._names:
            return
        metadata = manifest["metadata"]
        pod = self._pods.get(metadata["uid"])
        is_deleted = bool(metadata.get("deletionTimestamp"))
        if pod is None:
            phase = (manifest.get("status") or {}).get("phase")
            if is_deleted:
                with suppress(ApiStatusError):
                    self._store.delete(kinds.POD, metadata["name"], metadata["namespace"], grace=0)
            elif phase not in ("Succeeded", "Failed"):
                self._begin(manifest)
            return
        before = pod.manifest["metadata"]
        pod.manifest = manifest
        if is_deleted:
            grace = metadata.get("deletionGracePeriodSeconds") or 0
            if before.get("deletionTimestamp") is None or grace < (
                before.get("deletionGracePeriodSeconds") or 0
            ):
                pod.delete(grace)
        elif any(before.get(key) != metadata.get(key) for key in ("labels", "annotations")):
            self._spawn(pod.refresh())
            self.names_changed()

    def _begin(self, manifest: Obj) -> None:
        found = list(problems(manifest["spec"], "spec", self.machine.mode, self.machine.allowed))
        if sum(bool(each.address) for each in self._by_key.values()) >= MOST_PODS:
            self._refuse(manifest, f"{MOST_PODS} pods run on this machine, which is the most")
            return
        if found:
            text = "; ".join(f"{each.path}: {each.message}" for each in found[:3])
            self._refuse(manifest, text)
            return
        pod = ProcessPod(self, manifest, next(self._numbers))
        self._pods[manifest["metadata"]["uid"]] = pod
        self._by_key[pod.key] = pod

    def _refuse(self, manifest: Obj, why: str) -> None:
        """Fail a pod that cannot be run here, as kubelet fails one that it does not admit."""
        status = (manifest.get("status") or {}) | {
            "phase": "Failed",
            "reason": "UnsupportedByNode",
            "message": why,
        }
        with suppress(ApiStatusError):
            self._store.update_status(manifest | {"status": status})

    def _forget(self, manifest: Obj) -> None:
        """A pod is gone from the store: end what runs of it, and forget its logs."""
        pod = self._pods.pop(manifest["metadata"]["uid"], None)
        if pod is not None and pod.key in self._by_key:
            pod.delete(0)
        if pod is not None:
            self._hosts.pop(pod.key, None)

    def _refresh(self, namespace: str) -> None:
        for pod in self._by_key.values():
            if pod.namespace == namespace:
                self._spawn(pod.refresh())
