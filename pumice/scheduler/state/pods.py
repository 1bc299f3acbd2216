"""Pods, taken in and out of everything that counts them: nodes, gangs, claims, rules about other pods.

The effects of an event on all of these must be applied together. If a step raises, removing the pod does what is left to do.
"""

from collections.abc import Iterable, Mapping

from pumice.api.pods import Pod
from pumice.scheduler.model.claim_table import ClaimTable
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.model.shapes import ShapeTable
from pumice.scheduler.model.tasks import (
    BINDING,
    BOUND,
    PENDING,
    PLACED,
    RUNNING,
    SchedulingStatus,
    TaskInfo,
)
from pumice.scheduler.state.assumptions import Assumptions, is_older
from pumice.scheduler.state.gangs import GangTable
from pumice.scheduler.waiting.parked import Cause, ParkedGangs

_ON_NODES = Cause.NODES | Cause.SHARES
_DECIDED = _ON_NODES | Cause.CLAIMS
_PLACED_ALIKE = frozenset({BINDING, BOUND, RUNNING})


class PodTable:
    """Pods by key.

    Attributes:
        nominees: Waiting pods of gangs that are nominated for a node.
        spared: Pods whose eviction was refused: their uid, and until when they are left out, UNIX seconds.
    """

    def __init__(
        self,
        nodes: NodeTable,
        shapes: ShapeTable,
        gangs: GangTable,
        claims: ClaimTable,
        assumed: Assumptions,
        parked: ParkedGangs,
    ) -> None:
        """Begin without pods; the arguments are parts of the same `ClusterState`."""
        self._nodes = nodes
        self._peers = nodes.peers
        self._shapes = shapes
        self._gangs = gangs
        self._claims = claims
        self._assumed = assumed
        self._parked = parked
        self.tasks: dict[str, TaskInfo] = {}
        self.nominees: dict[str, TaskInfo] = {}
        self.spared: dict[str, tuple[str, float]] = {}

    # -- events ------------------------------------------------------------------------------

    def set(self, task: TaskInfo, pod: Pod, *, is_ours: bool) -> bool:
        """Add or update a pod, whose shape has all columns; True if a relevant field changed."""
        old = self.tasks.get(task.key)
        if old is not None and old.uid == task.uid and is_older(task.version, old.version):
            return False
        named = pod.group_key
        is_strange = self._gangs.set_stranger(
            task.key, "" if is_ours else named, pod.spec.scheduler_name
        )
        node = self._assumed.correct_pod(task, pod.spec.node_name)
        # Pods on a node that name no gang are kept as one by namespace, so that what they hold is charged to a queue.
        gang = (named or (f"{task.namespace}/" if node else "")) if is_ours else ""
        self._assumed.correct_nomination(task)
        if old is not None:
            if self._is_alike(old, task, gang, node):
                is_same = old.status is task.status
                if is_same or self._stays(old, task.status):
                    old.version, old.shown, old.labels = task.version, task.shown, task.labels
                    return is_strange or not is_same
            task.verdict = old.verdict
        self._shapes.use(task.shape)
        if task.shape.peers is not None:
            self._peers.use(task.shape)
        has_peers = self._peers.is_live
        self._parked.happened(_changed_by(task, node))
        if old is not None:
            self._parked.happened(_changed_by(old, old.node))
            if old.shape.claims and task.status is not BINDING:
                self._claims.undecide(old)
            self._drop(old)
        self.tasks[task.key] = task
        if task.shape.claims:
            self._claims.mention(task, pod)
        if has_peers:
            self._peers.join(task)
        if gang:
            job = self._gangs.named(gang)
            job.add(task, self._gangs.charged(task, job, node))
        if node:
            self._nodes.add(task, self._nodes.record(node))
        if gang:
            self._gangs.touch(job)
        self._index_nominee(task)
        return True

    def run(self, key: str) -> bool:
        """Show a pod running where a cycle has bound it, as `set` does with its next version; False if more than the status follows from it."""
        task = self.tasks[key]
        if task.status is not BINDING or task.cool_down or task.nominated:
            return False
        if not self._stays(task, RUNNING):
            return False
        self._assumed.end_pod(key)
        self._assumed.end_nomination(key)
        task.shown = RUNNING
        return True

    def remove(self, key: str) -> bool:
        """Remove a pod."""
        task = self.tasks.get(key)
        if task is None:
            return False
        self._assumed.end_pod(key)
        self._assumed.end_nomination(key)
        self.spared.pop(key, None)
        self._gangs.set_stranger(key, "", "")
        self._parked.happened(_changed_by(task, task.node))
        if task.shape.claims:
            self._claims.undecide(task)
        self._drop(task)
        return True

    def touch_claimants(self, claim: str) -> None:
        """Have gangs tried again whose waiting pods mount a claim that has changed."""
        for key in self._claims.claimants(claim):
            task = self.tasks[key]
            if task.job and task.status is PENDING:
                self._gangs.touch(self._gangs.jobs[task.job])

    def recount(self) -> None:
        """Count pods again that ask for resources which nodes did not have, in the columns that these have now."""
        outdated = self._shapes.outdated()
        if not outdated:
            return
        shapes = {shape.number for shape in outdated}
        tasks = [task for task in self.tasks.values() if task.shape.number in shapes]
        placed = [(task, self._nodes.records[task.node]) for task in tasks if task.node]
        in_gangs = [(task, self._gangs.jobs[task.job]) for task in tasks if task.job]
        for task, _ in placed:
            self._nodes.discard(task)
        for task, job in in_gangs:
            job.account(task, -1)
        for shape in outdated:
            self._shapes.recount(shape)
        for task, job in in_gangs:
            job.account(task, 1)
            self._gangs.touch(job)
        for task, record in placed:
            self._nodes.add(task, record)

    def _is_alike(self, old: TaskInfo, new: TaskInfo, gang: str, node: str) -> bool:
        """Whether nothing relevant has changed, apart from the status."""
        return (
            old.uid == new.uid
            and old.facts == new.facts
            and (not self._peers.is_live or self._peers.is_alike(old, new))
            and self._gangs.keeps_sub_group(old, new)
            and old.job == gang
            and old.node == node
        )

    def _stays(self, task: TaskInfo, status: SchedulingStatus) -> bool:
        """Give a pod of a gang that is bound, or runs where it was bound, another status; False if more follows from it."""
        if not task.job or task.shape.claims:
            return False
        if task.status not in _PLACED_ALIKE or status not in _PLACED_ALIKE:
            return False
        running, job = self._nodes.running, self._gangs.jobs[task.job]
        if task.row >= 0:
            running.discard(task)
        job.move(task, status)
        if status in VICTIMS:
            running.add(task, self._nodes.records[task.node].row)
        self._parked.happened(_ON_NODES)
        self._gangs.touch(job)
        return True

    def _drop(self, task: TaskInfo) -> None:
        """Remove a pod from everywhere. If a step raises, a second call does what is left to do."""
        has_peers = self._peers.is_live
        self._leave_node(task)
        if task.shape.claims:
            self._claims.unmention(task)
        if has_peers:
            self._peers.part(task)
        self.nominees.pop(task.key, None)
        if task.job:
            self._gangs.discard(task)
        del self.tasks[task.key]
        if has_peers:
            self._peers.release(task.shape)
        self._shapes.release(task.shape)

    def _leave_node(self, task: TaskInfo) -> None:
        if task.node:
            record = self._nodes.records[task.node]
            self._nodes.discard(task)
            self._nodes.drop_if_unused(record)

    def _index_nominee(self, task: TaskInfo) -> None:
        if task.nominated and task.job and task.status is PENDING:
            self.nominees[task.key] = task
        else:
            self.nominees.pop(task.key, None)

    # -- decisions ---------------------------------------------------------------------------

    def nominate(self, nominations: Mapping[str, str]) -> None:
        """Count pods as nominated for a node as a cycle decided, or for none any more."""
        for key, node in nominations.items():
            task = self.tasks[key]
            task.nominated = node
            self._assumed.assume_nomination(task, node)
            self._index_nominee(task)
        self._parked.changed(bool(nominations), Cause.NODES)

    def assume(self, pods: Iterable[str]) -> None:
        """Count pods as a cycle decided about them: bound or evicted."""
        tasks = [self.tasks[pod] for pod in pods]
        gangs: dict[str, None] = {}
        for task in tasks:
            task.verdict = None
            if task.job:
                gangs[task.job] = None
                if task.status is BINDING:
                    task.charge = self._gangs.jobs[task.job].queue
            self._assumed.assume_pod(task)
            if task.shape.claims:
                self._claims.choices.decide(task)
            self.nominees.pop(task.key, None)
        for gang in gangs:
            self._gangs.touch(self._gangs.jobs[gang])
        self._parked.changed(bool(tasks), _DECIDED)

    def forget(self, key: str, uid: str) -> bool:
        """Drop the assumptions about a pod after the API server refused a write; the watched state is used again.

        Nothing changes for a later pod of the same name, which has another uid.
        """
        if not self._assumed.end_pod(key, uid):
            return False
        task = self.tasks[key]
        record = self._nodes.records[task.node]
        self._claims.undecide(task)
        self._nodes.discard(task)
        if task.job:
            job = self._gangs.jobs[task.job]
            job.move(task, task.shown)
            self._gangs.touch(job)
        else:
            task.status = task.shown
        if task.shown in PLACED:
            self._nodes.add(task, record)
        else:
            task.charge = ""
            self._gangs.charge([task])
            self._nodes.drop_if_unused(record)
        self._index_nominee(task)
        return self._parked.changed(True, _DECIDED)

    def spare(self, key: str, uid: str, until: float) -> None:
        """Undo an eviction that the API server refused, as `forget` does, and exclude the pod from evictions until a moment, UNIX seconds."""
        task = self.tasks.get(key)
        if task is not None and task.uid == uid:
            self.forget(key, uid)
            self.spared[key] = (uid, until)
            self._parked.changed(True, Cause.VICTIMS)

    def end_sparing(self, now: float) -> None:
        """End what `spare` has begun where it is over."""
        for key in [key for key, (_, until) in self.spared.items() if until <= now]:
            del self.spared[key]
            self._parked.happened(Cause.VICTIMS)


def _changed_by(task: TaskInfo, node: str) -> Cause:
    """What a pod changes that comes, changes or goes, and is or was on a node."""
    causes = _ON_NODES if node else Cause.SHARES
    return causes | Cause.CLAIMS if task.shape.claims else causes
