"""Launch order of an MPI Job: its master waits for its workers, where the setting asks for it.

The master starts processes on the workers, so it fails when it is there first. Volcano has this
default in its code and does not use it, since its gang counts the pods that are held back, so that
nothing would ever start.
"""

from collections.abc import Sequence

from pumice.plugins import Registry
from pumice.plugins.applied import read_arguments
from pumice.plugins.arguments import ArgumentSpec
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftTask

__all__ = ["PLUGIN", "launch_order"]

PLUGIN = "mpi"


def launch_order(
    case: Case,
    vector: Sequence[str] | None,
    names: Sequence[str],
    tasks: Sequence[DraftTask],
    before: Sequence[DraftTask] | None,
) -> None:
    """Let the master task depend on the worker task, unless it says itself what it depends on.

    Args:
        case: Where the patch goes.
        vector: Arguments of the plugin, which say what the two tasks are named.
        names: The tasks' names, defaults written.
        tasks: The tasks.
        before: The stored tasks, when it is an update. What they have by default is written again,
            whatever the setting is by now; what they do not have is not added.
    """
    spec = _arguments(case.plugins)
    if spec is None:
        return
    strict = case.settings.strict_upstream
    values = read_arguments(spec, vector, strict_upstream=strict).values
    master, worker = values["master"], values["worker"]
    if master == worker or master not in names or worker not in names:
        return
    index = names.index(master)
    if tasks[index].depends_on is not None:
        return
    if before is not None:
        stored = before[index].depends_on if index < len(before) else None
        wanted = stored is not None and stored.name == [worker] and not stored.iteration
    else:
        wanted = case.settings.mpi_depends_on
    if wanted:
        case.patch.set(f"/spec/tasks/{index}/dependsOn", {"name": [worker]})


def _arguments(registry: Registry) -> ArgumentSpec | None:
    """Arguments of the plugin, if there is one that names the two tasks."""
    plugin = registry.get(PLUGIN)
    if plugin is None or not {"master", "worker"} <= set(plugin.arguments.names):
        return None
    return plugin.arguments
