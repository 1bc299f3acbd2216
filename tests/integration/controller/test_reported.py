"""Inputs in which something once went wrong, played with the controller (`tests/cases/reported.yaml`)."""

from typing import Any

from pumice.api.kinds import JOB, JOB_FLOW, JOB_TEMPLATE, POD
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job
from tests.kit.tables import CASES, documents

Raw = dict[str, Any]

KINDS = {kind.kind: kind for kind in (JOB, JOB_FLOW, JOB_TEMPLATE)}


async def _apply(stage: ControllerStage, file: str) -> None:
    """Create the objects of an input in the namespace of the stage."""
    for each in documents((CASES / "reported" / file).read_text(encoding="utf-8")):
        each["metadata"]["namespace"] = stage.namespace
        await stage.client.create(KINDS[each["kind"]], each, stage.namespace)


async def test_a_job_restarts_as_a_whole_once_its_pod_has_not_run_for_too_long(
    played: ControllerStage,
) -> None:
    """A pod that fails again and again is restarted after growing pauses; at last they are longer than the policy allows."""
    await _apply(played, "graded-restart.yaml")
    await played.until(lambda: "g-ok-0" in played.names(POD), "the pods")
    uid = played.find(POD, "g-ok-0")["metadata"]["uid"]

    def is_another() -> bool:
        return bool(pod := played.find(POD, "g-ok-0")) and pod["metadata"]["uid"] != uid

    await played.until(is_another, "the pod that never failed to be made again")
    assert played.status("retryCount", "g") >= 1


async def test_a_flow_that_is_named_twice_ends_nothing(played: ControllerStage) -> None:
    await _apply(played, "jobflow-duplicate.yaml")
    await played.until(lambda: played.phase("dup-a") == "Running", "the Job of the flow to run")
    await played.client.delete(JOB_FLOW, "dup", played.namespace)
    await played.submit(job("later"))
    await played.until(lambda: played.phase("later") == "Running", "a later Job to run")
