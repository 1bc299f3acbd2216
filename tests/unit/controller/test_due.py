"""Commands for a Job: which one counts, and why others are refused."""

from typing import Any

import msgspec
import pytest

from pumice.api.commands import Command, targets
from pumice.api.jobs import Job
from pumice.controller.jobs.due import next_order
from pumice.controller.jobs.subject import read
from tests.kit.builders import job

Raw = dict[str, Any]


def _command(named: str = "c", action: str = "AbortJob", **target: Any) -> Command:
    whole = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"} | target
    return msgspec.convert(
        {
            "metadata": {
                "name": named,
                "uid": f"uid-{named}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "action": action,
            "target": whole,
        },
        Command,
    )


def _job(**status: Any) -> Job:
    return read(job(uid="u1", status=status))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ({}, "train"),
        ({"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1"}, None),
        ({"apiVersion": "batch/v1"}, None),
        ({"name": ""}, None),
    ],
)
def test_only_commands_for_our_jobs_count(target: Raw, name: str | None) -> None:
    assert targets(_command(**target)) == name


def test_commands_are_taken_oldest_first_then_by_name() -> None:
    order = next_order(_job(), [_command("b"), _command("a", "ResumeJob"), _command("c")])
    assert order is not None
    assert (order.command.metadata.name, order.action) == ("a", "ResumeJob")


def test_a_command_for_an_earlier_job_of_the_name_is_refused() -> None:
    order = next_order(_job(), [_command(uid="u0")])
    assert order is not None
    assert order.action == ""
    assert "earlier Job" in order.refusal


def test_a_command_that_was_carried_out_is_only_deleted() -> None:
    order = next_order(_job(controlledResources={"pumice.dev/command": "uid-c"}), [_command()])
    assert order is not None
    assert (order.action, order.refusal) == ("", "")


def test_a_command_with_an_unknown_action_is_refused_with_a_hint() -> None:
    order = next_order(_job(), [_command(action="abortjob")])
    assert order is not None
    assert 'did you mean "AbortJob"' in order.refusal


def test_a_command_cannot_name_a_pod() -> None:
    order = next_order(_job(), [_command(action="RestartPod")])
    assert order is not None
    assert "names none" in order.refusal


def test_commands_for_others_are_not_ours() -> None:
    assert next_order(_job(), [_command(name="other")]) is None
