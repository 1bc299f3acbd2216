"""The data of `pumice web`: what `pumice explain` and `pumice job` say, of all objects at once, from the same functions."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from pumice.api import keys
from pumice.api.kinds import JOB, QUEUE
from pumice.api.meta import controller_of
from pumice.api.podgroups import PodGroup
from pumice.cli.live import explanations
from pumice.cli.live.failed_pods import attempts_used
from pumice.cli.live.gang_explanations import Asked, GangExplanations
from pumice.cli.live.job_rows import job_rows
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import TRIES, Figures, Follower, usable_nodes
from pumice.cli.live.watched import WatchedCluster
from pumice.cli.live.web_rows import NodeRows, gang_row, group_row, user_of
from pumice.cluster.client import Client
from pumice.cluster.slices import collect_frozen
from pumice.scheduler import Config
from pumice.scheduler.plugins import fairshare

Data = dict[str, Any]

_AHEAD = 3
"""Gangs before another one that are named with it, those that are next to it."""

_SETTLING = 0.3
"""Seconds after a change for which further changes are awaited, so that they are shown together."""
_PART = 5.0
"""Each second of processor time of an update is followed by this many without one."""
_QUIET_SECONDS = 2.0
"""Seconds without a change after which the numbers of reasons are renewed that an update has left as they were."""
_ROUND_SECONDS = 0.5
"""Seconds between two rounds of that; each takes some hundredths of one of processor time."""


class WebViews:
    """The views on a cluster.

    Attributes:
        version: Grows whenever a view may have changed.
    """

    def __init__(self, client: Client, config: Config, namespace: str | None) -> None:
        """Begin without objects; `run` reads them.

        Args:
            client: The connection.
            config: Configuration of the scheduler.
            namespace: The only namespace to show; None for all that may be read.
        """
        self.version = 0
        self._config = config
        option = config.plugin(fairshare.NAME)
        usage = fairshare.storage(option.arguments) if option is not None else None
        self._cluster = WatchedCluster(client, namespace, usage, self._change)
        self._follower = Follower(config)
        self._news = asyncio.Event()
        self._data = 0
        """The version of the objects."""
        self._looked: tuple[int, float, ReadableCluster, Figures, dict[str, Data]] | None = None
        self._usable: tuple[int, dict[str, bool]] = (-1, {})
        self._nodes = NodeRows()
        self._cost = 0.0
        self._renewed = 0
        """The version of the objects at which all numbers were renewed."""
        self._gangs = GangExplanations(
            client, config, self._cluster, lambda: self._look()[0], self._tell
        )

    async def run(self) -> None:
        """Keep the views current until cancelled.

        Raises:
            ApiError: It cannot be found out what may be read.
        """
        try:
            await self._cluster.open()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._cluster.run())
                tasks.create_task(self._renew())
        finally:
            self._gangs.close()

    async def _renew(self) -> None:
        """Renew numbers in reasons, a part of them at a time, and have them shown when all are renewed."""
        while True:
            await asyncio.sleep(_ROUND_SECONDS)
            looked = self._looked
            if looked is None or looked[0] != self._data or self._renewed == self._data:
                continue
            if time.time() - looked[1] < _QUIET_SECONDS or not self._follower.is_behind():
                continue
            for _ in range(0, len(looked[4]), TRIES):
                if looked[0] != self._data or not self._follower.is_behind():
                    break
                self._look_again()
                await asyncio.sleep(_ROUND_SECONDS)
            self._renewed = looked[0]  # gangs that fit may let others seem to be outdated for ever
            self._tell()

    def _change(self) -> None:
        self._data += 1
        self._tell()

    def _tell(self) -> None:
        self.version += 1
        self._news.set()
        self._news = asyncio.Event()

    async def newer(self, version: int) -> int:
        """Wait until there is a later version, and until changes that come together are all there."""
        while self.version <= version:
            await self._news.wait()
        await asyncio.sleep(max(_SETTLING, self._cost * _PART))
        return self.version

    # -- state ---------------------------------------------------------------------------------

    @property
    def loading(self) -> list[str]:
        """What is not read yet."""
        return self._cluster.waiting_for

    @property
    def lost(self) -> float | None:
        """Since when the API server does not answer, UNIX seconds; None while it does."""
        return self._cluster.lost

    @property
    def namespace(self) -> str | None:
        """The only namespace that is shown; None for all."""
        return self._cluster.namespace

    def _look(self) -> tuple[ReadableCluster, Figures, dict[str, Data]]:
        """The objects, a cycle on them, and the gangs that wait."""
        if self._looked is None or self._looked[0] != self._data:
            begun = time.process_time()
            self._look_again()
            self._cost = time.process_time() - begun
        assert self._looked is not None
        return self._looked[2:]

    def _look_again(self) -> None:
        now, seen, changes = time.time(), self._cluster.seen(), self._cluster.taken()
        self._gangs.note(changes)
        self._nodes.note(changes)
        figures = self._follower.look(seen, now, changes)
        gangs = explanations.positioned_gangs(seen, figures)
        self._looked = self._data, now, seen, figures, gangs
        if changes is None:
            collect_frozen()  # a simulation lives long: a look at all of it would take longer than an update

    # -- views ---------------------------------------------------------------------------------

    def waiting(self) -> Data:
        """All gangs that wait, those of a queue together in the order in which they are tried."""
        seen, figures, gangs = self._look()
        found = ((each.metadata.key, each) for each in seen.objects.pod_groups)
        groups = {key: group_row(group) for key, group in found if key in gangs}
        ahead: dict[str, list[str]] = {}
        for line in figures.lines.values():
            line = [key for key in line if key in groups]
            ahead |= {key: line[max(at - _AHEAD, 0) : at] for at, key in enumerate(line)}
        shown = [
            gang_row(gang, groups[key], [groups[each] for each in ahead.get(key, ())])
            for key, gang in gangs.items()
            if self.namespace in (None, key.partition("/")[0])
        ]
        shown.sort(key=lambda each: (each["queue"], each["position"] or 0, each["podGroup"]))
        return {"gangs": shown, **_remarks(seen, figures)}

    def queues(self) -> Data:
        """All queues, each before those below it."""
        seen, figures, gangs = self._look()
        found = [
            explanations.of_queue(each, seen, figures, gangs) for each in self._cluster.all(QUEUE)
        ]
        return {
            "queues": list(_tree(found)),
            "owners": _owners(seen, gangs),
            **_remarks(seen, figures),
        }

    def jobs(self) -> Data:
        """All Jobs."""
        seen, _, gangs = self._look()
        where = self.namespace
        jobs = [each for each in self._cluster.all(JOB) if where in (None, each.metadata.namespace)]
        rows = job_rows(jobs, seen, self._config, time.time(), gangs)
        by_name = {(each.metadata.namespace, each.metadata.name): each for each in jobs}
        for row in rows:
            job = by_name[row["namespace"], row["name"]]
            row |= {"user": user_of(job.metadata), "attempts": attempts_used(job)}
        return {"jobs": rows, "notAllowed": seen.forbidden}

    def nodes(self) -> Data:
        """All nodes with what is free, their pods, and whether a pod that waits fits there (None if none waits)."""
        seen, figures, _ = self._look()
        simulation = self._follower.simulation
        if simulation is None:
            empty: Data = {"grouping": "zone", "gangs": {}, "owners": {}, "nodes": []}
            return {**empty, **_remarks(seen, figures)}
        if self._usable[0] != self._data:
            self._usable = self._data, usable_nodes(simulation, time.time())
        on_nodes, nodes = self._nodes.of(simulation.state, self._usable[1])
        names = {each.metadata.key: _title(each) for each in seen.objects.pod_groups}
        return {
            "grouping": "HyperNode" if simulation.state.network.has_hyper_nodes else "zone",
            "gangs": {key: names.get(key, key) for key in on_nodes},
            "owners": _owners(seen, on_nodes),
            "nodes": nodes,
            **_remarks(seen, figures),
        }

    async def gang(
        self, namespace: str, name: str, *, pod: str = "", lines: int = 0, wait: bool = False
    ) -> Data | None:
        """The explanation of a gang; see `GangExplanations.of`."""
        seen, _, gangs = self._look()
        asked = Asked(namespace, name, pod, lines)
        return await self._gangs.of(asked, self._data, seen, gangs, wait=wait)


def _remarks(seen: ReadableCluster, figures: Figures) -> Data:
    """What is missing in a view, and why."""
    return {
        "notComputed": figures.error,
        "leftOut": figures.not_counted,
        "notAllowed": seen.forbidden,
    }


def _title(group: PodGroup) -> str:
    """A gang by its owner, which users know."""
    owner = controller_of(group.metadata)
    return f"{group.metadata.namespace}/{owner.name}" if owner is not None else group.metadata.key


def _owners(seen: ReadableCluster, gangs: Iterable[str]) -> Data:
    """The queue and the user of gangs."""
    groups = {each.metadata.key: each for each in seen.objects.pod_groups}
    known = {key: groups[key] for key in gangs if key in groups}
    return {
        key: {"queue": each.spec.queue or keys.DEFAULT_QUEUE, "user": user_of(each.metadata)}
        for key, each in known.items()
    }


def _tree(queues: list[Data]) -> "list[Data]":
    """Queues with their depths, each before those below it, by name; one in a cycle, or below one that is missing, is at the top."""
    below: dict[str, list[Data]] = {}
    names = {each["queue"] for each in queues}
    for each in sorted(queues, key=lambda each: str(each["queue"])):
        parent = (
            each["parent"] if each["parent"] in names and each["parent"] != each["queue"] else ""
        )
        below.setdefault(parent, []).append(each)
    found: list[Data] = []
    done: set[str] = set()
    for first in [*below.get("", ()), *queues]:
        ahead = [(first, 0)]
        while ahead:
            queue, depth = ahead.pop()
            if queue["queue"] in done:
                continue
            done.add(queue["queue"])
            found.append({**queue, "depth": depth})
            ahead += [(each, depth + 1) for each in reversed(below.get(queue["queue"], []))]
    return found
