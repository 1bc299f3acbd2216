"""Everything that a state holds, in a form that compares bit by bit."""

from typing import Any

import numpy as np

from pumice.scheduler import ClusterState
from pumice.scheduler.model.domains import DomainCounts, Parts
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.model.tasks import (
    ALLOCATED_LIKE,
    NEEDS_ROOM,
    SchedulingStatus,
    TaskInfo,
)
from pumice.scheduler.waiting.wanted import Places


def dump(state: ClusterState) -> dict[str, Any]:
    """Columns by node and resource name, statuses, places, counters and ports."""
    state.settle()
    check_sums(state)
    rows = state.nodes.rows()
    names = state.axis.names
    columns = {
        record.name: {
            kind: {
                name: int(amount)
                for name, amount in zip(names, getattr(rows, kind)[record.row], strict=True)
                if amount
            }
            for kind in ("allocatable", "used", "releasing", "pipelined")
        }
        for record in state.nodes.order
    }
    return {
        "nodes": columns,
        "on": {
            name: sorted(record.tasks)
            for name, record in sorted(state.nodes.records.items())
            if record.tasks
        },
        "tasks": {
            key: (task.status.name, task.node, task.shape.key)
            for key, task in sorted(state.tasks.items())
        },
        "jobs": {
            key: (
                {status.name: job.counts[status] for status in SchedulingStatus},
                {role: list(counts) for role, counts in sorted(job.roles.items()) if any(counts)},
                job.ready,
                job.pending_empty,
                job.priority,
                sorted(job.tasks),
            )
            for key, job in sorted(state.jobs.items())
            if job.gang is job
        },
        "charged": {
            (task.key, charged.queue)
            for job in state.jobs.values()
            for task in job.tasks.values()
            if (charged := job.elsewhere.get(task.key)) is not None
        },
        "waiting": sorted(state.gangs.waiting),
        "ports": sorted(
            (*block, node, used, count)
            for block, nodes in state.nodes.ports.items()
            for node, users in nodes.items()
            for used, count in users.items()
        ),
        "shapes": len(state.shapes),
        "peers": _peers(state),
    }


def _peers(state: ClusterState) -> Any:
    """Pods that match terms of other pods, and what pods with terms ask of each pod, by node."""
    peers = state.peers
    return {
        "terms": {key: counted(state, peers.tally(key).parts()) for key in peers.terms},
        "asked": {key: found for key in state.tasks if (found := asked_of(state, key))},
    }


def counted(state: ClusterState, parts: Parts) -> list[dict[str, int]]:
    """A sum of counts by node: placed, leaving and promised pods."""
    sums: list[dict[str, int]] = [{}, {}, {}]
    for tally, times in parts:
        for found, counts in zip(sums, (tally.placed, tally.leaving, tally.promised), strict=True):
            for row, count in counts.items():
                name = state.nodes.names[row]
                found[name] = found.get(name, 0) + count * times
    return [{name: count for name, count in each.items() if count} for each in sums]


def asked_of(state: ClusterState, pod: str) -> dict[tuple[str, str], list[dict[str, int]]]:
    """What the terms of pods on nodes ask of a pod, by their side, the topology key and the node."""
    known = state.peers.class_of(state.tasks[pod])
    found: dict[tuple[str, str], list[tuple[DomainCounts, int]]] = {}
    for group in known.groups if known is not None else ():
        assert group.members is not None
        for side, counts in group.members.by_side.items():
            for key, tally in counts.items():
                found.setdefault((side, key), []).append((tally, 1))
    sums = {place: counted(state, parts) for place, parts in found.items()}
    return {place: each for place, each in sums.items() if any(each)}


def check_sums(state: ClusterState) -> None:
    """What is kept by events and decisions equals what is counted again from the pods."""
    shares = state.shares
    nothing = np.zeros(len(state.axis), dtype=np.int64)
    sums = {name: {row: nothing.copy() for row in range(len(shares.names))} for name in _KINDS}
    charged = {job.key: job for job in state.jobs.values() if job.gang is not job}
    elsewhere = {key: nothing.copy() for key in charged}
    lacking = nothing.copy()
    for job in state.jobs.values():
        if job.gang is not job:
            continue
        held, asked, spared = nothing.copy(), nothing.copy(), nothing.copy()
        for task in job.tasks.values():
            queue = charged_to(state, job, task)
            if queue is None:
                held += task.shape.vector * (task.status in HOLDS)
            else:
                elsewhere[f"@{queue}/{job.key}"] += task.shape.vector * (task.status in HOLDS)
            asked += task.shape.vector * (task.status is SchedulingStatus.PENDING)
            spared += task.shape.vector * (
                (task.status is SchedulingStatus.PENDING and task.gates != "")
                or task.status is SchedulingStatus.SUCCEEDED
            )
        assert (job.allocated == held).all()
        assert (job.pending == asked).all()
        known = job.group is not None and job.queue in shares.rows
        assert job.row == (shares.rows[job.queue] if known else -1)
        if not known:
            continue
        sums["allocated"][job.row] += held
        sums["pending"][job.row] += asked
        sums["elastic"][job.row] += np.maximum(held - job.minimum, 0)
        is_in = job.status.phase == "Inqueue" or (
            job.status.phase == "Running" and job.holding >= job.min_member
        )
        is_broken = job.holding > 0 and job.ready < job.min_member
        is_in |= is_broken
        takes_none = job.is_too_large or (job.is_left and not job.tasks)
        if is_in and job.min_resources and not takes_none:
            reserved = np.maximum(job.minimum - held - spared, 0)
            sums["reserved"][job.row] += reserved
            lacking += reserved * is_broken
        for row in shares.paths[job.row]:
            sums["tree"][row] += held
    for key, held in elsewhere.items():
        found = charged[key]
        assert (found.allocated == held).all()
        assert found.row == shares.rows[found.queue]
        sums["allocated"][found.row] += held
        for row in shares.paths[found.row]:
            sums["tree"][row] += held
    for name, rows in sums.items():
        for row, vector in rows.items():
            assert (getattr(shares, name)[row] == vector).all(), name
    assert (shares.lacking == lacking).all()
    assert (shares.below(shares.allocated) == shares.tree).all()
    _check_running(state)
    check_waiting(state)


def check_waiting(state: ClusterState) -> None:
    """The order of the gangs that wait, what those ask for that are parked, and the places for that equal what is found anew."""
    assert state.gangs.waiting_keys == sorted(state.gangs.waiting)
    parked = state.parked.gangs.values()
    bounds = [(each.glance, each.bounds[0]) for each in parked if each.bounds]
    assert all(each.glance is None for each in parked if not each.bounds)
    numbers = {}
    for glance, bound in bounds:
        assert glance is not None
        number, required = glance
        assert required == bound.required
        numbers[bound.needs] = number
        columns, amounts = state.parked.wanted.kinds([number])
        taken = zip(columns, amounts[0].tolist(), strict=True)
        assert sorted(bound.needs) == list(taken)
    wanted, kinds = state.parked.wanted, sorted(numbers.values())
    assert len(set(kinds)) == len(numbers) == len(wanted)
    found = wanted.places(state.nodes, kinds).totals
    assert {kind: found[kind] for kind in kinds} == Places(wanted, state.nodes, kinds).totals


def charged_to(state: ClusterState, job: JobInfo, task: TaskInfo) -> str | None:
    """The queue to which a pod is charged, if it is not the one that its PodGroup names now."""
    if not task.node or task.status not in NEEDS_ROOM:
        return None
    named = job.queue if job.group is not None else None
    known = (each for each in (task.charge, named, "default") if each in state.queues)
    queue = next(known)
    return None if queue == named else queue


HOLDS = ALLOCATED_LIKE | {SchedulingStatus.PIPELINED}
_KINDS = ("allocated", "pending", "tree", "reserved", "elastic")


def _check_running(state: ClusterState) -> None:
    running = state.nodes.running
    wanted = {
        task.key
        for task in state.tasks.values()
        if task.node and task.job and task.status in VICTIMS
    }
    rows = np.flatnonzero(running.used).tolist()
    assert len(running) == len(rows) == len(wanted)
    for row in rows:
        task = running.tasks[row]
        assert task is not None
        assert task.key in wanted
        assert task.row == row
        queue = charged_to(state, state.jobs[task.job], task)
        key = task.job if queue is None else f"@{queue}/{task.job}"
        assert running.gangs[running.gang[row]] is state.jobs[key]
        assert running.number(key) == running.gang[row]
        assert running.node[row] == state.nodes.records[task.node].row
        assert running.priority[row] == task.priority
        assert running.preemptable[row] == task.is_preemptable
        assert (running.vectors[row] == task.shape.vector).all()
