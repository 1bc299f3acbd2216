"""The generated CRDs on a real API server: what it defaults, refuses, drops, keeps and shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane.cluster import ControlPlane

CRDS = Path(__file__).resolve().parents[2] / "charts/pumice/crds"

JOBS = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
FLOWS = "flow.volcano.sh/v1alpha1"
TOPOLOGY = "topology.volcano.sh/v1alpha1"
GROUPS = {
    "Job": JOBS,
    "CronJob": JOBS,
    "PodGroup": SCHEDULING,
    "Queue": SCHEDULING,
    "JobFlow": FLOWS,
    "JobTemplate": FLOWS,
    "HyperNode": TOPOLOGY,
}
CLUSTER_WIDE = ("Queue", "HyperNode")
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
TASK = {"name": "worker", "replicas": 2, "template": TEMPLATE}

Raw = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def crds(controlplane: ControlPlane) -> None:
    """The CRDs, established; they stay for whoever comes next."""
    controlplane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    names = [f"crd/{path.stem}" for path in sorted(CRDS.glob("*.yaml"))]
    controlplane.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)


def create(
    plane: ControlPlane, namespace: str, kind: str, spec: Raw | None = None, **top: Any
) -> tuple[int, Raw]:
    """Create an object called `it` and return what the server says.

    One that is in no namespace is called as the namespace is.
    """
    group = GROUPS[kind]
    place = "" if kind in CLUSTER_WIDE else f"namespaces/{namespace}/"
    name = namespace if kind in CLUSTER_WIDE else "it"
    body = {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec or {}}
    return plane.request("POST", f"/apis/{group}/{place}{kind.lower()}s", {**body, **top})


def job(plane: ControlPlane, namespace: str, **spec: Any) -> tuple[int, Raw]:
    return create(plane, namespace, "Job", {"tasks": [TASK], **spec})


def test_all_of_them_are_established_and_served(controlplane: ControlPlane) -> None:
    found = controlplane.kubectl("api-resources", "--no-headers", "-o", "name").stdout.split()
    assert {path.stem for path in CRDS.glob("*.yaml")} <= set(found)


def test_none_of_them_is_at_odds_with_itself(controlplane: ControlPlane) -> None:
    for path in CRDS.glob("*.yaml"):
        _, crd = controlplane.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{path.stem}"
        )
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, path.stem


@pytest.mark.parametrize(
    ("short", "resource"),
    [
        ("vcjob", "jobs.batch.volcano.sh"),
        ("vj", "jobs.batch.volcano.sh"),
        ("pg", "podgroups.scheduling.volcano.sh"),
        ("podgroup-v1beta1", "podgroups.scheduling.volcano.sh"),
        ("q", "queues.scheduling.volcano.sh"),
        ("queue-v1beta1", "queues.scheduling.volcano.sh"),
    ],
)
def test_short_names_are_volcanos(
    controlplane: ControlPlane, namespace: str, short: str, resource: str
) -> None:
    explained = controlplane.kubectl("explain", short).stdout
    assert f"GROUP:      {resource.partition('.')[2]}" in explained
    controlplane.kubectl("get", short, namespace=namespace)


def test_defaults_are_written_into_what_was_left_out(
    controlplane: ControlPlane, namespace: str
) -> None:
    partitioned = {
        **TASK,
        "partitionPolicy": {"totalPartitions": 1, "partitionSize": 2, "networkTopology": {}},
    }
    status, made = job(controlplane, namespace, tasks=[partitioned])
    assert status == 201, made
    assert (made["spec"]["queue"], made["spec"]["maxRetry"]) == ("default", 3)
    policy = made["spec"]["tasks"][0]["partitionPolicy"]
    assert (policy["minPartitions"], policy["networkTopology"]) == (0, {"mode": "hard"})

    status, group = create(controlplane, namespace, "PodGroup", {"subGroupPolicy": [{"name": "a"}]})
    assert status == 201, group
    assert group["spec"]["queue"] == "default"
    assert group["spec"]["subGroupPolicy"] == [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}]


def test_a_queue_gets_its_defaults(controlplane: ControlPlane, namespace: str) -> None:
    status, queue = create(controlplane, namespace, "Queue")
    controlplane.kubectl("delete", "queue", namespace)
    assert status == 201, queue
    assert queue["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}


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


def test_unknown_fields_are_dropped_except_inside_a_pod_template(
    controlplane: ControlPlane, namespace: str
) -> None:
    container = {"name": "main", "image": "busybox", "fieldOfTomorrow": {"deep": [1]}}
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"containers": [container], "podFieldOfTomorrow": "kept"},
    }
    claim = {"accessModes": ["ReadWriteOnce"], "claimFieldOfTomorrow": True}
    status, made = job(
        controlplane,
        namespace,
        tasks=[{**TASK, "template": template, "misspelt": 1}],
        volumes=[{"mountPath": "/data", "volumeClaim": claim}],
        misspelt=2,
    )
    assert status == 201, made
    assert "misspelt" not in made["spec"]
    assert "misspelt" not in made["spec"]["tasks"][0]
    assert made["spec"]["tasks"][0]["template"] == template
    assert made["spec"]["volumes"][0]["volumeClaim"] == claim


def test_kubectl_refuses_a_field_that_would_be_dropped(
    controlplane: ControlPlane, namespace: str
) -> None:
    manifest = {
        "apiVersion": JOBS,
        "kind": "Job",
        "metadata": {"name": "it"},
        "spec": {"tasks": [{**TASK, "replica": 2}]},
    }
    answer = controlplane.kubectl(
        "apply", "-f", "-", stdin=json.dumps(manifest), namespace=namespace, check=False
    )
    assert answer.returncode == 1
    assert 'unknown field "spec.tasks[0].replica"' in answer.stderr


def test_quantities_may_be_numbers_or_text(controlplane: ControlPlane, namespace: str) -> None:
    amounts = {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": "2"}
    status, group = create(controlplane, namespace, "PodGroup", {"minResources": amounts})
    assert status == 201, group
    assert group["spec"]["minResources"] == amounts


def test_the_status_of_a_job_is_written_beside_its_spec(
    controlplane: ControlPlane, namespace: str
) -> None:
    running = {"state": {"phase": "Running"}, "running": 2}
    created = {"apiVersion": JOBS, "kind": "Job", "metadata": {"name": "it"}, "status": running}
    path = f"/apis/{JOBS}/namespaces/{namespace}/jobs"
    _, made = controlplane.request("POST", path, {**created, "spec": {"tasks": [TASK]}})
    assert "status" not in made
    patch = {"spec": {"queue": "other"}, "status": running}
    status, after = controlplane.request(
        "PATCH", f"{path}/it/status", patch, content_type="application/merge-patch+json"
    )
    assert status == 200, after
    assert (after["spec"]["queue"], after["status"]) == ("default", running)
    assert after["metadata"]["generation"] == 1
    refused = {"status": {"state": {"phase": "Dreaming"}}}
    status, answer = controlplane.request(
        "PATCH", f"{path}/it/status", refused, content_type="application/merge-patch+json"
    )
    assert (status, answer["details"]["causes"][0]["field"]) == (422, "status.state.phase")


def test_the_status_of_a_podgroup_is_part_of_the_object(
    controlplane: ControlPlane, namespace: str
) -> None:
    status, made = create(controlplane, namespace, "PodGroup", status={"phase": "Inqueue"})
    assert (status, made["status"]) == (201, {"phase": "Inqueue"})
    path = f"/apis/{SCHEDULING}/namespaces/{namespace}/podgroups/it/status"
    assert controlplane.request("GET", path)[0] == 404


def columns(plane: ControlPlane, namespace: str, *arguments: str) -> dict[str, str]:
    """The only row of `kubectl get`, by the names in its header."""
    header, row = plane.kubectl("get", *arguments, namespace=namespace).stdout.splitlines()
    starts = [header.index(name) for name in header.split()]
    ends = [*starts[1:], None]
    return {
        header[start:end].strip(): row[start:end].strip()
        for start, end in zip(starts, ends, strict=True)
    }


def test_kubectl_get_shows_where_a_job_stands(controlplane: ControlPlane, namespace: str) -> None:
    job(controlplane, namespace, minAvailable=2)
    status = {
        "state": {"phase": "Pending", "message": "waits for memory"},
        "minAvailable": 2,
        "running": 0,
    }
    patch = json.dumps({"status": status})
    controlplane.kubectl(
        *("patch", "vcjob", "it", "--subresource=status", "--type=merge", "-p", patch),
        namespace=namespace,
    )
    narrow = columns(controlplane, namespace, "vcjob", "it")
    assert list(narrow) == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    wide = columns(controlplane, namespace, "vcjob", "it", "-o", "wide")
    shown = ("Pending", "2", "0", "default", "waits for memory")
    assert tuple(
        wide[name] for name in ("STATUS", "MINAVAILABLE", "RUNNINGS", "QUEUE", "REASON")
    ) == (shown)


def test_kubectl_get_shows_where_a_podgroup_stands(
    controlplane: ControlPlane, namespace: str
) -> None:
    condition = {"type": "Unschedulable", "status": "True", "message": "2 of 4 nodes too small"}
    status = {"phase": "Pending", "running": 0, "conditions": [condition]}
    create(controlplane, namespace, "PodGroup", {"minMember": 3}, status=status)
    wide = columns(controlplane, namespace, "pg", "it", "-o", "wide")
    assert (wide["STATUS"], wide["MINMEMBER"], wide["REASON"]) == (
        "Pending",
        "3",
        "2 of 4 nodes too small",
    )


def test_kubectl_get_shows_a_queue(controlplane: ControlPlane, namespace: str) -> None:
    create(controlplane, namespace, "Queue", {"weight": 4, "parent": "root"})
    wide = columns(controlplane, namespace, "q", namespace, "-o", "wide")
    controlplane.kubectl("delete", "queue", namespace)
    assert (wide["PARENT"], wide["WEIGHT"]) == ("root", "4")


def cron_job(plane: ControlPlane, namespace: str, **spec: Any) -> tuple[int, Raw]:
    whole = {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [TASK]}}, **spec}
    return create(plane, namespace, "CronJob", whole)


def test_a_cronjob_is_defaulted_as_far_as_its_jobs(
    controlplane: ControlPlane, namespace: str
) -> None:
    status, made = cron_job(controlplane, namespace, timeZone=None)
    assert status == 201, made
    spec = made["spec"]
    template = spec.pop("jobTemplate")["spec"]
    assert (template["queue"], template["maxRetry"]) == ("default", 3)
    assert spec == {
        "schedule": "@daily",
        "timeZone": None,
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }


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


def test_kubectl_get_shows_a_cronjob(controlplane: ControlPlane, namespace: str) -> None:
    cron_job(controlplane, namespace, timeZone="Europe/Oslo")
    status = json.dumps({"status": {"lastScheduleTime": "2026-01-02T03:04:05Z"}})
    controlplane.kubectl(
        *("patch", "cronvj", "it", "--subresource=status", "--type=merge", "-p", status),
        namespace=namespace,
    )
    wide = columns(controlplane, namespace, "cronvcjob", "it", "-o", "wide")
    shown = {name: wide[name] for name in ("SCHEDULE", "TIMEZONE", "SUSPEND", "CONCURRENCY")}
    assert shown == {
        "SCHEDULE": "@daily",
        "TIMEZONE": "Europe/Oslo",
        "SUSPEND": "false",
        "CONCURRENCY": "Allow",
    }
    assert wide["LAST-SCHEDULE"].endswith("d")


def test_the_cronjob_of_kubernetes_is_still_called_cronjob(
    controlplane: ControlPlane, namespace: str
) -> None:
    cron_job(controlplane, namespace)
    found = controlplane.kubectl("get", "cronjob", "it", namespace=namespace, check=False)
    assert 'cronjobs.batch "it" not found' in found.stderr


def test_what_a_flow_overrides_is_not_defaulted(controlplane: ControlPlane, namespace: str) -> None:
    patch = {"jobSpec": {"minAvailable": 2, "tasks": [{"name": "a", "replicas": 4}]}}
    flows = [{"name": "prepare"}, {"name": "train", "patch": patch}]
    status, made = create(controlplane, namespace, "JobFlow", {"flows": flows})
    assert (status, made["spec"]) == (201, {"flows": flows})
    found = controlplane.kubectl("get", "jf", "it", namespace=namespace).stdout
    assert found.split()[:3] == ["NAME", "STATUS", "AGE"]


def test_a_jobtemplate_is_defaulted_as_a_job_is(controlplane: ControlPlane, namespace: str) -> None:
    spec = {"tasks": [TASK], "minAvailable": 2}
    status, made = create(controlplane, namespace, "JobTemplate", spec)
    assert status == 201, made
    assert (made["spec"]["queue"], made["spec"]["maxRetry"]) == ("default", 3)
    shown = columns(controlplane, namespace, "jt", "it")
    assert (shown["MINAVAILABLE"], shown["QUEUE"]) == ("2", "default")


EXACT = {"exactMatch": {"name": "node-1"}}
REGEX = {"regexMatch": {"pattern": "node-.*"}}
LABELS = {"labelMatch": {"matchLabels": {"rack": "1"}}}


def hyper_node(plane: ControlPlane, namespace: str, **spec: Any) -> tuple[int, Raw]:
    whole = {"tier": 1, "members": [{"type": "Node", "selector": EXACT}], **spec}
    return create(plane, namespace, "HyperNode", whole)


def test_kubectl_get_shows_a_hypernode(controlplane: ControlPlane, namespace: str) -> None:
    selectors = (EXACT, REGEX, LABELS)
    members = [{"type": "Node", "selector": each} for each in selectors]
    status, made = hyper_node(controlplane, namespace, tierName="rack", members=members)
    assert status == 201, made
    assert made["spec"]["members"] == members
    shown = columns(controlplane, namespace, "hn", namespace)
    controlplane.kubectl("delete", "hn", namespace)
    assert (shown["TIER"], shown["TIERNAME"], shown["NODECOUNT"]) == ("1", "rack", "")


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({}, "must have one of exactMatch, regexMatch and labelMatch"),
        (EXACT | REGEX, "must have only one of exactMatch, regexMatch and labelMatch"),
        (REGEX | LABELS, "must have only one of exactMatch, regexMatch and labelMatch"),
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


def test_kubectl_explain_knows_every_field(controlplane: ControlPlane) -> None:
    explained = controlplane.kubectl("explain", "vcjob.spec.tasks.partitionPolicy").stdout
    assert "Pods in a partition." in explained
    assert "totalPartitions" in explained


def test_a_second_apply_changes_nothing(controlplane: ControlPlane, namespace: str) -> None:
    manifest = json.dumps(
        {
            "apiVersion": JOBS,
            "kind": "Job",
            "metadata": {"name": "it"},
            "spec": {"tasks": [TASK], "plugins": {"svc": [], "env": []}},
        }
    )
    controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    answer = controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    assert answer.stdout == "job.batch.volcano.sh/it unchanged\n"
