"""What the end of a pod leads to, for each recorded sequence of events, whichever of them were missed."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from pumice.api import keys
from pumice.api.meta import format_time
from pumice.api.pods import Pod
from pumice.controller.plan import PatchStatus, Plan
from pumice.controller.worker.memory import JobMemories
from tests.kit.builders import task
from tests.kit.tables import table
from tests.unit.controller.fake_cluster import START, FakeCluster, copied
from tests.unit.controller.job_scenarios import policy, running

Raw = dict[str, Any]

KEY, UID, NAME = ("default", "train"), "u1", "train-w-1"
DELETIONS: list[Raw] = table("controller/deletions")
ENDED = {"done": "Succeeded", "failed": "Failed"}


class Watched:
    """A Job of two pods, of which the second ends as a row says, and controllers that see some of it.

    Attributes:
        done: Whether the pod counts as succeeded, as far as the controllers can know.
        answered: Whether the policy must have acted.
    """

    def __init__(self, row: Raw, about: str, begun: FakeCluster) -> None:
        self.row = row
        self.about = about
        self.cluster = copy.copy(begun)
        self.cluster.objects = {key: copied(each) for key, each in begun.objects.items()}
        self.cluster.events = []
        self.memory = JobMemories()
        self.seen: set[int] = set()
        self.last: Raw = {"phase": "Running"}
        self.done = self.answered = False
        self.replaced = row["leads"] == "replaced"
        if self.replaced:  # the note that names the pod is written anew before it is marked
            self._scale(1)
            self.look()

    def see(self, at: int, *, watched: bool) -> None:
        """One of the events."""
        old = self._pod()
        self.last = self.row["events"][at]
        raw = self.cluster.pods[NAME]
        meta = raw["metadata"]
        if "requested" in self.last:
            grace = self.last["grace"]
            moment = format_time(START + self.last["requested"] + grace)
            meta |= {"deletionTimestamp": moment, "deletionGracePeriodSeconds": grace}
        if self.last.get("marked"):
            meta["annotations"][keys.OUT_OF_SYNC] = "true"
        (ended,) = [step["ended"] for step in self.row["steps"] if "ended" in step] or [None]
        state: Raw = {"running": {}}
        if ended is not None and self.last["phase"] in ENDED.values():
            code = int(self.last["phase"] == "Failed")
            state = {"terminated": {"exitCode": code, "finishedAt": format_time(START + ended)}}
        containers = [{"name": "main", "state": state}]
        raw["status"] = {"phase": self.last["phase"], "containerStatuses": containers}
        self.cluster.touch(raw)
        self.memory.changed(KEY, old, self._pod(), watched=watched)
        self.seen.add(at)

    def look(self) -> Plan:
        """One pass, with what the loop keeps between passes."""
        self._expect(removed="requested" in self.last, gone=False)
        memory = self.memory.of(KEY, UID)
        self.cluster.ended = [msgspec.to_builtins(pod) for pod in memory.ended.values()]
        before = self.cluster.phase
        plan = self.cluster.look()
        if not plan or any(isinstance(step, PatchStatus) for step in plan.steps):
            memory.noted(list(memory.ended.values()), before, self.cluster.phase)
        return plan

    def die(self) -> None:
        """Another controller takes over, and begins with a list."""
        self.memory = JobMemories()
        tells = self.seen and "requested" not in self.last
        self.seen = {max(self.seen)} if tells else set()

    def go(self) -> None:
        """The pod is gone."""
        self._expect(removed=True, gone=True)
        self.memory.removed(KEY, self._pod())
        self.cluster.vanish(NAME)

    def settle(self) -> None:
        """Passes until nothing is left to do; pods in its place run."""
        self._rest()
        if self.replaced:
            self._scale(2)
            self._rest()

    def uid(self) -> str:
        """Which pod of the name there is; empty if there is none."""
        return str(self.cluster.pods.get(NAME, {}).get("metadata", {}).get("uid", ""))

    def actions(self) -> int:
        """How often a policy has acted."""
        return sum(event.reason == "ExecuteAction" for event in self.cluster.events)

    def _expect(self, *, removed: bool, gone: bool) -> None:
        """What follows from what was seen, if a pass looks at it now or the pod is gone."""
        known = self._known()
        if self.done or self.answered or self.replaced:
            return
        if known == "done":
            self.done = True
        elif self.about == "PodEvicted":
            self.answered = removed
        else:
            self.answered = known == "failed" and (gone or not removed)

    def _known(self) -> str:
        """How the pod ended by itself, as far as that was seen; empty if it was not."""
        lists = self.row.get("known", ())
        return self.row["leads"] if lists and all(self.seen & set(each) for each in lists) else ""

    def _pod(self) -> Pod:
        return msgspec.convert(self.cluster.pods[NAME], Pod)

    def _rest(self) -> None:
        for _ in range(12):
            plan = self.look()
            leaving = [
                p for p in self.cluster.pods.values() if "deletionTimestamp" in p["metadata"]
            ]
            self.cluster.reap()
            self.cluster.run()
            if not plan and not leaving:
                return
        raise AssertionError("it does not come to rest")

    def _scale(self, size: int) -> None:
        self.cluster.job["spec"]["tasks"][0]["replicas"] = size


def _histories(row: Raw) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int | None]]:
    """Which events are seen, after which of them there is a pass, and before which the controller is killed."""
    every = tuple(range(len(row["events"])))
    for many in range(len(every) + 1):
        for seen in itertools.combinations(every, many):
            yield seen, seen, None
            yield seen, (), None
    yield from ((every, (at,), None) for at in every)
    for killed in range(len(every) + 1):
        yield every, every, killed
        yield every, (), killed
        yield every, every[killed - 1 : killed], killed


@pytest.mark.parametrize("about", ["PodEvicted", "PodFailed"])
@pytest.mark.parametrize("row", DELETIONS, ids=lambda row: row["id"])
def test_whatever_is_missed_it_leads_to_one_end(row: Raw, about: str) -> None:
    begun = running(task("w", 2), policies=[policy(about, "RestartPod")], minAvailable=1)
    for history in dict.fromkeys(_histories(row)):
        seen, passes, killed = history
        if row.get("stays") and not seen:
            continue
        pod = Watched(row, about, begun)
        first, before = pod.uid(), -1
        for at in range(len(row["events"])):
            if killed == at:
                pod.die()
            if at in seen and pod.uid() == first:
                pod.see(at, watched=at == before + 1)
                before = at
                if at in passes:
                    pod.look()
        if killed == len(row["events"]):
            pod.die()
        if not row.get("stays"):
            pod.go()
        pod.settle()
        made_again = pod.uid() not in ("", first)
        assert pod.actions() == pod.answered, history
        assert made_again == (pod.answered or not (pod.done or row.get("stays"))), history
        assert pod.cluster.status.get("succeeded", 0) == pod.done, history
