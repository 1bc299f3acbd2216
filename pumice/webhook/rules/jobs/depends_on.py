"""`dependsOn`: every dependency exists, there is no cycle, and an MPI master can wait for its workers.

Cycles are found by a depth-first search with three colours, which visits every task and every edge once.

The master of an MPI Job starts processes on the workers, so it fails if it runs first. Volcano has code for this
default and does not use it: its gangs count pods that wait for a dependency, so no pod would ever start. Here a setting
enables it.
"""

from collections.abc import Iterator, Sequence

from pumice.api.jobs import DependsOn, Job, Task
from pumice.plugins.applied import read_arguments
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftSpec
from pumice.webhook.rules.rule import Rule, warned

JOB_NOT_DAG = Rule(
    "JOB-NOT-DAG",
    "tasks depend on other tasks of the Job, once each, and without a cycle",
    "A task that depends on itself, or on a task that does not exist, never starts.",
    "tasks: [{name: a, dependsOn: {name: [b]}}, {name: b, dependsOn: {name: [a]}}]",
    compares=True,
)
JOB_DEP_ITERATION = warned(
    "JOB-DEP-ITERATION",
    "dependsOn.iteration is any or all",
    "Any other value counts as all.",
    "dependsOn: {name: [a, b], iteration: some}",
    reason="FieldValueNotSupported",
)


_NO_ORDER = "so the order of tasks doesn't form a directed acyclic graph(DAG)"


def dependencies(case: Case, job: Job) -> None:
    """Check `dependsOn` of all tasks."""
    if all(task.depends_on is None for task in job.tasks):
        return
    names = {task.name: index for index, task in reversed(list(enumerate(job.tasks)))}
    edges: dict[str, list[str]] = {}
    for index, task in enumerate(job.tasks):
        found = _targets(case, task, f"spec.tasks[{index}].dependsOn", names)
        edges.setdefault(task.name, []).extend(found)
    for circle in cycle(edges):
        path = f"spec.tasks[{names[circle[0]]}].dependsOn.name"
        shown = " → ".join([*circle, circle[0]])
        case.report(
            JOB_NOT_DAG, path, f"tasks depend on each other in a cycle, {shown}, {_NO_ORDER}"
        )


def _targets(case: Case, task: Task, path: str, names: dict[str, int]) -> list[str]:
    """Tasks that a task depends on, without those that are reported as problems."""
    if task.depends_on is None:
        return []
    iteration = task.depends_on.iteration
    if iteration not in ("", "any", "all"):
        message = f'must be any or all, found "{iteration}", which counts as all'
        case.report(JOB_DEP_ITERATION, f"{path}.iteration", message)
    found: dict[str, int] = {}
    for index, name in enumerate(task.depends_on.name or ()):
        where = f"{path}.name[{index}]"
        if name in found:
            message = f'"{name}" is already listed at {path}.name[{found[name]}], {_NO_ORDER}'
            case.report(JOB_NOT_DAG, where, message)
        elif name == task.name:
            case.report(JOB_NOT_DAG, where, f'task "{name}" depends on itself, {_NO_ORDER}')
        elif name not in names:
            hint = case.did_you_mean(name, names)
            case.report(JOB_NOT_DAG, where, f'there is no task "{name}"{hint}, {_NO_ORDER}')
        found.setdefault(name, index)
    return [name for name in found if name in names and name != task.name]


def cycle(edges: dict[str, list[str]]) -> Iterator[list[str]]:
    """Cycles of a graph that have no node in common, in the order of a depth-first search.

    Each strongly connected component has at least one cycle in the result. The time is linear in nodes and edges.

    Every target of an edge is a node of the graph. Each node of a cycle leads to the next, the last to the first.
    """
    done: set[str] = set()
    told: set[str] = set()
    for start in edges:
        if start in done:
            continue
        trail: dict[str, None] = {start: None}
        ahead = [iter(edges[start])]
        while ahead:
            node = next(ahead[-1], None)
            if node is None:
                ahead.pop()
                done.add(trail.popitem()[0])
            elif node in trail:
                if circle := _untold(trail, node, told):
                    yield circle
            elif node not in done:
                trail[node] = None
                ahead.append(iter(edges[node]))


def _untold(trail: dict[str, None], first: str, told: set[str]) -> list[str]:
    """The cycle from a node of the path to its end; empty if one of its nodes is in a reported cycle.

    Nodes that lead into a reported cycle and back count as reported, so each node is visited once.
    """
    circle: list[str] = []
    for node in reversed(trail):
        if node in told:
            told.update(circle)
            return []
        circle.append(node)
        if node == first:
            break
    told.update(circle)
    return circle[::-1]


PLUGIN = "mpi"


def launch_order(
    case: Case, spec: DraftSpec, names: Sequence[str], stored: DraftSpec | None
) -> None:
    """Let the master task depend on the worker task, unless it has `dependsOn`.

    The names of the tasks are those after defaulting. In an update, defaults of the stored Job are written again for any
    setting; others are not added.
    """
    plugin = case.plugins.get(PLUGIN)
    if plugin is None or not {"master", "worker"} <= set(plugin.arguments.names):
        return
    strict, vector = case.settings.strict_upstream, (spec.plugins or {})[PLUGIN]
    values = read_arguments(plugin.arguments, vector, strict_upstream=strict).values
    master, worker = values["master"], values["worker"]
    if master == worker or master not in names or worker not in names:
        return
    index = names.index(master)
    if (spec.tasks or ())[index].depends_on is not None:
        return
    wanted = case.settings.mpi_depends_on
    if stored is not None:
        order = [task.depends_on for task in stored.tasks or ()][index : index + 1]
        wanted = order == [DependsOn(name=[worker])]
    if wanted:
        case.patch.set(f"/spec/tasks/{index}/dependsOn", {"name": [worker]})
