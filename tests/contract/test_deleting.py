"""Deletion: preconditions, finalizers, owners, collections, namespaces."""

from typing import Any

import pytest

from tests.contract.api import Answer, Api, Json
from tests.contract.kinds import JOBS, config_map, job, path


async def test_a_deletion_answers_with_a_status(api: Api, namespace: str) -> None:
    made = (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)
    custom = (await api.create(path(JOBS, namespace), job())).expect(201)

    core_status = (await api.delete(path("configmaps", namespace, "x"))).expect(200)
    custom_status = (await api.delete(path(JOBS, namespace, "j"))).expect(200)

    assert core_status["status"] == "Success"
    assert core_status["details"] == {
        "name": "x",
        "kind": "configmaps",
        "uid": made["metadata"]["uid"],
    }
    assert custom_status["details"] == {
        "name": "j",
        "group": "contract.pumice.dev",
        "kind": "samplejobs",
        "uid": custom["metadata"]["uid"],
    }
    (await api.delete(path(JOBS, namespace, "j"))).refused(404, "NotFound")


async def test_preconditions_protect_another_object(api: Api, namespace: str) -> None:
    made = (await api.create(path(JOBS, namespace), job())).expect(201)
    one = path(JOBS, namespace, "j")
    metadata = made["metadata"]

    wrong_uid = await api.delete(one, {"preconditions": {"uid": "1"}})
    wrong_version = await api.delete(one, {"preconditions": {"resourceVersion": "1"}})
    right = await api.delete(
        one,
        {"preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}},
    )

    message = wrong_uid.refused(409, "Conflict")["message"]
    assert message.startswith(
        'Operation cannot be fulfilled on SampleJob.contract.pumice.dev "j": the UID in the '
        "precondition (1) does not match the UID in record"
    )
    wrong_version.refused(409, "Conflict")
    right.expect(200)


async def test_finalizers_hold_an_object(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    held = job(finalizers=["example.com/a", "example.com/b"])
    (await api.create(path(JOBS, namespace), held)).expect(201)

    marked = (await api.delete(one)).expect(200)
    again = (await api.delete(one)).expect(200)
    more = await api.patch("merge", one, {"metadata": {"finalizers": ["example.com/new"]}})
    fewer = await api.patch("merge", one, {"metadata": {"finalizers": ["example.com/a"]}})
    last = await api.patch("merge", one, {"metadata": {"finalizers": None}})

    assert marked["kind"] == "SampleJob"
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["generation"] == 2
    assert again["metadata"]["resourceVersion"] == marked["metadata"]["resourceVersion"]
    assert "no new finalizers can be added" in more.refused(422, "Invalid")["message"]
    assert fewer.expect(200)["metadata"]["finalizers"] == ["example.com/a"]
    last.expect(200)
    assert (await api.get(one)).code == 404


def owner(obj: Json, *, blocks: bool = True) -> list[Json]:
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": blocks,
    }
    return [reference]


def is_marked(answer: Answer) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in answer.expect(200)["metadata"]


async def family(api: Api, namespace: str, **child: Any) -> None:
    """Three ConfigMaps, each owned by the one before.

    The real garbage collector needs half a minute to notice a kind that is new.
    """
    collection = path("configmaps", namespace)
    top = (await api.create(collection, config_map("owner"))).expect(201)
    first = config_map("child", ownerReferences=owner(top), **child)
    made = (await api.create(collection, first)).expect(201)
    second = config_map("grandchild", ownerReferences=owner(made))
    (await api.create(collection, second)).expect(201)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", None])
async def test_dependents_follow_their_owner(
    api: Api, namespace: str, propagation: str | None
) -> None:
    await family(api, namespace)

    options = {"propagationPolicy": propagation} if propagation else None
    (await api.delete(path("configmaps", namespace, "owner"), options)).expect(200)

    await api.gone(path("configmaps", namespace, "grandchild"))
    await api.gone(path("configmaps", namespace, "child"))
    await api.gone(path("configmaps", namespace, "owner"))


async def test_in_the_foreground_the_owner_waits(api: Api, namespace: str) -> None:
    await family(api, namespace, finalizers=["example.com/hold"])
    one, child = path("configmaps", namespace, "owner"), path("configmaps", namespace, "child")

    marked = (await api.delete(one, {"propagationPolicy": "Foreground"})).expect(200)
    await api.gone(path("configmaps", namespace, "grandchild"))
    await api.until(child, is_marked)
    waiting = (await api.get(one)).expect(200)
    (await api.patch("merge", child, {"metadata": {"finalizers": None}})).expect(200)

    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.gone(child)
    await api.gone(one)


async def test_orphans_lose_their_owner_and_stay(api: Api, namespace: str) -> None:
    await family(api, namespace)

    (await api.delete(path("configmaps", namespace, "owner"), propagationPolicy="Orphan")).expect(
        200
    )
    await api.gone(path("configmaps", namespace, "owner"))

    child = (await api.get(path("configmaps", namespace, "child"))).expect(200)
    assert "ownerReferences" not in child["metadata"]
    assert (await api.get(path("configmaps", namespace, "grandchild"))).code == 200


async def test_an_object_of_an_owner_that_is_gone_is_collected(api: Api, namespace: str) -> None:
    made = (await api.create(path("configmaps", namespace), config_map("owner"))).expect(201)
    (await api.delete(path("configmaps", namespace, "owner"))).expect(200)

    late = config_map("late", ownerReferences=owner(made))
    (await api.create(path("configmaps", namespace), late)).expect(201)

    await api.gone(path("configmaps", namespace, "late"))


async def test_unknown_propagation_is_invalid(api: Api, namespace: str) -> None:
    (await api.create(path(JOBS, namespace), job())).expect(201)

    answer = await api.delete(path(JOBS, namespace, "j"), {"propagationPolicy": "Everything"})

    [cause] = answer.refused(422, "Invalid")["details"]["causes"]
    assert cause["field"] == "propagationPolicy"


async def test_collections_are_deleted_by_selector(api: Api, namespace: str) -> None:
    collection = path(JOBS, namespace)
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        (await api.create(collection, job(name, labels={"set": label}))).expect(201)

    deleted = (await api.delete(collection, labelSelector="set=x")).expect(200)

    assert [each["metadata"]["name"] for each in deleted["items"]] == ["a", "b"]
    left = (await api.get(collection)).expect(200)["items"]
    assert [each["metadata"]["name"] for each in left] == ["c"]


async def test_a_namespace_takes_its_content_along(api: Api) -> None:
    name = f"contract-deleted-{api.name}"
    one = f"/api/v1/namespaces/{name}"
    obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    made = (await api.create("/api/v1/namespaces", obj)).expect(201)
    held = job(finalizers=["example.com/hold"])
    (await api.create(path(JOBS, name), held)).expect(201)
    (await api.create(path("configmaps", name), config_map("x"))).expect(201)

    marked = (await api.delete(one)).expect(200)
    refused = await api.create(path("configmaps", name), config_map("new"))
    await api.gone(path("configmaps", name, "x"))
    assert (await api.get(one)).expect(200)["status"]["phase"] == "Terminating"
    await api.until(path(JOBS, name, "j"), is_marked)
    release = {"metadata": {"finalizers": None}}
    (await api.patch("merge", path(JOBS, name, "j"), release)).expect(200)

    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert marked["kind"] == "Namespace"
    assert marked["status"]["phase"] == "Terminating"
    status = refused.refused(403, "Forbidden")
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api.gone(one)
