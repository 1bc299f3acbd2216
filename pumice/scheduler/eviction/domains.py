"""Domains in which a gang may be placed once others have gone, those first that lack least."""

from collections.abc import Sequence

import numpy as np

from pumice.scheduler.eviction.room import WantedPlaces
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.free_room import least
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.topology.limits import limit_of
from pumice.scheduler.topology.tree import Domain

__all__ = ["domains_of", "waits", "wanted_places"]

_KINDS = 8
"""Kinds of pods of a gang whose places are counted one by one."""


def waits(task: TaskInfo) -> bool:
    """Whether a pod waits for a node and for nothing else."""
    return task.status is SchedulingStatus.PENDING and not task.gates


def wanted_places(session: Session, job: JobInfo) -> list[WantedPlaces]:
    """Places that a gang needs at least, for each kind of its pods, and for all of them."""
    tasks = [task for task in job.tasks.values() if waits(task)]
    lacking = job.lacking - job.counts[SchedulingStatus.PIPELINED]
    needed = min(max(lacking, 1), len(tasks)) if session.extensions.needs_minimum else 1
    kinds: dict[int, list[TaskInfo]] = {}
    for task in tasks:
        kinds.setdefault(task.shape.number, []).append(task)
    firsts = [each[0] for each in kinds.values()]
    nodes = [session.suiting(task, job.queue) for task in firsts[:_KINDS]]
    found = []
    anywhere = np.ones(len(session.view.rows), dtype=np.bool_)
    if len(kinds) <= _KINDS:
        anywhere = np.logical_or.reduce(nodes)
        for same, mask in zip(kinds.values(), nodes, strict=True):
            count = needed - len(tasks) + len(same)
            if count > 0:
                found.append(WantedPlaces(least([same[0].shape]), mask, count))
    if len(kinds) > 1:
        found.append(WantedPlaces(least([first.shape for first in firsts]), anywhere, needed))
    return found


def domains_of(
    session: Session, preemptor: Preemptor, wanted: Sequence[WantedPlaces], most: int
) -> Sequence[Domain]:
    """Domains that could hold what a gang needs if they were empty, within its limit; the whole cluster if it has none.

    Args:
        session: The session.
        preemptor: A pod of the gang, with what is needed.
        wanted: The places that are needed.
        most: How many domains are named at most: those that lack least.
    """
    levels, job = session.levels, preemptor.job
    tree = levels.tree
    if job.group is None or session.extensions.ignores_network or not tree.has_hyper_nodes:
        return (tree.root,)
    limit = limit_of(job.group.spec.network_topology, tree)
    if limit.tier is None or not any(each.call(job) for each in session.extensions.domain_search):
        return (tree.root,)
    needs, rows = preemptor.vector, session.view.rows
    columns = [
        each
        for each in np.flatnonzero(needs).tolist()
        if each not in (PODS, SCORED_CPU, SCORED_MEMORY)
    ]
    found: list[tuple[float, str, Domain]] = []
    for domains in levels.below(tree.root, limit.tier):
        could = np.ones(len(domains), dtype=np.bool_)
        for each in wanted:
            could &= domains.sums(session.places.empty(each.needs) * each.nodes) >= each.count
        lacks = np.zeros(len(domains))
        for column in columns:
            free = domains.sums(np.maximum(rows.future_idle(column), 0))
            lacks += np.maximum(needs[column] - free, 0) / needs[column]
        found += [
            (float(lacks[place]), domain.name, domain)
            for place, domain in enumerate(domains.domains)
            if could[place]
        ]
    found.sort(key=lambda each: each[:2])
    return [domain for _, _, domain in found[:most]]
