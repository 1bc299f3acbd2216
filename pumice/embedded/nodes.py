"""Simulated nodes: pods run and end after they are bound.

A bound pod runs after a delay, ends after the duration in its annotation, and is gone a little after it, or its node,
has been deleted. Each pod has a timer of the event loop. All writes use the store, as a kubelet's writes use the API.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from pumice.api import keys, kinds
from pumice.api.durations import parse_seconds
from pumice.api.meta import format_time
from pumice.embedded.node_objects import ready_node, warn
from pumice.embedded.retries import Retries
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Obj, StoredWrite
from pumice.embedded.store import Store
from pumice.embedded.strategies_pods import is_terminal
from pumice.embedded.streams import Containers

_NODES = (kinds.NODE.group, kinds.NODE.plural)
_PODS = (kinds.POD.group, kinds.POD.plural)
_CODE = re.compile(r"[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5]")
"""What a process can return to Linux."""
_SHOWN = 60
"""How much of a value a message shows."""


@dataclass(frozen=True, slots=True)
class NodeTimings:
    """How long simulated nodes take, in seconds.

    Attributes:
        start: From being bound to Running.
        stop: From being deleted to being gone.
    """

    start: float = 0.1
    stop: float = 0.1


class NodeRunner(Protocol):
    """What runs the pods of a cluster.

    Attributes:
        containers: The containers of the pods; None where none is started.
    """

    containers: Containers | None

    def add(
        self, name: str, capacity: dict[str, str], labels: dict[str, str], taints: list[Obj]
    ) -> Obj:
        """Register a node that is ready."""

    def adopt(self, name: str) -> None:
        """Run the pods of a node that exists."""

    def start(self) -> None:
        """Take care of pods from now on, those already bound included."""

    async def stop(self) -> None:
        """Let go of all pods."""


class SimulatedNodes:
    """The kubelets of all simulated nodes.

    Attributes:
        containers: None: no container is started.
    """

    containers: Containers | None = None

    def __init__(self, store: Store, clock: Callable[[], float], timings: NodeTimings) -> None:
        self._store = store
        self._clock = clock
        self._timings = timings
        self._names: set[str] = set()
        self._added = 0
        self._retries = Retries()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._addresses = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        store.storage.listen(self._note)

    def add(
        self, name: str, capacity: dict[str, str], labels: dict[str, str], taints: list[Obj]
    ) -> Obj:
        """Register a node that is ready."""
        self._added += 1
        address = f"10.1.{self._added // 256}.{self._added % 256}"
        moment = format_time(self._clock())
        node = ready_node(name, capacity, labels, taints, moment, address)
        made = self._store.create(node)
        self.adopt(name)
        return made

    def adopt(self, name: str) -> None:
        """Simulate a node that exists."""
        self._names.add(name)
        for pod in self._store.list(kinds.POD, fields=f"spec.nodeName={name}"):
            self._attend(pod)

    def start(self) -> None:
        """Take care of pods from now on, those already bound included."""
        self._loop = asyncio.get_running_loop()
        for pod in self._store.list(kinds.POD):
            self._attend(pod)

    async def stop(self) -> None:
        """Drop all timers."""
        self._loop = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _note(self, change: StoredWrite) -> None:
        if change.resource == _NODES and change.type == "DELETED":
            self._lose(change.key[1])
        if change.resource != _PODS or self._loop is None:
            return
        pod = change.new.obj
        if change.type == "DELETED":
            timer = self._timers.pop(pod["metadata"]["uid"], None)
            if timer is not None:
                timer.cancel()
            return
        before = change.old.obj if change.old else None
        if before is None or _stage(before) != _stage(pod):
            self._attend(pod)

    def _lose(self, name: str) -> None:
        """Remove the pods of a node that is gone, as the garbage collector of a controller manager does."""
        if name not in self._names:
            return
        self._names.discard(name)
        if self._loop is not None:
            self._loop.call_later(self._timings.stop, self._remove_pods, name)

    def _remove_pods(self, node: str) -> None:
        if self._store.get(kinds.NODE, node) is not None:
            return
        for pod in self._store.list(kinds.POD, fields=f"spec.nodeName={node}"):
            metadata = pod["metadata"]
            self._store.delete(kinds.POD, metadata["name"], metadata["namespace"], grace=0)

    def _attend(self, pod: Obj) -> None:
        """Set the timer for the next thing that happens to a pod."""
        if self._loop is None or not self._is_ours(pod):
            return
        uid = pod["metadata"]["uid"]
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        step = self._next(pod)
        if step is not None:
            delay, action = step
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            self._timers[uid] = self._loop.call_later(
                delay,
                self._retries.attempt,
                ("Pod", namespace, name),
                partial(self._act, action, namespace, name, uid),
            )

    def _is_ours(self, pod: Obj) -> bool:
        """Whether a pod is on a simulated node, or being deleted from one that is gone."""
        node = pod["spec"].get("nodeName")
        if node in self._names:
            return True
        deleted = bool(node) and bool(pod["metadata"].get("deletionTimestamp"))
        return deleted and self._store.get(kinds.NODE, node) is None

    def _next(self, pod: Obj) -> "tuple[float, Callable[[Obj], None]] | None":
        if pod["metadata"].get("deletionTimestamp"):
            grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
            return min(self._timings.stop, grace), self._kill
        phase = (pod.get("status") or {}).get("phase")
        if phase == "Pending":
            return self._timings.start, self._run
        if phase == "Running":
            text = (pod["metadata"].get("annotations") or {}).get(keys.RUN_DURATION)
            duration = parse_seconds(text) if text else None
            if duration is not None:
                return duration, self._end
        return None

    def _act(self, action: Callable[[Obj], None], namespace: str, name: str, uid: str) -> None:
        self._timers.pop(uid, None)
        pod = self._store.get(kinds.POD, name, namespace)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        try:
            action(pod)
        except ApiStatusError as error:
            if error.code not in {404, 409}:
                raise

    def _run(self, pod: Obj) -> None:
        moment = format_time(self._clock())
        self._addresses += 1
        number = self._addresses
        address = f"10.{64 + number // 65536 % 32}.{number // 256 % 256}.{number % 256}"
        status = pod["status"]
        status |= {
            "phase": "Running",
            "startTime": moment,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "127.0.0.1",
        }
        _set_ready(status, moment, ready=True)
        status["containerStatuses"] = [
            _container_status(each, {"running": {"startedAt": moment}}, ready=True)
            for each in pod["spec"]["containers"]
        ]
        self._store.update_status(pod)
        for message in _doubts(pod):
            warn(self._store, pod, "InvalidAnnotation", message, moment, "simulated-nodes")

    def _end(self, pod: Obj) -> None:
        moment = format_time(self._clock())
        code = _exit_code(pod)
        status = pod["status"]
        status["phase"] = "Failed" if code else "Succeeded"
        _set_ready(status, moment, ready=False, reason="PodFailed" if code else "PodCompleted")
        status["containerStatuses"] = [
            _container_status(each, {"terminated": _terminated(status, code, moment)}, ready=False)
            for each in pod["spec"]["containers"]
        ]
        self._store.update_status(pod)

    def _kill(self, pod: Obj) -> None:
        metadata = pod["metadata"]
        if not is_terminal(pod) and metadata.get("finalizers"):
            # It stays because of its finalizers; it must not seem to run.
            self._end(pod)
            pod = self._store.get(kinds.POD, metadata["name"], metadata["namespace"]) or pod
        self._store.delete(kinds.POD, metadata["name"], metadata["namespace"], grace=0)


def _stage(pod: Obj) -> tuple[Any, ...]:
    """The conditions that decide the next step of a pod."""
    metadata = pod["metadata"]
    return (
        pod["spec"].get("nodeName"),
        (pod.get("status") or {}).get("phase"),
        metadata.get("deletionTimestamp"),
        metadata.get("deletionGracePeriodSeconds"),
    )


def _exit_code(pod: Obj) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(keys.EXIT_CODE, "0")
    return int(text) if _CODE.fullmatch(text) else 0


def _doubts(pod: Obj) -> list[str]:
    """Which annotations of a pod are not understood."""
    told = pod["metadata"].get("annotations") or {}
    duration, code = told.get(keys.RUN_DURATION), told.get(keys.EXIT_CODE)
    found = []
    if duration and parse_seconds(duration) is None:
        expected = "expected a duration such as 20s or 1m30s; the pod runs until it is deleted"
        found.append(f"annotation {keys.RUN_DURATION}: {duration[:_SHOWN]!r}: {expected}")
    if code and not _CODE.fullmatch(code):
        expected = "expected a whole number from 0 to 255; the pod ends with 0"
        found.append(f"annotation {keys.EXIT_CODE}: {code[:_SHOWN]!r}: {expected}")
    return found


def _terminated(status: Obj, code: int, moment: str) -> Obj:
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": status.get("startTime", moment),
        "finishedAt": moment,
    }


def _container_status(container: Obj, state: Obj, *, ready: bool) -> Obj:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }


def _set_ready(status: Obj, moment: str, *, ready: bool, reason: str = "") -> None:
    wanted = {"Initialized": True, "Ready": ready, "ContainersReady": ready}
    conditions = [each for each in status.get("conditions") or () if each.get("type") not in wanted]
    for type_, true in wanted.items():
        condition = {
            "type": type_,
            "status": "True" if true else "False",
            "lastTransitionTime": moment,
        }
        if reason and not true:
            condition["reason"] = reason
        conditions.append(condition)
    status["conditions"] = conditions
