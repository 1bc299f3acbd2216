"""Events about queues: what they ask for and no configured plugin enforces, and weights that cannot be."""

from collections.abc import Iterator

from pumice.api.queues import Queue
from pumice.scheduler.model.queue_specs import MAX_WEIGHT, weight_of
from pumice.scheduler.options import Config
from pumice.scheduler.results import Event
from pumice.scheduler.state.watched_cluster import ClusterState


def unenforced(state: ClusterState, config: Config) -> Iterator[Event]:
    """Events about queues that changed and say what no configured plugin enforces, or a weight that cannot be."""
    changed, state.gangs.changed_queues = sorted(state.gangs.changed_queues), {}
    shares = state.shares
    parents = {shares.names[row] for row in shares.parents if row >= 0}
    for name in changed:
        queue = state.queues[name]
        fields = _unenforced_fields(queue, config, below=name in parents)
        odd = ["weight"] if queue.spec.weight not in (None, weight_of(queue)) else []
        told, state.gangs.told_queues[name] = state.gangs.told_queues.get(name, []), [*fields, *odd]
        if odd and "weight" not in told:
            said = f"spec.weight: counts as {weight_of(queue)}; must be between 1 and {MAX_WEIGHT}"
            yield Event("Queue", "", name, "Warning", "InvalidWeight", said)
        if fields and fields != [each for each in told if each != "weight"]:
            message = not_enforced(queue, config, below=name in parents)
            yield Event("Queue", "", name, "Warning", "NotEnforced", message)


def not_enforced(queue: Queue, config: Config, *, below: bool) -> str:
    """Which fields of a queue, with or without queues below it, no configured plugin enforces, and what would; empty if all are enforced."""
    fields = _unenforced_fields(queue, config, below=below)
    if not fields:
        return ""
    message = " and ".join(f"spec.{each}" for each in fields)
    message += ": no configured plugin of the scheduler enforces this"
    if config.enforced(below=False).issuperset(fields):
        message += " for the queues below"
    needed = ["enableHierarchy: true"] if below else []
    options = [each for each in config.plugins if each.spec.name == "capacity"]
    if options and not options[0].switches["enabledAllocatable"]:
        needed.append("enabledAllocatable: true")
    if "deserved" in fields and all(spec.name != "reclaim" for spec, _ in config.actions):
        needed.append("action reclaim")
    settings = f" with {' and '.join(needed)}" if needed else ""
    return f"{message}; use capacity{settings}"


def _unenforced_fields(queue: Queue, config: Config, *, below: bool) -> list[str]:
    enforced = config.enforced(below=below)
    return [each for each in _shares(queue) if each not in enforced]


def _shares(queue: Queue) -> Iterator[str]:
    """Fields of a queue's spec that say what it may have of the cluster."""
    spec = queue.spec
    if spec.capability:
        yield "capability"
    if spec.deserved:
        yield "deserved"
    if spec.guarantee is not None and spec.guarantee.resource:
        yield "guarantee"
