"""Missing pods and surplus pods of a Job, and their creation and removal.

The pods of a task are numbered from 0, so a Job that grows gets the next numbers and one that shrinks loses the
highest. A surplus pod is marked before it is removed, so that its removal is not taken for an eviction by a policy.

Missing pods are counted by arithmetic and listed a window at a time: the cost of a pass follows from
the pods that exist, not from the number that a spec asks for. Pods are removed a window at a time as well, so
that the deletion of the Job, a Command and changes of other pods are seen meanwhile.

A Job may lack a hundred thousand pods, and each of them may be large. So a pass creates a few hundred, each built when
it is sent. The next pass then sees changes: the deletion of the Job, a Command, pods that already run.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import POD
from pumice.api.meta import Raw
from pumice.api.names import pod_name
from pumice.api.pods import Pod
from pumice.controller.jobs.job_pods import JobPods
from pumice.controller.jobs.pods import build
from pumice.controller.jobs.situation import Situation, unexpected_error
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    RequeueAfter,
    UnbuildableError,
    UpdateObject,
)
from pumice.plugins import PluginError


class Missing(msgspec.Struct, frozen=True):
    """A pod that should exist and does not.

    Attributes:
        task: Its task.
        index: Its number.
        name: Its name.
    """

    task: Task
    index: int
    name: str


class Replicas:
    """The pods that a Job wants, and which of them exist. Terminating pods count as existing.

    Attributes:
        missing: Number of missing pods.
    """

    def __init__(self, job: Job, job_pods: JobPods) -> None:
        """Find existing and missing pods.

        Args:
            job: The Job, complete as `subject.read` returns it.
            job_pods: Its pods; those that succeeded and exist no longer are not missing.
        """
        self._job = job
        self._job_pods = job_pods
        self._there = {name for name in job_pods.present if job_pods.wants(name)} | job_pods.lost
        self.missing = job.replicas - len(self._there)

    def lacks(self, task: Task) -> bool:
        """True if a task has fewer pods than it wants."""
        return self.missing > 0 and next(self._absent(task), None) is not None

    def is_surplus(self, pod: Pod) -> bool:
        """True for a pod that exists and that the Job does not want."""
        return pod.metadata.name not in self._there

    def is_missing(self, name: str) -> bool:
        """True if the Job wants a pod of this name and has none."""
        return name not in self._there and self._job_pods.wants(name)

    def window(
        self, limit: int, *, held: Collection[str] = (), taken: Collection[str] = ()
    ) -> list[Missing]:
        """Missing pods to create next, in the order of the spec.

        If there are more than `limit`, every task gets an equal share, so that a task whose pods are
        refused does not keep the others from getting theirs.

        Args:
            limit: Number of pods at most.
            held: Tasks that get none.
            taken: Names that cannot be used.
        """
        if not self.missing:
            return []
        turns = deque(
            (position, self._absent(task, taken))
            for position, task in enumerate(self._job.tasks)
            if task.name not in held
        )
        chosen: list[tuple[int, int, Missing]] = []
        while turns and len(chosen) < limit:
            position, absent = turns.popleft()
            if (found := next(absent, None)) is not None:
                chosen.append((position, found.index, found))
                turns.append((position, absent))
        return [found for _, _, found in sorted(chosen, key=lambda each: each[:2])]

    def _absent(self, task: Task, taken: Collection[str] = ()) -> Iterator[Missing]:
        for index in range(task.size):
            name = pod_name(self._job.metadata.name, task.name, index)
            if name not in self._there and name not in taken:
                yield Missing(task, index, name)


def leaving(replicas: Replicas, pods: Collection[Pod]) -> list[Pod]:
    """Pods to remove, the highest index of a task first.

    They are surplus pods, and pods that were marked for removal by a controller that then stopped.
    """
    return [
        pod
        for pod in reversed(list(pods))
        if pod.metadata.deletion_timestamp is None
        and (pod.metadata.annotation(keys.OUT_OF_SYNC) or replicas.is_surplus(pod))
    ]


class Removal(msgspec.Struct, frozen=True):
    """One pass's removal of pods, as stages of its plan.

    Attributes:
        marks: Pods to mark as removed by the controller.
        deletes: Pods to delete.
        again: Another pass immediately, if there are more.
    """

    marks: list[UpdateObject]
    deletes: list[DeleteObject]
    again: list[RequeueAfter]


def removal(pods: Iterable[Pod], limit: int, *, marked: bool = True) -> Removal:
    """Remove pods, as many as a window holds, in the order given.

    Args:
        pods: The pods; those that are terminating are not deleted again.
        limit: Size of a window.
        marked: Whether they are marked first. Nothing is deleted before all of them are: which pods are to be
            removed may depend on all of them being there.
    """
    found = list(pods)
    unmarked = [pod for pod in found if not is_marked(pod)] if marked else []
    present = [pod for pod in found if pod.metadata.deletion_timestamp is None]
    if len(unmarked) > limit:
        present = []
    return Removal(
        [_mark(pod) for pod in unmarked[:limit]],
        [_delete(pod) for pod in present[:limit]],
        [RequeueAfter(0.0)] if max(len(unmarked), len(present)) > limit else [],
    )


def is_marked(pod: Pod) -> bool:
    """True for a pod that is marked as removed by the controller."""
    return bool(pod.metadata.annotation(keys.OUT_OF_SYNC))


def _mark(pod: Pod) -> UpdateObject:
    meta = pod.metadata
    patch = {"metadata": {"uid": meta.uid, "annotations": {keys.OUT_OF_SYNC: "true"}}}
    return UpdateObject(POD, meta.namespace, meta.name, patch)


def _delete(pod: Pod) -> DeleteObject:
    meta = pod.metadata
    return DeleteObject(POD, meta.namespace, meta.name, meta.uid)


_TRIED = 20_000
"""Variables of pods that are built before any is created; they take a tenth of a second."""


@dataclass(frozen=True, slots=True, eq=False)
class PodCreations:
    """A stage of pods to create.

    Attributes:
        missing: Which pods.
        make: Builds one of them.
        tried: Those that `problem` has built and that were not taken since, by name.
    """

    missing: Sequence[Missing]
    make: Callable[[Missing], Raw]
    tried: dict[str, Raw] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.missing)

    def __iter__(self) -> Iterator[CreateObject]:
        for each in self.missing:
            pod = self.tried.pop(each.name) if each.name in self.tried else self._built(each)
            yield CreateObject(POD, pod)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodCreations) and list(self) == list(other)

    def problem(self) -> str:
        """Why the first pod of one of the tasks cannot be built; empty if all of them can.

        Of tasks with very many variables only some are tried: plugins may name all tasks in each pod. What is wrong with the others
        is found when their pods are created.
        """
        first = {each.task.name: each for each in reversed(self.missing)}
        variables = 0
        try:
            for each in first.values():
                pod = self.tried[each.name] = self._built(each)
                containers = pod["spec"].get("containers") or ()
                variables += sum(len(container.get("env") or ()) for container in containers)
                if variables > _TRIED:
                    break
        except UnbuildableError as error:
            return str(error)
        return ""

    def _built(self, each: Missing) -> Raw:
        try:
            return self.make(each)
        except PluginError as error:
            raise UnbuildableError(str(error)) from error
        except Exception as error:
            raise UnbuildableError(unexpected_error(error)) from error


def creations(
    situation: Situation, missing: Sequence[Missing], *, forwarding: bool
) -> PodCreations:
    """The creation of pods, with the edits of all plugins.

    Args:
        situation: The Job.
        missing: Which pods; none if its plugins cannot be used.
        forwarding: Whether the Job's queue lets other clusters take them.
    """

    def make(each: Missing) -> Raw:
        assert situation.wiring is not None
        return build(
            situation.job, each.task, each.index, situation.wiring.pod, forwarding=forwarding
        )

    return PodCreations(missing, make)
