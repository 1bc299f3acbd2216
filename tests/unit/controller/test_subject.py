"""Jobs as the controller uses them: what is missing is filled in, and what cannot be used says why."""

from typing import Any

import pytest

from pumice.controller.jobs.subject import UnusableError, min_available, read
from tests.kit.builders import job, task

Raw = dict[str, Any]


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (job(tasks=[]), "spec.tasks is empty"),
        (
            job(tasks=[task("a"), task("b", template={})]),
            r"spec.tasks\[1\].template.spec.containers",
        ),
        (
            job(tasks=[task("a"), task("a")]),
            r"spec.tasks\[1\].name: 'a' is the name of spec.tasks\[0\]",
        ),
        (job(tasks=[task(replicas=None) | {"replicas": "two"}]), "cannot be read"),
        (job(tasks=[task(spec={"containers": ["x"]})]), r"containers\[0\] must be an object"),
        (job(tasks=[task(spec={"initContainers": [1]})]), r"initContainers\[0\] must be an object"),
    ],
)
def test_jobs_that_cannot_be_used_say_why(manifest: Raw, problem: str) -> None:
    with pytest.raises(UnusableError, match=problem):
        read(manifest)


def test_what_admission_fills_in_is_filled_in() -> None:
    subject = read(job(tasks=[task("", 2), task("x", 3, minAvailable=1)]))
    assert [each.name for each in subject.tasks] == ["default0", "x"]
    assert min_available(subject) == 3
    assert min_available(read(job(minAvailable=0))) == 0
