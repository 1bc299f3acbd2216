"""Runs of traces, for tests."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pumice.api.kinds import QUEUE
from pumice.api.nodes import Node
from pumice.api.queues import Queue
from pumice.cli.files.checking import admission, registry
from pumice.scheduler import Config, load_config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.engine import TraceRun
from pumice.traces.records import Past
from pumice.traces.submission import Admitted, with_named
from pumice.traces.trace import Trace, TraceJob
from pumice.webhook.offline import judge
from pumice.webhook.rules.resource_groups import NO_GROUPS
from pumice.webhook.rules.rule import RuleSettings
from tests.kit.builders import node, queue

GREEDY = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""
"""Gangs are tried in the order of their submission, and each that fits starts."""


def trace_job(
    name: str, submit: float = 0.0, duration: float | None = 10.0, **fields: Any
) -> TraceJob:
    """A job of one pod of one cpu, unless fields say otherwise; `min` follows `replicas`."""
    fields.setdefault("min", fields.get("replicas", 1))
    fields.setdefault("requests", {"cpu": "1"})
    return TraceJob(name=name, submit=submit, duration=duration, **fields)


def cluster_of(*cpus: int, queues: Iterable[Mapping[str, Any]] = ()) -> ClusterObjects:
    """A cluster with a node for each number of cpus."""
    nodes = [msgspec.convert(node(f"n{place}", str(cpu)), Node) for place, cpu in enumerate(cpus)]
    return ClusterObjects(nodes=nodes, queues=[msgspec.convert(each, Queue) for each in queues])


def trace_run(
    jobs: Iterable[TraceJob], objects: ClusterObjects, config: Config | None = None, **options: Any
) -> TraceRun:
    """A run, with the admission of a cluster, that has not begun."""
    trace = Trace(jobs=sorted(jobs, key=lambda job: job.submit))
    named = with_named(trace, objects)
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": each.value,
         "metadata": {"name": each.metadata.name}}
        for each in named.priority_classes
    ]  # fmt: skip
    queues = [queue(each.metadata.name) | QUEUE.type_meta for each in named.queues]
    rules = admission([*queues, *classes], RuleSettings(), NO_GROUPS)

    def admit(raw: dict[str, Any]) -> Admitted:
        found = judge(rules, raw, "CREATE", None)
        return Admitted(
            found.patched if found.allowed else None, [str(each) for each in found.errors]
        )

    return TraceRun(
        trace,
        objects,
        config or load_config(),
        admit=admit,
        registry=registry(),
        measure_time=lambda: 0.0,
        **options,
    )


def ran(
    jobs: Iterable[TraceJob], objects: ClusterObjects, config: Config | None = None, **options: Any
) -> Past:
    """All that is known at the end of a run."""
    run = trace_run(jobs, objects, config, **options)
    for _ in run.steps():
        pass
    return run.past()
