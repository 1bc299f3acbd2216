"""`check_job_plugin`: a plugin that keeps the contract passes, and each that breaks it fails with the reason."""

from pathlib import Path
from textwrap import dedent, indent

import pytest

from pumice.api.jobs import Job, Task
from pumice.cli.plugins import load
from pumice.controller.worker.caches import OBJECT_KINDS
from pumice.plugins import JobPlugin, PodEdits, Values, builtin
from pumice.testing import check_job_plugin, job_plugin_results
from pumice.testing.contract import KINDS
from tests.unit.testing.broken_plugins import BROKEN, HEAD


@pytest.mark.parametrize(("body", "name", "problem"), BROKEN.values(), ids=list(BROKEN))
def test_a_plugin_that_breaks_the_contract_fails_with_the_reason(
    tmp_path: Path, body: str, name: str, problem: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"{HEAD}{indent(dedent(body), '    ')}\n")
    [plugin] = load(str(file))

    results = job_plugin_results(plugin, examples=20)

    failed = {each.name: each.problem for each in results if each.problem}
    assert problem in failed[name]
    assert set(failed) <= {name, "pure"}


@pytest.mark.parametrize("plugin", builtin().plugins, ids=lambda each: each.name)
def test_the_built_in_plugins_keep_the_contract(plugin: JobPlugin) -> None:
    check_job_plugin(type(plugin), examples=15)


class Labels(JobPlugin):
    """A plugin whose class cannot be called without arguments."""

    name = "labels"
    summary = "Labels all pods."

    def __init__(self, key: str) -> None:
        self.key = key

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        return PodEdits(labels={self.key: "yes"})


def test_a_plugin_may_be_given_as_an_object() -> None:
    check_job_plugin(Labels("example.com/mine"), examples=10)


def test_the_error_lists_what_is_broken_with_the_smallest_job() -> None:
    with pytest.raises(AssertionError) as raised:
        check_job_plugin(Labels("a key"), examples=10)

    first, second, third, *rest = str(raised.value).splitlines()
    assert first == "the job plugin breaks its contract"
    assert second == "  edits: asks for nothing that a pod cannot have"
    assert third.startswith('    the edits of pod worker-0: label "a key": ')
    assert [each.strip() for each in rest[:3]] == [
        "The smallest example found:",
        "apiVersion: batch.volcano.sh/v1alpha1",
        "kind: Job",
    ]


def test_a_class_that_cannot_be_called_is_reported() -> None:
    [only] = job_plugin_results(Labels)
    assert only.name == "declared"
    assert only.problem.startswith("cannot be made: TypeError(")


def test_the_kinds_are_those_that_the_controller_watches() -> None:
    assert set(KINDS) == set(OBJECT_KINDS)
