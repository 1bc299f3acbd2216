"""Pods to create: a window of the missing pods, each built when it is sent.

A Job may lack a hundred thousand pods, and each of them may be large. So a pass creates a few hundred. The next pass
then sees changes: the deletion of the Job, a Command, pods that already run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pumice.api.kinds import POD
from pumice.api.meta import Raw
from pumice.controller.jobs import pods
from pumice.controller.jobs.replicas import Missing
from pumice.controller.jobs.situation import Situation, unexpected_error
from pumice.controller.plan import CreateObject, UnbuildableError
from pumice.plugins import PluginError

__all__ = ["PodCreations", "creations"]


@dataclass(frozen=True, slots=True, eq=False)
class PodCreations:
    """A stage of pods to create.

    Attributes:
        missing: Which pods.
        make: Builds one of them.
    """

    missing: Sequence[Missing]
    make: Callable[[Missing], Raw]

    def __len__(self) -> int:
        return len(self.missing)

    def __iter__(self) -> Iterator[CreateObject]:
        for each in self.missing:
            try:
                pod = self.make(each)
            except PluginError as error:
                raise UnbuildableError(str(error)) from error
            except Exception as error:
                raise UnbuildableError(unexpected_error(error)) from error
            yield CreateObject(POD, pod)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodCreations) and list(self) == list(other)

    def problem(self) -> str:
        """Why the first pod of one of the tasks cannot be built; empty if all of them can."""
        first = {each.task.name: each for each in reversed(self.missing)}
        try:
            list(PodCreations(list(first.values()), self.make))
        except UnbuildableError as error:
            return str(error)
        return ""


def creations(case: Situation, missing: Sequence[Missing], *, forwarding: bool) -> PodCreations:
    """The creation of pods, with the edits of all plugins.

    Args:
        case: The Job.
        missing: Which pods; none if its plugins cannot be used.
        forwarding: Whether the Job's queue lets other clusters take them.
    """

    def make(each: Missing) -> Raw:
        assert case.wiring is not None
        return pods.build(case.job, each.task, each.index, case.wiring.pod, forwarding=forwarding)

    return PodCreations(missing, make)
