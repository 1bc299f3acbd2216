"""JobFlows and JobTemplates on the embedded API server."""

from typing import Any

from pumice.api import keys
from pumice.api.jobflows import job_name
from pumice.api.kinds import COMMAND, EVENT, JOB, JOB_FLOW, JOB_TEMPLATE
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

Raw = dict[str, Any]

DIAMOND: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


def template(name: str, *, ends: tuple[str, str] = ("5ms", "0"), **spec: Any) -> Raw:
    """A JobTemplate; `ends` says after which time and with which exit code its pod ends."""
    worker = task("worker", 1, annotations={keys.RUN_DURATION: ends[0], keys.EXIT_CODE: ends[1]})
    return {
        "apiVersion": JOB_TEMPLATE.api_version,
        "kind": JOB_TEMPLATE.kind,
        "metadata": {"name": name},
        "spec": job(tasks=[worker], **spec)["spec"],
    }


def job_flow(
    flows: dict[str, list[str]], annotations: dict[str, str] | None = None, **spec: Any
) -> Raw:
    entries = [{"name": name, "dependsOn": {"targets": each}} for name, each in flows.items()]
    return {
        "apiVersion": JOB_FLOW.api_version,
        "kind": JOB_FLOW.kind,
        "metadata": {"name": "f"} | ({"annotations": annotations} if annotations else {}),
        "spec": {"flows": entries} | spec,
    }


def status(stage: ControllerStage) -> Raw:
    found: Raw = stage.find(JOB_FLOW, "f").get("status") or {}
    return found


def phase(stage: ControllerStage) -> str:
    return str((status(stage).get("state") or {}).get("phase", ""))


def made_from(stage: ControllerStage, name: str) -> list[str]:
    found = stage.find(JOB_TEMPLATE, name).get("status") or {}
    return list(found.get("jobDependsOnList") or ())


async def create(stage: ControllerStage, *objects: Raw) -> None:
    kinds = {JOB_FLOW.kind: JOB_FLOW, JOB_TEMPLATE.kind: JOB_TEMPLATE, JOB.kind: JOB}
    for each in objects:
        meta = each["metadata"] | {"namespace": stage.namespace}
        await stage.client.create(kinds[each["kind"]], each | {"metadata": meta}, stage.namespace)


def reasons(stage: ControllerStage) -> list[str]:
    about = [each for each in stage.all(EVENT) if each["involvedObject"]["kind"] == "JobFlow"]
    return [each["reason"] for each in about]


async def test_a_diamond_runs_to_its_end(played: ControllerStage) -> None:
    await create(played, *(template(name) for name in DIAMOND), job_flow(DIAMOND))
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    assert played.names(JOB) == [job_name("f", name) for name in DIAMOND]
    assert status(played)["completedJobs"] == played.names(JOB)
    await played.until(
        lambda: all(made_from(played, name) == [f"f-{name}"] for name in DIAMOND),
        "the lists of the templates",
    )
    await played.until(
        lambda: sorted(reasons(played)) == ["Created"] * 4 + ["Succeed"], "an event each"
    )
    await played.calm()
    assert await played.still()


async def test_jobs_are_deleted_and_not_run_again(played: ControllerStage) -> None:
    await create(played, template("a"), template("b"))
    await create(played, job_flow({"a": [], "b": ["a"]}, jobRetainPolicy="delete"))
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    await played.until(lambda: not played.names(JOB), "the Jobs to go")
    await played.until(lambda: not made_from(played, "a"), "the list of the template to be empty")
    await played.calm()
    assert status(played)["completedJobs"] == ["f-a", "f-b"]
    assert not played.names(JOB)


async def test_a_job_that_goes_at_its_end_is_remembered(played: ControllerStage) -> None:
    flows: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["b"]}
    await create(played, *(template(name, ttlSecondsAfterFinished=0) for name in flows))
    await create(played, job_flow(flows))
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    await played.until(lambda: not played.names(JOB), "the Jobs to go")
    assert status(played)["completedJobs"] == ["f-a", "f-b", "f-c"]
    await played.until(lambda: reasons(played).count("Created") == 3, "events")


async def test_a_failed_job_is_retried_and_then_the_others_are_terminated(
    played: ControllerStage,
) -> None:
    annotations = {keys.FLOW_RETRIES: "2", keys.ON_FAILURE: "stop"}
    bad, long = template("bad", ends=("5ms", "1")), template("long", ends=("1h", "0"))
    await create(played, bad, long, template("next"))
    await create(played, job_flow({"bad": [], "long": [], "next": ["bad"]}, annotations))
    await played.until(lambda: status(played).get("terminatedJobs") == ["f-long"], "the end")
    assert phase(played) == "Failed"
    assert status(played)["failedJobs"] == ["f-bad", "f-bad-retry-1", "f-bad-retry-2"]
    await played.until(lambda: not played.names(COMMAND), "the Command to be carried out")
    await played.until(lambda: reasons(played).count("Created") == 4, "events")
    await played.until(lambda: reasons(played).count("JobFailed") == 4, "events")
    await played.until(lambda: len(made_from(played, "bad")) == 3, "the list of the template")
    await played.until(lambda: made_from(played, "long") == ["f-long"], "the other one")
    await played.calm(1.2)  # counts of Jobs are written once a second
    assert await played.still()
    flow = played.find(JOB_FLOW, "f")
    flow["metadata"]["annotations"][keys.FLOW_RETRIES] = "3"
    played.store.update(flow)
    await played.until(lambda: "f-bad-retry-3" in played.names(JOB), "another retry")


async def test_what_is_missing_is_waited_for(played: ControllerStage) -> None:
    """A template that does not exist, and a name that another Job has; the rest goes on."""
    await create(played, template("a"), template("c"), job("f-c"))
    await create(played, job_flow({"a": [], "b": [], "c": []}))
    await played.until(lambda: status(played).get("completedJobs") == ["f-a"], "f-a to complete")
    found = {name: each["phase"] for name, each in status(played)["conditions"].items()}
    assert found == {"f-a": "Completed", "f-b": "WaitingForTemplate", "f-c": "ForeignJob"}
    await create(played, template("b"))
    await played.client.delete(JOB, "f-c", played.namespace)
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    await played.until(lambda: {"WaitingForTemplate", "ForeignJob"} <= set(reasons(played)))


async def test_a_job_that_is_refused_keeps_no_other_from_being_created(
    played: ControllerStage,
) -> None:
    """The name of the template does not fit into the Job's label, which admission would have said."""
    long = "b" * 60
    await create(played, *(template(name) for name in ("a", long, "c")))
    await create(played, job_flow({long: [], "a": [], "c": ["a"]}))
    await played.until(
        lambda: status(played).get("completedJobs") == ["f-a", "f-c"], "the others to complete"
    )
    assert phase(played) == "Running"
    await played.until(lambda: "FailedCreate" in reasons(played))


async def test_names_of_templates_may_have_dots(played: ControllerStage) -> None:
    """Row JT-4 of the cases: what is before the first dot of the label is the namespace."""
    made, other = job("x"), job("y")
    made["metadata"]["labels"] = {keys.CREATED_BY_JOB_TEMPLATE: f"{played.namespace}.a.b"}
    other["metadata"]["labels"] = {keys.CREATED_BY_JOB_TEMPLATE: "elsewhere.a.b"}
    await create(played, template("a.b"), made, other)
    await played.until(lambda: made_from(played, "a.b") == ["x"], "the list of the template")
    await played.client.delete(JOB, "x", played.namespace)
    await played.until(lambda: not made_from(played, "a.b"), "the list to be empty")


async def test_a_job_flow_that_is_created_again_runs_its_own_jobs(played: ControllerStage) -> None:
    """Row JF-22 of the cases: Jobs of the first JobFlow do not count, and are waited for."""
    await create(played, template("a"), job_flow({"a": []}))
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    old = played.find(JOB, "f-a")
    kept = old | {"metadata": old["metadata"] | {"finalizers": ["example.com/kept"]}}
    played.store.update(kept)
    await played.client.delete(JOB_FLOW, "f", played.namespace)
    await played.until(lambda: not played.names(JOB_FLOW), "the JobFlow to go")
    await create(played, job_flow({"a": []}))
    await played.until(lambda: phase(played) == "Pending")
    await played.calm()
    assert phase(played) == "Pending"
    kept = played.find(JOB, "f-a")
    kept["metadata"].pop("finalizers")
    played.store.update(kept)
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    assert played.find(JOB, "f-a")["metadata"]["uid"] != old["metadata"]["uid"]


async def test_phases_are_counted(cluster: EmbeddedCluster, client: Client) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller() as worker:
        await create(stage, job_flow({}))
        await stage.until(lambda: phase(stage) == "Succeed", "the JobFlow to succeed")
        await stage.calm()
        (metric,) = worker.metrics.job_flows_succeeded.collect()
    assert [(each.labels, each.value) for each in metric.samples] == [
        ({"jobflow_namespace": "default"}, 1.0)
    ]


async def test_without_its_controller_nothing_happens(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller(controllers=frozenset({"job-controller", "gc-controller"})):
        await create(stage, template("a"), job_flow({"a": []}))
        await stage.calm()
    assert not status(stage)
    assert not stage.names(JOB)


async def test_a_flow_that_is_named_twice_ends_nothing(played: ControllerStage) -> None:
    """Admission warns of it and lets it in; the second flow has no Job of its own."""
    twice = job_flow({"a": []})
    twice["spec"]["flows"] *= 2
    await create(played, template("a"), twice)
    await played.until(lambda: phase(played) == "Succeed", "the JobFlow to succeed")
    changed = played.find(JOB_FLOW, "f")
    changed["spec"]["flows"].append({"name": "b"})
    played.store.update(changed)
    await played.calm()
    played.store.delete(JOB_FLOW, "f", played.namespace)
    await create(played, job("later"))
    await played.until(lambda: played.phase("later") == "Running", "another Job to run")
