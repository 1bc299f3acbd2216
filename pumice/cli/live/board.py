"""The data of `pumice web`: what `pumice explain` and `pumice job` say, of all objects at once, from the same functions."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api import keys
from pumice.api.kinds import JOB, QUEUE
from pumice.api.meta import ObjectMeta, controller_of
from pumice.api.podgroups import PodGroup
from pumice.api.quantities import format_milli
from pumice.api.requests import Amounts
from pumice.cli.live import explanations
from pumice.cli.live.explanation_text import current_condition
from pumice.cli.live.failed_pods import attempts_used
from pumice.cli.live.gang_explanations import Asked, GangExplanations
from pumice.cli.live.job_rows import job_rows
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import Figures, Follower
from pumice.cli.live.watched import WatchedCluster
from pumice.cluster.client import Client
from pumice.scheduler import Config
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.plugins import fairshare

__all__ = ["Board"]

Data = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_USER = ("user", "owner")
"""Labels or annotations of a Job that name its user, as clusters have it; the first one counts."""

_OF_QUOTAS = ("requests.", "limits.", "count/", "pods")

_SETTLING = 0.3
"""Seconds after a change for which further changes are awaited, so that they are shown together."""
_PART = 5.0
"""Each second of processor time of an update is followed by this many without one."""
_QUICK_SECONDS = 0.03
"""Seconds of a look up to which each look tries all gangs."""
_EXACT_SECONDS = 10.0
"""How long reasons may name numbers that have changed without helping their gang."""


class Board:
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
        self._client = client
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
        self._nodes: dict[str, tuple[tuple[Any, ...], Data]] = {}
        """What was said of each node, and from what it follows: few change at once."""
        self._cost = 0.0
        self._exact_at = 0.0
        self._gangs = GangExplanations(client, config, self._cluster, self._tell)

    async def run(self) -> None:
        """Keep the views current until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._cluster.run())
                tasks.create_task(self._renew())
        finally:
            self._gangs.close()

    async def _renew(self) -> None:
        """Have numbers shown again that may have changed without helping any gang."""
        while True:
            await asyncio.sleep(_EXACT_SECONDS)
            if self._looked is not None and self._exact_at < self._looked[1]:
                self._change()

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
        now = time.time()
        if self._looked is not None and self._looked[0] == self._data:
            return self._looked[2:]
        begun = time.process_time()
        seen = self._cluster.seen()
        is_exact = self._cost <= _QUICK_SECONDS or now - self._exact_at >= _EXACT_SECONDS
        figures = self._follower.look(seen, now, self._cluster.taken(), is_exact=is_exact)
        gangs = explanations.positioned_gangs(seen, figures)
        self._looked = self._data, now, seen, figures, gangs
        self._cost = time.process_time() - begun
        if is_exact:
            self._exact_at = now
        return seen, figures, gangs

    # -- views ---------------------------------------------------------------------------------

    def waiting(self) -> Data:
        """All gangs that wait, those of a queue together in the order in which they are tried."""
        seen, figures, gangs = self._look()
        groups = {_key(each): each for each in seen.objects.pod_groups}
        shown = [
            _gang(groups[key], gang, figures.lines.get(gang["queue"], ()), groups)
            for key, gang in gangs.items()
            if self.namespace in (None, key.partition("/")[0])
        ]
        shown.sort(key=lambda each: (each["queue"], each["position"] or 0, each["podGroup"]))
        return {"gangs": shown, "notComputed": figures.error, "notAllowed": seen.forbidden}

    def queues(self) -> Data:
        """All queues, each before those below it."""
        seen, figures, gangs = self._look()
        found = [
            explanations.of_queue(each, seen, figures, gangs) for each in self._cluster.all(QUEUE)
        ]
        return {
            "queues": list(_tree(found)),
            "owners": _owners(seen, gangs),
            "notComputed": figures.error,
            "notAllowed": seen.forbidden,
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
            row |= {"user": _user(job.metadata), "attempts": attempts_used(job)}
        return {"jobs": rows, "notAllowed": seen.forbidden}

    def nodes(self) -> Data:
        """All nodes with what is free, their pods, and whether a pod that waits fits there (None if none waits)."""
        seen, figures, _ = self._look()
        simulation = self._follower.simulation
        if simulation is None:
            empty: Data = {"grouping": "zone", "gangs": {}, "owners": {}, "nodes": []}
            return {**empty, "notComputed": figures.error, "notAllowed": seen.forbidden}
        if self._usable[0] != self._data:
            self._usable = self._data, simulation.usable(time.time())
        state, usable = simulation.state, self._usable[1]
        network, rows = state.network, state.nodes.rows()
        free = rows.allocatable - rows.used
        has_domains = network.has_hyper_nodes
        on_nodes: set[str] = set()
        found: dict[str, tuple[tuple[Any, ...], Data]] = {}
        for row, name in enumerate(state.nodes.names):
            record, has, left = state.nodes.records[name], rows.allocatable[row], free[row]
            group = network.lowest(row).name if has_domains else _zone(record)
            pods = tuple(record.tasks.values())
            what = record.node, group, usable.get(name), has.tobytes(), left.tobytes(), pods
            known = self._nodes.get(name)
            if known is None or known[0] != what:
                amounts = state.axis.amounts
                known = what, _node(record, group, usable.get(name), amounts(has), amounts(left))
            found[name] = known
            on_nodes.update(each.job for each in pods)
        self._nodes = found
        names = {_key(each): _title(each) for each in seen.objects.pod_groups}
        return {
            "grouping": "HyperNode" if has_domains else "zone",
            "gangs": {key: names.get(key, key) for key in sorted(on_nodes)},
            "owners": _owners(seen, sorted(on_nodes)),
            "nodes": [data for _, data in found.values()],
            "notComputed": figures.error,
            "notAllowed": seen.forbidden,
        }

    async def gang(
        self, namespace: str, name: str, *, pod: str = "", lines: int = 0, wait: bool = False
    ) -> Data | None:
        """The explanation of a gang; see `GangExplanations.of`."""
        seen, _, gangs = self._look()
        asked = Asked(namespace, name, pod, lines)
        return await self._gangs.of(asked, self._data, seen, gangs, wait=wait)


def _zone(record: NodeRecord) -> str:
    return record.node.metadata.label(_ZONE) if record.node is not None else ""


def _node(record: NodeRecord, group: str, usable: bool | None, has: Amounts, left: Amounts) -> Data:
    """A node of the view of nodes."""
    node = record.node
    pods = [
        {"pod": each.key, "gang": None if each.job.endswith("/") else each.job or None}
        for each in record.tasks.values()
    ]
    return {
        "name": record.name,
        "group": group,
        "ready": record.is_ready,
        "schedulable": node is not None and not node.spec.unschedulable,
        "allocatable": {key: format_milli(value) for key, value in has.items()},
        "free": {key: format_milli(left.get(key, 0)) for key in has},
        "usable": usable,
        "pods": sorted(pods, key=lambda each: str(each["pod"])),
    }


def _key(group: PodGroup) -> str:
    return f"{group.metadata.namespace}/{group.metadata.name}"


def _title(group: PodGroup) -> str:
    """A gang by its owner, which users know."""
    owner = controller_of(group.metadata)
    return f"{group.metadata.namespace}/{owner.name}" if owner is not None else _key(group)


def _owners(seen: ReadableCluster, gangs: Iterable[str]) -> Data:
    """The queue and the user of gangs."""
    groups = {_key(each): each for each in seen.objects.pod_groups}
    known = {key: groups[key] for key in gangs if key in groups}
    return {
        key: {"queue": each.spec.queue or keys.DEFAULT_QUEUE, "user": _user(each.metadata)}
        for key, each in known.items()
    }


def _user(meta: ObjectMeta) -> str | None:
    for key in _USER:
        if found := meta.label(key) or meta.annotation(key):
            return found
    return None


def _needs(group: PodGroup) -> Data:
    """What a gang asks for at least, without what only quotas count: `requests.cpu`, `count/pods`."""
    asked = group.spec.min_resources or {}
    resources = {key: str(value) for key, value in asked.items() if not key.startswith(_OF_QUOTAS)}
    return {"pods": group.spec.min_member, "resources": resources}


def _gang(
    group: PodGroup, gang: Data, line: "list[str] | tuple[()]", groups: Mapping[str, PodGroup]
) -> Data:
    """A gang of the view of what waits."""
    key = gang["podGroup"]
    kind, _, name = (gang["owner"] or f"PodGroup/{group.metadata.name}").partition("/")
    ahead = [each for each in line[: line.index(key)] if each in groups] if key in line else []
    condition = current_condition(group)
    waits_since = group.metadata.creation_timestamp
    if group.status.phase == "Running" and condition is not None:
        waits_since = condition.last_transition_time or waits_since
    return {
        "namespace": group.metadata.namespace,
        "name": name,
        "kind": kind,
        "podGroup": key,
        "user": _user(group.metadata),
        "queue": gang["queue"],
        "position": gang["position"],
        "gangsWaiting": gang["gangsWaiting"],
        "needs": _needs(group),
        "summary": gang["summary"],
        "message": gang["message"],
        "numbers": gang["numbers"],
        "phase": gang["phase"],
        "ahead": [{"podGroup": each, "needs": _needs(groups[each])} for each in ahead[-_AHEAD:]],
        "since": waits_since,
    }


_AHEAD = 3
"""Gangs before another one that are named with it, those that are next to it."""


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
