"""Why pods failed: the words, and that they are never a reason for a write."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.failures import (
    cleaned,
    grouped,
    sentence,
    trouble_of,
    with_failures,
    without_failures,
)
from pumice.api.kinds import POD
from pumice.api.messages import LONGEST, LONGEST_LIST
from pumice.api.pods import Pod
from tests.kit.builders import task
from tests.kit.tables import table
from tests.unit.controller.fake_cluster import FakeCluster
from tests.unit.controller.job_scenarios import a_job, policy, running
from tests.unit.controller.rows import a_pod

Raw = dict[str, Any]


def failed(name: str, row: Raw) -> Pod:
    """A pod of a row; with `end` it has failed, and that is the end of its only container."""
    if end := row.get("end"):
        containers = [{"name": "main", "state": {"terminated": end}}]
        status = {"phase": "Failed", "containerStatuses": containers, **row.get("status", {})}
        row = row | {"status": status}
    return msgspec.convert(a_pod(name, row), Pod)


@pytest.mark.parametrize("case", table("controller/failures"), ids=lambda case: case["id"])
def test_what_is_said_of_failed_pods(case: Raw) -> None:
    pods = [failed(name, row) for name, row in case["pods"].items()]
    assert sentence(grouped(pods)) == case["says"]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, ""),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}},
            "container main waits: ImagePullBackOff: Back-off",
        ),
        (
            {
                "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 139, "message": "boom"}},
            },
            (
                "container main failed with exit code 139 (SIGSEGV: invalid memory access):"
                ' "boom" and was restarted 3 times; waits: CrashLoopBackOff'
            ),
        ),
        (
            {"restartCount": 1, "lastState": {"terminated": {"exitCode": 0}}, "ready": True},
            "",
        ),
    ],
)
def test_why_a_container_does_not_run(status: Raw, says: str) -> None:
    row = {"status": {"phase": "Pending", "containerStatuses": [{"name": "main"} | status]}}
    assert trouble_of(failed("job1-task1-0", row)) == says


@given(st.text(), st.integers(8, 64), st.booleans())
def test_texts_of_others_are_one_printable_line(text: str, most: int, end: bool) -> None:
    found = cleaned(text, most, end=end)
    assert found.isprintable()
    assert len(found.encode()) <= most


def test_a_long_message_keeps_its_end() -> None:
    assert cleaned("x" * 9000 + " RuntimeError: no data", 64, end=True).endswith("xx RuntimeError: no data")  # fmt: skip


def test_many_failures_are_bounded() -> None:
    pods = [
        failed(f"job1-task1-{n}", {"end": {"exitCode": n % 250 + 1, "message": "m" * 5000}})
        for n in range(1000)
    ]
    groups = grouped(pods)
    assert len(groups) == 250
    assert len(with_failures("m" * 3000, groups).encode()) <= LONGEST
    assert sentence(groups).endswith(" more")
    assert len(sentence(groups).encode()) <= LONGEST_LIST
    full = "é" * (LONGEST // 2)
    assert with_failures(full, groups) == full


@given(st.sampled_from(["", "2 of 4 pods do not run yet", "task b waits for task a"]))
def test_the_failures_in_a_message_are_found_again(message: str) -> None:
    groups = grouped([failed(f"job1-task1-{n}", {"end": {"exitCode": 1}}) for n in range(9)])
    assert without_failures(with_failures(message, groups)) == message
    assert without_failures(with_failures(message, groups[:1])) == message


def _said(cluster: FakeCluster, message: str) -> None:
    """Kubelet changes what a failed pod says; nothing that decides changes."""
    pod = next(pod for pod in cluster.of(POD) if pod["status"]["phase"] == "Failed")
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = message


def test_a_job_that_runs_on_says_why_a_pod_failed_and_writes_nothing_for_it() -> None:
    cluster = FakeCluster(a_job(task("worker", 4), minAvailable=1))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    writes = cluster.writes
    cluster.fail("train-worker-2", exit_code=137)
    cluster.settle()
    assert cluster.writes == writes + 1
    assert cluster.reason == (
        "PodsFailed",
        "task worker: pod train-worker-2 failed with exit code 137 (SIGKILL: killed)",
    )
    _said(cluster, "late words")
    cluster.settle()
    assert cluster.writes == writes + 1
    cluster.fail("train-worker-3", exit_code=137)
    cluster.settle()
    assert cluster.writes == writes + 2
    assert '(SIGKILL: killed); train-worker-2: "late words"' in cluster.reason[1]


def test_a_reason_to_wait_stands_before_the_failures_and_is_told_once() -> None:
    cluster = running(minAvailable=1)
    cluster.fail("train-worker-0")
    cluster.evict("train-worker-1")
    cluster.reap()
    cluster.look()
    cluster.condition("NotEnoughResources", "no room for 1 pod")
    cluster.settle()
    cluster.settle()
    word, message = cluster.reason
    assert (word, message) == (
        "NotEnoughResources",
        "no room for 1 pod; task worker: pod train-worker-0 failed with exit code 1",
    )
    assert [each.reason for each in cluster.events].count("PodGroupPending") == 1


def test_a_job_that_runs_says_that_pods_beyond_its_minimum_do_not() -> None:
    cluster = FakeCluster(a_job(task("worker", 4), minAvailable=2))
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run("train-worker-0", "train-worker-1")
    cluster.settle()
    assert (cluster.phase, *cluster.reason) == (
        "Running",
        "PodsPending",
        "2 of 4 pods do not run yet; minAvailable 2 is reached",
    )
    writes = cluster.writes
    cluster.run()
    cluster.settle()
    assert cluster.writes == writes + 1
    assert cluster.reason == ("", "")


def test_a_restart_of_the_job_names_all_pods_that_failed_alike() -> None:
    cluster = running(policies=[policy("PodFailed", "RestartJob")])
    cluster.fail("train-worker-0", "train-worker-1")
    cluster.settle()
    told = next(each.message for each in cluster.events if each.reason == "ExecuteAction")
    assert told == (
        "RestartJob: task worker: 2 pods (train-worker-0, train-worker-1) failed with exit code 1"
        " (spec.policies[0]); attempts used: 1 of 3 (maxRetry)"
    )


def test_the_phase_that_a_policy_leads_to_keeps_the_reason() -> None:
    cluster = running(policies=[policy("PodFailed", "AbortJob")])
    cluster.fail("train-worker-0")
    cluster.settle()
    assert (cluster.phase, *cluster.reason) == (
        "Aborted",
        "AbortJob",
        "task worker: pod train-worker-0 failed with exit code 1 (spec.policies[0])",
    )
