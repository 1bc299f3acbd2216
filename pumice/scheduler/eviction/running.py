"""Running pods that an action may look at for a pod, and why none or too few of them may go."""

from itertools import compress

import numpy as np

from pumice.scheduler.eviction.rules import Rules
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.model.running import VICTIMS
from pumice.scheduler.session import Session
from pumice.scheduler.victims import Spared, allowed, refusals

__all__ = ["all_candidates", "why_spared"]


def all_candidates(
    session: Session, usable: Bools, preemptor: Preemptor, rules: Rules
) -> tuple[Ints, Candidates]:
    """Running pods that rules let an action look at, by node, each as if it were the only one on its node.

    Args:
        session: The session.
        usable: Nodes that the preemptor may use, by row.
        preemptor: The pod for which others may have to go.
        rules: Which pods the action may evict.

    Returns:
        Their rows in the table of running pods, and the same in the form that plugins are asked with.
    """
    running, jobs = session.view.running, session.state.jobs
    count = len(running.tasks)
    mask = _looked_at(session, usable, preemptor, rules) & running.preemptable[:count]
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(running.node[rows], kind="stable")]
    tasks = [task for row in rows.tolist() if (task := running.tasks[row]) is not None]
    if session.state.spared or rules.statuses != VICTIMS:
        may = [task.status in rules.statuses and not session.view.is_spared(task) for task in tasks]
        rows = rows[np.array(may, dtype=np.bool_)]
        tasks = list(compress(tasks, may))
    numbers, places = np.unique(running.gang[rows], return_inverse=True)
    gangs = [jobs[running.gangs[number]] for number in numbers.tolist()]
    alone = np.arange(len(rows))
    return rows, Candidates(tasks, gangs, alone, places, running.vectors[rows])


def _looked_at(session: Session, usable: Bools, preemptor: Preemptor, rules: Rules) -> Bools:
    """The same as a mask of the table, whether or not they are preemptable."""
    running, jobs = session.view.running, session.state.jobs
    count = len(running.tasks)
    accepted = np.array(
        [bool(key) and rules.accepts(jobs[key]) for key in running.gangs], dtype=np.bool_
    )
    mask: Bools = running.used[:count] & (running.node[:count] >= 0)
    if not mask.any():
        return mask
    mask &= accepted[running.gang[:count]]
    mask &= usable[running.node[:count]]
    if preemptor.task.is_best_effort:
        asked = running.vectors[:count].copy()
        asked[:, [PODS, SCORED_CPU, SCORED_MEMORY]] = 0
        mask &= ~asked.any(axis=1)
    return mask


def why_spared(
    session: Session, action: str, usable: Bools, preemptor: Preemptor, rules: Rules
) -> Spared:
    """Count what speaks against evicting the pods that an action looked at."""
    count = int(np.count_nonzero(_looked_at(session, usable, preemptor, rules)))
    _, candidates = all_candidates(session, usable, preemptor, rules)
    may = allowed(rules.checks, preemptor, candidates)
    return Spared(
        action=action,
        candidates=count,
        allowed=int(np.count_nonzero(may)),
        protected=count - len(candidates),
        by=refusals(rules.checks, preemptor, candidates, ~may),
    )
