"""Jobs and JobFlows of `pumice run`, followed to their end: all has ended, nothing can run any more, or the user aborts."""

import asyncio
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop

from pumice.api import keys, kinds
from pumice.api.fields import plain
from pumice.api.messages import counted, listed
from pumice.api.meta import Raw
from pumice.api.raw import key_in
from pumice.cli.development import dev_kubeconfig
from pumice.cli.development.dev_cluster import DevCluster, dev_cluster
from pumice.cli.exits import FINE, INTERRUPTED, REFUSED, UserError
from pumice.cli.live.commands import command_for
from pumice.cli.output import note, table, write
from pumice.cli.running.local import NODE_ENDED
from pumice.cli.running.plan import WATCHED, RunPlan
from pumice.cli.running.reporting import BAD, GOOD, Printer, tell_event, tell_job, tell_pod
from pumice.cluster.event_loop import EventLoop
from pumice.embedded import EmbeddedCluster, Store
from pumice.embedded.node.kubelet import Kubelet
from pumice.embedded.node.machine import local_machine
from pumice.embedded.node.namespaces import NodeError, mode_here
from pumice.embedded.storage import StoredWrite

_STUCK_SECONDS = 3.0
"""How long nothing may run or change until what waits is taken to wait forever."""
_ABORT_SECONDS = 60.0
"""Seconds beyond the longest grace in which Jobs that are aborted must end."""
_REASON_SECONDS = 20.0
"""How long a reason may take on a busy machine."""
_NOT_YET_TRIED = "PodGroupPending"
_NO_REASON = "it has no pods yet"
_TICK = 0.2


def run(plan: RunPlan) -> int:
    """Run the Jobs, and return the exit code.

    Raises:
        UserError: An object is refused, or namespaces cannot be made.
    """
    try:
        return _looped(lambda: _run(plan))
    except NodeError as error:
        raise UserError(str(error)) from None


def dry_run(plan: RunPlan) -> int:
    """Show where the pods would run, and return the exit code.

    Raises:
        UserError: An object is refused.
    """
    return _looped(lambda: _dry_run(plan))


def _looped(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    return uvloop.run(work(), loop_factory=EventLoop)


async def _run(plan: RunPlan) -> int:
    specs = plan.check(mode_here())
    printer = Printer()
    async with local_machine(plan.images, plan.allowed) as machine:
        plan.announce(specs, machine)
        made: list[Kubelet] = []

        def runs_pods(store: Store, clock: Callable[[], float]) -> Kubelet:
            made.append(Kubelet(store, clock, machine, printer.show))
            return made[0]

        follower = _RunFollower(plan, made)
        async with dev_cluster(
            plan.nodes,
            config=plan.config,
            runs_pods=runs_pods,
            state=plan.state,
            on_write=follower.note,
        ) as cluster:
            follower.cluster = cluster.api
            return await follower.run(cluster, printer)


async def _dry_run(plan: RunPlan) -> int:
    plan.check(mode_here())
    follower = _RunFollower(plan, [])
    async with dev_cluster(
        plan.nodes, config=plan.config, state=plan.state, on_write=follower.note
    ) as cluster:
        follower.cluster = cluster.api
        await follower.settled()
        if rows := _rows(cluster.api):
            write(table(("pod", "node", "image", "command"), rows))
        follower.tell_waiting("would not run")
        follower.tell_left_out()
        return REFUSED if follower.waiting() else FINE


def _rows(cluster: EmbeddedCluster) -> list[tuple[str, str, str, str]]:
    """Containers of pods, with `-` for the node of a pod that has none."""
    return [
        (
            each["metadata"]["name"],
            each["spec"].get("nodeName") or "-",
            container.get("image") or "",
            " ".join([*(container.get("command") or ()), *(container.get("args") or ())]),
        )
        for each in cluster.store.list(kinds.POD)
        for container in each["spec"]["containers"]
    ]


class _RunFollower:
    """Follows Jobs and JobFlows to their end."""

    def __init__(self, plan: RunPlan, kubelets: "list[Kubelet]") -> None:
        self.cluster: EmbeddedCluster | None = None
        self._plan = plan
        self._kubelets = kubelets
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._quiet = 0.0
        self._interrupts = 0
        self._is_aborting = False
        self._targets = [
            (kind, each.namespace or "default", each.name)
            for each in plan.manifests
            if (kind := kinds.of_object(each.object)) in WATCHED and kind is not None
        ]

    @property
    def _store(self) -> Store:
        assert self.cluster is not None
        return self.cluster.store

    def note(self, change: StoredWrite) -> None:
        """A write; called inside of it."""
        self._quiet = 0.0
        if change.resource == _key(kinds.POD) and change.type == "MODIFIED":
            before = change.old.obj if change.old else None
            self._loop.call_soon(tell_pod, before, change.new.obj, self._kubelets)
        elif change.resource in map(_key, WATCHED):
            self._note_job(change)
        elif change.resource == _key(kinds.EVENT) and change.type == "ADDED":
            self._loop.call_soon(tell_event, change.new.obj)
        self._changed.set()

    def _note_job(self, change: StoredWrite) -> None:
        phase = _phase(change.new.obj)
        if phase in GOOD | BAD and phase != _phase(change.old.obj if change.old else None):
            self._loop.call_soon(tell_job, change.new.obj)

    async def run(self, cluster: DevCluster, printer: Printer) -> int:
        """Wait until all has ended, and return the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._interrupt)
        with ExitStack() as stack:
            if self._plan.keep:
                self._write_kubeconfig(stack, cluster)
            code = await self._until_ended(cluster)
            printer.flush()
            if self._plan.keep and self._interrupts == 0 and not self._has_node_ended():
                note("the Jobs have ended; Ctrl-C ends the cluster")
                while not self._interrupts and not cluster.components.done():
                    await self._change()
                    if self._has_node_ended():
                        note(NODE_ENDED)
                        return REFUSED
        return code

    async def settled(self) -> None:
        """Wait until the scheduler has nothing more to do."""
        while not self._is_quiet(1.0):
            await self._change()

    def waiting(self) -> list[tuple[str, str]]:
        """Jobs that have not ended and of which no pod runs, or one waits for an object, with the reasons."""
        bound = self._bound()
        found = []
        for job in self._store.list(kinds.JOB):
            state = (job.get("status") or {}).get("state") or {}
            identity = key_in(job)
            held = bound.get(identity)
            if state.get("phase", "") in GOOD | BAD or held == "":
                continue
            name = f"Job {identity}"
            known = state.get("reason") not in (None, "", _NOT_YET_TRIED)
            found.append((name, held or (str(state.get("message")) if known else _NO_REASON)))
        return found

    def _bound(self) -> dict[str, str]:
        """Jobs, as NAMESPACE/NAME, that have pods on nodes, with the object for which one waits, if one does."""
        return {
            _job_of(each): _held(each)
            for each in sorted(self._store.list(kinds.POD), key=_held)  # what waits, last
            if each["spec"].get("nodeName")
        }

    def tell_waiting(self, what: str) -> None:
        """Say what waits and nothing else will change, and why."""
        waiting = self.waiting()
        for name, why in waiting:
            note(plain(f"{name} {what}: {why}"))
        of_queues = all(why.startswith("queue ") for _, why in waiting)
        if not of_queues and not any(self._bound().values()):
            note(
                "--nodes gives the scheduler other nodes than this machine is, for example --nodes 2x16/64Gi/nvidia.com/gpu=8"
            )

    def tell_left_out(self) -> None:
        """Say which Jobs have nodes for some of their pods only, and which Jobs of JobFlows are not there yet."""
        store = self._store
        placed = Counter(
            _job_of(pod) for pod in store.list(kinds.POD) if pod["spec"].get("nodeName")
        )
        jobs = {key_in(job): job for job in store.list(kinds.JOB)}
        for key, job in jobs.items():
            number = sum(task.get("replicas", 1) for task in job["spec"]["tasks"])
            if placed[key] < number and placed[key] and _phase(job) not in GOOD | BAD:
                few = f"{placed[key]} of {counted(number, 'pod')}"
                note(plain(f"Job {key} would start with {few}; the others would wait"))
        for flow in store.list(kinds.JOB_FLOW):
            key = key_in(flow)
            names = [each["name"] for each in flow["spec"].get("flows") or ()]
            if later := listed(each for each in names if f"{key}-{each}" not in jobs):
                note(plain(f"JobFlow {key} would start these when others have completed: {later}"))

    def _is_quiet(self, seconds: float) -> bool:
        """Whether nothing has changed for a while, and all that waits has a reason."""
        if self._quiet < seconds:
            return False
        return self._quiet > _REASON_SECONDS or all(why != _NO_REASON for _, why in self.waiting())

    async def _until_ended(self, cluster: DevCluster) -> int:
        deadline = None if self._plan.timeout is None else self._loop.time() + self._plan.timeout
        killed_at = None
        while True:
            await self._change()
            if cluster.components.done():
                return REFUSED  # what it raised ends the block
            if self._has_node_ended():
                note(NODE_ENDED)
                return REFUSED
            if self._is_aborting and self._all_jobs_ended():
                return REFUSED
            phases = self._phases()
            if all(phase in GOOD | BAD for phase in phases):
                return FINE if set(phases) <= GOOD else REFUSED
            if self._interrupts > 1:
                note("killed")
                return INTERRUPTED
            now = self._loop.time()
            if killed_at is not None and now > killed_at:
                note("what was aborted has not ended; killed")
                return REFUSED
            if self._interrupts and not self._is_aborting:
                note("aborting the Jobs; Ctrl-C again kills")
                killed_at = now + self._abort()
            if deadline is not None and now > deadline and not self._is_aborting:
                note(
                    f"--timeout: the Jobs have not ended after {self._plan.timeout:g} s; aborting them"
                )
                killed_at = now + self._abort()
            if not self._is_aborting and self._is_stuck():
                self.tell_waiting("waits, and nothing else runs")
                return REFUSED

    def _has_node_ended(self) -> bool:
        return any(each.machine.namespaces.ended.done() for each in self._kubelets)

    async def _change(self) -> None:
        """Wait for a change, at most for a moment.

        Where other processes leave this one little time, moments without a change count, not the time that they took: the components of the
        cluster wait for the same loop.
        """
        try:
            await asyncio.wait_for(self._changed.wait(), _TICK)
        except TimeoutError:
            self._quiet += _TICK
        self._changed.clear()

    def _phases(self) -> list[str]:
        return [_phase(self._store.get(kind, name, where)) for kind, where, name in self._targets]

    def _all_jobs_ended(self) -> bool:
        return all(_phase(each) in GOOD | BAD for each in self._store.list(kinds.JOB))

    def _is_stuck(self) -> bool:
        """Whether nothing runs, nothing has changed for a while, and something waits."""
        if not self._is_quiet(_STUCK_SECONDS):
            return False
        active = any(
            each["spec"].get("nodeName")
            and (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            and not _held(each)
            for each in self._store.list(kinds.POD)
        )
        return not active and bool(self.waiting())

    def _abort(self) -> float:
        """Abort all Jobs by their policies; seconds that it may take."""
        self._is_aborting = True
        for job in self._store.list(kinds.JOB):
            self._store.create(command_for(job, "AbortJob", job["metadata"]["namespace"]))
        graces = [
            each["spec"].get("terminationGracePeriodSeconds") or 0
            for each in self._store.list(kinds.POD)
        ]
        return _ABORT_SECONDS + max(graces, default=0)

    def _interrupt(self) -> None:
        self._interrupts += 1
        self._changed.set()

    def _write_kubeconfig(self, stack: ExitStack, cluster: DevCluster) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pumice-run-"))
        file = Path(folder, "kubeconfig")
        stack.enter_context(dev_kubeconfig.written(file, cluster.api.kubeconfig()))
        note(f"export KUBECONFIG={file}")


def _phase(obj: Raw | None) -> str:
    return (((obj or {}).get("status") or {}).get("state") or {}).get("phase") or ""


def _job_of(pod: Raw) -> str:
    """The Job that a pod belongs to, as NAMESPACE/NAME; the name is empty for a pod of none."""
    labels = pod["metadata"].get("labels") or {}
    return f"{pod['metadata']['namespace']}/{labels.get(keys.JOB_NAME, '')}"


def _held(pod: Raw) -> str:
    """The pod and the object that it waits for while none of its containers runs; empty for any other pod."""
    states = [
        each.get("state") or {} for each in (pod.get("status") or {}).get("containerStatuses") or ()
    ]
    waiting = [each.get("waiting") or {} for each in states]
    told = [each["message"] for each in waiting if each.get("reason") == "ContainerCreating"]
    is_held = bool(told) and not any("running" in each for each in states)
    return f"{pod['metadata']['name']}: {told[0]}" if is_held else ""


def _key(kind: kinds.Kind) -> tuple[str, str]:
    return kind.group, kind.plural
