"""What is planned for JobFlows and JobTemplates, as the case tables have it."""

import json
from typing import Any

import pytest

from pumice.api.jobflows import JOBS
from pumice.api.kinds import COMMAND, JOB, JOB_FLOW, JOB_TEMPLATE
from pumice.controller.jobflows import plan_job_flow, plan_job_template, read
from pumice.controller.jobflows.manifests import merged
from pumice.controller.plan import CreateObject, DeleteObject, PatchStatus, Plan, RecordEvent
from tests.kit.tables import table

Raw = dict[str, Any]

NOW = 1_800_000_000.0
LISTS = (
    "pendingJobs",
    "runningJobs",
    "completedJobs",
    "failedJobs",
    "terminatedJobs",
    "unKnowJobs",
)


def job_flow(
    flows: Any,
    stored: Any = None,
    policy: str = "",
    *,
    leaving: bool = False,
    annotations: Raw | None = None,
) -> Raw:
    if isinstance(flows, dict):
        flows = [
            {"name": name, "dependsOn": {"targets": targets}} for name, targets in flows.items()
        ]
    metadata: Raw = {"name": "f", "namespace": "d", "uid": "own", "resourceVersion": "1"}
    if annotations:
        metadata["annotations"] = {f"pumice.dev/{key}": each for key, each in annotations.items()}
    if leaving:
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    found: Raw = {
        "apiVersion": JOB_FLOW.api_version,
        "kind": JOB_FLOW.kind,
        "metadata": metadata,
        "spec": {"flows": flows} | ({"jobRetainPolicy": policy} if policy else {}),
    }
    if stored:
        found["status"] = {"state": {"phase": stored}} if isinstance(stored, str) else stored
    return found


def a_job(name: str, about: Any) -> Raw:
    about = {"phase": about} if isinstance(about, str) else about
    owner = about.get("owner", {"kind": "JobFlow", "name": "f", "uid": "own"})
    metadata: Raw = {"name": name, "namespace": "d", "uid": f"uid of {name}"}
    metadata["creationTimestamp"] = about.get("created", "2027-01-15T07:00:00Z")
    metadata["ownerReferences"] = [owner | {"controller": True}] if owner else []
    if about.get("leaving"):
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    tasks = [{"name": task, "replicas": size} for task, size in about.get("tasks", {}).items()]
    counts = {task: {"phase": each} for task, each in about.get("counts", {}).items()}
    status = {"state": {"phase": about.get("phase", "")}, "taskStatusCount": counts}
    status |= about.get("status", {})
    return {"metadata": metadata, "spec": {"tasks": tasks}, "status": status}


def of(plan: Plan, kind: type[Any]) -> list[Any]:
    return [step for step in plan.steps if isinstance(step, kind)]


@pytest.mark.parametrize("case", table("controller/job-flows"), ids=lambda case: case["id"])
def test_job_flows(case: Raw) -> None:
    flow = job_flow(
        case["flows"],
        case.get("stored"),
        case.get("policy", ""),
        leaving=case.get("leaving", False),
        annotations=case.get("annotations"),
    )
    jobs = [a_job(name, about) for name, about in case.get("jobs", {}).items()]
    names = {each["name"] for each in flow["spec"]["flows"]} - set(case.get("missing", ()))
    templates: dict[str, Raw] = {name: {"spec": {}} for name in names}
    plan = plan_job_flow(flow, jobs, templates, NOW, case.get("commanded", ()))
    created = of(plan, CreateObject)
    assert [step.name for step in created if step.kind == JOB] == case.get("creates", [])
    commands = [step.manifest for step in created if step.kind == COMMAND]
    assert [each["target"]["name"] for each in commands] == case.get("terminates", [])
    assert {each["action"] for each in commands} <= {"TerminateJob"}
    assert [step.name for step in of(plan, DeleteObject)] == case.get("deletes", [])
    if "changes" in case:
        assert bool(plan) is case["changes"]
    statuses = of(plan, PatchStatus)
    status = statuses[0].status if statuses else flow.get("status", {})
    if "phase" in case:
        assert status["state"]["phase"] == case["phase"]
    if "lists" in case:
        assert {key: status[key] for key in LISTS if key in status} == case["lists"]
    if "conditions" in case:
        found = {name: each.get("phase", "") for name, each in status.get("conditions", {}).items()}
        unnamed = set(case.get("jobs", {})) - set(case["conditions"])
        assert {each: found[each] for each in found if each not in unnamed} == case["conditions"]
    reasons = [step.reason for step in of(plan, RecordEvent)]
    if "events" in case:
        assert reasons == case["events"]
    assert set(case.get("adds", ())) <= set(reasons)
    entries = {each.flow.name: each for each in read(flow, jobs, names).entries}
    for name, reason in case.get("waits", {}).items():
        wait = entries[name].wait
        assert (wait.reason if wait else "") == reason
    for name, message in case.get("messages", {}).items():
        wait = entries[name].wait
        assert message in (wait.message if wait else "")


def test_the_status_is_written_before_jobs_are_created_or_removed() -> None:
    for policy, phase in (("", "Running"), ("delete", "Completed")):
        flow = job_flow({"a": []} if policy else {"a": [], "b": []}, policy=policy)
        plan = plan_job_flow(flow, [a_job("f-a", phase)], {"a": {}, "b": {}}, NOW)
        kinds = [type(step) for step in plan.steps]
        last = DeleteObject if policy else CreateObject
        assert kinds.index(PatchStatus) < kinds.index(RecordEvent) < kinds.index(last)


def test_the_same_picture_again_asks_for_nothing() -> None:
    flow = job_flow({"a": [], "b": ["a"]}, "Running")
    jobs = [a_job("f-a", {"phase": "Running", "tasks": {"t": 1}, "counts": {"t": {"Running": 1}}})]
    (status,) = of(plan_job_flow(flow, jobs, {"a": {}}, NOW), PatchStatus)
    assert not plan_job_flow(flow | {"status": status.status}, jobs, {"a": {}}, NOW + 60)


def test_the_job_of_a_flow() -> None:
    """Row JF-2 of the cases: name, labels, owner and spec."""
    template = {
        "kind": JOB_TEMPLATE.kind,
        "metadata": {"name": "a", "namespace": "d", "labels": {"not": "copied"}},
        "spec": {"queue": "q1", "tasks": [{"name": "t", "replicas": 2}]},
    }
    (step,) = of(plan_job_flow(job_flow({"a": []}), [], {"a": template}, NOW), CreateObject)
    origin = {
        "volcano.sh/createdByJobTemplate": "d.a",
        "volcano.sh/createdByJobFlow": "d.f",
    }
    assert step.kind == JOB
    assert step.manifest["spec"] == template["spec"]
    assert step.manifest["metadata"] == {
        "name": "f-a",
        "namespace": "d",
        "labels": origin,
        "annotations": origin,
        "ownerReferences": [
            {
                "apiVersion": "flow.volcano.sh/v1alpha1",
                "kind": "JobFlow",
                "name": "f",
                "uid": "own",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def test_a_job_is_made_from_the_template_with_its_patch() -> None:
    """Row JF-6 of the cases; and row JT-5, by which later Jobs alone are made from a template that is edited."""
    flow = job_flow([{"name": "a", "patch": {"jobSpec": {"queue": "q2"}}}, {"name": "b"}])
    templates = {"a": {"spec": {"queue": "q1"}}, "b": {"spec": {"queue": "new"}}}
    plan = plan_job_flow(flow, [], templates, NOW)
    queues = {step.name: step.manifest["spec"] for step in of(plan, CreateObject)}
    assert queues == {"f-a": {"queue": "q2"}, "f-b": {"queue": "new"}}
    plan = plan_job_flow(flow, [a_job("f-a", "Running")], templates, NOW)
    assert [step.name for step in of(plan, CreateObject)] == ["f-b"]


def test_the_history_of_a_job() -> None:
    """Row JF-16 of the cases."""
    flow = job_flow({"a": []})
    times = {"Pending": "2027-01-15T07:00:01Z", "Running": "2027-01-15T07:00:02Z"}
    for phase in ("Pending", "Running", "Completed"):
        state = {"phase": phase, "lastTransitionTime": times.get(phase)}
        about: Raw = {"status": {"state": state, "retryCount": 1}}
        if phase == "Completed":
            about["status"]["runningDuration"] = "1m30s"
        (step,) = of(plan_job_flow(flow, [a_job("f-a", about)], {}, NOW), PatchStatus)
        flow["status"] = step.status
    assert flow["status"]["jobStatusList"] == [
        {
            "name": "f-a",
            "state": "Completed",
            "startTimestamp": "2027-01-15T07:00:00Z",
            "endTimestamp": "2027-01-15T07:01:30Z",
            "restartCount": 1,
            "runningHistories": [
                {"startTimestamp": times["Pending"], "endTimestamp": times["Running"]}
                | {"state": "Pending"},
                {"startTimestamp": times["Running"], "endTimestamp": "2027-01-15T08:00:00Z"}
                | {"state": "Running"},
                {"startTimestamp": "2027-01-15T08:00:00Z", "state": "Completed"},
            ],
        }
    ]
    about = {"phase": "Running", "created": "2027-01-15T07:59:00Z"}
    flow["status"].pop("completedJobs")
    (step,) = of(plan_job_flow(flow, [a_job("f-a", about)], {}, NOW), PatchStatus)
    (item,) = step.status["jobStatusList"]
    assert [each["state"] for each in item["runningHistories"]] == ["Running"]


def test_a_job_that_waited_before_it_ran_ended_when_it_completed() -> None:
    state = {"phase": "Completed", "lastTransitionTime": "2027-01-15T07:10:00Z"}
    about = {"status": {"state": state, "runningDuration": "2s"}}
    flow = job_flow({"a": []})
    (step,) = of(plan_job_flow(flow, [a_job("f-a", about)], {}, NOW), PatchStatus)
    assert step.status["jobStatusList"][0]["endTimestamp"] == "2027-01-15T07:10:00Z"


@pytest.mark.parametrize("case", table("controller/job-flow-patches"), ids=lambda case: case["id"])
def test_patches_of_templates(case: Raw) -> None:
    spec, patch = case["spec"], case["patch"]
    assert merged(spec, patch) == case["then"]
    assert merged(merged(spec, patch), patch) == case["then"]


def test_lists_in_a_status_are_bounded() -> None:
    """Of a Job that restarts forever the latest ten phases are kept, of a template with many Jobs the newest 1,000."""
    flow = job_flow({"a": []})
    for number in range(25):
        phase = ("Running", "Restarting")[number % 2]
        state = {"phase": phase, "lastTransitionTime": f"2027-01-15T07:00:{number:02}Z"}
        job = a_job("f-a", {"status": {"state": state}})
        (step,) = of(plan_job_flow(flow, [job], {}, NOW), PatchStatus)
        flow["status"] = step.status
    (known,) = flow["status"]["jobStatusList"]
    begun = [each["startTimestamp"] for each in known["runningHistories"]]
    assert begun == [f"2027-01-15T07:00:{number:02}Z" for number in range(15, 25)]

    jobs = [
        {"metadata": {"name": f"j{number}", "creationTimestamp": f"2027-01-{31 - number // 50:02}"}}
        for number in range(1100)
    ]
    template = {"metadata": {"name": "a", "namespace": "d"}}
    (step,) = of(plan_job_template(template, jobs), PatchStatus)
    assert set(step.status["jobDependsOnList"]) == {f"j{number}" for number in range(1000)}


def test_the_status_of_the_largest_job_flow_fits_into_an_object() -> None:
    """With 1,000 Jobs that have names as long as possible, many tasks, and have restarted again and again."""
    flow = job_flow({f"{number:061}": [] for number in range(JOBS)})
    states = ["Running", "Restarting"] * 6
    for second, phase in enumerate(states):
        state = {"phase": phase, "lastTransitionTime": f"2027-01-15T07:00:{second:02}Z"}
        about: Raw = {"status": {"state": state, "runningDuration": "123h45m56.789s"}}
        about["status"]["taskStatusCount"] = {
            f"{task:063}": {"phase": {"Running": 1000, "Succeeded": 1000}} for task in range(20)
        }
        jobs = [a_job(f"f-{number:061}", about) for number in range(JOBS)]
        (step,) = of(plan_job_flow(flow, jobs, {}, NOW), PatchStatus)
        flow["status"] = step.status
    assert not plan_job_flow(flow, jobs, {}, NOW)
    assert len(json.dumps(flow["status"], separators=(",", ":"))) < 1_000_000
    assert {len(each["runningHistories"]) for each in flow["status"]["jobStatusList"]} == {2}


def test_of_too_many_flows_none_starts() -> None:
    """Admission was not asked: one reason is given for all."""
    flow = job_flow({f"x{number}": [] for number in range(JOBS + 1)})
    templates: dict[str, Raw] = {each["name"]: {"spec": {}} for each in flow["spec"]["flows"]}
    plan = plan_job_flow(flow, [], templates, NOW)
    (status,) = of(plan, PatchStatus)
    assert status.status == {
        "state": {"phase": "Pending"},
        "conditions": {"f-x0": {"phase": "TooManyJobs"}},
    }
    assert [step.reason for step in of(plan, RecordEvent)] == ["TooManyJobs"]
    assert not of(plan, CreateObject)


@pytest.mark.parametrize("case", table("controller/job-templates"), ids=lambda case: case["id"])
def test_job_templates(case: Raw) -> None:
    template = {"metadata": {"name": "a", "namespace": "d"} | case.get("metadata", {})}
    if "stored" in case:
        template["status"] = case["stored"]
    jobs = [{"metadata": {"name": name}} for name in case["jobs"]]
    written = [step.status for step in of(plan_job_template(template, jobs), PatchStatus)]
    assert written == case["writes"]
