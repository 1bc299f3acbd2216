"""A controller that dies after any write: no run is lost or doubled, whatever becomes of the Jobs meanwhile."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.controller.cronjobs.runs import is_active
from tests.unit.controller.cronjobs.fake_cluster import FakeCluster, Happened, moment

Raw = dict[str, Any]

BEGIN = moment("10:00:00")
PERIOD = 300
ENDS = ("Completed", "Failed", "Terminated")

# Of each moment between two runs: how many writes are sent before the controller dies (None if it lives), and what
# becomes of the Jobs before it is looked at again.
DEATHS = st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=4)
FATES = st.lists(st.sampled_from(["runs", *ENDS]), min_size=4, max_size=4)


class Living(FakeCluster):
    """A CronJob that is looked at again and again by controllers that die."""

    def __init__(self, policy: str, limit: int) -> None:
        spec = {"concurrencyPolicy": policy}
        limits = {"successfulJobsHistoryLimit": limit, "failedJobsHistoryLimit": limit}
        step = {"now": "10:00:01"}
        super().__init__({"spec": spec | limits, "last": "10:00", "steps": [step]})
        self.created: list[str] = []

    def look(self, now: float, deaths: list[int | None]) -> None:
        """Passes of controllers, each of which may die in the middle of its plan."""
        for sent in deaths:
            self.recorded = set()  # what a controller remembers goes with it
            if sent is None:
                self.created += self.settle(now).creates
                continue
            found = Happened()
            self.carry_out(self.plan(now), now, found, limit=sent)
            self.created += found.creates

    def end(self, fate: str) -> None:
        """Let the Jobs that run have a fate."""
        for job in self.jobs.values():
            if is_active(job) and fate != "runs":
                state = {"phase": fate, "lastTransitionTime": "2026-03-02T10:00:00Z"}
                job["status"] = {"state": state}


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
@given(
    limit=st.sampled_from([0, 2]),
    deaths=st.lists(DEATHS, min_size=4, max_size=4),
    fates=FATES,
    early=st.booleans(),
)
def test_each_run_has_one_job(
    policy: str, limit: int, deaths: list[list[int | None]], fates: list[str], early: bool
) -> None:
    cluster = Living(policy, limit)
    expected = []
    for run in range(1, 5):
        now = BEGIN + run * PERIOD + 0.1
        waits = policy == "Forbid" and any(map(is_active, cluster.jobs.values()))
        if not waits:
            expected.append(f"c-{int(now) // 60}")
        dies = deaths[run - 1]
        if early:  # its Jobs end while no controller runs
            cluster.look(now, dies[:1])
            cluster.end(fates[run - 1])
            cluster.look(now + 1, [*dies[1:], None])
        else:
            cluster.look(now, [*dies, None])
            cluster.end(fates[run - 1])
            cluster.look(now + 1, [None])
        assert len(cluster.created) == len(set(cluster.created))
        ended = [job for job in cluster.jobs.values() if not is_active(job)]
        assert len(ended) <= 2 * limit
        running = [name for name, job in cluster.jobs.items() if is_active(job)]
        assert cluster.active == sorted(running)
        if policy != "Allow":
            assert len(running) <= 1
        if waits and cluster.created[len(expected) :]:
            expected.append(f"c-{int(now) // 60}")  # it began when the Job before it had ended
    assert cluster.created == expected
    assert cluster.time("lastScheduleTime") == max(
        BEGIN, *(int(name.removeprefix("c-")) * 60 for name in expected)
    )
