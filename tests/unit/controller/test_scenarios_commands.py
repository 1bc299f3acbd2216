"""Commands: something is ordered, the controller looks, this is how it stands."""

import pytest

from pumice.api.kinds import COMMAND, POD, POD_GROUP, SERVICE
from tests.unit.controller.job_scenarios import running, words


def test_abort_and_resume() -> None:
    cluster = running(plugins={"svc": []})
    cluster.succeed("train-worker-0")
    cluster.command("AbortJob", message="tired of it")
    cluster.settle()
    assert cluster.phase == "Aborted"
    assert cluster.reason == ("AbortJob", "requested by a Command: tired of it")
    assert (cluster.names(POD), cluster.names(POD_GROUP), cluster.names(SERVICE)) == (
        ["train-worker-0"],
        [],
        [],
    )
    assert cluster.names(COMMAND) == []
    assert words(cluster)[-2:] == ["CommandIssued", "Aborted"]

    assert "runningDuration" in cluster.status
    cluster.command("ResumeJob")
    cluster.settle()
    assert cluster.phase == "Pending"
    assert "retryCount" not in cluster.status
    assert "runningDuration" not in cluster.status
    assert cluster.names(POD) == ["train-worker-0"]
    assert cluster.names(SERVICE) == ["train"]
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    assert (cluster.phase, cluster.status["succeeded"], cluster.status["running"]) == (
        "Running",
        1,
        1,
    )


@pytest.mark.parametrize(
    ("action", "phase"), [("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_ends_by_command(action: str, phase: str) -> None:
    cluster = running()
    cluster.command(action)
    cluster.settle()
    assert (cluster.phase, cluster.names(POD)) == (phase, [])
    assert cluster.reason == (action, "requested by a Command")


def test_an_intention_is_written_before_anything_is_removed() -> None:
    cluster = running()
    cluster.command("AbortJob")
    first = cluster.look()
    assert [type(step).__name__ for step in first.steps] == [
        "PatchStatus",
        "RecordEvent",
        "DeleteObject",
    ]
    assert (cluster.phase, cluster.names(COMMAND), len(cluster.pods)) == ("Aborting", [], 2)


def test_commands_are_carried_out_one_after_the_other() -> None:
    cluster = running()
    cluster.command("AbortJob", "first")
    cluster.command("ResumeJob", "second")
    cluster.settle()
    assert cluster.phase == "Pending"
    assert cluster.status["version"] == 2


def test_a_command_without_effect_is_reported_and_deleted() -> None:
    cluster = running()
    cluster.command("ResumeJob")
    cluster.settle()
    assert (cluster.phase, cluster.names(COMMAND)) == ("Running", [])
    assert "no effect" in cluster.events[-1].message


def test_a_command_that_is_refused_is_reported_and_deleted() -> None:
    cluster = running()
    cluster.command("Explode")
    cluster.settle()
    assert cluster.names(COMMAND) == []
    assert (cluster.events[-1].type, cluster.events[-1].reason) == ("Warning", "CommandRefused")


def test_an_abort_during_a_restart_is_obeyed() -> None:
    """XAC-10 of the state machine: Volcano forgets it."""
    cluster = running()
    cluster.command("RestartJob")
    cluster.look()
    assert cluster.phase == "Restarting"
    cluster.command("AbortJob")
    cluster.settle()
    assert cluster.phase == "Aborted"
    assert "pumice.dev/restart" not in cluster.status["controlledResources"]


def test_commands_of_one_second_go_by_resource_version() -> None:
    """As numbers: version 10 is younger than version 9. Their names say the opposite."""
    cluster = running()
    cluster.command("AbortJob", "z-first")["metadata"]["resourceVersion"] = "999"
    cluster.command("ResumeJob", "a-second")["metadata"]["resourceVersion"] = "1000"
    cluster.settle()
    assert cluster.phase == "Pending"
    assert "no effect" not in " ".join(event.message for event in cluster.events)


def test_an_older_command_goes_first_whatever_its_resource_version() -> None:
    cluster = running()
    cluster.command("ResumeJob", "second")["metadata"]["resourceVersion"] = "1"
    cluster.now += 5
    cluster.command("AbortJob", "first")
    earlier, later = (cluster.objects[COMMAND, name] for name in ("second", "first"))
    earlier["metadata"]["creationTimestamp"], later["metadata"]["creationTimestamp"] = (
        later["metadata"]["creationTimestamp"],
        earlier["metadata"]["creationTimestamp"],
    )
    cluster.settle()
    assert cluster.phase == "Pending"


def test_a_command_older_than_its_job_is_refused_and_deleted() -> None:
    """It was meant for an earlier Job of the name."""
    cluster = running()
    made = cluster.command("AbortJob", target={"uid": ""})
    made["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    cluster.settle()
    assert (cluster.phase, cluster.names(COMMAND)) == ("Running", [])
    assert cluster.events[-1].reason == "CommandRefused"
    assert cluster.events[-1].message == (
        "Command train-abortjob is refused: it is older than Job train"
    )
