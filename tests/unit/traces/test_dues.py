"""What is due although nothing happens: windows of time and limits of waiting are tried, and a run that makes no progress ends."""

from typing import Any

import msgspec
import pytest

from pumice.api.nodes import Node
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces import cluster, engine, jobs
from pumice.traces.trace import TraceJob
from tests.kit.builders import job as manifest_of
from tests.kit.builders import node, task
from tests.kit.traces import cluster_of, ran, trace_job

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
        "the run ends here: pods are evicted or made again without end, while no Job ends or arrives"
    ]
    assert past.jobs[0].evictions == 200


@pytest.mark.parametrize(("retries", "is_whole"), [(20, True), (10**9, False)])
def test_jobs_that_start_again_at_one_moment(
    retries: int, is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods that fail at once, and each time are made again: more cycles than a moment may have, and in the end no progress."""
    for module in (cluster, engine):
        monkeypatch.setattr(module, "MOST_CYCLES", 12)
    again = [{"event": "PodFailed", "action": "RestartJob"}]
    spec = manifest_of("", [task("w", cpu="1")], maxRetry=retries, policies=again)["spec"]
    job = trace_job("again", duration=0.0, fails=True, manifest={"spec": spec})
    past = ran([job], cluster_of(1))
    assert past.jobs[0].outcome == ("Failed" if is_whole else "Running")
    assert past.is_whole == is_whole
    *others, restless = past.remarks
    assert (
        restless
        == "at 1 moment the scheduler had more to decide after 12 cycles; it was left at that"
    )
    assert len(others) == (not is_whole)


def test_jobs_that_the_controller_does_not_come_to_an_end_with_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (jobs, engine):
        monkeypatch.setattr(module, "PASSES", 0)
    policy = {"event": "PodFailed", "action": "RestartJob"}
    manifest = {"spec": manifest_of("", [task("w", 1, cpu="1")], policies=[policy])["spec"]}
    past = ran([trace_job(name, manifest=manifest) for name in ("b", "a")], cluster_of(2))
    assert [job.outcome for job in past.jobs] == ["Waiting", "Waiting"]
    assert past.remarks == [
        "of 2 Jobs, such as default/a, the controller had more to change after 0 passes; it was left at that, so pods may be missing"
    ]
