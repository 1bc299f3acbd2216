"""What a watch of all pods shows: requests on each node, the history of each pod, and what must never happen.

The watch delivers changes in the order in which the API server accepted them. So the sum of requests on a node is
checked at each change, and no moment is missed in which a node had more than it can hold. Only after a restart of the
API server, which no longer knows earlier changes, all pods are listed again; then the sum is checked once the list is complete.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.pods import Pod
from pumice.api.requests import Amounts, add, pod_requests
from pumice.cluster.cache import WatchCache

_ENDED = ("Succeeded", "Failed")


@dataclass
class PodHistory:
    """One pod, from its creation on.

    Attributes:
        name: Its name, which a later pod may have too.
        namespace: Its namespace.
        job: Name of its Job.
        task: Its task.
        created: Number of the change by which it was first seen.
        node: Its node, empty until it is bound.
        ran: Number of the change by which it was first seen running, None before.
        ended: Its phase if it has ended.
        gone: Whether it was deleted.
    """

    name: str
    namespace: str
    job: str
    task: str
    created: int
    node: str = ""
    ran: int | None = None
    ended: str = ""
    gone: bool = False


class PodHistories:
    """Requests on each node and the history of each pod.

    Attributes:
        pods: Histories by uid.
        violations: What must not happen and did.
        bound: Number of pods that were bound.
        fullest: The largest share of a node's processors that was in use.
    """

    def __init__(self, cache: WatchCache[Pod], nodes: Mapping[str, Amounts]) -> None:
        """Follow pods.

        Args:
            cache: The pods of the cluster, from the first on.
            nodes: What each node can hold.
        """
        self.pods: dict[str, PodHistory] = {}
        self.violations: list[str] = []
        self.bound = 0
        self.fullest = 0.0
        self._nodes = nodes
        self._used: dict[str, Amounts] = {name: {} for name in nodes}
        self._changes = 0
        self._settled = cache.settled
        self._unchecked: dict[str, str] = {}
        cache.subscribe(self._note)

    def of(self, job: str) -> list[PodHistory]:
        """All pods that a Job has had."""
        return [each for each in self.pods.values() if each.job == job]

    def incarnations(self, job: str) -> Counter[str]:
        """How many pods of each name a Job has had."""
        return Counter(each.name for each in self.of(job))

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        self._changes += 1
        for pod, sign in ((old, -1), (new, 1)):
            if pod is None or pod.spec.node_name not in self._used:
                continue
            if pod.status.phase not in _ENDED:
                add(self._used[pod.spec.node_name], pod_requests(pod.spec), sign)
        if new is not None and new.spec.node_name in self._used:
            self._unchecked[new.spec.node_name] = new.metadata.name
        if self._settled.is_set():
            for node, name in self._unchecked.items():
                self._check(node, name)
            self._unchecked.clear()
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self.pods[old.metadata.uid].gone = True
        if new is not None:
            self._follow(new)

    def _check(self, node: str, pod: str) -> None:
        used, room = self._used[node], self._nodes[node]
        self.fullest = max(self.fullest, used.get("cpu", 0) / room["cpu"])
        self.violations += [
            f"node {node} has {amount} of {resource} in use and {room[resource]} in all, with pod {pod}"
            for resource, amount in used.items()
            if amount > room.get(resource, 0)
        ]

    def _follow(self, pod: Pod) -> None:
        meta = pod.metadata
        if meta.uid not in self.pods:
            job, task = meta.annotation(keys.JOB_NAME), meta.annotation(keys.TASK_SPEC)
            self.pods[meta.uid] = PodHistory(meta.name, meta.namespace, job, task, self._changes)
        seen = self.pods[meta.uid]
        if pod.spec.node_name != seen.node:
            if seen.node:
                self.violations.append(
                    f"pod {meta.name} went from node {seen.node} to {pod.spec.node_name}"
                )
            seen.node = pod.spec.node_name
            self.bound += seen.node in self._nodes
        if pod.status.phase == "Running" and seen.ran is None:
            seen.ran = self._changes
        if pod.status.phase in _ENDED:
            seen.ended = pod.status.phase
