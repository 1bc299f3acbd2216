"""The time that a cycle may take, and how namespaces share it.

A cycle has a budget. While it lasts, the gangs of all namespaces are tried in the order of plugins. Without a limit, the
gangs of one tenant could delay those of every other one, so a cycle ends early, between two gangs, and the next cycle
continues with the gangs that were not reached:

* **Actions.** An action may use half of what is left of the budget, the last one all of it. So a long `allocate` does not
  keep `preempt` from running. An action that is late still has a small part, and may begin one gang.
* **Namespaces.** Within an action, each namespace with waiting gangs has an equal share, by deficit round robin
  (Shreedhar and Varghese, 1995): it begins gangs as long as it has used less than its share. What the last gang of a
  namespace used beyond the share is its debt, which is subtracted from its shares of the next actions and cycles. Debts
  end with a cycle that reached every gang.
* **Rounds.** Gangs that were not reached are tried before all others of their namespace. So every gang is reached: the
  gangs of a round are a fixed set, each cycle reaches at least one of them once the namespace's debt is paid, and debts
  are bounded, because
* **one gang** that alone takes `GANG_LIMIT` times the budget is interrupted, all its placements are undone, and it is
  left out for a delay that grows (`Session.fail`, `worker/quarantine`).

The clock is an argument, so a cycle stays a function of its arguments. Without a clock there is no limit: simulations
and tests decide about every gang in every cycle. A clock of processor time suits best: a gang is then not blamed for
other processes of the machine.
"""

from collections.abc import Callable, Iterable, Set

import msgspec

from pumice.scheduler.model.jobs import JobInfo

GANG_LIMIT = 3.0
"""Number of budgets after which the turn of a single gang is interrupted."""

MAX_GANGS = 1000
"""Maximum number of gangs of a namespace that a cycle looks at after one that did not reach all gangs."""

_LEAST = 1 / 16
"""Least part of the budget that an action has."""

TOO_SLOW = "SchedulingTooSlow"
"""Reason of a gang that was set aside after its turn was interrupted; no change of the gang ends this, only time does."""


class Budget(msgspec.Struct, frozen=True):
    """How long a cycle may take.

    Attributes:
        seconds: The budget, in seconds of the clock.
        clock: The time in seconds, from any zero.
    """

    seconds: float
    clock: Callable[[], float]


class OverBudgetError(Exception):
    """The turn of a single gang took several times the budget of a cycle."""


class Rounds:
    """Which gangs earlier cycles did not reach.

    Attributes:
        unreached: Gangs for which the time was over. While there are some of a namespace, only they are tried of it.
        left_out: Gangs that were not tried for that reason.
        debts: What namespaces used beyond their share, in seconds.
    """

    def __init__(self) -> None:
        self.unreached: Set[str] = frozenset()
        self.left_out: Set[str] = frozenset()
        self.debts: dict[str, float] = {}

    @property
    def untried(self) -> Set[str]:
        """Keys of all gangs that the last cycle should have tried."""
        return self.unreached | self.left_out if self.left_out else self.unreached

    def choose(self, jobs: Iterable[JobInfo]) -> tuple[set[str], Set[str]]:
        """Keys of gangs that the next cycle does not try: those that count as not reached, and those that are left out.

        Args:
            jobs: Gangs to be tried, without those of fifo queues, which are tried in the order of their queue.
        """
        if not self.untried:
            return set(), frozenset()
        namespaces: dict[str, list[tuple[bool, str]]] = {}
        for job in jobs:
            gangs = namespaces.setdefault(job.namespace, [])
            gangs.append((job.key not in self.unreached, job.key))
        unreached: set[str] = set()
        left_out: set[str] = set()
        for gangs in namespaces.values():
            gangs.sort()
            is_later, _ = gangs[0]
            in_round = [key for later, key in gangs if later is is_later]
            unreached.update(in_round[MAX_GANGS:])
            left_out.update(key for _, key in gangs[len(in_round) :])
        return unreached, left_out

    def end_cycle(self, unreached: Set[str], left_out: Set[str]) -> None:
        """Record which gangs a cycle has not tried.

        Args:
            unreached: Keys of those for which the time was over.
            left_out: Keys of those that it has left out.
        """
        self.unreached, self.left_out = unreached, left_out
        if not self.untried:
            self.debts.clear()


class TimeShares:
    """The budget of one cycle, divided among its actions and the namespaces of its gangs.

    The time between two turns is counted for the namespace of the second one; that of gangs without a turn for none.

    Attributes:
        is_limited: Whether there is a budget.
    """

    def __init__(
        self, budget: Budget | None, debts: dict[str, float], jobs: Iterable[JobInfo]
    ) -> None:
        """Begin a cycle.

        Args:
            budget: Its budget; no limit if None.
            debts: Debts of namespaces in seconds; updated by each action.
            jobs: The gangs to be tried.
        """
        self._budget = budget
        self.is_limited = budget is not None
        self._debts = debts
        self._namespaces = {job.namespace for job in jobs} if budget is not None else set()
        self._start = budget.clock() if budget is not None else 0.0
        self._mark: float | None = None
        self._end = self._limit = float("inf")
        self._share = 0.0
        self._used: dict[str, float] = {}

    def begin_action(self, *, is_last: bool) -> None:
        """Divide what is left of the budget: half of it, or all if the action is the last one."""
        if self._budget is None:
            return
        self.end_action()
        now, seconds = self._budget.clock(), self._budget.seconds
        left = max(self._start + seconds - now, 0.0)
        # An action that is late pays debts, too: otherwise an indebted namespace might never be tried again.
        allowed = max(left if is_last else left / 2, seconds * _LEAST)
        self._end = now + allowed
        self._share = allowed / max(len(self._namespaces), 1)

    def end_action(self) -> None:
        """Turn what namespaces used beyond their share into debts."""
        for namespace in self._namespaces:
            debt = self._debts.pop(namespace, 0.0) + self._used.get(namespace, 0.0) - self._share
            if debt > 0.0:
                self._debts[namespace] = debt
        self._used.clear()
        self._mark = None

    def may_begin(self, namespace: str) -> bool:
        """True if a gang of a namespace may be tried now."""
        if self._budget is None:
            return True
        used = self._used.get(namespace, 0.0) + self._debts.get(namespace, 0.0)
        if used >= self._share:
            self._mark = None
            return False
        now = self._budget.clock()
        if self._used and now >= self._end:
            return False
        self._count(namespace, now)
        return True

    def begin_turn(self) -> None:
        """Begin the turn of a gang."""
        if self._budget is not None:
            self._limit = self._budget.clock() + GANG_LIMIT * self._budget.seconds

    def end_turn(self, namespace: str) -> None:
        """Count the time of a gang's turn for its namespace."""
        if self._budget is not None:
            self._count(namespace, self._budget.clock())
            self._limit = float("inf")

    def check(self) -> None:
        """Interrupt a turn that takes too long; call it for each pod.

        Raises:
            OverBudgetError: The turn took `GANG_LIMIT` times the budget.
        """
        if self._budget is not None and self._budget.clock() > self._limit:
            limit = GANG_LIMIT * self._budget.seconds
            raise OverBudgetError(
                f"placing its pods took more than {limit:g} s; it is tried again later, after a growing delay"
            )

    def _count(self, namespace: str, now: float) -> None:
        """Count the time since the last gang for a namespace."""
        past = now - self._mark if self._mark is not None else 0.0
        self._mark = now
        self._used[namespace] = self._used.get(namespace, 0.0) + past
