"""Which controllers run: the option `--controllers`, as Volcano's controller manager has it.

An entry is a name, `+name` (the same as the name), `-name` (not this one), or `*` (all). For each controller the first
entry with its name decides, or else `*`.
"""

from collections.abc import Iterable

from pumice.api.suggestions import Suggestions

__all__ = ["ALL", "CONTROLLERS", "NOT_BUILT", "SelectionError", "selected"]

ALL = "*"

CONTROLLERS = {
    "job-controller": "Jobs: their PodGroups, pods and the objects of plugins",
    "gc-controller": "removes Jobs when their `ttlSecondsAfterFinished` is over",
    "cronjob-controller": "CronJobs: their Jobs, made by the clock",
    "queue-controller": "opens and closes queues, and counts their PodGroups",
    "pg-controller": "PodGroups for pods of other owners: ReplicaSets, StatefulSets, batch Jobs, plain pods and all others",
    "hyperNode-controller": "HyperNodes: discovered by labels of Nodes, and the number of their Nodes",
    "jobflow-controller": "JobFlows: their Jobs, in order",
    "jobtemplate-controller": "JobTemplates: the list of Jobs that were made from each",
    "wiring-controller": "what plugins want for the pods of other controllers (`pumice.dev/plugins`)",
}
"""The purpose of each controller, by Volcano's name for it; `wiring-controller` is Pumice's own."""

NOT_BUILT = {"sharding-controller": "Pumice has no sharded scheduling"}
"""Controllers of Volcano that Pumice does not have, each with the reason; turning them off is accepted."""


class SelectionError(ValueError):
    """An invalid selection; the message says why and what to write instead."""


def selected(entries: Iterable[str]) -> frozenset[str]:
    """The selected controllers.

    Args:
        entries: Names, each with an optional `+` or `-`, and `*`.

    Raises:
        SelectionError: An entry is unknown or occurs twice, or selects a controller that is not built, or nothing is
            selected.
    """
    wanted: dict[str, bool] = {}
    for entry in entries:
        name = entry.lstrip("+-") if entry[:1] in "+-" else entry
        if name in wanted:
            raise SelectionError(f"controller {name!r} is named twice; name it once")
        if name != ALL and name not in CONTROLLERS and name not in NOT_BUILT:
            meant = Suggestions().did_you_mean(name, (*CONTROLLERS, *NOT_BUILT))
            raise SelectionError(
                f"unknown controller {name!r}{meant}; known are {', '.join(CONTROLLERS)}"
            )
        wanted[name] = not entry.startswith("-")
        if name in NOT_BUILT and wanted[name]:
            raise SelectionError(
                f"{name} cannot run: {NOT_BUILT[name]}; write -{name}, or leave it out"
            )
    rest = wanted.get(ALL, False)
    found = frozenset(name for name in CONTROLLERS if wanted.get(name, rest))
    if "job-controller" not in found and "gc-controller" in found:
        if "gc-controller" in wanted:
            raise SelectionError("gc-controller is a part of job-controller; select both")
        found -= {"gc-controller"}
    if not found:
        raise SelectionError("no controller is selected; name one, or write '*' for all of them")
    return found
