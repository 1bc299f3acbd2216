"""pdb: no more pods are evicted than their PodDisruptionBudgets allow.

The API server refuses other evictions anyway. With this plugin they are not chosen in the first place, so that other pods
go, or none. What a budget allows is `status.disruptionsAllowed`, without the evictions that were decided since.
"""

import numpy as np

from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.nodes import NodeRecord
from pumice.scheduler.model.running_pods import VICTIMS, BudgetTable
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView


class Pdb:
    """Counts the evictions that budgets allow."""

    def __init__(self, _arguments: Arguments) -> None:
        self._of: dict[str, tuple[str, ...]] = {}
        self._left: dict[str, int] = {}

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the checks, if there are budgets."""
        self._budgets: BudgetTable = session.budgets
        if not self._budgets:
            return
        for task in session.evicted():
            self._count(task, 1)
        register.preemptable(self._within, by=any_preemptor)
        register.reclaimable(self._within, by=any_preemptor)
        register.evictable(self._has_left)
        register.on_deallocate(self._deallocated)
        register.on_allocate(self._allocated)

    def _names(self, task: TaskInfo) -> tuple[str, ...]:
        """Budgets that protect a pod; notes what they allow."""
        names = self._of.get(task.key)
        if names is None:
            found = []
            for budget in self._budgets.of(task):
                name = f"{task.namespace}/{budget.metadata.name}"
                self._left.setdefault(name, budget.status.disruptions_allowed)
                found.append(name)
            names = self._of[task.key] = tuple(found)
        return names

    def _count(self, task: TaskInfo, evicted: int) -> None:
        for name in self._names(task):
            self._left[name] -= evicted

    def _within(self, _: Preemptor, candidates: Candidates) -> Bools:
        may = np.ones(len(candidates), dtype=np.bool_)
        protected: dict[str, list[int]] = {}
        for place, task in enumerate(candidates.tasks):
            for name in self._names(task):
                protected.setdefault(name, []).append(place)
        for name, places in sorted(protected.items()):
            if len(places) <= self._left[name]:
                continue
            members = np.zeros(len(candidates), dtype=np.int64)
            members[places] = 1
            before = candidates.earlier(members)
            may &= (members == 0) | (before < self._left[name])
        return may

    def _has_left(self, task: TaskInfo) -> bool:
        return all(self._left[name] > 0 for name in self._names(task))

    def _deallocated(self, task: TaskInfo, _: NodeRecord) -> None:
        if task.status is SchedulingStatus.RELEASING:
            self._count(task, 1)

    def _allocated(self, task: TaskInfo, _: NodeRecord) -> None:
        if task.status in VICTIMS:  # an eviction was undone
            self._count(task, -1)


SPEC = PluginSpec(
    name="pdb", summary="Evicts no more pods than their PodDisruptionBudgets allow.", build=Pdb
)
