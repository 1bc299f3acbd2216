"""What becomes of CronJobs, as the case tables have it."""

from typing import Any

import pytest

from pumice.api.occurrences import Occurrences
from pumice.api.schedules import parse_schedule, time_zone
from pumice.controller.cronjobs import awaits_note
from tests.kit.tables import table
from tests.unit.controller.cronjobs.fake_cluster import FakeCluster, moment, name_of, utc

Raw = dict[str, Any]

CASES = [
    case for name in ("due", "zones", "policies", "history") for case in table(f"cronjobs/{name}")
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_becomes_of_a_cron_job(case: Raw) -> None:
    cluster = FakeCluster(case)
    for step in case["steps"]:
        now = moment(step["now"])
        cluster.set_phases(step.get("jobs") or {})
        cluster.cron_job["spec"] |= step.get("spec") or {}
        active, last = cluster.active, cluster.time("lastScheduleTime")
        success = cluster.time("lastSuccessfulTime")
        found, then = cluster.settle(now), step["then"]
        assert found.creates == [name_of(each) for each in then.get("creates", ())]
        assert found.deletes == [name_of(each) for each in then.get("deletes", ())]
        assert found.events == then.get("events", [])
        wanted = then.get("active")
        assert cluster.active == (active if wanted is None else [name_of(each) for each in wanted])
        assert cluster.time("lastScheduleTime") == (
            moment(then["last"]) if "last" in then else last
        )
        assert cluster.time("lastSuccessfulTime") == (
            moment(then["success"]) if "success" in then else success
        )
        if "wake" in then:
            assert found.wake == (
                None if then["wake"] is None else pytest.approx(then["wake"], abs=1e-3)
            )
        if "writes" in then:
            assert found.writes == then["writes"]
    if "job" in case:
        made = cluster.jobs[found.creates[-1]]
        assert {key: made["metadata"][key] for key in case["job"]} == case["job"]
        assert made["spec"] == cluster.cron_job["spec"]["jobTemplate"]["spec"]
        assert set(made["metadata"]["labels"]) == {"x"}


def test_the_newest_of_very_many_active_jobs_are_listed() -> None:
    first = moment("2020-01-01T00:00:00Z")
    jobs = {f"c-{int(first) // 60 + number}": "Running" for number in range(1100)}
    cluster = FakeCluster({"jobs": jobs, "last": "10:00", "steps": [{"now": "10:02"}]})
    cluster.settle(moment("10:02"))
    assert cluster.active == list(jobs)[-1000:]
    assert cluster.settle(moment("10:03")).writes == 0


@pytest.mark.parametrize("case", table("cronjobs/instants"), ids=lambda case: case["id"])
def test_instants(case: Raw) -> None:
    zone = time_zone(case.get("zone", "UTC"))
    found = Occurrences(parse_schedule(case["schedule"]), zone, once=case.get("once", False))
    at, due = moment(case["after"]), []
    for _ in case["due"]:
        later = found.after(at)
        assert later is not None
        assert found.before(later, at) == later
        at = later
        due.append(utc(later))
    assert due == case["due"]


@pytest.mark.parametrize("case", table("cronjobs/awaited"), ids=lambda case: case["id"])
def test_which_jobs_stay_until_their_run_is_noted(case: Raw) -> None:
    given = {key: case[key] for key in ("last", "leaving") if case.get(key)}
    cluster = FakeCluster(
        given | {"jobs": {"J10:05": case.get("phase", "Completed")}, "steps": [{"now": "10:07"}]}
    )
    assert awaits_note(cluster.cron_job, cluster.jobs[name_of("J10:05")]) is case["awaited"]
