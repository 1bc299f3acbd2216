"""CronJobs on a real control plane with Pumice installed, through the real kubectl."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import CRON_JOB, JOB
from pumice.api.meta import parse_time
from tests.kit.builders import task
from tests.kit.namespaces import Namespace
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.usefixtures("installation")

Raw = dict[str, Any]

PERIOD = 2


def cron_job(policy: str) -> Raw:
    return {
        "apiVersion": CRON_JOB.api_version,
        "kind": CRON_JOB.kind,
        "metadata": {"name": policy.lower()},
        "spec": {
            "schedule": f"@every {PERIOD}s",
            "concurrencyPolicy": policy,
            "jobTemplate": {
                "spec": {"schedulerName": "volcano", "minAvailable": 1, "tasks": [task("w", 1)]}
            },
        },
    }


def of(cluster: Namespace, policy: str) -> dict[float, Raw]:
    """The Jobs of a CronJob by the instants of their runs."""
    found = {}
    for job in cluster.all(JOB):
        [owner] = job["metadata"]["ownerReferences"]
        if owner["name"] == policy.lower():
            instant = parse_time(job["metadata"]["annotations"][keys.CRON_JOB_SCHEDULED])
            assert instant is not None
            found[instant] = job
    return found


def active(cluster: Namespace, policy: str) -> list[str]:
    status = cluster.get(CRON_JOB, policy.lower()).get("status") or {}
    return [each["name"] for each in status.get("active") or ()]


def test_two_triggers_with_forbid_and_replace(controlplane: ControlPlane, namespace: str) -> None:
    cluster = Namespace(controlplane, namespace)
    cluster.apply(cron_job("Forbid"), cron_job("Replace"))
    wait_until(lambda: of(cluster, "Forbid") and of(cluster, "Replace"), "the first runs", 30)
    [replaced], [kept] = of(cluster, "Replace"), of(cluster, "Forbid")
    wait_until(
        lambda: "concurrencyPolicy Forbid" in cluster.events("forbid"), "a run that waits", 20
    )
    wait_until(lambda: min(of(cluster, "Replace"), default=replaced) > replaced, "its end", 20)
    assert set(of(cluster, "Forbid")) == {kept}
    wait_until(lambda: len(active(cluster, "Replace")) == 1, "one to be active", 10)
    wait_until(lambda: "concurrencyPolicy Replace" in cluster.events("replace"), "its event", 10)

    name = of(cluster, "Forbid")[kept]["metadata"]["name"]
    assert active(cluster, "Forbid") == [name]
    cluster.kubectl("delete", "vcjob", name)
    wait_until(lambda: min(of(cluster, "Forbid"), default=kept) > kept, "the run that waited", 20)
    for instant in (*of(cluster, "Forbid"), *of(cluster, "Replace")):
        assert instant <= time.time()
