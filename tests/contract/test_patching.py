"""Patches: the four kinds."""

from typing import Any

import pytest

from tests.contract.api import Api
from tests.contract.kinds import JOBS, config_map, job, manifest, path, pod

DEPLOYMENTS = "apps/v1/deployments"


async def test_merge_patches_merge_maps_and_replace_lists(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    spec = {"plugins": {"svc": [], "env": ["a"]}, "tasks": [{"name": "a"}, {"name": "b"}]}
    (await api.create(path(JOBS, namespace), job(spec=spec))).expect(201)

    patch = {"spec": {"plugins": {"svc": None, "env": ["b"]}, "tasks": [{"name": "c"}]}}
    patched = (await api.patch("merge", one, patch)).expect(200)

    assert patched["spec"]["plugins"] == {"env": ["b"]}
    assert patched["spec"]["tasks"] == [{"name": "c"}]


async def test_json_patches_do_all_or_nothing(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")
    (await api.create(path("configmaps", namespace), config_map("x", {"a": "1"}))).expect(201)
    set_a = {"op": "replace", "path": "/data/a", "value": "2"}

    failed = await api.patch("json", one, [set_a, {"op": "test", "path": "/data/a", "value": "9"}])
    missing = await api.patch("json", one, [set_a, {"op": "remove", "path": "/data/b/c"}])
    applied = await api.patch(
        "json",
        one,
        [
            {"op": "test", "path": "/data/a", "value": "1"},
            set_a,
            {"op": "add", "path": "/data/b", "value": "3"},
        ],
    )

    for refused in (failed, missing):
        status = refused.refused(422, "Invalid")
        assert status["message"] == "the server rejected our request due to an error in our request"
    assert applied.expect(200)["data"] == {"a": "2", "b": "3"}


async def test_the_version_in_a_json_patch_test_protects(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    made = (await api.create(path(JOBS, namespace), job())).expect(201)
    (await api.patch("merge", one, {"metadata": {"labels": {"a": "b"}}})).expect(200)

    late = await api.patch(
        "json",
        one,
        [
            {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": made["metadata"]["resourceVersion"],
            },
            {"op": "replace", "path": "/spec/minAvailable", "value": 5},
        ],
    )

    late.refused(422, "Invalid")


async def test_the_version_in_a_merge_patch_protects(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")
    made = (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)
    version = made["metadata"]["resourceVersion"]

    first = await api.patch(
        "merge", one, {"metadata": {"resourceVersion": version}, "data": {"a": "1"}}
    )
    second = await api.patch(
        "merge", one, {"metadata": {"resourceVersion": version}, "data": {"a": "2"}}
    )

    assert first.expect(200)["data"] == {"a": "1"}
    second.refused(409, "Conflict")


async def test_a_patch_cannot_rename_or_break_an_object(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    (await api.create(path(JOBS, namespace), job())).expect(201)

    renamed = await api.patch("merge", one, {"metadata": {"name": "k"}})
    broken = await api.patch("merge", one, {"spec": {"minAvailable": -1}})
    missing = await api.patch("merge", path(JOBS, namespace, "none"), {"spec": {}})

    renamed.refused(400, "BadRequest")
    broken.refused(422, "Invalid")
    missing.refused(404, "NotFound")


@pytest.mark.parametrize(("kind", "patch"), [("json", {"a": 1}), ("merge", [1])])
async def test_patches_of_the_wrong_shape(api: Api, namespace: str, kind: str, patch: Any) -> None:
    (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)

    answer = await api.patch(kind, path("configmaps", namespace, "x"), patch)

    answer.refused(400, "BadRequest")


async def test_custom_kinds_take_no_strategic_patches(api: Api, namespace: str) -> None:
    (await api.create(path(JOBS, namespace), job())).expect(201)

    answer = await api.patch("strategic", path(JOBS, namespace, "j"), {"spec": {}})

    status = answer.refused(415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in status["message"]
    assert "strategic" not in status["message"]


def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return manifest(DEPLOYMENTS, "Deployment", "d", spec=spec)


def container(name: str, image: str = "i:1", **env: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "image": image}
    if env:
        found["env"] = [{"name": key, "value": value} for key, value in env.items()]
    return found


def summary(body: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [
        (
            each["name"],
            each["image"],
            [f"{env['name']}={env['value']}" for env in each.get("env", [])],
        )
        for each in body["spec"]["template"]["spec"]["containers"]
    ]


@pytest.mark.parametrize(
    ("containers", "directives", "found"),
    [
        ([{"name": "b", "image": "i:2"}], {}, [("a", "i:1", ["A=1", "B=1"]), ("b", "i:2", [])]),
        (
            [{"name": "c", "image": "i:3"}],
            {},
            [("c", "i:3", []), ("a", "i:1", ["A=1", "B=1"]), ("b", "i:1", [])],
        ),
        (
            [
                {
                    "name": "a",
                    "env": [{"name": "B", "$patch": "delete"}, {"name": "C", "value": "3"}],
                }
            ],
            {},
            [("a", "i:1", ["C=3", "A=1"]), ("b", "i:1", [])],
        ),
        ([{"name": "a", "$patch": "delete"}], {}, [("b", "i:1", [])]),
        (
            [{"name": "b", "image": "i:2"}],
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            [("b", "i:2", []), ("a", "i:1", ["A=1", "B=1"])],
        ),
        ([{"$patch": "replace"}, {"name": "z", "image": "i:9"}], {}, [("z", "i:9", [])]),
    ],
    ids=["merged", "added", "deep", "deleted", "ordered", "replaced"],
)
async def test_strategic_patches_know_keyed_lists(
    api: Api,
    namespace: str,
    containers: list[dict[str, Any]],
    directives: dict[str, Any],
    found: list[tuple[str, str, list[str]]],
) -> None:
    obj = deployment(container("a", A="1", B="1"), container("b"))
    (await api.create(path(DEPLOYMENTS, namespace), obj)).expect(201)

    patch = {"spec": {"template": {"spec": {**directives, "containers": containers}}}}
    patched = await api.patch("strategic", path(DEPLOYMENTS, namespace, "d"), patch)

    assert summary(patched.expect(200)) == found


async def test_strategic_patches_unite_finalizers_and_merge_conditions(
    api: Api, pod_namespace: str
) -> None:
    one = path("pods", pod_namespace, "p")
    obj = pod()
    obj["metadata"]["finalizers"] = ["example.com/a"]
    (await api.create(path("pods", pod_namespace), obj)).expect(201)
    ready = {"type": "Ready", "status": "False", "reason": "R"}

    patched = await api.patch("strategic", one, {"metadata": {"finalizers": ["example.com/b"]}})
    await api.patch("strategic", f"{one}/status", {"status": {"conditions": [ready]}})
    status = await api.patch(
        "strategic",
        f"{one}/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    )

    assert sorted(patched.expect(200)["metadata"]["finalizers"]) == [
        "example.com/a",
        "example.com/b",
    ]
    [condition] = status.expect(200)["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "R")
    (await api.patch("merge", one, {"metadata": {"finalizers": None}})).expect(200)


async def apply(api: Api, manager: str, one: str, config: dict[str, Any], **query: str) -> Any:
    return await api.patch("apply", one, config, fieldManager=manager, **query)


async def test_apply_creates_and_then_is_a_no_op(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    config = job(spec={"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1}]})

    created = await apply(api, "me", one, config)
    again = await apply(api, "me", one, config)

    assert created.expect(201)["spec"]["queue"] == "default"
    assert again.expect(200) == created.body


async def test_apply_removes_what_is_no_longer_mentioned(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    full = job(
        spec={"minAvailable": 1, "plugins": {"svc": []}, "tasks": [{"name": "t", "replicas": 2}]},
        labels={"a": "b"},
    )
    (await apply(api, "me", one, full)).expect(201)

    less = await apply(api, "me", one, job(spec={"tasks": [{"name": "t", "replicas": 3}]}))

    body = less.expect(200)
    assert body["spec"] == {
        "maxRetry": 3,
        "queue": "default",
        "tasks": [{"name": "t", "replicas": 3}],
    }
    assert "labels" not in body["metadata"]


async def test_managers_share_an_object_and_conflict_over_a_field(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")
    (await apply(api, "a", one, config_map("x", {"x": "1", "y": "1"}))).expect(201)
    (await apply(api, "b", one, config_map("x", {"x": "1", "z": "1"}))).expect(200)

    refused = await apply(api, "b", one, config_map("x", {"x": "2", "z": "1"}))
    status = refused.refused(409, "Conflict")
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "a": .data.x'
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".data.x"}
    ]

    forced = await apply(api, "b", one, config_map("x", {"x": "2", "z": "1"}), force="true")
    assert forced.expect(200)["data"] == {"x": "2", "y": "1", "z": "1"}
    let_go = await apply(api, "a", one, config_map("x"))
    assert let_go.expect(200)["data"] == {"x": "2", "z": "1"}


async def test_an_update_takes_fields_from_an_apply(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")
    (await apply(api, "a", one, config_map("x", {"x": "1"}))).expect(201)
    (await api.patch("merge", one, {"data": {"x": "2"}}, fieldManager="editor")).expect(200)

    refused = await apply(api, "a", one, config_map("x", {"x": "1"}))

    status = refused.refused(409, "Conflict")
    assert status["details"]["causes"][0]["message"] == 'conflict with "editor" using v1'


async def test_apply_conflicts_with_what_was_there_before(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")
    (await api.create(path("configmaps", namespace), config_map("x", {"x": "1"}))).expect(201)

    refused = await apply(api, "a", one, config_map("x", {"x": "2"}))
    agreed = await apply(api, "a", one, config_map("x", {"x": "1", "y": "1"}))

    # Who owned it is named differently: the embedded server begins its record with the first apply.
    causes = refused.refused(409, "Conflict")["details"]["causes"]
    assert [cause["field"] for cause in causes] == [".data.x"]
    assert agreed.expect(200)["data"] == {"x": "1", "y": "1"}


async def test_the_record_of_an_apply(api: Api, namespace: str) -> None:
    config = deployment(container("a", A="1"))
    config["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    answer = await apply(api, "me", path(DEPLOYMENTS, namespace, "d"), config)

    [entry] = [
        each for each in answer.expect(201)["metadata"]["managedFields"] if each["manager"] == "me"
    ]
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == (
        "Apply",
        "apps/v1",
        "FieldsV1",
    )
    variable: dict[str, Any] = {".": {}, "f:name": {}, "f:value": {}}
    port: dict[str, Any] = {".": {}, "f:containerPort": {}}
    assert entry["fieldsV1"]["f:spec"] == {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"a"}': {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:env": {'k:{"name":"A"}': variable},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': port},
                    }
                }
            },
        },
    }


async def test_apply_merges_keyed_lists(api: Api, namespace: str) -> None:
    one = path(DEPLOYMENTS, namespace, "d")
    (await apply(api, "a", one, deployment(container("c", A="1", B="1")))).expect(201)

    merged = await apply(api, "a", one, deployment(container("c", B="2", C="1")))

    assert summary(merged.expect(200)) == [("c", "i:1", ["B=2", "C=1"])]


async def test_a_status_is_applied_through_its_subresource(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    (await apply(api, "user", one, job())).expect(201)

    main = await apply(api, "user", one, job(status={"running": 1}))
    below = await apply(
        api, "controller", f"{one}/status", manifest(JOBS, "SampleJob", "j", status={"running": 2})
    )

    assert "status" not in main.expect(200)
    assert below.expect(200)["status"] == {"running": 2}
    owners = {
        (each["manager"], each.get("subresource")): each["fieldsV1"]
        for each in below.body["metadata"]["managedFields"]
    }
    assert owners["controller", "status"] == {"f:status": {"f:running": {}}}


async def test_apply_needs_a_manager(api: Api, namespace: str) -> None:
    answer = await api.patch("apply", path("configmaps", namespace, "x"), config_map("x"))

    status = answer.refused(422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "fieldManager"


async def test_a_dry_run_of_an_apply(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")

    created = await apply(api, "me", one, config_map("x", {"a": "b"}), dryRun="All")

    assert created.expect(201)["data"] == {"a": "b"}
    assert (await api.get(one)).code == 404
