"""What the API server refuses by the CRDs alone, with the path of every fault."""

from __future__ import annotations

import pytest

from pumice.api.hypernodes import NO_SELECTOR, SEVERAL_SELECTORS
from tests.e2e.crds.objects import EXACT, LABELS, REGEX, TASK, Raw, create, hyper_node, job
from tests.support.controlplane.cluster import ControlPlane


@pytest.mark.parametrize(
    ("spec", "path", "why"),
    [
        ({"tasks": []}, "spec.tasks", "should have at least 1 items"),
        ({"maxRetry": -1}, "spec.maxRetry", "greater than or equal to 0"),
        ({"minSuccess": 0}, "spec.minSuccess", "greater than or equal to 1"),
        ({"queue": ""}, "spec.queue", "should match"),
        ({"queue": "Not_A_Name"}, "spec.queue", "should match"),
        ({"minAvailable": "two"}, "spec.minAvailable", "must be of type integer"),
        (
            {"policies": [{"event": "PodExploded", "action": "RestartJob"}]},
            "spec.policies[0].event",
            'supported values: "*", "PodPending"',
        ),
        (
            {"tasks": [{**TASK, "name": "Worker"}]},
            "spec.tasks[0].name",
            "should match",
        ),
        (
            {"tasks": [{**TASK, "topologyPolicy": "often"}]},
            "spec.tasks[0].topologyPolicy",
            'supported values: "none"',
        ),
        (
            {"tasks": [{**TASK, "partitionPolicy": {"totalPartitions": 2}}]},
            "spec.tasks[0].partitionPolicy.partitionSize",
            "Required value",
        ),
        (
            {"tasks": [{"name": "worker", "template": {"spec": {"containers": [{}]}}}]},
            "spec.tasks[0].template.spec.containers[0].name",
            "Required value",
        ),
        ({"volumes": [{"mountPath": "/a:b"}]}, "spec.volumes[0].mountPath", "should match"),
        (
            {"networkTopology": {"mode": "firm"}},
            "spec.networkTopology.mode",
            'supported values: "hard", "soft"',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("spec") else "",
)
def test_a_job_out_of_bounds_is_refused_with_the_path(
    controlplane: ControlPlane, namespace: str, spec: Raw, path: str, why: str
) -> None:
    status, answer = job(controlplane, namespace, **spec)
    assert (status, answer["reason"]) == (422, "Invalid")
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert why in causes[path]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"weight": 0}, "spec.weight"),
        ({"weight": 65536}, "spec.weight"),
        ({"parent": ""}, "spec.parent"),
        ({"dequeueStrategy": "lifo"}, "spec.dequeueStrategy"),
        ({"capability": {"cpu": "much"}}, "spec.capability.cpu"),
        (
            {
                "affinity": {
                    "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 1}
                }
            },
            "spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_queue_out_of_bounds_is_refused_with_the_path(
    controlplane: ControlPlane, namespace: str, spec: Raw, path: str
) -> None:
    status, answer = create(controlplane, namespace, "Queue", spec)
    assert (status, answer["reason"]) == (422, "Invalid")
    assert path in {cause["field"] for cause in answer["details"]["causes"]}


def test_every_error_of_a_job_is_in_one_answer(controlplane: ControlPlane, namespace: str) -> None:
    _, answer = job(controlplane, namespace, maxRetry=-1, minSuccess=0, queue="")
    fields = [cause["field"] for cause in answer["details"]["causes"]]
    assert sorted(fields) == ["spec.maxRetry", "spec.minSuccess", "spec.queue"]


def test_a_cronjob_needs_a_schedule_and_a_template(
    controlplane: ControlPlane, namespace: str
) -> None:
    status, answer = create(
        controlplane,
        namespace,
        "CronJob",
        {"concurrencyPolicy": "Sometimes", "startingDeadlineSeconds": -1},
    )
    fields = {each["field"] for each in answer["details"]["causes"]}
    assert status == 422
    assert {
        "spec.schedule",
        "spec.jobTemplate",
        "spec.concurrencyPolicy",
        "spec.startingDeadlineSeconds",
    } <= fields


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({}, NO_SELECTOR),
        (EXACT | REGEX, SEVERAL_SELECTORS),
        (REGEX | LABELS, SEVERAL_SELECTORS),
    ],
)
def test_a_member_is_selected_in_one_way(
    controlplane: ControlPlane, namespace: str, selector: Raw, message: str
) -> None:
    members = [{"type": "Node", "selector": selector}]
    status, answer = hyper_node(controlplane, namespace, members=members)
    assert status == 422
    assert [each["field"] for each in answer["details"]["causes"]] == ["spec.members[0].selector"]
    assert message in answer["message"]


def test_a_hypernode_needs_a_tier_and_members(controlplane: ControlPlane, namespace: str) -> None:
    status, answer = create(controlplane, namespace, "HyperNode", {"members": []})
    fields = {each["field"] for each in answer["details"]["causes"]}
    assert status == 422
    assert {"spec.tier", "spec.members"} <= fields
