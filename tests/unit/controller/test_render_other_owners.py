"""Everything that plugins make of another controller's object, without a cluster."""

import pytest

from pumice.api.kinds import INDEXED_JOB
from pumice.controller.render import render_owner
from pumice.plugins import Raw, builtin
from tests.unit.plugins.test_other_owners import manifest

SHAPE: Raw = {"kind": "Job", "name": "train", "completions": 2, "plugins": "env"}


def pods(shape: Raw) -> list[Raw]:
    made = render_owner(INDEXED_JOB, manifest(shape), builtin())
    return [each for each in made if each["kind"] == "Pod"]


def test_pods_are_wired() -> None:
    for index, pod in enumerate(pods(SHAPE)):
        assert pod["metadata"]["annotations"]["pumice.dev/wired"] == "env"
        assert [each["value"] for each in pod["spec"]["containers"][0]["env"]] == [str(index)] * 2


@pytest.mark.parametrize("marker", ["env", "svc,env"])
def test_pods_of_a_marked_template_stay_as_admission_leaves_them(marker: str) -> None:
    for pod in pods(SHAPE | {"wired": marker}):
        assert pod["metadata"]["annotations"]["pumice.dev/wired"] == marker
        assert "env" not in pod["spec"]["containers"][0]
