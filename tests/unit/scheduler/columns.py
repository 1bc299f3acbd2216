"""Everything that a state holds, in a form that compares bit by bit."""

from typing import Any

import numpy as np

from pumice.scheduler import ClusterState
from pumice.scheduler.model.domains import DomainCounts
from pumice.scheduler.model.running import VICTIMS
from pumice.scheduler.model.tasks import ALLOCATED_LIKE, SchedulingStatus

__all__ = ["check_sums", "dump"]


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
        },
        "waiting": sorted(state.waiting),
        "ports": sorted(
            (*port, node, address, count)
            for port, nodes in state.nodes.ports.items()
            for node, users in nodes.items()
            for address, count in users.items()
        ),
        "shapes": len(state.shapes),
        "peers": _peers(state),
    }


def _peers(state: ClusterState) -> Any:
    """Pods that match terms of other pods, and that hold them, by node."""
    names = state.nodes.names

    def counts(tally: DomainCounts) -> list[dict[str, int]]:
        kinds = (tally.placed, tally.leaving, tally.promised)
        return [{names[row]: count for row, count in each.items()} for each in kinds]

    def holders(tallies: dict[str, DomainCounts]) -> dict[str, Any]:
        return {key: found for key, tally in tallies.items() if any(found := counts(tally))}

    return {
        key: (counts(term.tally), holders(term.repelling), holders(term.attracting))
        for key, term in state.peers.terms.items()
    }


def check_sums(state: ClusterState) -> None:
    """What is kept by events and decisions equals what is counted again from the pods."""
    shares = state.shares
    nothing = np.zeros(len(state.axis), dtype=np.int64)
    sums = {name: {row: nothing.copy() for row in range(len(shares.names))} for name in _KINDS}
    for job in state.jobs.values():
        held, asked, gated = nothing.copy(), nothing.copy(), nothing.copy()
        for task in job.tasks.values():
            held += task.shape.vector * (task.status in HOLDS)
            asked += task.shape.vector * (task.status is SchedulingStatus.PENDING)
            gated += task.shape.vector * (
                task.status is SchedulingStatus.PENDING and task.gates != ""
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
        if is_in and job.min_resources:
            sums["reserved"][job.row] += np.maximum(job.minimum - held - gated, 0)
        for row in shares.paths[job.row]:
            sums["tree"][row] += held
    for name, rows in sums.items():
        for row, vector in rows.items():
            assert (getattr(shares, name)[row] == vector).all(), name
    assert (shares.below(shares.allocated) == shares.tree).all()
    _check_running(state)


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
        assert running.gangs[running.gang[row]] is state.jobs[task.job]
        assert running.number(task.job) == running.gang[row]
        assert running.node[row] == state.nodes.records[task.node].row
        assert running.priority[row] == task.priority
        assert running.preemptable[row] == task.is_preemptable
        assert (running.vectors[row] == task.shape.vector).all()
