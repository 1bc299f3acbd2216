"""Annotations that fit into a Job, and what is made of it: the limit is Kubernetes' 256 KiB an object."""

from typing import Any

import pytest

from pumice.controller.render import render
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import builders

LIMIT = 256 * 1024
ROOM = 2048
ZONE = "volcano.sh/revocable-zone"
CODE = "JOB-ANNOTATIONS"
OF_TASK = "spec.tasks[0].template.metadata.annotations"
Raw = dict[str, Any]


def errors_of(job: Raw, *assignments: str) -> list[tuple[str, str]]:
    state = [builders.queue("default")]
    settings = AdmissionSettings.from_assignments(assignments)
    found = judge(Admission(settings, Snapshot.of(state), builtin()), job)
    return [(each.code, each.path) for each in found.errors]


def job_with(own: Raw, of_template: Raw) -> Raw:
    return builders.job("train", [builders.task(annotations=of_template)], annotations=own)


@pytest.mark.parametrize(
    ("own", "of_template", "path"),
    [
        pytest.param({}, {"a": LIMIT - ROOM - 1}, "", id="room-is-left"),
        pytest.param({}, {"a": LIMIT - ROOM}, OF_TASK, id="no-room-in-pods"),
        pytest.param({"z": 200_000}, {"a": 200_000}, "", id="not-handed-on"),
        pytest.param({ZONE: 200_000}, {"a": 62_000}, OF_TASK, id="copied"),
        pytest.param({ZONE: 200_000}, {ZONE: 200_000}, "", id="replaced"),
        pytest.param({ZONE: LIMIT - ROOM}, {}, OF_TASK, id="copied-alone"),
        pytest.param({"z": LIMIT - 87}, {}, "", id="room-in-group"),
        pytest.param({"z": LIMIT - 86}, {}, "metadata.annotations", id="no-room-in-group"),
    ],
)
def test_what_is_handed_on_is_added_up(own: Raw, of_template: Raw, path: str) -> None:
    job = job_with(
        {key: "v" * size for key, size in own.items()},
        {key: "v" * size for key, size in of_template.items()},
    )

    assert errors_of(job) == ([(CODE, path)] if path else [])
    assert errors_of(job, "strict-upstream=true") == []


def test_bytes_are_counted_and_not_characters() -> None:
    assert errors_of(job_with({}, {"a": "é" * (LIMIT // 2 - ROOM)})) == []
    assert errors_of(job_with({}, {"a": "é" * (LIMIT // 2 - 1000)})) != []


def test_a_template_that_is_too_large_by_itself_is_reported_once() -> None:
    assert [code for code, _ in errors_of(job_with({}, {"a": "v" * LIMIT}))] == ["TPL-ANNOTATION"]


def test_kubectls_copy_of_the_job_goes_nowhere() -> None:
    last = "kubectl.kubernetes.io/last-applied-configuration"
    assert errors_of(job_with({last: "v" * (LIMIT - len(last))}, {})) == []


def test_all_that_is_added_finds_room() -> None:
    """With the longest names that there can be, and numbers of ten digits."""
    name, task = "j" * 29, "t" * 30
    annotations = {"pumice.dev/restart-on-scaling": "true", "volcano.sh/preemptable": "true"}
    tasks = [
        builders.task(task, 1, topologyPolicy="single-numa-node"),
        *(builders.task(each) for each in ("master", "head", "scheduler")),
    ]
    job = builders.job(
        name,
        tasks,
        namespace="n" * 63,
        annotations=annotations,
        plugins={each.name: [] for each in builtin().plugins},
        status={"version": 2**31 - 1, "retryCount": 2**31 - 1},
        queue="q" * 63,
    )

    made = render(job, builtin())

    def added(kind: str, given: Raw) -> int:
        sizes = (
            sum(len(key) + len(text) for key, text in each["metadata"]["annotations"].items())
            for each in made
            if each["kind"] == kind
        )
        return max(sizes) - sum(len(key) + len(text) for key, text in given.items())

    assert added("Pod", {}) < ROOM * 0.6
    assert added("PodGroup", annotations) < 84 + sum(len(key) + 1 for key in annotations)
