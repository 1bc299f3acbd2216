"""Everything that a state holds, in a form that compares bit by bit."""

from typing import Any

from pumice.scheduler import ClusterState
from pumice.scheduler.model.tasks import Status

__all__ = ["dump"]


def dump(state: ClusterState) -> dict[str, Any]:
    """Columns by node and resource name, statuses, places, counters and ports."""
    state.settle()
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
                {status.name: job.counts[status] for status in Status},
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
            (*port, *user, count)
            for port, users in state.nodes.ports.items()
            for user, count in users.items()
            if count
        ),
        "shapes": len(state.shapes),
    }
