"""Explanations of single gangs for `pumice web`: what `pumice explain job` and `pumice explain pod` say.

With 5,000 nodes it takes half a second to find out what would be enough for a gang, and the first time two. So an explanation is
computed in a thread, on a simulation of its own, and the page is shown without it meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.kinds import EVENT, JOB, POD_GROUP
from pumice.api.meta import controller_of, format_time
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.live import explanations
from pumice.cli.live.failed_pods import add_last_lines
from pumice.cli.live.group_details import of_group, of_pods
from pumice.cli.live.log_lines import position
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import Change, Follower, joined
from pumice.cli.live.watched import WatchedCluster
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, Forbidden
from pumice.scheduler import Config

Data = dict[str, Any]

_PART = 5.0
"""After an explanation the next one of the same gang waits for so many times what it took."""
_PATIENCE_SECONDS = 1.0
"""How long a page waits for the explanation of a gang before it is shown without."""
_EVENT_SECONDS = 5.0
_KEPT = 32
"""Gangs whose explanations are kept."""


class Asked(NamedTuple):
    """What a page shows.

    Attributes:
        namespace: Namespace of a gang.
        name: Name of its PodGroup, its Job, or another owner of it.
        pod: The pod of which to show lines of logs; those that failed if empty.
        lines: How many lines.
    """

    namespace: str
    name: str
    pod: str
    lines: int


class _Details:
    """One explanation, of the objects at a version."""

    def __init__(self, version: int, task: "asyncio.Task[Data]") -> None:
        self.version = version
        self.task = task
        self.begun = time.monotonic()
        self.ended = 0.0
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[Data]") -> None:
        self.ended = time.monotonic()
        if not task.cancelled():
            task.exception()  # `of` raises it, unless no page asks again

    def may_begin_again(self, *, at_once: bool) -> bool:
        """Whether it has ended, and enough time has gone by for its cost, unless it is needed at once."""
        rest = 0.0 if at_once else (self.ended - self.begun) * _PART
        return self.task.done() and time.monotonic() - self.ended >= rest


class GangExplanations:
    """The explanations that pages have asked for."""

    def __init__(
        self,
        client: Client,
        config: Config,
        cluster: WatchedCluster,
        look: Callable[[], ReadableCluster],
        tell: Callable[[], None],
    ) -> None:
        """Begin without any.

        Args:
            client: Reads events and logs.
            config: Configuration of the scheduler.
            cluster: The objects.
            look: The objects as they are; `note` was called with all changes up to these.
            tell: Called when an explanation is there that a page was shown without.
        """
        self._client = client
        self._look = look
        self._follower = Follower(config)
        self._changes: Sequence[Change] | None = ()
        self._cluster = cluster
        self._tell = tell
        self._details: dict[Asked, _Details] = {}
        self._alone = asyncio.Lock()

    def note(self, changes: Sequence[Change] | None) -> None:
        """Note what has changed, for the next explanation; None if more than a simulation follows."""
        self._changes = joined(self._changes, changes)

    def close(self) -> None:
        """End what is computed."""
        for each in self._details.values():
            each.task.cancel()

    async def of(
        self,
        asked: Asked,
        version: int,
        seen: ReadableCluster,
        gangs: Mapping[str, Data],
        *,
        wait: bool,
    ) -> Data | None:
        """The explanation of a gang.

        Args:
            asked: Which gang.
            version: The version of the objects.
            seen: The objects.
            gangs: Gangs that wait.
            wait: Whether to wait until it is computed; otherwise an earlier one may be returned, or one without numbers.

        Returns:
            The explanation, with `computing` if it is not that of the objects as they are; None if there is no such gang.
        """
        group, job = self._found(asked.namespace, asked.name, seen)
        if group is None and job is None:
            return None
        last: Data | None = None
        while True:
            known = self._details.get(asked)
            if known is not None and _is_good(known.task):
                last = known.task.result()
            if known is None or (known.version < version and known.may_begin_again(at_once=wait)):
                task = asyncio.create_task(self._explain(asked))
                known = self._keep(asked, _Details(version, task))
            await asyncio.wait([known.task], timeout=None if wait else _PATIENCE_SECONDS)
            if not wait or known.version >= version:
                break
        if known.task.done():
            return {**known.task.result(), "computing": known.version < version}
        known.task.add_done_callback(lambda _: self._tell())
        if last is not None:
            return {**last, "computing": True}
        title = f"{asked.namespace}/{asked.name}"
        key = f"{asked.namespace}/{group.metadata.name}" if group is not None else ""
        waits = f"{title} waits: {gangs[key]['summary']}" if key in gangs else title
        return {"gang": title, "message": waits, "computing": True, "notAllowed": seen.forbidden}

    def _keep(self, asked: Asked, details: _Details) -> _Details:
        self._details.pop(asked, None)
        self._details[asked] = details
        while len(self._details) > _KEPT:
            del self._details[next(iter(self._details))]
        return details

    def _found(
        self, namespace: str, name: str, seen: ReadableCluster
    ) -> tuple[PodGroup | None, Job | None]:
        """The PodGroup and the Job of a gang."""
        group = self._cluster.get(POD_GROUP, name, namespace)
        if group is None:
            job = self._cluster.get(JOB, name, namespace)
            if job is not None:
                uid = job.metadata.uid
                owned = (g for g in seen.objects.pod_groups if _owner_uid(g) == uid)
                return next(owned, None), job
            for each in seen.objects.pod_groups:
                owner = controller_of(each.metadata)
                if owner is not None and (each.metadata.namespace, owner.name) == (namespace, name):
                    group = each
        if group is None:
            return None, None
        owner = controller_of(group.metadata)
        if owner is None or (owner.api_version, owner.kind) != (JOB.api_version, JOB.kind):
            return group, None
        return group, self._cluster.get(JOB, owner.name, namespace)

    async def _explain(self, asked: Asked) -> Data:
        namespace = asked.namespace
        events: list[Data] = []
        forbidden: list[str] = []
        try:
            async with asyncio.timeout(_EVENT_SECONDS):
                events = (await self._client.list(EVENT, namespace))["items"]
        except Forbidden:
            forbidden.append("events")
        except (ApiError, TimeoutError):
            pass  # the API server does not answer, as the page says
        async with self._alone:
            seen = self._look()
            self._follower.note(self._changes)
            self._changes = ()
            mine = replace(seen, namespace=namespace, forbidden=[*seen.forbidden, *forbidden])
            mine.events = events
            group, job = self._found(namespace, asked.name, seen)
            if group is None and job is None:
                gone = f"{namespace}/{asked.name}"
                return {"gang": gone, "message": f"{gone} is gone", "notAllowed": mine.forbidden}
            pods = _pods(seen, namespace, group, job)
            now = time.time()
            follow = self._follower.follow
            found = await asyncio.to_thread(_explained, group, job, pods, mine, follow, now)
        found["asOf"] = format_time(now)
        if asked.lines:
            pod = asked.pod
            chosen = [each for each in pods if not pod or each.metadata.name == pod]
            await add_last_lines(self._client, found, chosen, asked.lines, only_failed=not pod)
        return found


def _pods(
    seen: ReadableCluster, namespace: str, group: PodGroup | None, job: Job | None
) -> list[Pod]:
    """The pods of a gang, in their order."""
    pods = [each for each in seen.objects.pods if each.metadata.namespace == namespace]
    if job is not None:
        name = job.metadata.name
        pods = [each for each in pods if each.metadata.label(keys.JOB_NAME) == name]
    else:
        assert group is not None
        pods = [each for each in pods if each.group == group.metadata.name]
    return sorted(pods, key=position)


def _explained(
    group: PodGroup | None,
    job: Job | None,
    pods: list[Pod],
    seen: ReadableCluster,
    simulate: explanations.Simulate,
    now: float,
) -> Data:
    """The explanation of a Job; of a gang of another owner that of its first pod that waits, with all of its pods."""
    if job is not None:
        return explanations.of_job(job, seen, simulate, now)
    assert group is not None
    if pods:
        waiting = [each for each in pods if not each.spec.node_name]
        found = explanations.of_pod((waiting or pods)[0], seen, simulate, now)
    else:
        found = {"message": f"PodGroup {group.metadata.name} has no pods", "events": []}
        found |= {"podGroup": of_group(group, pods, seen), "notAllowed": seen.forbidden}
    return found | {"pods": of_pods(pods, group)}


def _is_good(task: "asyncio.Task[Data]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _owner_uid(group: PodGroup) -> str:
    owner = controller_of(group.metadata)
    return owner.uid if owner is not None else ""
