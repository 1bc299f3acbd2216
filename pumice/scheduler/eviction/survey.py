"""Running pods that may be evicted for a pod on any node, and why others may not.

Plugins get each candidate as if it were the only one on its node. A pod that is refused then is refused in any case,
because plugins only become stricter with every further victim. The answers are cached for all preemptors of the same
class, so that many waiting gangs cost little more than one.
"""

from collections.abc import Mapping

import msgspec
import numpy as np

from pumice.scheduler.eviction.allowed import EvictionRules, is_protected
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor, WhySpared
from pumice.scheduler.model.running_pods import RunningTable
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.victims import EvictionFailure, VictimAnswers, judge

__all__ = ["Survey", "accepted_gangs", "survey"]


class Survey(msgspec.Struct, frozen=True):
    """Running pods that an action may look at.

    Attributes:
        running: The table of running pods.
        rows: Their rows in it, ascending.
        is_open: Those that are preemptable, and whose eviction was not refused a moment ago.
        may: Those that may be evicted.
        judgement: What plugins say about those that are open.
        has_victims: Whether any of them may be evicted.
        nodes: Nodes from which any of them may be evicted.
    """

    running: RunningTable
    rows: Ints
    is_open: Bools
    may: Bools
    judgement: VictimAnswers
    has_victims: bool
    nodes: Bools

    def reaches(self, usable: Bools, rules: EvictionRules) -> bool:
        """Whether `victims` finds any."""
        if self.running.number(rules.without) >= 0:
            return bool(len(self.victims(usable, rules)))
        return bool((self.nodes & usable).any())

    def victims(self, usable: Bools, rules: EvictionRules) -> Ints:
        """Rows of the pods that may go.

        Args:
            usable: Nodes that the pod may use that asks.
            rules: Which gang's pods are left out.
        """
        rows = self.rows[self.may]
        return rows[self._asked(rows, usable, rules)]

    def spared(
        self, action: str, usable: Bools, rules: EvictionRules, words: Mapping[str, WhySpared]
    ) -> EvictionFailure:
        """Count what speaks against evicting the pods that the action looked at.

        Args:
            action: Name of the action.
            usable: As for `victims`.
            rules: As for `victims`.
            words: What plugins say about pods that they spare.
        """
        asked = self._asked(self.rows, usable, rules)
        is_refused = asked[self.is_open] & ~self.judgement.may
        by = _by_plugin(self.judgement, is_refused)
        return EvictionFailure(
            action=action,
            candidates=int(np.count_nonzero(asked)),
            allowed=int(np.count_nonzero(asked & self.may)),
            protected=int(np.count_nonzero(asked & ~self.is_open)),
            by={name: len(places) for name, places in by.items()},
            because={
                name: words[name](self.running, self.rows[self.is_open][places])
                for name, places in by.items()
                if name in words
            },
            gangs=len(np.unique(self.running.gang[self.rows[asked]])) if rules.breaks_gangs else 0,
        )

    def _asked(self, rows: Ints, usable: Bools, rules: EvictionRules) -> Bools:
        asked: Bools = usable[self.running.node[rows]]
        own = self.running.number(rules.without) if rules.without else -1
        if own >= 0:
            asked &= self.running.gang[rows] != own
        return asked


def survey(session: Session, preemptor: Preemptor, rules: EvictionRules) -> Survey:
    """Look at all running pods for one that asks, and for all for which `EvictionRules.survey_class` is the same."""
    running = session.view.running
    rows = _looked_at(session, preemptor, rules)
    is_open: Bools = running.preemptable[rows]
    if rules.only_running:
        is_open &= running.runs[rows]
    if rules.breaks_gangs:
        protected = [gang is not None and is_protected(gang.gang) for gang in running.gangs]
        is_open &= ~np.array(protected, dtype=np.bool_)[running.gang[rows]]
    for key in session.state.pods.spared:
        task = session.state.tasks.get(key)
        if task is not None and task.row >= 0 and session.view.is_spared(task):
            is_open &= rows != task.row
    open_rows = rows[is_open]
    gangs = running.gang[open_rows]
    is_there = np.zeros(len(running.gangs), dtype=np.bool_)
    is_there[gangs] = True
    numbers = np.flatnonzero(is_there)
    places = np.zeros(len(running.gangs), dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    named = [gang for number in numbers.tolist() if (gang := running.gangs[number])]
    candidates = Candidates(running, open_rows, named, places[gangs])
    judgement = judge(rules.checks, preemptor, candidates, every=rules.breaks_gangs)
    may = np.zeros(len(rows), dtype=np.bool_)
    may[is_open] = judgement.may
    nodes = np.zeros(len(session.view.rows), dtype=np.bool_)
    nodes[running.node[rows[may]]] = True
    return Survey(running, rows, is_open, may, judgement, bool(may.any()), nodes)


def accepted_gangs(running: RunningTable, rules: EvictionRules) -> Bools:
    """Gangs whose running pods are candidates, by number."""
    accepted = np.zeros(len(running.gangs), dtype=np.bool_)
    if rules.inside:
        own = running.number(rules.inside)
        accepted[own : own + 1] = own >= 0
    elif rules.queues.any():
        queues = np.array([gang.row if gang else -1 for gang in running.gangs], dtype=np.int64)
        accepted[queues >= 0] = rules.queues[queues[queues >= 0]]
    return accepted


def _looked_at(session: Session, preemptor: Preemptor, rules: EvictionRules) -> Ints:
    running = session.view.running
    count = len(running.tasks)
    accepted = accepted_gangs(running, rules)
    if not accepted.any():
        return np.zeros(0, dtype=np.int64)
    mask: Bools = running.used[:count] & (running.node[:count] >= 0)
    mask &= accepted[running.gang[:count]]
    if preemptor.task.shape.is_empty:
        asked = running.vectors[:count].copy()
        asked[:, [PODS, SCORED_CPU, SCORED_MEMORY]] = 0
        mask &= ~asked.any(axis=1)
    return np.flatnonzero(mask)


def _by_plugin(judgement: VictimAnswers, refused: Bools) -> Mapping[str, Ints]:
    """Which of the refused each plugin refuses; under an empty name where no plugin has an answer."""
    places = {
        name: np.flatnonzero(refused & (judgement.refused_by == place))
        for place, name in [*enumerate(judgement.plugins), (-1, "")]
    }
    return {name: found for name, found in places.items() if len(found)}
