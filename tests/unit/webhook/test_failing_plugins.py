"""A plugin of somebody else that fails: the review names it and goes on, and the server stays."""

from typing import Any

import pytest

from pumice.plugins import JobPlugin, builtin
from pumice.webhook.admission import Admission, RuleFailure
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, queue
from tests.unit.webhook.reviewing import answer, request

NAMED = 'plugin "mine" of pumice-mine (mine:Mine) failed with '
ERRORS = [RuntimeError("boom"), SystemExit(3)]


def refusal(method: str, error: BaseException, path: str) -> str:
    """What a user reads of a Job whose plugin raises."""

    def fail(*_: object) -> Any:
        raise error

    members = {"name": "mine", "summary": "Breaks.", method: fail}
    plugin: JobPlugin = type("Mine", (JobPlugin,), members)()
    registry = builtin().with_plugin(plugin, "pumice-mine (mine:Mine)")
    crashes: list[RuleFailure] = []
    state = Snapshot.of([queue("default")])
    judging = Admission(AdmissionSettings(), state, registry, on_crash=crashes.append)
    response = answer(judging, path, request(path, job(plugins={"mine": []})))
    assert not response["allowed"]
    assert crashes == []  # nothing of Pumice's has failed
    return str(response["status"]["message"])


@pytest.mark.parametrize("error", ERRORS, ids=["raises", "exits"])
def test_its_check_refuses_the_job_by_name(error: BaseException) -> None:
    message = refusal("check", error, "/jobs/validate")
    assert f"spec.plugins.mine: {NAMED}{type(error).__name__}" in message
    assert "[JOB-PLUGIN]" in message
    assert "defect of Pumice" not in message


@pytest.mark.parametrize("error", ERRORS, ids=["raises", "exits"])
def test_its_annotations_refuse_the_job_by_name(error: BaseException) -> None:
    message = refusal("job_annotations", error, "/jobs/mutate")
    assert f"spec.plugins: {NAMED}{type(error).__name__}" in message
