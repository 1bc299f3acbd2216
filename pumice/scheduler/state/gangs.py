"""Gangs, what cycles keep about each, and the queues to which what their pods hold is charged."""

from bisect import bisect_left, insort
from collections.abc import Iterable

from pumice.api import keys
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import NEVER, PriorityClass
from pumice.api.podgroups import PodGroup, PodGroupStatus
from pumice.api.queues import Queue, users_of
from pumice.scheduler.budget import TOO_SLOW
from pumice.scheduler.model.axis import Axis
from pumice.scheduler.model.jobs import ChargedPods, JobInfo
from pumice.scheduler.model.nodes import NodeTable
from pumice.scheduler.model.queue_specs import QueueAmounts
from pumice.scheduler.model.queues import QueueTable
from pumice.scheduler.model.tasks import NEEDS_ROOM, TaskInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.state.assumptions import Assumptions, is_older
from pumice.scheduler.waiting.parked import Cause, ParkedGangs


class GangTable:
    """Gangs by key, their queues and priorities.

    Attributes:
        jobs: The gangs, and the pods of gangs that are charged to another queue.
        queues: Queues by name; the default queue always exists.
        shares: What gangs hold and ask for, by queue.
        changed_queues: Queues that changed, or got a queue below them, since the last cycle.
        told_queues: What of its spec the owners of a queue have been told that nothing enforces it, or that it cannot be.
        dirty: Gangs whose pods or PodGroup changed since the last cycle.
        waiting: Gangs that a cycle may have something to do for.
        waiting_keys: Their keys, ascending.
        strangers: Pods that name a gang and another scheduler, and the scheduler, by gang.
        statuses: Status of every PodGroup, as it is or is about to be written.
        quarantined: Gangs that cycles leave out, because an unexpected exception concerned them, and why.
        warned: What the owners of a gang, or of `queue NAME`, have been warned about, so that they hear it once.
        dues: When the reason of a gang is to be written, UNIX seconds, by key.
        pending: Why a gang waits, as of the last cycle.
    """

    def __init__(
        self,
        axis: Axis,
        jobs: dict[str, JobInfo],
        nodes: NodeTable,
        assumed: Assumptions,
        parked: ParkedGangs,
        default_queue: str,
    ) -> None:
        """Begin without gangs; the arguments are parts of the same `ClusterState`."""
        self._axis = axis
        self._nodes = nodes
        self._assumed = assumed
        self._parked = parked
        self._default_queue = default_queue
        self.jobs = jobs
        self.queues: dict[str, Queue] = {default_queue: _implied(default_queue)}
        self.shares = QueueTable(axis)
        self.changed_queues: dict[str, None] = {}
        self.told_queues: dict[str, list[str]] = {}
        self.dirty: dict[str, None] = {}
        self.waiting: dict[str, JobInfo] = {}
        self.waiting_keys: list[str] = []
        self.strangers: dict[str, dict[str, str]] = {}
        self.statuses: dict[str, PodGroupStatus] = {}
        self.quarantined: dict[str, Reason] = {}
        self.warned: dict[str, set[str]] = {}
        self.dues: dict[str, float] = {}
        self.pending: dict[str, Reason] = {}
        self._priority_classes: dict[str, PriorityClass] = {}
        self._default_priority = 0
        self._gang_of_stranger: dict[str, str] = {}
        self._has_other_queues = False

    # -- PodGroups ---------------------------------------------------------------------------

    def set_pod_group(self, group: PodGroup) -> bool:
        """Add or update a PodGroup; True if a relevant field changed."""
        key = group.metadata.key
        job = self.jobs.get(key) or JobInfo(
            group.metadata.namespace, group.metadata.name, self.shares
        )
        old, new = job.group, group.metadata
        same = old if old is not None and old.metadata.uid == new.uid else None
        if same is not None and is_older(new.resource_version, same.metadata.resource_version):
            return False
        status = self._assumed.correct_status(key, new, group.status)
        if (
            same is not None
            and same.spec == group.spec
            and job.status == status
            and same.metadata.annotations == new.annotations
            and same.metadata.creation_timestamp == new.creation_timestamp
        ):
            job.group = group
            return False
        if old is None or (old.spec, old.metadata.annotations) != (group.spec, new.annotations):
            why = self.quarantined.get(key)
            if why is not None and why.reason != TOO_SLOW:
                del self.quarantined[key]
        if old is not None and same is None:
            job.begin_again()
            self.warned.pop(job.key, None)
        queue = job.queue if job.group is not None else None
        job.set_group(group, self._default_queue)
        self.jobs[key] = job
        job.set_minimum(self._axis.known(job.min_resources))
        job.status = status
        self._prioritise(job)
        self.shares.place(job)
        if queue != job.queue:
            self.charge(job.tasks.values())
        self.statuses[job.key] = job.status
        self.touch(job)
        return True

    def remove_pod_group(self, namespace: str, name: str) -> bool:
        """Remove a PodGroup; pods that name it wait until it exists again."""
        job = self.jobs.get(f"{namespace}/{name}")
        if job is None or job.group is None:
            return False
        job.set_group(None, self._default_queue)
        self.shares.place(job)
        self.charge(job.tasks.values())
        job.begin_again()
        self.warned.pop(job.key, None)
        self._assumed.end_status(job.key)
        self.statuses.pop(job.key, None)
        self.touch(job)
        return True

    def assume_status(self, job: JobInfo, status: PodGroupStatus) -> None:
        """Count a PodGroup's status as written."""
        assert job.group is not None
        self._assumed.assume_status(job.key, job.group.metadata, status)
        if status.phase != job.status.phase:
            self._parked.happened(Cause.SHARES)
        job.status = status
        self.shares.outdate(job)
        self.statuses[job.key] = status
        self._index(job)
        if not job.is_waiting:
            self._parked.wake(job.key)

    # -- gangs -------------------------------------------------------------------------------

    def named(self, key: str) -> JobInfo:
        """A gang that a pod names; it is made if nothing is known of it."""
        job = self.jobs.get(key)
        if job is None:
            namespace, _, name = key.partition("/")
            job = self.jobs[key] = JobInfo(namespace, name, self.shares)
        return job

    def touch(self, job: JobInfo) -> None:
        """Have a gang tried again that has changed; forget it if nothing is left of it."""
        self.dirty[job.key] = None
        self._parked.wake(job.key)
        self._index(job)

    def _index(self, job: JobInfo) -> None:
        if job.is_waiting:
            if job.key not in self.waiting:
                insort(self.waiting_keys, job.key)
            self.waiting[job.key] = job
        elif self.waiting.pop(job.key, None) is not None:
            del self.waiting_keys[bisect_left(self.waiting_keys, job.key)]
        if job.group is None and not job.tasks:
            self.jobs.pop(job.key, None)
            self.dirty.pop(job.key, None)
            self.pending.pop(job.key, None)
            self.shares.forget(job)
            self.warned.pop(job.key, None)
            self.dues.pop(job.key, None)
            self.quarantined.pop(job.key, None)

    def keeps_sub_group(self, old: TaskInfo, new: TaskInfo) -> bool:
        """Whether a pod that is shown again has labels with which it belongs to the same sub-group of its gang."""
        job = self.jobs.get(old.job)
        groups = job.sub_groups if job is not None else None
        return groups is None or groups.is_alike(old, new)

    def set_stranger(self, pod: str, gang: str, scheduler: str) -> bool:
        """Note that a pod of another scheduler names a gang, or none any more; True if that is new."""
        before = self._gang_of_stranger.get(pod, "")
        if before == gang:
            return False
        if before:
            del self._gang_of_stranger[pod]
            del self.strangers[before][pod]
            if not self.strangers[before]:
                del self.strangers[before]
        if gang:
            self._gang_of_stranger[pod] = gang
            self.strangers.setdefault(gang, {})[pod] = scheduler
        for key in (before, gang):
            if key in self.jobs:
                self.touch(self.jobs[key])
        return True

    def quarantine(self, key: str, why: Reason) -> None:
        """Leave a gang out of cycles until `release`, or until its PodGroup is changed, which does not help one that is too slow."""
        self.quarantined[key] = why
        self._parked.wake(key)

    def release(self, key: str) -> bool:
        """End the quarantine of a gang."""
        if self.quarantined.pop(key, None) is None:
            return False
        if key in self.jobs:
            self.dirty[key] = None
        return self._parked.changed(True)

    def widen(self) -> None:
        """Open the columns that the axis has gained."""
        self.shares.widen()
        self._parked.wake_all()
        for job in self.jobs.values():
            job.widen(len(self._axis))
            job.set_minimum(self._axis.known(job.min_resources))
            self.shares.outdate(job)

    # -- priorities --------------------------------------------------------------------------

    def set_priority_class(self, priority_class: PriorityClass) -> bool:
        """Add or update a PriorityClass; True if a relevant field changed."""
        name = priority_class.metadata.name
        old = self._priority_classes.get(name)
        self._priority_classes[name] = priority_class
        if (
            old is not None
            and old.value == priority_class.value
            and old.global_default == priority_class.global_default
            and old.preemption_policy == priority_class.preemption_policy
        ):
            return False
        return self._prioritise_all()

    def remove_priority_class(self, name: str) -> bool:
        """Remove a PriorityClass; pods and gangs that name it have priority 0."""
        if self._priority_classes.pop(name, None) is None:
            return False
        return self._prioritise_all()

    def _prioritise_all(self) -> bool:
        self._parked.wake_all()  # what they are alike in may have changed
        defaults = (each.value for each in self._priority_classes.values() if each.global_default)
        self._default_priority = max(defaults, default=0)
        self._prioritise(*self.jobs.values())
        return True

    def _prioritise(self, *jobs: JobInfo) -> None:
        """Give jobs what their PriorityClass says, or the default one.

        The policy of the default class is not the gang's: pods of another class may have another one.
        """
        for job in jobs:
            name = job.group.spec.priority_class_name if job.group else ""
            named = self._priority_classes.get(name)
            job.priority = named.value if named else 0 if name else self._default_priority
            job.never_preempts = named is not None and named.preemption_policy == NEVER

    # -- queues ------------------------------------------------------------------------------

    def set_queue(self, queue: Queue) -> bool:
        """Add or update a Queue; True if a relevant field changed."""
        old = self.queues.get(queue.metadata.name)
        if (
            old is not None
            and old.spec == queue.spec
            and old.is_open == queue.is_open
            and old.metadata.annotations == queue.metadata.annotations
            and old.metadata.creation_timestamp == queue.metadata.creation_timestamp
        ):
            return False
        self.shares.amounts[queue.metadata.name] = QueueAmounts.of(queue)
        self._has_other_queues |= old is None
        if old is None or old.is_fifo != queue.is_fifo:
            self._parked.wake_all()  # no gang of a fifo queue is parked
        self.queues[queue.metadata.name] = queue
        self.shares.unsettle()
        self.changed_queues[queue.metadata.name] = None
        parent = queue.spec.parent or keys.ROOT_QUEUE
        if parent in self.queues:
            self.changed_queues[parent] = None
        return True

    def remove_queue(self, name: str) -> bool:
        """Remove a Queue; its gangs wait until it exists again."""
        known = self.queues.pop(name, None) is not None
        self._has_other_queues |= known
        self.shares.amounts.pop(name, None)
        self.changed_queues.pop(name, None)
        self.told_queues.pop(name, None)
        self.warned.pop(f"queue {name}", None)
        self.shares.unsettle()
        if name == self._default_queue:
            self.queues[name] = _implied(name)
        return known

    def takes(self, queue: Queue, job: JobInfo) -> bool:
        """Whether a queue is open, and the namespace of a gang may use it."""
        if not queue.is_open:
            return False
        users = users_of(queue)
        if users is None:
            return True
        return users.admit(job.namespace, self._nodes.peers.namespaces.get(job.namespace))

    # -- charges -----------------------------------------------------------------------------

    def charged(self, task: TaskInfo, job: JobInfo, node: str) -> ChargedPods | None:
        """Where the amounts of a pod on a node count if not with its gang: it was bound under another queue that is still there.

        Without such a queue they count in the queue of the PodGroup, else in the default queue.
        """
        if not node or task.status not in NEEDS_ROOM:
            return None
        own = job.queue if job.group is not None and job.queue in self.queues else ""
        queue = task.charge if task.charge in self.queues else own or self._default_queue
        if queue == own:
            return None
        key = ChargedPods.key_of(job, queue)
        charged = self.jobs.get(key)
        if charged is None:
            charged = self.jobs[key] = ChargedPods(job, queue, self.shares)
            self.shares.place(charged)
        assert isinstance(charged, ChargedPods)
        return charged

    def charge(self, tasks: Iterable[TaskInfo]) -> None:
        """Find out again where the amounts of pods count."""
        running = self._nodes.running
        for task in tasks:
            job = self.jobs.get(task.job)
            if job is None:
                continue
            before, charged = job.elsewhere.get(task.key), self.charged(task, job, task.node)
            if charged is before:
                continue
            is_running = task.row >= 0
            if is_running:
                running.discard(task)
            job.charge(task, charged)
            if is_running:
                running.add(task, self._nodes.records[task.node].row)
            self._drop_charged(before)
            self._parked.changed(True, Cause.NODES | Cause.SHARES)

    def settle(self, tasks: Iterable[TaskInfo]) -> None:
        """Find out again where pods are charged after queues were added or removed."""
        if self._has_other_queues:
            self._has_other_queues = False
            self.charge(tasks)

    def discard(self, task: TaskInfo) -> None:
        """Take a pod out of its gang."""
        job = self.jobs[task.job]
        charged = job.elsewhere.get(task.key)
        job.discard(task)
        self._drop_charged(charged)
        self.touch(job)

    def _drop_charged(self, charged: ChargedPods | None) -> None:
        """Forget a sum of amounts that has no pods any more."""
        if charged is not None and not charged.pods:
            del self.jobs[charged.key]
            self.shares.forget(charged)


def _implied(name: str) -> Queue:
    return Queue(metadata=ObjectMeta(name=name))
