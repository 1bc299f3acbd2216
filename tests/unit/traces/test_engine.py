"""A trace in virtual time: what starts when, and what is recorded; starts equal those of references that are written from the definitions."""

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Observed
from pumice.controller.plan import Plan
from pumice.scheduler import load_config
from pumice.scheduler.config import DEFAULT
from pumice.traces.measures import measure
from pumice.traces.records import Past, PodRuns
from pumice.traces.trace import TraceJob
from tests.kit.builders import job as manifest_of
from tests.kit.builders import queue, task
from tests.kit.examples import examples
from tests.kit.traces import GREEDY, cluster_of, ran, trace_job, trace_run

FIFO = queue("default") | {"spec": {"weight": 1, "dequeueStrategy": "fifo"}}


def drawn(seed: int, jobs: int, largest: int) -> list[TraceJob]:
    """Jobs of pods of 1 cpu, some submitted at the same moment, some of duration 0."""
    draw = Random(seed)
    moments = sorted(draw.choice((draw.randrange(60), draw.random() * 60)) for _ in range(jobs))
    first = moments[0]
    return [
        trace_job(
            f"job-{draw.randrange(10**6)}-{number}",
            moment - first,
            draw.choice((0.0, 0.5, 7.0, draw.random() * 30)),
            replicas=draw.randint(1, largest),
        )
        for number, moment in enumerate(moments)
    ]


def expected(jobs: Sequence[TraceJob], cpus: int, *, strict: bool) -> list[float | None]:
    """Starts by the definition: whenever jobs arrive or end, jobs start in the order of their submission, each if there is room.

    Args:
        jobs: In the order of their submission.
        cpus: Of the cluster; each pod takes one.
        strict: Whether no job starts before an earlier one.
    """
    starts: list[float | None] = [None] * len(jobs)
    ends: dict[int, float] = {}
    moments = {job.submit for job in jobs}
    while moments:
        now = min(moments)
        moments.discard(now)
        ends = {number: end for number, end in ends.items() if end > now}
        for number, job in enumerate(jobs):
            if starts[number] is not None or job.submit > now:
                continue
            if job.replicas > cpus - sum(jobs[each].replicas for each in ends):
                if strict:
                    break
                continue
            starts[number] = now
            assert job.duration is not None
            ends[number] = now + job.duration
            moments.add(now + job.duration)
    return starts


def with_policy(pods: int, action: str) -> dict[str, Any]:
    """A manifest of pods of 1 cpu that says what follows when one fails."""
    manifest = manifest_of(
        "", [task("main", pods, cpu="1")], policies=[{"event": "PodFailed", "action": action}]
    )
    return {"spec": manifest["spec"]}


def starts_of(past: Past) -> list[float | None]:
    return [record.start for record in past.jobs]


@examples(5)
@given(st.integers(0, 10**6))
def test_a_fifo_queue_is_first_come_first_served(seed: int) -> None:
    jobs = drawn(seed, 25, largest=9)
    past = ran(jobs, cluster_of(4, 3, 2, queues=[FIFO]))
    assert starts_of(past) == expected(jobs, 9, strict=True)


@examples(5)
@given(st.integers(0, 10**6))
def test_without_shares_it_is_greedy_in_the_order_of_submission(seed: int) -> None:
    jobs = drawn(seed, 25, largest=9)
    past = ran(jobs, cluster_of(4, 3, 2), load_config(GREEDY))
    assert starts_of(past) == expected(jobs, 9, strict=False)


def test_a_job_of_which_the_controller_makes_no_pods_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("pumice.plugins.env.Env.pod_edits", fails)
    raw = manifest_of("wired", [task("w", 2, cpu="1")], plugins={"env": []})
    wired = trace_job("wired", replicas=2, requests={}, manifest=raw)
    past = ran([wired, trace_job("other")], cluster_of(4))
    assert [record.outcome for record in past.jobs] == ["Waiting", "Completed"]
    assert "failed with ZeroDivisionError: oh" in past.jobs[0].reason


def test_a_job_larger_than_the_cluster_holds_back_only_a_fifo_queue() -> None:
    jobs = [trace_job("large", replicas=10), trace_job("small", 1.0)]
    past = ran(jobs, cluster_of(4), load_config(GREEDY))
    assert starts_of(past) == [None, 1.0]
    assert [record.outcome for record in past.jobs] == ["Waiting", "Completed"]
    assert "needs 10 × 1 cpu" in past.jobs[0].reason
    assert past.is_whole
    assert starts_of(ran(jobs, cluster_of(4, queues=[FIFO]))) == [None, None]


def test_no_jobs() -> None:
    past = ran([], cluster_of(4))
    assert (past.jobs, past.end, past.cycles, past.is_whole) == ([], 0.0, 0, True)
    assert list(past.samples.moments) == []


def test_one_job_is_recorded_whole() -> None:
    past = ran(
        [trace_job("one", replicas=3, duration=60.0, requests={"cpu": "2"})], cluster_of(4, 4)
    )
    (record,) = past.jobs
    assert (record.start, record.end, record.outcome) == (0.0, 60.0, "Completed")
    assert record.requests == ({"cpu": 2000},)
    assert record.runs == [
        PodRuns(0, 2, 0.0, 60.0, "completed"),
        PodRuns(1, 1, 0.0, 60.0, "completed"),
    ]
    assert list(past.samples.moments) == [0.0, 60.0]
    assert list(past.samples.used["cpu"]) == [6000, 0]
    assert list(past.samples.capacity["cpu"]) == [8000, 8000]
    assert past.capacity == {"cpu": [4000, 4000]}
    assert past.nodes == ["n0", "n1"]


@pytest.mark.parametrize("pods", [1, 2])
def test_a_job_without_duration_ends_when_it_starts(pods: int) -> None:
    (record,) = ran([trace_job("alone", duration=0.0, replicas=pods)], cluster_of(2)).jobs
    assert (record.outcome, record.start, record.end) == ("Completed", 0.0, 0.0)


def test_jobs_that_never_end_do_not_keep_the_run_going() -> None:
    past = ran([trace_job("service", duration=None), trace_job("next", 5.0)], cluster_of(1))
    assert [record.outcome for record in past.jobs] == ["Running", "Waiting"]
    assert past.jobs[0].runs == [PodRuns(0, 1, 0.0)]
    assert past.is_whole
    assert past.end < 100


def test_jobs_that_fail_and_jobs_that_are_refused() -> None:
    jobs = [
        trace_job("fails", fails=True, duration=3.0),
        trace_job("refused", requests={"cpu": "-1"}),
    ]
    past = ran(jobs, cluster_of(1))
    assert [record.outcome for record in past.jobs] == ["Failed", "Refused"]
    assert past.jobs[0].end == 3.0
    assert [run.how for run in past.jobs[0].runs] == ["failed"]
    assert "spec.tasks[0].template.spec.containers[0].resources" in past.jobs[1].reason


def test_work_that_is_lost_to_an_eviction_is_done_again() -> None:
    jobs = [
        trace_job("usual", duration=100.0, replicas=2, min=1),
        trace_job("urgent", 10.0, duration=5.0, priority=10),
    ]
    past = ran(jobs, cluster_of(2), load_config(DEFAULT))
    usual, urgent = past.jobs
    assert (urgent.start, urgent.end) == (10.0, 15.0)
    assert (usual.evictions, usual.broken, usual.lost) == (1, 0, {0: 10.0})
    assert [(run.start, run.end, run.how) for run in usual.runs] == [
        (0.0, 10.0, "evicted"),
        (0.0, 100.0, "completed"),
        (15.0, 115.0, "completed"),
    ]
    assert (usual.outcome, usual.end) == ("Completed", 115.0)


def test_a_gang_that_loses_its_minimum_is_broken() -> None:
    jobs = [
        trace_job("usual", duration=100.0, replicas=2),
        trace_job("urgent", 10.0, duration=5.0, replicas=2, priority=10),
    ]
    past = ran(jobs, cluster_of(2), load_config(DEFAULT))
    usual = past.jobs[0]
    assert (usual.evictions, usual.broken, usual.lost) == (2, 1, {0: 20.0})
    assert (usual.start, usual.end, usual.outcome) == (0.0, 115.0, "Completed")


def test_a_manifest_is_submitted_without_what_a_cluster_has_said_of_it() -> None:
    manifest = {
        "metadata": {"uid": "old", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"tasks": [task(cpu="1")]},
        "status": {"state": {"phase": "Completed"}},
    }
    (record,) = ran([trace_job("again", manifest=manifest)], cluster_of(1)).jobs
    assert (record.start, record.end, record.outcome) == (0.0, 10.0, "Completed")


def test_restarts_wait_for_their_back_off() -> None:
    manifest = with_policy(1, "RestartPod")
    past = ran([trace_job("again", duration=4.0, fails=True, manifest=manifest)], cluster_of(1))
    (record,) = past.jobs
    assert record.outcome == "Failed"
    assert [(run.start, run.end, run.how) for run in record.runs] == [
        (0.0, 4.0, "failed"),
        (4.0, 8.0, "failed"),
        (18.0, 22.0, "failed"),
    ]
    assert record.lost == {0: 8.0}


@pytest.mark.parametrize("action", ["AbortJob", "TerminateJob"])
def test_a_job_that_is_aborted_or_terminated_has_failed(action: str) -> None:
    left = trace_job("left", fails=True, manifest=with_policy(2, action))
    past = ran([left, trace_job("next", 1.0, replicas=2)], cluster_of(2))
    assert [(record.outcome, record.end) for record in past.jobs] == [
        ("Failed", 10.0),
        ("Completed", 20.0),
    ]
    assert (past.jobs[0].broken, past.jobs[0].lost) == (0, {})
    assert "failed with exit code 1" in past.jobs[0].reason


def test_a_job_whose_pods_have_failed_does_not_run() -> None:
    """Three of four pods fit and fail: the fourth one waits for a second that would run with it."""
    past = ran([trace_job("elastic", fails=True, replicas=4, min=2)], cluster_of(3))
    (record,) = past.jobs
    assert (record.outcome, record.start, record.end) == ("Waiting", 0.0, None)
    assert record.lost == {0: 30.0}
    assert measure(past).summary["goodput"] == {"cpu": 0.0}


def test_what_is_idle_where_no_waiting_pod_fits_is_unusable() -> None:
    jobs = [
        trace_job("a", requests={"cpu": "3"}, duration=10.0),
        trace_job("b", 1.0, requests={"cpu": "2"}, duration=10.0),
    ]
    past = ran(jobs, cluster_of(4), load_config(GREEDY))
    assert list(past.samples.unusable["cpu"]) == [0, 1000, 0, 0]
    assert {word: list(column) for word, column in past.samples.waiting.items()} == {
        "NotEnoughResources": [0, 1, 0, 0]
    }
    assert list(past.samples.queues["default"].waiting) == [0, 1, 0, 0]


def test_a_pod_that_no_node_could_hold_makes_nothing_usable() -> None:
    jobs = [
        trace_job("too-large", requests={"cpu": "9"}),
        trace_job("too-many", 1.0, requests={"cpu": "5"}, replicas=2),
        trace_job("smaller", 2.0, requests={"cpu": "2"}, replicas=8),
    ]
    past = ran(jobs, cluster_of(8, 4))
    assert list(past.samples.unusable["cpu"]) == [12000, 4000, 0]


@pytest.mark.parametrize("config", [DEFAULT, GREEDY])
def test_a_run_twice_gives_equal_records(config: str) -> None:
    jobs = drawn(7, 40, largest=6)
    one, other = (ran(jobs, cluster_of(4, 4), load_config(config)) for _ in range(2))
    assert msgspec.json.encode(one.jobs) == msgspec.json.encode(other.jobs)
    assert one.samples == other.samples


def test_a_run_that_is_stopped_tells_what_is_known() -> None:
    run = trace_run([trace_job("a"), trace_job("b", 1.0), trace_job("c", 2.0)], cluster_of(1))
    steps = run.steps()
    first, second = next(steps), next(steps)
    assert (first.now, first.ended, first.waiting, first.running) == (0.0, 0, 0, 1)
    assert (second.now, second.ended, second.waiting, second.running) == (1.0, 0, 1, 1)
    past = run.past()
    assert [record.outcome for record in past.jobs] == ["Running", "Waiting", "Unreached"]
    assert not past.is_whole


def test_equal_moments_are_served_in_the_order_of_the_trace() -> None:
    names = ["c", "a", "b"]
    past = ran([trace_job(name, 5.5) for name in names], cluster_of(1))
    assert [record.job.name for record in past.jobs] == names
    assert starts_of(past) == [5.5, 15.5, 25.5]


def test_only_a_job_to_which_something_happens_takes_passes_of_the_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pods do not run together: one each for its PodGroup, its pods, start and end of three, and start and end of the last one."""
    plans = []

    def reconciled(observed: Observed, **options: Any) -> Plan:
        plans.append(reconcile(observed, **options))
        return plans[-1]

    monkeypatch.setattr("pumice.traces.jobs.reconcile", reconciled)
    plain = [trace_job("one", 0, 10, replicas=3), trace_job("two", 5, 1, fails=True)]
    past = ran([*plain, trace_job("three", 20, 1, replicas=4, min=2)], cluster_of(3))
    assert [record.outcome for record in past.jobs] == ["Completed", "Failed", "Completed"]
    assert len(plans) == 6
    assert all(plan.status is not None for plan in plans)


def test_the_cost_of_a_job_does_not_grow_with_the_number_of_jobs() -> None:
    def looks(jobs: int) -> int:
        past = ran(
            [trace_job(f"job-{place}", 20.0 * place) for place in range(jobs)], cluster_of(1)
        )
        return past.cycles

    assert looks(60) == 2 * looks(30)
