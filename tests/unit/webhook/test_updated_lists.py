"""Of two bad items of a list one can go, although the other moves up."""

from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, pod_group, queue
from tests.unit.webhook.reviewing import Raw, answer, merged, request, reraise

STATE = Snapshot.of([queue("default")])
THAWED = AdmissionSettings(rules={"JOB-IMMUTABLE": "off", "JOB-TASK-COUNT": "off"})
ADMISSION = Admission(THAWED, STATE, builtin(), on_crash=reraise)
STRICT = Admission(AdmissionSettings(strict_upstream=True), STATE, builtin(), on_crash=reraise)


def member(pattern: str) -> Raw:
    return {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}


def hyper_node(*items: Any) -> Raw:
    members = [member(each) for each in items]
    return {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}}


def group(*items: Any) -> Raw:
    found = [{"name": each.lower(), "subGroupSize": 0 if each.isupper() else 1} for each in items]
    return pod_group("g", queue="default", subGroupPolicy=found)


def extended(*items: Any) -> Raw:
    return queue("q", extendClusters=[{"name": each, "weight": -1} for each in items])


def flow(*items: Any) -> Raw:
    metadata = {"name": "f", "namespace": "default"}
    return {"metadata": metadata, "spec": {"flows": [{"name": each} for each in items]}}


def of_tasks(*items: Any) -> Raw:
    (task,) = job()["spec"]["tasks"]
    return job(tasks=[task | {"name": each} for each in items])


def cron(*items: Any) -> Raw:
    spec = of_tasks(*items)["spec"]
    metadata = {"name": "c", "namespace": "default"}
    return {
        "metadata": metadata,
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": spec}},
    }


@pytest.mark.parametrize(
    ("path", "made", "good", "bad"),
    [
        ("/hypernodes/validate", hyper_node, "a", ["a(", "b(", "c("]),
        ("/podgroups/validate", group, "a", ["X", "Y", "Z"]),
        ("/queues/validate", extended, "a", ["x", "y", "z"]),
        ("/jobflows/validate", flow, "a", ["X_", "Y_", "Z_"]),
        ("/cronjobs/validate", cron, "a", ["X_", "Y_", "Z_"]),
        ("/jobs/validate", of_tasks, "a", ["X_", "Y_", "Z_"]),
    ],
)
def test_what_an_update_leaves_may_move(path: str, made: Any, good: str, bad: list[str]) -> None:
    first, second, third = bad

    def passes(old: Raw, new: Raw) -> bool:
        allowed: bool = answer(ADMISSION, path, request(path, new, "UPDATE", old))["allowed"]
        return allowed

    stored = made(first, second)
    assert not answer(ADMISSION, path, request(path, stored))["allowed"]
    assert passes(stored, made(second))
    assert passes(stored, made(second, first))
    if made is not extended:  # of which every item of this test is bad
        assert passes(stored, made(good, first, second))
    assert not passes(stored, made(second, third))
    assert not passes(stored, made(third, first, second))


def test_volcano_judges_new_pod_groups_alone() -> None:
    path, stored = "/podgroups/validate", pod_group("g", queue="default")
    changed = merged(stored, {"spec": {"queue": "gone"}})
    asked = request(path, changed, "UPDATE", stored)
    assert not answer(ADMISSION, path, asked)["allowed"]
    response = answer(STRICT, path, asked)
    assert response["allowed"]
    assert response["auditAnnotations"] == {
        "warned": "PG-QUEUE-MISSING",
        "tolerated": "PG-QUEUE-MISSING",
    }
    assert not answer(STRICT, path, request(path, changed))["allowed"]
    named = AdmissionSettings(strict_upstream=True, rules={"PG-QUEUE-MISSING": "enforce"})
    judging = Admission(named, STATE, builtin(), on_crash=reraise)
    assert not answer(judging, path, asked)["allowed"]


def test_a_type_that_was_wrong_before_stands_in_no_plugins_way() -> None:
    path, plugins = "/jobs/mutate", {"task-topology": ["--affinity=[[worker]]"]}
    stored = merged(job(plugins=plugins), {"spec": {"ttlSecondsAfterFinished": "soon"}})
    labelled = merged(stored, {"metadata": {"labels": {"a": "b"}}})
    assert answer(ADMISSION, path, request(path, labelled, "UPDATE", stored))["allowed"]
    assert not answer(ADMISSION, path, request(path, stored))["allowed"]
