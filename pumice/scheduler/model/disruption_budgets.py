"""PodDisruptionBudgets, and which of them protect a pod."""

from pumice.api.budgets import PodDisruptionBudget
from pumice.scheduler.model.affinity_terms import is_too_long
from pumice.scheduler.model.tasks import TaskInfo

__all__ = ["BudgetTable"]


class BudgetTable:
    """All PodDisruptionBudgets."""

    __slots__ = ("_budgets",)

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, PodDisruptionBudget]] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def set(self, budget: PodDisruptionBudget) -> bool:
        """Add or update a budget; True if a relevant field changed.

        One whose selector is too long is left out; the API server still enforces it when a pod is evicted.
        """
        meta = budget.metadata
        if is_too_long(budget.spec.selector):
            return self.remove(meta.namespace, meta.name)
        budgets = self._budgets.setdefault(meta.namespace, {})
        old = budgets.get(meta.name)
        budgets[meta.name] = budget
        return old is None or (old.spec, old.status) != (budget.spec, budget.status)

    def remove(self, namespace: str, name: str) -> bool:
        """Remove a budget; True if it existed."""
        budgets = self._budgets.get(namespace, {})
        known = budgets.pop(name, None) is not None
        if not budgets:
            self._budgets.pop(namespace, None)
        return known

    def of(self, task: TaskInfo) -> list[PodDisruptionBudget]:
        """Budgets that protect a pod, by name."""
        budgets = self._budgets.get(task.namespace)
        if budgets is None:
            return []
        labels = task.labels or {}
        return [
            budget
            for _, budget in sorted(budgets.items())
            if budget.spec.selector is not None and budget.spec.selector.matches(labels)
        ]
