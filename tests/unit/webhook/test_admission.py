"""The core: what it does with what is no ordinary review."""

import json
from typing import Any

import msgspec
import pytest

from pumice.api import kinds, reviews
from pumice.api.queues import Queue
from pumice.api.reviews import GroupVersionResource
from pumice.plugins import builtin
from pumice.webhook.admission import Admission, RuleFailure
from pumice.webhook.answers import responded
from pumice.webhook.endpoints import ENDPOINTS
from pumice.webhook.questions import Question
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules.rule import RuleSettings
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import job, queue
from tests.unit.webhook.reviewing import UID, answer, merged, operations, request, review

STATE = Snapshot.of([queue("default"), queue("team")])


def admission(view: Snapshot = STATE, **options: Any) -> Admission:
    return Admission(AdmissionSettings(), view, builtin(), **options)


def question(path: str, obj: Any, operation: str = "CREATE") -> Question[msgspec.Raw | None]:
    kind = next(each.kind for each in REGISTRATIONS if each.path == path)
    return Question(
        uid=UID,
        name=obj["metadata"]["name"],
        resource=GroupVersionResource(group=kind.group, version=kind.version, resource=kind.plural),
        operation=operation,
        object=msgspec.Raw(json.dumps(obj).encode()),
    )


def test_it_answers_on_every_registered_path() -> None:
    assert list(ENDPOINTS) == [each.path for each in REGISTRATIONS]


def test_a_request_and_a_review_are_answered_alike() -> None:
    for path, obj in (
        ("/jobs/mutate", job(plugins={"task-topology": ["--affinity=[[worker]]"]})),
        ("/jobs/validate", job(queue="gone")),
        ("/jobs/validate", merged(job(), {"spec": {"tasks": 5}})),
    ):
        asked = question(path, obj)
        kind = kinds.of_object(obj)
        assert kind is not None
        response = responded(kind, asked.name, admission().judge(path, asked))
        assert json.loads(reviews.encode(UID, response))["response"] == answer(
            admission(), path, request(path, obj)
        )


def test_an_unknown_path_is_said_with_the_known_ones() -> None:
    found = admission().answer("/jobs", review(request("/jobs/mutate", job())))
    assert found.malformed == 404
    assert json.loads(found.body)["response"]["uid"] == UID
    assert "/jobs/mutate" in found.body.decode()


def test_what_a_server_wants_to_know_comes_with_the_answer() -> None:
    found = admission().answer(
        "/jobs/validate", review(request("/jobs/validate", job(queue="gone")))
    )
    assert (found.outcome, found.question.operation, found.question.uid) == (
        "denied",
        "CREATE",
        UID,
    )
    assert (found.codes, found.missing_queues) == (("JOB-QUEUE-MISSING",), ("gone",))
    assert (found.status, found.malformed) == (422, 0)
    patching = admission().answer("/jobs/mutate", review(request("/jobs/mutate", job())))
    assert (patching.outcome, patching.status) == ("patched", 200)


def test_another_view_can_be_looked_at_for_once() -> None:
    asked = review(request("/jobs/validate", job(queue="gone")))
    other = Snapshot.of([queue("gone")])
    assert admission().answer("/jobs/validate", asked, other).outcome == "allowed"


class Failing(Snapshot):
    """A view in which a look for a queue fails."""

    def queue(self, name: str) -> Queue | None:
        raise ZeroDivisionError(name)


def test_a_rule_that_raises_refuses_and_hides_no_other() -> None:
    crashes: list[RuleFailure] = []
    judging = admission(Failing(), on_crash=crashes.append)
    for _ in range(3):
        response = answer(
            judging, "/jobs/validate", request("/jobs/validate", job(plugins={"nope": []}))
        )
        message = response["status"]["message"]
        assert "[JOB-PLUGIN]" in message
        assert f"review {UID} [JOB-QUEUE-MISSING]" in message
    assert [(each.code, each.path, each.uid) for each in crashes] == 3 * [
        ("JOB-QUEUE-MISSING", "/jobs/validate", UID)
    ]


def test_a_rule_that_raises_is_reported_beside_a_field_of_a_wrong_type() -> None:
    crashes: list[RuleFailure] = []
    judging = admission(Failing(), on_crash=crashes.append)
    for bad in ({"maxRetry": "3"}, {"maxRetry": "three"}, {"plugins": 5}):
        response = answer(judging, "/jobs/validate", request("/jobs/validate", job(**bad)))
        assert f"review {UID} [JOB-QUEUE-MISSING]" in response["status"]["message"]
    assert [each.code for each in crashes] == 3 * ["JOB-QUEUE-MISSING"]


def test_an_endpoint_that_raises_outside_a_rule_refuses_too() -> None:
    class Lost(Snapshot):
        def namespace(self, name: str) -> None:
            raise LookupError(name)

    crashes: list[RuleFailure] = []
    asked = request("/podgroups/mutate", {"metadata": {"namespace": "a"}, "spec": {}})
    response = answer(admission(Lost(), on_crash=crashes.append), "/podgroups/mutate", asked)
    assert "[PODGROUPS-MUTATE]" in response["status"]["message"]
    assert len(crashes) == 1


class Unsearchable(tuple[str, ...]):
    """Names in which nobody can look."""

    def __contains__(self, name: object) -> bool:
        raise LookupError(name)


@pytest.mark.parametrize("spec", [{}, {"nodeName": 5}])
def test_an_endpoint_that_raises_refuses_what_has_a_field_of_a_wrong_type_too(
    spec: dict[str, Any],
) -> None:
    crashes: list[RuleFailure] = []
    settings = RuleSettings(scheduler_names=Unsearchable(["volcano"]))
    judging = Admission(settings, STATE, builtin(), on_crash=crashes.append)
    asked = request("/pods/validate", {"metadata": {"name": "p"}, "spec": spec})
    response = answer(judging, "/pods/validate", asked)
    assert "[PODS-VALIDATE]" in response["status"]["message"]
    assert [each.code for each in crashes] == ["PODS-VALIDATE"]


def test_all_fields_of_a_wrong_type_are_reported_with_what_else_is_wrong() -> None:
    bad = job(
        tasks=[{"name": "a", "replicas": "2", "template": {"spec": {"containers": []}}}],
        queue="gone",
        maxRetry=[],
        minAvailable=7,
        policies=[{"event": "PodFaild", "action": "RestartJob"}, 5],
    )
    response = answer(admission(), "/jobs/validate", request("/jobs/validate", bad))
    causes = response["status"]["details"]["causes"]
    found = {(each["field"], each["reason"]) for each in causes}
    assert len(found) == len(causes)
    assert found == {
        ("spec.maxRetry", "FieldValueTypeInvalid"),
        ("spec.policies[1]", "FieldValueTypeInvalid"),
        ("spec.tasks[0].replicas", "FieldValueTypeInvalid"),
        ("spec.policies[0].event", "FieldValueNotSupported"),
        ("spec.tasks[0].template.spec.containers", "FieldValueRequired"),
        ("spec.queue", "FieldValueNotFound"),
    }


def test_a_type_that_was_wrong_before_does_not_matter() -> None:
    old = job(maxRetry="3")
    labelled = merged(old, {"metadata": {"labels": {"a": "b"}}})
    for path in ("/jobs/mutate", "/jobs/validate"):
        response = answer(admission(), path, request(path, labelled, "UPDATE", old))
        assert response["allowed"]
        assert operations(response) == []
    worse = merged(old, {"spec": {"minAvailable": "1"}})
    response = answer(
        admission(), "/jobs/validate", request("/jobs/validate", worse, "UPDATE", old)
    )
    assert [each["field"] for each in response["status"]["details"]["causes"]] == [
        "spec.minAvailable"
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("maxRetry", "3"),
        ("volumes", "x"),
        ("queue", 5),
        ("plugins", []),
        ("tasks", {}),
        ("ttlSecondsAfterFinished", 1.5),
    ],
)
def test_a_type_that_an_update_makes_wrong_is_refused(field: str, value: Any) -> None:
    good = job()
    wrong = merged(good, {"spec": {field: value}})
    response = answer(
        admission(), "/jobs/validate", request("/jobs/validate", wrong, "UPDATE", good)
    )
    assert not response["allowed"]
    assert [each["field"] for each in response["status"]["details"]["causes"]] == [f"spec.{field}"]
    # Where it was so before, nobody is kept from changing something else.
    other = merged(wrong, {"spec": {"minSuccess": 1}})
    asked = request("/jobs/validate", other, "UPDATE", wrong)
    assert answer(admission(), "/jobs/validate", asked)["allowed"]


@pytest.mark.parametrize("path", ["/jobs/mutate", "/jobs/validate"])
def test_what_is_being_deleted_may_change_although_what_is_stored_cannot_be_read(path: str) -> None:
    stored = merged(job(), {"spec": {"queue": 5, "tasks": 5}, "metadata": {"finalizers": ["a/b"]}})
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    asked = request(path, {"metadata": {"name": "x", **going}, "spec": {}}, "UPDATE", stored)
    response = answer(admission(), path, asked)
    assert response["allowed"]
    assert operations(response) == []
    asked["object"]["metadata"] = {"name": "x"}
    assert answer(admission(), path, asked)["allowed"] is path.endswith("mutate")


def test_nulls_count_as_missing() -> None:
    obj = merged(job(), {})
    obj["spec"] |= {"queue": None, "volumes": None, "networkTopology": None}
    obj["metadata"]["labels"] = None
    assert answer(admission(), "/jobs/validate", request("/jobs/validate", obj))["allowed"]
    written = answer(admission(), "/jobs/mutate", request("/jobs/mutate", obj))
    assert {"op": "add", "path": "/spec/queue", "value": "default"} in operations(written)


def test_a_warning_is_reported_once_with_its_path_and_code() -> None:
    response = answer(
        admission(), "/jobs/validate", request("/jobs/validate", job(minSuccess=5, minAvailable=1))
    )
    assert response["allowed"]
    assert response["warnings"] == [
        (
            "spec.minSuccess: cannot be reached: it is greater than the replicas of all tasks (1), "
            "found 5 [JOB-MIN-SUCCESS]"
        )
    ]


@pytest.mark.parametrize("depth", [50, 200, 300, 450, 600, 800])
@pytest.mark.parametrize("path", [each.path for each in REGISTRATIONS])
def test_nesting_without_end_is_answered(path: str, depth: int) -> None:
    deep: Any = {}
    for _ in range(depth):
        deep = {"a": deep, "b": None}
    told: list[RuleFailure] = []
    judging = admission(on_crash=told.append)
    template = {"template": {"spec": deep | {"containers": [deep]}}}
    for spec in (deep, {"maxRetry": "x", "tasks": [template]}, {"tasks": [template]}):
        for other in ({}, {"minAvailable": 5}):
            asked = request(path, {"spec": spec}, "UPDATE", {"spec": spec | other})
            assert json.loads(judging.review(path, review(asked)))["response"]["uid"] == UID
            asked = request(path, {"spec": spec})
            assert json.loads(judging.review(path, review(asked)))["response"]["uid"] == UID


def test_what_only_a_second_reading_finds_broken_is_reported_and_is_no_crash() -> None:
    """A pod that names plugins is read again, whole; the first reading skips over most of it."""
    crashes: list[RuleFailure] = []
    pod = {
        "metadata": {"name": "p", "annotations": {"pumice.dev/plugins": "svc"}},
        "spec": {"unknown": "KEY", "containers": [{"name": "c", "image": "i"}]},
    }
    body = review(request("/pods/mutate", pod)).replace(b"KEY", b"\xe5rs")

    found = json.loads(admission(on_crash=crashes.append).review("/pods/mutate", body))

    assert not found["response"]["allowed"]
    assert found["response"]["status"]["code"] == 400
    assert crashes == []
