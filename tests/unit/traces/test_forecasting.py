"""When Jobs start that wait: from what their users say, from Jobs like them, and what is said where neither is known."""

from typing import Any

import msgspec
import pytest

from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cli.files.checking import registry
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.forecasting import ForecastCluster, StartForecast
from tests.kit.builders import job, node, pod, pod_group, queue, task

NOW = 1_800_000_000.0
STARTED = "2027-01-15T07:50:00Z"
"""Ten minutes ago."""
ZONE = "volcano.sh/revocable-zone"
NODE = node("n", "4", labels={ZONE: "day"})


def stored(
    name: str, *, phase: str, cpu: str = "4", duration: str = "", **status: Any
) -> dict[str, Any]:
    """A Job of one pod as an API server has it."""
    raw = job(name, [task("w", 1, cpu=cpu)])
    raw["metadata"] |= {"uid": f"uid-{name}", "namespace": "default"}
    if duration:
        raw["metadata"]["annotations"] = {"pumice.dev/duration": duration}
    raw["status"] = {"state": {"phase": phase}, "minAvailable": 1} | status
    return raw


def running(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The PodGroup and the pod of a Job that runs."""
    group = pod_group(f"{name}-uid-{name}", 1, phase="Running")
    raw = pod(f"{name}-w-0", group=f"{name}-uid-{name}", cpu="4", node="n", phase="Running")
    raw["status"]["startTime"] = STARTED
    return group, raw


def forecasts(
    jobs: list[dict[str, Any]], *runs: str, limit: float = 60.0
) -> dict[str, StartForecast]:
    groups, pods = zip(*map(running, runs), strict=True) if runs else ((), ())
    return forecasts_among(jobs, list(groups), list(pods), limit=limit)


def forecasts_among(
    jobs: list[dict[str, Any]],
    groups: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    limit: float = 60.0,
    config: str = "",
) -> dict[str, StartForecast]:
    objects = ClusterObjects(
        nodes=[msgspec.convert(NODE, Node)],
        queues=[msgspec.convert(queue("default"), Queue)],
        pod_groups=[msgspec.convert(each, PodGroup) for each in groups],
        pods=[msgspec.convert(each, Pod) for each in pods],
    )
    scheduling = load_config(config) if config else load_config()
    known = ForecastCluster(objects, jobs, scheduling, registry(), NOW)
    return known.forecasts(lambda: 0.0, limit)


def test_what_runs_ends_when_its_user_says() -> None:
    jobs = [
        stored("runs", phase="Running", duration="50m"),
        stored("first", phase="Pending", duration="1h"),
        stored("second", phase=""),
    ]
    assert forecasts(jobs, "runs") == {
        "default/first": StartForecast(2400.0, "starts in about 40 min (if nothing changes)"),
        "default/second": StartForecast(6000.0, "starts in about 100 min (if nothing changes)"),
    }


def test_a_job_that_waits_has_the_longest_duration_of_its_templates() -> None:
    """Before it has pods as with them, unless its own annotation says otherwise; more than like Jobs tell."""
    ended = stored("was", phase="Completed", runningDuration="20m0s")
    first, second = (stored(each, phase="Pending") for each in ("first", "second"))
    second["metadata"]["creationTimestamp"] = STARTED
    ended["spec"] = first["spec"] = job("first", [task(each, 1, cpu="2") for each in "ab"])["spec"]
    for found, text in zip(first["spec"]["tasks"], ("30m", "1h"), strict=True):
        found["template"]["metadata"] = {"annotations": {"pumice.dev/duration": text}}
    assert forecasts([ended, first, second])["default/second"].seconds == 3600
    group = pod_group("first-uid-first", 2, phase="Inqueue")
    pods = []
    for each, text in (("a", "30m"), ("b", "1h")):
        said = {"pumice.dev/duration": text}
        pods.append(pod(f"first-{each}-0", group="first-uid-first", cpu="2", annotations=said))
    told = forecasts_among([ended, first, second], [group], pods)
    assert told["default/second"].seconds == 3600
    first["metadata"]["annotations"] = {"pumice.dev/duration": "10m"}
    assert forecasts([ended, first, second])["default/second"].seconds == 600


def test_without_that_it_ends_as_jobs_like_it_did() -> None:
    ended = [
        stored(f"was-{number}", phase="Completed", runningDuration=f"{minutes}m0s")
        for number, minutes in enumerate((20, 30, 90))
    ]
    jobs = [*ended, stored("runs", phase="Running"), stored("next", phase="Pending")]
    assert forecasts(jobs, "runs")["default/next"].seconds == 20 * 60


def test_what_is_not_known_is_said() -> None:
    jobs = [stored("runs", phase="Running"), stored("next", phase="Pending")]
    found = forecasts(jobs, "runs")["default/next"]
    assert found.seconds is None
    assert found.message.startswith("when it starts is not known: of 1 gang that runs")
    assert "pumice.dev/duration" in found.message


def test_a_duration_that_cannot_be_read_is_named_once() -> None:
    """Each of a Job and its PodGroup have it, a Job that has ended does not count."""
    jobs = [
        stored("was", phase="Completed", duration="never"),
        stored("runs", phase="Running", duration="abc"),
    ]
    group, raw = running("runs")
    group["metadata"]["annotations"] = jobs[1]["metadata"]["annotations"]
    loose = pod("loose", group="other", cpu="1", annotations={"pumice.dev/duration": "-1s"})
    objects = ClusterObjects(
        pod_groups=[msgspec.convert(group, PodGroup)],
        pods=[msgspec.convert(each, Pod) for each in (raw, loose)],
    )
    assert ForecastCluster(objects, jobs, load_config(), registry(), NOW).remark() == (
        "annotation pumice.dev/duration of Job default/runs is ignored, and that of 1 more object: "
        'time: invalid duration "abc"; write a duration such as 90s, 10m or 1h30m'
    )
    assert (
        ForecastCluster(objects, [], load_config(), registry(), NOW)
        .remark()
        .startswith(
            "annotation pumice.dev/duration of PodGroup default/runs-uid-runs is ignored, and that of 1 more"
        )
    )
    long = stored("long", phase="Running", duration="1h" + "0m" * 40)
    readable = ForecastCluster(ClusterObjects(), [jobs[0], long], load_config(), registry(), NOW)
    assert readable.remark() == ""


def test_a_job_that_fits_starts_now_and_one_that_never_does_is_told_so() -> None:
    jobs = [stored("fits", phase="Pending"), stored("large", phase="Pending", cpu="5")]
    found = forecasts(jobs)
    assert found["default/fits"] == StartForecast(0.0, "starts now (if nothing changes)")
    assert found["default/large"].seconds is None
    assert found["default/large"].message.startswith("does not start")


def test_what_should_have_ended_is_still_there() -> None:
    """So a Job does not start now that waits for it; one that is tried does not fit now either."""
    jobs = [
        stored("runs", phase="Running", duration="5m"),
        stored("first", phase="Pending", duration="3m"),
        stored("second", phase="Pending"),
    ]
    late = "(if nothing changes, and 1 gang that should have ended by now will end at once)"
    assert forecasts(jobs, "runs") == {
        "default/first": StartForecast(1.0, f"starts in about 1 s {late}"),
        "default/second": StartForecast(181.0, f"starts in about 3 min {late}"),
    }
    group, raw = running("runs")
    objects = ClusterObjects(
        nodes=[msgspec.convert(NODE, Node)],
        queues=[msgspec.convert(queue("default"), Queue)],
        pod_groups=[msgspec.convert(group, PodGroup)],
        pods=[msgspec.convert(raw, Pod)],
    )
    known = ForecastCluster(objects, jobs[:1], load_config(), registry(), NOW)
    told, pods = known.trial(stored("new", phase=""), lambda: 0.0, 60.0)
    assert (told.seconds, pods) == (1.0, 0)


def test_moments_are_told_to_the_microsecond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.NOW", NOW + 0.1)
    jobs = [stored("runs", phase="Running", duration="50m"), stored("next", phase="Pending")]
    assert forecasts(jobs, "runs")["default/next"].seconds == 2399.9


def test_it_looks_ahead_only_as_long_as_it_may() -> None:
    jobs = [stored("runs", phase="Running", duration="50m"), stored("next", phase="Pending")]
    found = forecasts(jobs, "runs", limit=-1.0)["default/next"]
    assert found == StartForecast(None, "starts in more than 0 s; no more is computed")


@pytest.mark.parametrize(
    ("said", "seconds"), [({"pumice.dev/duration": "30m"}, 70 * 60.0), ({}, None)]
)
def test_a_gang_without_a_job_ends_too_when_it_says(
    said: dict[str, str], seconds: float | None
) -> None:
    """It waits before the Job, for a pod of 50 minutes that began ten minutes ago."""
    group, running_pod = running("runs")
    before = pod_group("before", 1, phase="Inqueue")
    before["metadata"] |= {"annotations": said, "creationTimestamp": STARTED}
    after = stored("after", phase="Pending")
    after["metadata"]["creationTimestamp"] = "2027-01-15T07:55:00Z"
    found = forecasts_among(
        [stored("runs", phase="Running", duration="50m"), after],
        [group, before],
        [running_pod, pod("before-0", group="before", cpu="4")],
    )["default/after"]
    assert found.seconds == seconds
    assert seconds or found.message.startswith("when it starts is not known: of 1 gang that runs")


def test_pods_of_a_running_job_that_start_later_end_too() -> None:
    elastic = stored("runs", phase="Running", duration="20m")
    elastic["spec"]["tasks"][0]["replicas"] = 2
    group, first = running("runs")
    second = pod("runs-w-1", group="runs-uid-runs", cpu="4")
    after = stored("after", phase="Pending")
    after["metadata"]["creationTimestamp"] = "2027-01-15T07:55:00Z"
    found = forecasts_among([elastic, after], [group], [first, second])
    assert found["default/after"].seconds == 30 * 60


def test_it_is_said_that_pods_go_in_circles() -> None:
    """Nodes that are open for eleven hours, and before the Job one of thirteen, which is evicted each evening."""
    by_day = [
        stored(name, phase="Pending", duration=duration)
        for name, duration in (("before", "13h"), ("next", "1h"))
    ]
    for place, each in enumerate(by_day):
        each["metadata"]["annotations"] |= {ZONE: "*", "volcano.sh/preemptable": "true"}
        each["metadata"]["creationTimestamp"] = f"2027-01-15T07:5{place}:00Z"
    config = """
actions: "enqueue, allocate, shuffle"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: predicates}
  - {name: tdm, arguments: {tdm.revocable-zone.day: "10:00-21:00", tdm.evict.period: 1m}}
"""
    found = forecasts_among(by_day, [], [], config=config)
    assert found["default/before"].seconds == 2 * 3600.0  # from eight o'clock
    message = found["default/next"].message
    assert message.startswith("when it starts is not known, since other pods are evicted and made ")
