"""Passes that are left out for Jobs to which nothing happens, and pods that are made after the first one of their task: a run is the same without either."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import PodPriorities, PriorityClass
from pumice.api.pods import Pod
from pumice.controller.jobs.job_group import wanted
from pumice.controller.jobs.pods import build
from pumice.controller.jobs.subject import read
from pumice.traces import submission
from pumice.traces.controlled_job import ControlledJob
from pumice.traces.plain_jobs import first_of, group_of, is_plain, replica
from pumice.traces.plan_execution import PlanExecution
from pumice.traces.records import Past
from pumice.traces.trace import TraceJob
from tests.kit.builders import job as manifest_of
from tests.kit.builders import queue, task
from tests.kit.examples import examples
from tests.kit.traces import cluster_of, ran, trace_job


def drawn(seed: int) -> list[TraceJob]:
    """Jobs of two queues and three priorities: some fail, some start with a part of their pods, some restart what fails, some have partitions, some need fewer pods to succeed."""
    draw = Random(seed)
    jobs = []
    for number in range(20):
        replicas = draw.randint(1, 6)
        policies = draw.choice(([], [], [{"event": "PodEvicted", "action": "RestartJob"}]))
        fields: dict[str, Any] = {
            "replicas": replicas,
            "min": draw.randint(1, replicas),
            "priority": draw.choice((0, 0, 10, 100)),
            "queue": draw.choice(("a", "b")),
            "fails": draw.random() < 0.2,
        }
        main = task("main", replicas, cpu="1")
        if partitions := replicas > 1 and draw.random() < 0.2:
            main["partitionPolicy"] = {
                "totalPartitions": replicas,
                "partitionSize": 1,
                "minPartitions": 2,
            }
        spec = manifest_of("", [main], policies=policies)["spec"]
        given = {"spec": spec | {"minAvailable": fields["min"], "queue": fields["queue"]}}
        if succeed := draw.random() < 0.2:
            given["spec"]["minSuccess"] = draw.randint(1, replicas)
        if policies or partitions or succeed:
            fields["manifest"] = given
        submit = draw.choice((draw.randrange(60), draw.random() * 60))
        jobs.append(trace_job(f"job-{number}", submit, draw.random() * 30, **fields))
    return jobs


def run_of(jobs: list[TraceJob]) -> Past:
    return ran(jobs, cluster_of(4, 3, 2, queues=[queue("a"), queue("b")]))


@examples(4)
@given(st.integers(0, 10**6))
def test_a_run_is_as_with_all_passes(seed: int) -> None:
    jobs = drawn(seed)
    found = run_of(jobs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission, "is_plain", lambda _: False)
        expected = run_of(jobs)
    assert msgspec.to_builtins(found.jobs) == msgspec.to_builtins(expected.jobs)
    assert found.samples == expected.samples
    assert found.cycles == expected.cycles


def test_pods_and_podgroups_are_as_if_each_was_built() -> None:
    template = {"labels": {"a": "b"}, "annotations": {keys.TASK_INDEX: "of a user"}}
    worker = task("w", 3, cpu="1")
    worker["template"] |= {"metadata": template}
    jobs = [
        manifest_of(name, [task("v", 2), worker], priorityClassName="high")
        for name in ("one", "other")
    ]
    metas = [each["metadata"] | {"uid": f"uid of {each['metadata']['name']}"} for each in jobs]
    one, other = (read(job | {"metadata": meta}) for job, meta in zip(jobs, metas, strict=True))
    classes = [PriorityClass(metadata=ObjectMeta(name="high"), value=7)]
    execution = PlanExecution(lambda pod: pod, PodPriorities(classes))

    def built(job: Job, each: Task, index: int, now: float) -> Pod:
        owner = ControlledJob(msgspec.to_builtins(job), {})
        return execution.created(build(job, each, index, lambda *given: given[2]), owner, now)

    for each in one.tasks:
        first = built(one, each, 0, 1e9)
        for index in range(1, each.size):
            assert replica(first, metas[0], each, index) == built(one, each, index, 1e9)
        assert first_of(first, metas[1], each, 2e9) == built(other, each, 0, 2e9)
    assert group_of(wanted(one, {}), metas[1]) == wanted(other, {})


def kinds() -> Iterator[tuple[str, bool, Job]]:
    """What a Job has, and whether it is plain."""
    two = task("w", 2)
    after = task("v", 1) | {"dependsOn": {"name": ["w"]}}
    failed = {"event": "PodFailed", "action": "RestartJob"}
    for what, plain, tasks, fields in (
        ("nothing", True, [two], {}),
        ("a minimum", True, [two, task("v", 1)], {"minAvailable": 1}),
        ("no pods", False, [task("w", 0)], {}),
        ("more pods that must run than it has", False, [two], {"minAvailable": 3}),
        ("more pods that must succeed than it has", False, [two], {"minSuccess": 3}),
        ("a policy", False, [two], {"policies": [failed]}),
        ("a policy of a task", False, [two | {"policies": [failed]}], {}),
        ("a plugin", False, [two], {"plugins": {"env": []}}),
        ("a volume", False, [two], {"volumes": [{"mountPath": "/a", "volumeClaimName": "a"}]}),
        ("a task that waits for another", False, [two, after], {}),
    ):
        yield what, plain, read(manifest_of("a", tasks, **fields))


@pytest.mark.parametrize(("what", "plain", "job"), list(kinds()), ids=lambda each: str(each)[:40])
def test_what_a_job_may_have_and_be_plain(what: str, plain: bool, job: Job) -> None:
    assert is_plain(job) is plain, what
