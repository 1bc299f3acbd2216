"""What the API server makes of an object: what it fills in, drops and keeps."""

from __future__ import annotations

import json

from pumice.api.kinds import QUEUE
from tests.e2e.crds.objects import JOBS, SCHEDULING, TASK, create, cron_job, job
from tests.support.controlplane.cluster import ControlPlane


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
    controlplane.request("DELETE", QUEUE.path(namespace))
    assert status == 201, queue
    assert queue["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}


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


def test_a_jobtemplate_is_defaulted_as_a_job_is(controlplane: ControlPlane, namespace: str) -> None:
    spec = {"tasks": [TASK], "minAvailable": 2}
    status, made = create(controlplane, namespace, "JobTemplate", spec)
    assert status == 201, made
    assert (made["spec"]["queue"], made["spec"]["maxRetry"]) == ("default", 3)


def test_what_a_flow_overrides_is_not_defaulted(controlplane: ControlPlane, namespace: str) -> None:
    patch = {"jobSpec": {"minAvailable": 2, "tasks": [{"name": "a", "replicas": 4}]}}
    flows = [{"name": "prepare"}, {"name": "train", "patch": patch}]
    status, made = create(controlplane, namespace, "JobFlow", {"flows": flows})
    assert (status, made["spec"]) == (201, {"flows": flows})


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
