"""Whether a Job that has ended stays until its CronJob or JobFlow has noted it, by what is watched."""

from typing import Any

import pytest

from pumice.api.kinds import CRON_JOB, JOB_FLOW, Kind
from pumice.api.meta import ObjectMeta
from pumice.controller.objects import controller_reference
from pumice.controller.worker.jobs import JobOwners
from pumice.controller.worker.process import Watches
from tests.kit.waiting import NO_CLIENT
from tests.unit.controller.cronjobs.fake_cluster import FakeCluster, name_of

Raw = dict[str, Any]

CASES = [
    ("its own", "U", CRON_JOB, True),
    ("another of that name", "V", CRON_JOB, False),
    ("none", None, CRON_JOB, False),
    ("an owner of another kind", "U", Kind("batch", "v1", "CronJob", "cronjobs"), False),
    ("its own JobFlow", "U", JOB_FLOW, True),
    ("another JobFlow of that name", "V", JOB_FLOW, False),
]


@pytest.mark.parametrize(("which", "uid", "kind", "stays"), CASES, ids=lambda case: str(case))
async def test_who_is_waited_for(which: str, uid: str | None, kind: Kind, stays: bool) -> None:
    del which
    cluster = FakeCluster({"jobs": {"J10:05": "Completed"}, "steps": [{"now": "10:07"}]})
    job, owner = cluster.jobs[name_of("J10:05")], cluster.cron_job
    job["metadata"]["ownerReferences"] = [controller_reference(ObjectMeta(name="c", uid="U"), kind)]
    watches = Watches(NO_CLIENT)
    owners = JobOwners(watches)
    assert owners.await_note(job) is (kind in (CRON_JOB, JOB_FLOW)), "until it is known what exists"
    for cache in watches.optional:
        if uid is not None:
            cache.put(("d", "c"), "1", owner | {"metadata": owner["metadata"] | {"uid": uid}})
        cache.synced.set()
    assert owners.await_note(job) is stays
