"""`pumice job logs`: the logs of all pods of a Job as one, in the order of their times.

It needs the rights of `kubectl logs`: list pods, and get `pods/log`. First each log is read into a file, so that neither
the number of pods nor the size of a log matters for memory; then the files are merged. With `follow` the logs of
containers that run are continued from their last line, and those of containers that start are added. Lines that arrive
within a tenth of a second are shown in the order of their times.
"""

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pumice.api import keys
from pumice.api.failures import trouble_of
from pumice.api.fields import did_you_mean, plain
from pumice.api.jobs import Job
from pumice.api.kinds import JOB, POD
from pumice.api.pods import Pod
from pumice.cli.exits import UserError
from pumice.cli.live.log_lines import (
    LONGEST,
    Lines,
    LogLine,
    LogSource,
    in_order,
    position,
    sources_of,
    task_of,
)
from pumice.cli.live.sessions import get
from pumice.cli.output import COLOURS, note, paint, write
from pumice.cluster.errors import ApiError, Forbidden, Gone, Unavailable
from pumice.controller.jobs.phases import ABORTED, FINISHED, SOFT

if TYPE_CHECKING:
    from pumice.cluster.client import Client

MOST = 200
"""Maximum number of logs that are read."""

MOST_FOLLOWED = 100
"""Maximum number of logs that are followed; each takes a connection."""

_AT_ONCE = 8
_TOGETHER = 0.1
_AGAIN = 1.0
_STATUS_SECONDS = 5.0
"""How much later than its end a container's status says that it has ended; until then it could run already again."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which lines are shown.

    Attributes:
        namespace: Namespace of the Job.
        name: Its name.
        task: Only pods of this task.
        failed: Only containers that failed.
        since: Only lines of so many last seconds.
    """

    namespace: str
    name: str
    task: str | None = None
    failed: bool = False
    since: int | None = None


async def print_logs(client: "Client", wanted: LogRequest, *, follow: bool) -> None:
    """Print the logs of a Job's pods.

    Raises:
        UserError: There is no such Job or task, or there are too many logs.
        Forbidden: The user may not read pods or their logs.
    """
    printer = _Printer()
    pods, version = await _pods(client, wanted)
    if not pods:
        await _check_job(client, wanted)
    _check_task(wanted, pods, follow=follow)
    sources = sources_of(pods, wanted.task, failed=wanted.failed)
    limit = MOST_FOLLOWED if follow else MOST
    if len(sources) > limit:
        raise UserError(
            f"job/{wanted.name} has {len(sources)} logs, expected at most {limit}"
            f"{' to follow' if follow else ''}; choose some with --task or --failed"
        )
    logs = {source.key: Lines(number) for number, source in enumerate(sources)}
    await _print_present(client, wanted, sources, logs, printer)
    if not sources:
        note(plain(_nothing(pods, wanted)))
    if follow:
        await _Follower(client, wanted, sources, logs, printer).run(pods, version)


async def _check_job(client: "Client", wanted: LogRequest) -> None:
    """Say that there is no such Job, as far as the user may know."""
    try:
        await get(client, JOB, wanted.name, wanted.namespace)
    except Forbidden:
        message = f"no pods of a Job of this name in namespace {wanted.namespace}"
        raise UserError(f"job/{wanted.name}: {message}; you may not read Jobs there") from None


def _nothing(pods: Sequence[Pod], wanted: LogRequest) -> str:
    """Why there is no log."""
    if not pods:
        return f"job/{wanted.name} has no pods; `pumice explain job {wanted.name}` says why"
    what = f"job/{wanted.name}" + (f", task {wanted.task}" if wanted.task else "")
    if wanted.failed:
        return f"no container of {what} has failed"
    troubles = filter(None, map(trouble_of, pods))
    why = next(troubles, "")
    return f"no container of {what} has started" + (why and f": {why}")


def _check_task(wanted: LogRequest, pods: Sequence[Pod], *, follow: bool) -> None:
    tasks = sorted({task_of(pod) for pod in pods})
    if wanted.task and pods and wanted.task not in tasks and not follow:
        hint = did_you_mean(wanted.task, tasks)
        raise UserError(
            f"task {wanted.task!r} of job/{wanted.name} has no pods{hint}; tasks with pods: {', '.join(tasks)}"
        )


async def _pods(client: "Client", wanted: LogRequest) -> tuple[list[Pod], str]:
    """The pods of the Job, in the order of tasks and indexes, and the resourceVersion of the list."""
    selector = f"{keys.JOB_NAME}={wanted.name}"
    found = await client.list(POD, wanted.namespace, label_selector=selector)
    pods = [msgspec.convert(each, Pod) for each in found["items"]]
    return sorted(pods, key=position), (found.get("metadata") or {}).get("resourceVersion", "")


async def _print_present(
    client: "Client",
    wanted: LogRequest,
    sources: Sequence[LogSource],
    logs: dict[tuple[str, str, int], Lines],
    printer: "_Printer",
) -> None:
    """Print what the logs hold now."""
    free = asyncio.Semaphore(_AT_ONCE)
    with tempfile.TemporaryDirectory(prefix="pumice-logs-") as folder:
        files = [Path(folder) / str(number) for number in range(len(sources))]

        async def fetch(source: LogSource, file: Path) -> None:
            async with free:
                with file.open("wb") as out:
                    query = _query(wanted, source)
                    try:
                        async for chunk in client.log(wanted.namespace, source.pod, query):
                            out.write(chunk)
                    except Forbidden:
                        raise
                    except ApiError as error:
                        if error.status == 0 and not out.tell():
                            raise
                        broken = "the log broke off: " if out.tell() else ""
                        note(plain(f"{source.titled()}: {broken}{error.message}"))

        tasks = [asyncio.create_task(fetch(*each)) for each in zip(sources, files, strict=True)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.ExitStack() as opened:
            lines = [
                _lines_of(opened, file, logs[source.key])
                for source, file in zip(sources, files, strict=True)
            ]
            titles = [source.titled() for source in sources]
            for line in in_order(lines):
                printer.show(titles[line.source], line)
    sys.stdout.flush()


def _lines_of(opened: contextlib.ExitStack, path: Path, lines: Lines) -> Iterator[LogLine]:
    file = opened.enter_context(path.open("rb"))
    while chunk := file.read(LONGEST):
        yield from lines.feed(chunk)
    yield from lines.end()


def _query(wanted: LogRequest, source: LogSource) -> dict[str, str]:
    query = {"container": source.container, "timestamps": "true"}
    if wanted.since is not None:
        query["sinceSeconds"] = str(wanted.since)
    if source.former:
        query["previous"] = "true"
    return query


class _Printer:
    """Prints lines with a prefix, whose colour is that of the pod."""

    def __init__(self) -> None:
        self._colours: dict[str, str] = {}
        self._prefixes: dict[str, str] = {}

    def show(self, title: str, line: LogLine) -> None:
        """Print a line."""
        prefix = self._prefixes.get(title)
        if prefix is None:
            container = title.partition("#")[0]
            colour = self._colours.setdefault(container, COLOURS[len(self._colours) % len(COLOURS)])
            prefix = self._prefixes[title] = paint(f"[{title}]", colour)
        write(f"{prefix} {line.text}")


class _Follower:
    """Follows the logs of containers that run or start, until the Job has ended."""

    def __init__(
        self,
        client: "Client",
        wanted: LogRequest,
        sources: Sequence[LogSource],
        logs: dict[tuple[str, str, int], Lines],
        printer: _Printer,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._logs = logs
        self._printer = printer
        self._titles = [source.titled() for source in sources]
        self._ended = {source.key for source in sources if not source.runs}
        self._running: set[tuple[str, str, int]] = set()
        self._runs: dict[tuple[str, str], dict[str, int]] = {}
        for source in sources:
            self._note_run(source)
        self._tasks: dict[tuple[str, str, int], asyncio.Task[None]] = {}
        self._queue: asyncio.Queue[LogLine] = asyncio.Queue(10_000)
        self._refused = False

    async def run(self, pods: Sequence[Pod], version: str) -> None:
        """Follow until no pod of the Job can write any more."""
        known = {pod.metadata.name: pod for pod in pods}
        changed = asyncio.Event()
        always = [
            asyncio.create_task(self._print()),
            asyncio.create_task(self._watch(known, version, changed)),
        ]
        try:
            while True:
                changed.clear()
                self._start(list(known.values()))
                busy = [task for task in self._tasks.values() if not task.done()]
                alive = any(pod.status.phase not in SOFT for pod in known.values())
                if not busy and not alive and await self._is_over():
                    break
                await self._change(changed, [*busy, *always], None if busy or alive else _AGAIN)
                for task in (*self._tasks.values(), *always):
                    if task.done():
                        task.result()  # raises what it raised
            await self._queue.join()
        finally:
            tasks = [*always, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _change(
        self, changed: asyncio.Event, tasks: list[asyncio.Task[None]], seconds: float | None
    ) -> None:
        """Wait until pods change, a log ends, or the time is over."""
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait([waiting, *tasks], timeout=seconds, return_when="FIRST_COMPLETED")
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def _note_run(self, source: LogSource) -> int:
        """Note a run; returns how many there were in earlier pods of the same name."""
        runs = self._runs.setdefault((source.pod, source.container), {})
        runs[source.uid] = max(runs.get(source.uid, 0), source.run + 1)
        return sum(runs.values()) - runs[source.uid]

    def _start(self, pods: list[Pod]) -> None:
        """Follow what has started since."""
        wanted = self._wanted
        found = sources_of(sorted(pods, key=position), wanted.task, failed=wanted.failed)
        self._running = {source.key for source in found if source.runs}
        for source in found:
            if source.key in self._tasks or source.key in self._ended:
                continue
            if sum(not task.done() for task in self._tasks.values()) >= MOST_FOLLOWED:
                if not self._refused:
                    note(f"{MOST_FOLLOWED} logs are followed; further ones are left out")
                self._refused = True
                return
            before = self._note_run(source)
            if source.key not in self._logs:
                self._logs[source.key] = Lines(len(self._titles))
                self._titles.append(source.titled(before))
            self._tasks[source.key] = asyncio.create_task(self._follow(source))

    async def _follow(self, source: LogSource) -> None:
        """Follow a log until its container has ended, also where the connection ends before that."""
        lines, query = self._logs[source.key], _query(self._wanted, source) | {"follow": "true"}
        told = ""
        while True:
            if (since := lines.resume()) is not None:
                query.pop("sinceSeconds", None)
                query["sinceTime"] = since
            is_reached = True
            try:
                async for chunk in self._client.log(self._wanted.namespace, source.pod, query):
                    for line in lines.feed(chunk):
                        await self._queue.put(line)
            except Forbidden:
                raise
            except ApiError as error:
                is_reached = not isinstance(error, Unavailable)
                if error.message != told and error.status:
                    told = error.message
                    title = self._titles[lines.source]
                    note(plain(f"{title}: {told}{'' if is_reached else '; tried again'}"))
            if not is_reached:
                await asyncio.sleep(_AGAIN)
            elif not await self._still_runs(source):
                break
        for line in lines.end():
            await self._queue.put(line)

    async def _still_runs(self, source: LogSource) -> bool:
        """Whether a container whose log ended runs nevertheless; its status is a little later than its log."""
        end = asyncio.get_running_loop().time() + _STATUS_SECONDS
        while source.key in self._running:
            if asyncio.get_running_loop().time() > end:
                return True
            await asyncio.sleep(_TOGETHER)
        return False

    async def _watch(self, known: dict[str, Pod], version: str, changed: asyncio.Event) -> None:
        """Keep the pods of the Job up to date."""
        selector = f"{keys.JOB_NAME}={self._wanted.name}"
        pods_of_job = self._client.collection(POD, self._wanted.namespace, selector)
        while True:
            try:
                async for event, raw in pods_of_job.watch(version):
                    pod = msgspec.json.decode(raw, type=Pod)
                    version = pod.metadata.resource_version
                    if event == "BOOKMARK":
                        continue
                    known[pod.metadata.name] = pod
                    if event == "DELETED":
                        del known[pod.metadata.name]
                    changed.set()
            except Gone:
                pods, version = await _pods(self._client, self._wanted)
                known.clear()
                known |= {pod.metadata.name: pod for pod in pods}
                changed.set()
            except Unavailable:
                await asyncio.sleep(_AGAIN)

    async def _is_over(self) -> bool:
        """Whether the Job has ended; a Job that cannot be read has, if none of its pods runs."""
        try:
            raw = await self._client.get(JOB, self._wanted.name, self._wanted.namespace)
        except ApiError as error:
            if error.status == 0:
                raise
            return True
        return msgspec.convert(raw, Job).status.state.phase in FINISHED | {ABORTED}

    async def _print(self) -> None:
        while True:
            lines = [await self._queue.get()]
            await asyncio.sleep(_TOGETHER)
            while not self._queue.empty():
                lines.append(self._queue.get_nowait())
            for line in sorted(lines, key=lambda each: each[:2]):
                self._printer.show(self._titles[line.source], line)
                self._queue.task_done()
            sys.stdout.flush()
