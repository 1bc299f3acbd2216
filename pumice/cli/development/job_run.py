"""What `pumice run` does: a cluster in this process whose pods are processes, its Jobs followed to their end."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.api.fields import FieldError, plain
from pumice.cli.exits import FINE, INTERRUPTED, REFUSED, USAGE, UserError, finish
from pumice.cli.files.manifests import Manifest, Raw
from pumice.cli.output import note, paint, table, write

if TYPE_CHECKING:
    from pumice.cli.development.dev_cluster import DevCluster, SimulatedNode
    from pumice.embedded import EmbeddedCluster
    from pumice.embedded.node.pod import Machine, Pod
    from pumice.embedded.storage import StoredWrite
    from pumice.scheduler import Config

__all__ = ["RunPlan", "dry_run", "run"]

_GOOD = frozenset({"Completed", "Succeed"})
_BAD = frozenset({"Failed", "Aborted", "Terminated"})
_STUCK_SECONDS = 3.0
"""How long nothing may run or change until what waits is taken to wait forever."""
_ABORT_SECONDS = 60.0
"""Seconds beyond the longest grace in which Jobs that are aborted must end."""
_TICK = 0.2
_LAST_LINES = 5
_COLOURS = ("cyan", "green", "yellow", "blue", "magenta")
_WATCHED = (kinds.JOB, kinds.JOB_FLOW)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be run.

    Attributes:
        manifests: Objects of the files.
        nodes: What this machine is for the scheduler.
        images: Folders of images by name, from the bottom up.
        allowed: Folders of the machine that pods may mount.
        config: Configuration of the scheduler; the default if None.
        timeout: Seconds until what runs is aborted; None for ever.
        keep: Whether the cluster goes on when all has ended.
    """

    manifests: Sequence[Manifest]
    nodes: "Sequence[SimulatedNode]"
    images: Mapping[str, Sequence[Path]]
    allowed: Sequence[Path]
    config: "Config | None"
    timeout: float | None
    keep: bool


def run(plan: RunPlan) -> int:
    """Run the Jobs, and return the exit code.

    Raises:
        UserError: An object is refused, or namespaces cannot be made.
    """
    from pumice.embedded.node.namespaces import NodeError

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


def _looped(work: Callable[[], Any]) -> int:
    import uvloop

    from pumice.cluster.event_loop import EventLoop

    code: int = uvloop.run(work(), loop_factory=EventLoop)
    return code


async def _run(plan: RunPlan) -> int:
    from pumice.cli.development.dev_cluster import dev_cluster
    from pumice.embedded.node.kubelet import Kubelet
    from pumice.embedded.node.local import local_machine

    objects = _admitted(plan.manifests)
    printer = _Printer()
    async with local_machine(plan.images, plan.allowed) as machine:
        _check_demands(objects, machine)
        _announce(plan, objects, machine)
        made: list[Kubelet] = []

        def runs_pods(store: Any, clock: Callable[[], float]) -> Kubelet:
            made.append(Kubelet(store, clock, machine, printer.show))
            return made[0]

        changed = asyncio.Event()
        follower = _Follower(plan, made, changed)
        async with dev_cluster(
            plan.nodes,
            config=plan.config,
            runs_pods=runs_pods,
            state=objects,
            on_write=follower.note,
        ) as cluster:
            follower.cluster = cluster.api
            return await follower.run(cluster, printer)


async def _dry_run(plan: RunPlan) -> int:
    from pumice.cli.development.dev_cluster import dev_cluster
    from pumice.embedded.node.namespaces import mode_here

    objects = _admitted(plan.manifests)
    _refuse_demands(objects, lambda spec, path: _problems(spec, path, mode_here(), plan.allowed))
    changed = asyncio.Event()
    follower = _Follower(plan, [], changed)
    async with dev_cluster(
        plan.nodes, config=plan.config, state=objects, on_write=follower.note
    ) as cluster:
        follower.cluster = cluster.api
        await follower.settled()
        rows = [
            (each["metadata"]["name"], each["spec"]["nodeName"], image, " ".join(command))
            for each in cluster.api.store.list(kinds.POD)
            if each["spec"].get("nodeName")
            for container in each["spec"]["containers"]
            for image in (container.get("image", ""),)
            for command in ([*container.get("command", ()), *container.get("args", ())],)
        ]
        write(table(("pod", "node", "image", "command"), rows))
        waiting = follower.waiting()
        for name, why in waiting:
            note(plain(f"{name} waits: {why}"))
        return REFUSED if waiting else FINE


def _admitted(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The objects, of which none is refused.

    Raises:
        UserError: There is nothing to run.
        typer.Exit: One is refused, which is reported.
    """
    from pumice.cli.files.checking import ManifestChecker, read_settings
    from pumice.cli.workflows import admitted

    known = [each for each in manifests if kinds.of_object(each.object)]
    if not any(kinds.of_object(each.object) in _WATCHED for each in known):
        files = ", ".join(dict.fromkeys(each.source.file for each in manifests))
        raise UserError(f"there is no Job of Volcano in {files}, and no JobFlow")
    checker = ManifestChecker(read_settings(()), (), known)
    found = [admitted(each, checker) if each in known else each.object for each in manifests]
    if None in found:
        finish(USAGE)
    return list(manifests)


def _problems(
    spec: Raw, path: str, mode: Any, allowed: Sequence[Path]
) -> Iterator[FieldError]:
    from pumice.embedded.node.demands import problems

    return problems(spec, path, mode, allowed)


def _check_demands(objects: Sequence[Manifest], machine: "Machine") -> None:
    _refuse_demands(
        objects, lambda spec, path: _problems(spec, path, machine.mode, machine.allowed)
    )


def _refuse_demands(
    objects: Sequence[Manifest], check: Callable[[Raw, str], Iterator[FieldError]]
) -> None:
    """Refuse Jobs and JobTemplates whose pods cannot be run here.

    Raises:
        UserError: With a line for each problem.
    """
    found = [
        f"{each.source.file}: {each.identity}: {problem.path}: {problem.message}"
        for each in objects
        for path, spec in _pod_specs(each.object)
        for problem in check(spec, path)
    ]
    if found:
        raise UserError(*found)


def _pod_specs(manifest: Raw) -> Iterator[tuple[str, Raw]]:
    """The specs of the pods that an object leads to, with their paths."""
    if kinds.of_object(manifest) not in (kinds.JOB, kinds.JOB_TEMPLATE):
        return
    for number, task in enumerate((manifest.get("spec") or {}).get("tasks") or ()):
        spec = ((task or {}).get("template") or {}).get("spec")
        if spec:
            yield f"spec.tasks[{number}].template.spec", spec


def _announce(plan: RunPlan, objects: Sequence[Manifest], machine: "Machine") -> None:
    """Say in a line each what differs from a cluster."""
    from pumice.embedded.node.demands import has_probes

    specs = [spec for each in objects for _, spec in _pod_specs(each.object)]
    note(f"mode: {machine.mode}")
    if machine.cgroups is not None:
        note("limits: cgroups hold CPU, memory and processes")
    else:
        note("limits: no cgroup may be made here, so only numbers of processes and bytes in files are held")
    images = {
        container.get("image", "")
        for spec in specs
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    }
    if own := sorted(images - set(plan.images)):
        note(plain(f"images: {', '.join(own)}: programs are this machine's; --image NAME=DIR gives another root"))
    if any(map(has_probes, specs)):
        note("probes: they are not asked; a container that runs is ready")


class _Printer:
    """Prints what containers write, a line at a time, with the names of their pods."""

    def __init__(self) -> None:
        self._styles: dict[str, str] = {}
        self._is_waiting = False

    def show(self, pod: "Pod", container: str, run: int, line: bytes) -> None:
        """Print a line."""
        from pumice.cli.live.log_lines import shown

        title = pod.name if len(pod.states) == 1 else f"{pod.name}/{container}"
        style = self._styles.setdefault(title, _COLOURS[len(self._styles) % len(_COLOURS)])
        title = f"{title}#{run + 1}" if run else title
        write(f"{paint(title, style)} | {shown(line)}")
        if not self._is_waiting:
            self._is_waiting = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Let all that was printed be seen."""
        self._is_waiting = False
        sys.stdout.flush()


class _Follower:
    """Follows Jobs and JobFlows to their end."""

    def __init__(self, plan: RunPlan, kubelets: list[Any], changed: asyncio.Event) -> None:
        self.cluster: EmbeddedCluster | None = None
        self._plan = plan
        self._kubelets = kubelets
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._last_change = self._loop.time()
        self._said: set[tuple[str, str]] = set()
        self._interrupts = 0
        self._is_aborting = False
        self._targets = [
            (kind, each.namespace or "default", each.name)
            for each in plan.manifests
            if (kind := kinds.of_object(each.object)) in _WATCHED and kind is not None
        ]

    def note(self, change: "StoredWrite") -> None:
        """A write; called inside of it."""
        self._last_change = self._loop.time()
        if change.resource == _key(kinds.POD) and change.type == "MODIFIED":
            self._loop.call_soon(self._tell_pod, change.old and change.old.obj, change.new.obj)
        elif change.resource == _key(kinds.JOB):
            self._loop.call_soon(self._tell_job, change.new.obj, change.type)
        elif change.resource == _key(kinds.EVENT) and change.type == "ADDED":
            self._loop.call_soon(self._tell_event, change.new.obj)
        self._changed.set()

    async def run(self, cluster: "DevCluster", printer: _Printer) -> int:
        """Wait until all has ended, and return the exit code."""
        import signal

        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._interrupt)
        with ExitStack() as stack:
            if self._plan.keep:
                self._write_kubeconfig(stack, cluster)
            code = await self._until_ended(cluster)
            printer.flush()
            if self._plan.keep and self._interrupts == 0:
                note("the Jobs have ended; Ctrl-C ends the cluster")
                while not self._interrupts and not cluster.components.done():
                    await self._change()
        return code

    async def settled(self) -> None:
        """Wait until the scheduler has nothing more to do."""
        begun = self._loop.time()
        while self._loop.time() - self._last_change < 1.0 and self._loop.time() - begun < 60:
            await self._change()

    def waiting(self) -> list[tuple[str, str]]:
        """Jobs and JobFlows that have not ended and of which no pod runs, with the reasons."""
        assert self.cluster is not None
        bound = {
            (each["metadata"].get("labels") or {}).get("volcano.sh/job-name")
            for each in self.cluster.store.list(kinds.POD)
            if each["spec"].get("nodeName")
        }
        found = []
        for job in self.cluster.store.list(kinds.JOB):
            state = (job.get("status") or {}).get("state") or {}
            if state.get("phase", "") in _GOOD | _BAD or job["metadata"]["name"] in bound:
                continue
            name = f"Job {job['metadata']['namespace']}/{job['metadata']['name']}"
            found.append((name, state.get("message") or "it has no pods yet"))
        return found

    async def _until_ended(self, cluster: "DevCluster") -> int:
        deadline = None if self._plan.timeout is None else self._loop.time() + self._plan.timeout
        killed_at = None
        while True:
            await self._change()
            if cluster.components.done():
                return REFUSED  # what it raised ends the block
            phases = self._phases()
            if all(phase in _GOOD | _BAD for phase in phases):
                return FINE if set(phases) <= _GOOD else REFUSED
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
                note(f"--timeout: the Jobs have not ended after {self._plan.timeout:g} s; aborting them")
                killed_at = now + self._abort()
            if not self._is_aborting and self._is_stuck():
                for name, why in self.waiting():
                    note(plain(f"{name} waits, and nothing else runs: {why}"))
                return REFUSED

    async def _change(self) -> None:
        """Wait for a change, at most for a moment."""
        try:
            await asyncio.wait_for(self._changed.wait(), _TICK)
        except TimeoutError:
            pass
        self._changed.clear()

    def _phases(self) -> list[str]:
        assert self.cluster is not None
        found = []
        for kind, namespace, name in self._targets:
            status = (self.cluster.store.get(kind, name, namespace) or {}).get("status") or {}
            found.append((status.get("state") or {}).get("phase") or "")
        return found

    def _is_stuck(self) -> bool:
        """Whether nothing runs, nothing has changed for a while, and something waits."""
        assert self.cluster is not None
        if self._loop.time() - self._last_change < _STUCK_SECONDS:
            return False
        active = any(
            each["spec"].get("nodeName")
            and (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            for each in self.cluster.store.list(kinds.POD)
        )
        return not active and bool(self.waiting())

    def _abort(self) -> float:
        """Abort all Jobs by their policies; seconds that it may take."""
        from pumice.api.commands import Command  # noqa: F401

        assert self.cluster is not None
        self._is_aborting = True
        for job in self.cluster.store.list(kinds.JOB):
            metadata = job["metadata"]
            owner = {
                "apiVersion": job["apiVersion"],
                "kind": job["kind"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
            self.cluster.store.create(
                {
                    **kinds.COMMAND.type_meta,
                    "metadata": {
                        "generateName": f"{metadata['name']}-abort-",
                        "namespace": metadata["namespace"],
                        "ownerReferences": [owner],
                    },
                    "action": "AbortJob",
                    "target": owner,
                }
            )
        graces = [
            each["spec"].get("terminationGracePeriodSeconds") or 0
            for each in self.cluster.store.list(kinds.POD)
        ]
        return _ABORT_SECONDS + max(graces, default=0)

    def _interrupt(self) -> None:
        self._interrupts += 1
        self._changed.set()

    def _write_kubeconfig(self, stack: ExitStack, cluster: "DevCluster") -> None:
        from pumice.cli.development import dev_kubeconfig

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pumice-run-"))
        file = Path(folder, "kubeconfig")
        stack.enter_context(dev_kubeconfig.written(file, cluster.api.kubeconfig()))
        note(f"export KUBECONFIG={file}")

    def _tell_pod(self, before: Raw | None, pod: Raw) -> None:
        """Say why a pod has failed, with its last lines."""
        status = pod.get("status") or {}
        old = ((before or {}).get("status") or {}).get("phase")
        if status.get("phase") != "Failed" or old == "Failed":
            return
        if pod["metadata"].get("deletionTimestamp"):
            return
        note(paint(f"{pod['metadata']['name']} failed: {_why(status)}", "red", sys.stderr))
        for kubelet in self._kubelets:
            running = kubelet.pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
            for name in _failed_containers(status):
                for log in (running.logs.get(name) or ())[-1:] if running else ():
                    for line in log.tail(_LAST_LINES):
                        note(plain(f"  {line}"))

    def _tell_job(self, job: Raw, change: str) -> None:
        name = f"Job {job['metadata']['namespace']}/{job['metadata']['name']}"
        state = (job.get("status") or {}).get("state") or {}
        phase = state.get("phase") or ""
        if change == "DELETED" or (name, phase) in self._said or phase not in _GOOD | _BAD:
            return
        self._said.add((name, phase))
        message = state.get("message") or ""
        style = "green" if phase in _GOOD else "red"
        note(paint(f"{name}: {phase}{f': {message}' if message else ''}", style, sys.stderr))

    def _tell_event(self, event: Raw) -> None:
        """Say what the node warns of."""
        about = event.get("involvedObject") or {}
        source = (event.get("source") or {}).get("component")
        if source == "kubelet" and event.get("type") == "Warning":
            message = f"{about.get('name')}: {event.get('reason')}: {event.get('message')}"
            note(paint(message, "yellow", sys.stderr))


def _key(kind: kinds.Kind) -> tuple[str, str]:
    return kind.group, kind.plural


def _why(status: Raw) -> str:
    """Why a pod has failed, in one line."""
    found = [text for text in (status.get("reason"), status.get("message")) if text]
    for each in _statuses(status):
        ended = (each.get("state") or {}).get("terminated")
        if ended and ended["exitCode"]:
            text = f"container {each['name']} ended with exit code {ended['exitCode']} ({ended['reason']})"
            found.append(text + (f": {ended['message'].strip()}" if ended.get("message") else ""))
    return "; ".join(found)


def _failed_containers(status: Raw) -> list[str]:
    return [
        each["name"]
        for each in _statuses(status)
        if ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
    ]


def _statuses(status: Raw) -> list[Raw]:
    return [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
