"""What is due although nothing happens: windows of time and limits of waiting are tried, and a run that makes no progress ends."""

from typing import Any

import msgspec

from pumice.api.nodes import Node
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.trace import TraceJob
from tests.kit.builders import job as manifest_of
from tests.kit.builders import node, task
from tests.kit.traces import ran, trace_job

HOUR = 3600.0
OPENS = 10 * HOUR
ZONE = "volcano.sh/revocable-zone"


def configured(actions: str) -> Any:
    """A scheduler that opens nodes of a zone by day, and lets gangs enter a queue after an hour in any case."""
    return load_config(f"""
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: sla, arguments: {{sla-waiting-time: 1h}}}}]
- plugins:
  - {{name: predicates}}
  - {{name: tdm, arguments: {{tdm.revocable-zone.day: "10:00-21:00", tdm.evict.period: 1m}}}}
""")


def zone() -> ClusterObjects:
    """One node, which is open by day."""
    raw = node("n", "8")
    raw["metadata"]["labels"] = {ZONE: "day"}
    return ClusterObjects(nodes=[msgspec.convert(raw, Node)])


def by_day(duration: float) -> TraceJob:
    """A gang of two that asks for the zone."""
    raw = manifest_of("", [task("w", 2, cpu="1")], minAvailable=2)
    annotations = {ZONE: "*", "volcano.sh/preemptable": "true"}
    manifest = {"metadata": {"annotations": annotations}, "spec": raw["spec"]}
    return trace_job("by-day", duration=duration, manifest=manifest)


def test_a_window_is_tried_however_much_is_due_in_vain_before() -> None:
    """Nothing changes at the ends of a hundred waits; and the run ends when something changed last."""
    hopeless = [trace_job(f"large-{each}", each, requests={"cpu": "9"}) for each in range(1, 102)]
    past = ran([by_day(100.0), *hopeless], zone(), configured("enqueue, allocate"))
    first = past.jobs[0]
    assert (first.start, first.end, first.outcome) == (OPENS, OPENS + 100.0, "Completed")
    assert past.is_whole
    assert past.end == OPENS + 100.0
    assert past.remarks == []


def test_a_run_in_which_pods_are_only_evicted_ends_with_a_sentence() -> None:
    """Thirteen hours do not fit into a window of eleven."""
    past = ran([by_day(13 * HOUR)], zone(), configured("enqueue, allocate, shuffle"))
    assert (past.is_whole, past.is_endless) == (False, True)
    assert past.remarks == [
        "the run ends here: pods are evicted or made again without end, and no Job ends or arrives any more"
    ]
    assert past.jobs[0].evictions == 200
