"""Admission in Kubernetes' order and words."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, Kind
from pumice.embedded import EmbeddedCluster
from pumice.embedded.resources import Call
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import Clock, config_map, widgets

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {
    "type": "object",
    "properties": {
        "status": OPEN,
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1, "maximum": 5},
                "colour": {"type": "string"},
                "shade": {
                    "type": "object",
                    "properties": {"depth": {"type": "integer", "default": 3}},
                },
            },
        },
    },
}


@dataclass(frozen=True)
class Endpoint:
    """One row of a registration table."""

    path: str
    mutating: bool
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    kind: Kind = WIDGET

    @property
    def name(self) -> str:
        return f"{self.path.strip('/')}.example.com"


@dataclass
class Reviewer:
    """Answers reviews as told, and remembers what it was asked."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    garbage: bytes | None = None

    def review(self, path: str, body: bytes) -> bytes:
        request = json.loads(body)["request"]
        self.asked.append((path, request))
        if self.garbage is not None:
            return self.garbage
        answer = dict(self.answers.get(path, {"allowed": True}))
        if "patch" in answer:
            answer["patch"] = base64.b64encode(json.dumps(answer["patch"]).encode()).decode()
            answer["patchType"] = "JSONPatch"
        return json.dumps({"response": {"uid": request["uid"], **answer}}).encode()


ENDPOINTS = (
    Endpoint("/mutate", mutating=True),
    Endpoint("/validate", mutating=False, operations=("CREATE", "UPDATE", "DELETE")),
)


def cluster(reviewer: Reviewer, *endpoints: Endpoint, **options: Any) -> EmbeddedCluster:
    return EmbeddedCluster(
        [widgets(SCHEMA, subresources={"status": {}})],
        admission=reviewer,
        registrations=endpoints or ENDPOINTS,
        clock=Clock(),
        **options,
    )


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def test_mutating_endpoints_see_defaults_and_no_name_validating_ones_the_final_object() -> None:
    patch = [
        {"op": "add", "path": "/spec/colour", "value": "red"},
        {"op": "add", "path": "/spec/shade", "value": {"odd": 1}},
    ]
    reviewer = Reviewer({"/mutate": {"allowed": True, "patch": patch}})
    nameless = widget() | {"status": {"x": 1}}
    nameless["metadata"] = {"generateName": "w-", "namespace": "default"}

    made = cluster(reviewer).store.create(nameless, admit=True)

    (_, mutating), (_, validating) = reviewer.asked
    assert mutating["object"]["spec"] == {"size": 1}
    assert mutating["object"]["status"] == {"x": 1}
    assert mutating["name"] == ""
    assert "uid" not in mutating["object"]["metadata"]
    assert validating["name"] == made["metadata"]["name"]
    assert validating["object"]["metadata"]["uid"]
    assert "status" not in validating["object"]
    assert made["spec"] == {"size": 1, "colour": "red", "shade": {"depth": 3}}


def test_a_review_says_what_is_done_to_what() -> None:
    reviewer = Reviewer()
    store = cluster(reviewer).store
    made = store.create(widget())
    call = Call(store.resource(WIDGET), "default", "w", dry_run=True)

    store.objects.update(call, {**made, "spec": {"size": 2}})

    path, request = reviewer.asked[0]
    assert path == "/mutate"
    assert request["operation"] == "UPDATE"
    assert request["kind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert request["resource"] == {"group": "example.com", "version": "v1", "resource": "widgets"}
    assert (request["namespace"], request["name"]) == ("default", "w")
    assert request["dryRun"] is True
    assert request["oldObject"]["spec"] == {"size": 1}
    assert request["userInfo"]["username"]
    stored = store.get(WIDGET, "w", "default")
    assert stored is not None
    assert stored["spec"] == {"size": 1}


def test_schemas_are_checked_after_mutation_and_before_validation() -> None:
    too_big = [{"op": "replace", "path": "/spec/size", "value": 9}]
    reviewer = Reviewer({"/mutate": {"allowed": True, "patch": too_big}})

    with pytest.raises(ApiStatusError) as caught:
        cluster(reviewer).store.create(widget(), admit=True)

    assert caught.value.code == 422
    assert [path for path, _ in reviewer.asked] == ["/mutate"]


def test_a_denial_keeps_the_webhooks_status() -> None:
    status = {
        "code": 422,
        "reason": "Invalid",
        "message": "spec.size: too big",
        "details": {"causes": [{"field": "spec.size"}]},
    }
    reviewer = Reviewer({"/validate": {"allowed": False, "status": status}})

    with pytest.raises(ApiStatusError) as caught:
        cluster(reviewer).store.create(widget(), admit=True)

    error = caught.value
    assert (error.code, error.reason, error.details) == (422, "Invalid", status["details"])
    assert error.message == (
        'admission webhook "validate.example.com" denied the request: spec.size: too big'
    )


@pytest.mark.parametrize(
    ("status", "ending"),
    [
        (None, "denied the request without explanation"),
        ({"reason": "Forbidden"}, "denied the request: Forbidden"),
        ({"code": 200, "message": "no"}, "denied the request: no"),
    ],
)
def test_a_denial_without_a_code_is_a_bad_request(
    status: dict[str, Any] | None, ending: str
) -> None:
    answer = {"allowed": False} | ({"status": status} if status else {})
    reviewer = Reviewer({"/mutate": answer})

    with pytest.raises(ApiStatusError) as caught:
        cluster(reviewer).store.create(widget(), admit=True)

    assert caught.value.code == 400
    assert caught.value.message.endswith(ending)


def test_warnings_reach_the_caller() -> None:
    reviewer = Reviewer(
        {path: {"allowed": True, "warnings": [path]} for path in ("/mutate", "/validate")}
    )
    store = cluster(reviewer).store
    call = Call(store.resource(WIDGET), "default")

    store.objects.create(call, widget())

    assert call.warnings == ["/mutate", "/validate"]


@pytest.mark.parametrize(
    "patch",
    [[{"op": "remove", "path": "/spec/missing"}], [{"op": "shuffle", "path": "/spec"}], "no list"],
)
def test_a_patch_that_fails_is_a_fault_of_the_webhook(patch: Any) -> None:
    reviewer = Reviewer({"/mutate": {"allowed": True, "patch": patch}})

    with pytest.raises(ApiStatusError) as caught:
        cluster(reviewer).store.create(widget(), admit=True)

    assert caught.value.code == 500
    assert 'webhook "mutate.example.com"' in caught.value.message


@pytest.mark.parametrize(
    "garbage", [b"", b"{}", b"[]", b'{"response": {"uid": "another", "allowed": true}}']
)
def test_an_answer_that_is_none_is_a_fault_of_the_webhook(garbage: bytes) -> None:
    with pytest.raises(ApiStatusError) as caught:
        cluster(Reviewer(garbage=garbage)).store.create(widget(), admit=True)

    assert caught.value.code == 500
    assert 'failed calling webhook "mutate.example.com"' in caught.value.message


def test_only_what_is_registered_is_asked_about() -> None:
    reviewer = Reviewer()
    endpoints = (
        Endpoint("/created", mutating=True, operations=("CREATE",)),
        Endpoint("/deleted", mutating=False, operations=("DELETE",)),
        Endpoint("/others", mutating=False, kind=CONFIG_MAP),
    )
    found = cluster(reviewer, *endpoints)
    made = found.store.create(widget(), admit=True)
    found.store.update({**made, "spec": {"size": 2}}, admit=True)
    found.store.update_status(
        {**made, "status": {"x": 1}, "metadata": {**made["metadata"], "resourceVersion": ""}}
    )
    found.store.delete(WIDGET, "w", "default")
    found.store.create(config_map("c"), admit=True)

    assert [path for path, _ in reviewer.asked] == ["/created", "/others"]


def test_a_deletion_can_be_denied() -> None:
    status = {"code": 403, "reason": "Forbidden", "message": "stays"}
    reviewer = Reviewer({"/validate": {"allowed": False, "status": status}})
    found = cluster(reviewer, ENDPOINTS[1])
    found.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    held = widget()
    held["metadata"]["namespace"] = "ns"
    found.store.create(held)

    found.store.delete(Kind("", "v1", "Namespace", "namespaces", False), "ns")
    found.settle()

    path, request = reviewer.asked[0]
    assert (path, request["operation"], request["object"]) == ("/validate", "DELETE", None)
    assert request["oldObject"]["metadata"]["name"] == "w"
    assert found.store.get(WIDGET, "w", "ns") is not None


def test_exempt_namespaces_are_not_asked_about() -> None:
    reviewer = Reviewer()
    exempt = widget()
    exempt["metadata"]["namespace"] = "kube-system"

    cluster(reviewer).store.create(exempt, admit=True)

    assert reviewer.asked == []


def test_what_an_update_is_patched_with_is_defaulted_too() -> None:
    patch = [{"op": "add", "path": "/spec/shade", "value": {"odd": 1}}]
    reviewer = Reviewer({"/mutate": {"allowed": True, "patch": patch}})
    store = cluster(reviewer).store
    made = store.create(widget())

    changed = store.update({**made, "spec": {"size": 2}}, admit=True)

    assert changed["spec"] == {"size": 2, "shade": {"depth": 3}}


def test_an_update_sees_the_stored_status() -> None:
    reviewer = Reviewer()
    store = cluster(reviewer).store
    made = store.create(widget())
    made = store.update_status({**made, "status": {"x": 1}})

    store.update({**made, "status": {"x": 2}, "spec": {"size": 2}}, admit=True)

    validating = reviewer.asked[-1][1]
    assert validating["object"]["status"] == {"x": 1}
    assert validating["object"]["metadata"]["generation"] == 2
