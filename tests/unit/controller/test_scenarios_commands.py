"""Commands: something is ordered, the controller looks, this is how it stands."""

import pytest

from pumice.api.kinds import COMMAND, POD, POD_GROUP, SERVICE
from tests.unit.controller.scenes import running, words


def test_abort_and_resume() -> None:
    world = running(plugins={"svc": []})
    world.succeed("train-worker-0")
    world.command("AbortJob", message="tired of it")
    world.settle()
    assert world.phase == "Aborted"
    assert world.reason == ("AbortJob", "Command train-abortjob: tired of it")
    assert (world.names(POD), world.names(POD_GROUP), world.names(SERVICE)) == (
        ["train-worker-0"],
        [],
        [],
    )
    assert world.names(COMMAND) == []
    assert words(world)[-2:] == ["CommandIssued", "Aborted"]

    assert "runningDuration" in world.status
    world.command("ResumeJob")
    world.settle()
    assert world.phase == "Pending"
    assert "retryCount" not in world.status
    assert "runningDuration" not in world.status
    assert world.names(POD) == ["train-worker-0"]
    assert world.names(SERVICE) == ["train"]
    world.admit()
    world.settle()
    world.run()
    world.settle()
    assert (world.phase, world.status["succeeded"], world.status["running"]) == ("Running", 1, 1)


@pytest.mark.parametrize(
    ("action", "phase"), [("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_ends_by_command(action: str, phase: str) -> None:
    world = running()
    world.command(action)
    world.settle()
    assert (world.phase, world.names(POD)) == (phase, [])
    assert world.reason == (action, f"Command train-{action.lower()}")


def test_an_intention_is_written_before_anything_is_removed() -> None:
    world = running()
    world.command("AbortJob")
    first = world.look()
    assert [type(step).__name__ for step in first.steps] == [
        "PatchStatus",
        "RecordEvent",
        "DeleteObject",
    ]
    assert (world.phase, world.names(COMMAND), len(world.pods)) == ("Aborting", [], 2)


def test_commands_are_carried_out_one_after_the_other() -> None:
    world = running()
    world.command("AbortJob", "first")
    world.command("ResumeJob", "second")
    world.settle()
    assert world.phase == "Pending"
    assert world.status["version"] == 2


def test_a_command_without_effect_is_reported_and_deleted() -> None:
    world = running()
    world.command("ResumeJob")
    world.settle()
    assert (world.phase, world.names(COMMAND)) == ("Running", [])
    assert "no effect" in world.events[-1].message


def test_a_command_that_is_refused_is_reported_and_deleted() -> None:
    world = running()
    world.command("Explode")
    world.settle()
    assert world.names(COMMAND) == []
    assert (world.events[-1].type, world.events[-1].reason) == ("Warning", "CommandRefused")


def test_an_abort_during_a_restart_is_obeyed() -> None:
    """XAC-10 of the state machine: Volcano forgets it."""
    world = running()
    world.command("RestartJob")
    world.look()
    assert world.phase == "Restarting"
    world.command("AbortJob")
    world.settle()
    assert world.phase == "Aborted"
    assert "pumice.dev/restart" not in world.status["controlledResources"]


def test_commands_of_one_second_go_by_resource_version() -> None:
    """As numbers: version 10 is younger than version 9. Their names say the opposite."""
    world = running()
    world.command("AbortJob", "z-first")["metadata"]["resourceVersion"] = "999"
    world.command("ResumeJob", "a-second")["metadata"]["resourceVersion"] = "1000"
    world.settle()
    assert world.phase == "Pending"
    assert "no effect" not in " ".join(event.message for event in world.events)


def test_an_older_command_goes_first_whatever_its_resource_version() -> None:
    world = running()
    world.command("ResumeJob", "second")["metadata"]["resourceVersion"] = "1"
    world.now += 5
    world.command("AbortJob", "first")
    earlier, later = (world.objects[COMMAND, name] for name in ("second", "first"))
    earlier["metadata"]["creationTimestamp"], later["metadata"]["creationTimestamp"] = (
        later["metadata"]["creationTimestamp"],
        earlier["metadata"]["creationTimestamp"],
    )
    world.settle()
    assert world.phase == "Pending"


def test_a_command_older_than_its_job_is_refused_and_deleted() -> None:
    """It was meant for an earlier Job of the name."""
    world = running()
    made = world.command("AbortJob", target={"uid": ""})
    made["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    world.settle()
    assert (world.phase, world.names(COMMAND)) == ("Running", [])
    assert world.events[-1].reason == "CommandRefused"
    assert world.events[-1].message == (
        "Command train-abortjob is refused: it is older than Job train"
    )
