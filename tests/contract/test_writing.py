"""Creating and changing objects."""

import asyncio

import pytest

from tests.contract.api import Api
from tests.contract.kinds import JOBS, POD_GROUPS, QUEUES, config_map, job, manifest, path, queue


async def test_what_does_not_exist_is_not_found(api: Api, namespace: str) -> None:
    core = (await api.get(path("configmaps", namespace, "x"))).refused(404, "NotFound")
    custom = (await api.get(path(JOBS, namespace, "x"))).refused(404, "NotFound")

    assert core["message"] == 'configmaps "x" not found'
    assert core["details"] == {"name": "x", "kind": "configmaps"}
    assert core["metadata"] == {}
    assert custom["message"] == 'samplejobs.contract.pumice.dev "x" not found'
    assert custom["details"] == {"name": "x", "group": "contract.pumice.dev", "kind": "samplejobs"}


async def test_a_created_object_has_uid_version_and_time(api: Api, namespace: str) -> None:
    made = (await api.create(path("configmaps", namespace), config_map("x", {"a": "b"}))).expect(
        201
    )

    metadata = made["metadata"]
    assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"a": "b"})
    assert (metadata["name"], metadata["namespace"]) == ("x", namespace)
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 0
    found = (await api.get(path("configmaps", namespace, "x"))).expect(200)
    assert found == made


async def test_creating_twice_is_refused(api: Api, namespace: str) -> None:
    for collection, obj in (
        (path("configmaps", namespace), config_map("x")),
        (path(JOBS, namespace), job("x")),
    ):
        (await api.create(collection, obj)).expect(201)
        status = (await api.create(collection, obj)).refused(409, "AlreadyExists")
        assert status["message"].endswith('"x" already exists')
        assert status["details"]["name"] == "x"


async def test_names_are_generated(api: Api, namespace: str) -> None:
    nameless = config_map("", generateName="x-")

    first, second = [
        (await api.create(path("configmaps", namespace), nameless)).expect(201) for _ in range(2)
    ]

    names = {each["metadata"]["name"] for each in (first, second)}
    assert len(names) == 2
    assert all(name.startswith("x-") and len(name) == 7 for name in names)
    assert first["metadata"]["generateName"] == "x-"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "metadata.name"),
        ({"name": "Upper"}, "metadata.name"),
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"a": "-c"}}, "metadata.labels"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
            "metadata.ownerReferences.uid",
        ),
    ],
)
async def test_bad_metadata_is_invalid(
    api: Api, namespace: str, change: dict[str, object], field: str
) -> None:
    for collection, obj in (
        (path("configmaps", namespace), config_map("x")),
        (path(JOBS, namespace), job("x")),
    ):
        bad = {**obj, "metadata": {**obj["metadata"], **change}}
        status = (await api.create(collection, bad)).refused(422, "Invalid")
        assert [cause["field"] for cause in status["details"]["causes"]] == [field]
        assert status["details"]["causes"][0]["message"] in status["message"]


async def test_an_objects_namespace_is_that_of_the_path(api: Api, namespace: str) -> None:
    elsewhere = config_map("x")
    elsewhere["metadata"]["namespace"] = "elsewhere"

    status = (await api.create(path("configmaps", namespace), elsewhere)).refused(400, "BadRequest")

    assert "does not match the namespace" in status["message"]


async def test_a_namespace_must_exist(api: Api) -> None:
    answer = await api.create(path("configmaps", "nowhere"), config_map("x"))

    assert answer.refused(404, "NotFound")["message"] == 'namespaces "nowhere" not found'


async def test_bodies_that_cannot_be_read_are_bad_requests(api: Api, namespace: str) -> None:
    collection = path("configmaps", namespace)
    bodies: list[object] = [b"{", b"[]", config_map("x") | {"kind": "Secret"}]

    for body in bodies:
        (await api.send("POST", collection, body)).refused(400, "BadRequest")
    text = await api.send("POST", collection, b"x", content_type="text/plain")
    text.refused(415, "UnsupportedMediaType")


async def test_yaml_is_read_too(api: Api, namespace: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n"

    answer = await api.send(
        "POST", path("configmaps", namespace), body, content_type="application/yaml"
    )

    assert answer.expect(201)["data"] == {"a": "b"}


async def test_an_update_of_an_old_version_conflicts(api: Api, namespace: str) -> None:
    for collection, obj, plural in (
        (path("configmaps", namespace), config_map("x"), "configmaps"),
        (path(JOBS, namespace), job("x"), "samplejobs.contract.pumice.dev"),
    ):
        one = f"{collection}/x"
        made = (await api.create(collection, obj)).expect(201)
        newer = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
        updated = (await api.update(one, newer)).expect(200)
        assert updated["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]

        status = (await api.update(one, made)).refused(409, "Conflict")

        assert status["message"] == (
            f'Operation cannot be fulfilled on {plural} "x": the object has been modified; please '
            "apply your changes to the latest version and try again"
        )


async def test_an_update_without_a_version(api: Api, namespace: str) -> None:
    (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)
    (await api.create(path(JOBS, namespace), job("x"))).expect(201)

    unconditional = await api.update(
        path("configmaps", namespace, "x"), config_map("x", {"a": "b"})
    )
    insisting = await api.update(path(JOBS, namespace, "x"), job("x"))

    assert unconditional.expect(200)["data"] == {"a": "b"}
    status = insisting.refused(422, "Invalid")
    [cause] = status["details"]["causes"]
    assert cause["field"] == "metadata.resourceVersion"
    assert cause["message"].endswith("must be specified for an update")


async def test_an_update_keeps_to_its_object(api: Api, namespace: str) -> None:
    made = (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)
    one = path("configmaps", namespace, "x")
    other_uid = {**made, "metadata": {**made["metadata"], "uid": "1"}}

    assert (await api.update(one, config_map("y"))).code == 400
    assert (await api.update(path("configmaps", namespace, "none"), config_map("none"))).code == 404
    assert (await api.update(one, other_uid)).refused(409, "Conflict")


async def test_an_update_that_changes_nothing_keeps_the_version(api: Api, namespace: str) -> None:
    for collection, obj in (
        (path("configmaps", namespace), config_map("x", {"a": "b"})),
        (path(JOBS, namespace), job("x")),
    ):
        made = (await api.create(collection, obj)).expect(201)
        # Field ownership has whole seconds; only within one can nothing at all have changed.
        again = await api.update(f"{collection}/x", made)
        assert again.version == made["metadata"]["resourceVersion"]


async def test_generation_follows_the_spec(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    made = (await api.create(path(JOBS, namespace), job())).expect(201)

    labelled = (await api.patch("merge", one, {"metadata": {"labels": {"a": "b"}}})).expect(200)
    changed = (await api.patch("merge", one, {"spec": {"minAvailable": 2}})).expect(200)
    status = (await api.patch("merge", f"{one}/status", {"status": {"running": 1}})).expect(200)

    generations = [each["metadata"]["generation"] for each in (made, labelled, changed, status)]
    assert generations == [1, 1, 2, 2]


async def test_status_is_apart_from_the_rest(api: Api, namespace: str) -> None:
    one = path(JOBS, namespace, "j")
    made = (await api.create(path(JOBS, namespace), job(status={"running": 5}))).expect(201)
    assert "status" not in made

    written = {**made, "spec": {"minAvailable": 9}, "status": {"running": 1}}
    written["metadata"] = {**made["metadata"], "labels": {"a": "b"}}
    with_status = (await api.update(f"{one}/status", written)).expect(200)
    assert with_status["status"] == {"running": 1}
    assert with_status["spec"]["minAvailable"] == 1
    assert "labels" not in with_status["metadata"]

    main = {**with_status, "status": {"running": 7}}
    main["spec"] = {**main["spec"], "minAvailable": 2}
    without_status = (await api.update(one, main)).expect(200)
    assert without_status["status"] == {"running": 1}
    assert without_status["spec"]["minAvailable"] == 2
    assert (await api.get(f"{one}/status")).expect(200) == without_status

    stale = await api.update(f"{one}/status", made)
    stale.refused(409, "Conflict")


async def test_a_kind_without_status_subresource_keeps_status_as_any_field(
    api: Api, namespace: str
) -> None:
    group = manifest(POD_GROUPS, "SamplePodGroup", "g", spec={}, status={"phase": "Inqueue"})
    one = path(POD_GROUPS, namespace, "g")

    made = (await api.create(path(POD_GROUPS, namespace), group)).expect(201)
    patched = await api.patch("merge", one, {"status": {"phase": "Running"}})

    assert made["status"] == {"phase": "Inqueue"}
    assert patched.expect(200)["status"] == {"phase": "Running"}
    assert (await api.get(f"{one}/status")).code == 404


async def test_a_cluster_scoped_object_loses_a_namespace(api: Api) -> None:
    obj = queue("contract-scope")
    obj["metadata"]["namespace"] = "somewhere"

    made = (await api.create(path(QUEUES), obj)).expect(201)

    assert "namespace" not in made["metadata"]
    (await api.delete(path(QUEUES, None, "contract-scope"))).expect(200)


async def test_a_dry_run_has_no_effect(api: Api, namespace: str) -> None:
    collection = path("configmaps", namespace)
    made = (await api.create(collection, config_map("kept", {"a": "b"}))).expect(201)

    created = await api.create(collection, config_map("x"), dryRun="All")
    patched = await api.patch("merge", f"{collection}/kept", {"data": {"a": "c"}}, dryRun="All")
    deleted = await api.delete(f"{collection}/kept", dryRun="All")
    in_body = await api.delete(f"{collection}/kept", {"dryRun": ["All"]})
    unknown = await api.create(collection, config_map("x"), dryRun="Some")

    assert created.expect(201)["metadata"]["uid"]
    assert patched.expect(200)["data"] == {"a": "c"}
    deleted.expect(200)
    in_body.expect(200)
    unknown.refused(422, "Invalid")
    assert (await api.get(f"{collection}/x")).code == 404
    assert (await api.get(f"{collection}/kept")).expect(200) == made


async def test_a_dry_run_is_checked_like_any_other(api: Api, namespace: str) -> None:
    bad = await api.create(path(JOBS, namespace), job(spec={"minAvailable": -1}), dryRun="All")
    (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)
    twice = await api.create(path("configmaps", namespace), config_map("x"), dryRun="All")

    bad.refused(422, "Invalid")
    twice.refused(409, "AlreadyExists")


async def test_of_two_writers_one_wins(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")
    made = (await api.create(path("configmaps", namespace), config_map("x"))).expect(201)

    answers = await asyncio.gather(
        *(api.update(one, {**made, "data": {"writer": str(number)}}) for number in range(5))
    )

    assert sorted(answer.code for answer in answers) == [200, 409, 409, 409, 409]


LEASES = "coordination.k8s.io/v1/leases"


async def test_a_lease_is_taken_by_one(api: Api, namespace: str) -> None:
    def lease(holder: str) -> dict[str, object]:
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-02T03:04:05.678901Z",
        }
        return manifest(LEASES, "Lease", "leader", spec=spec)

    made = (await api.create(path(LEASES, namespace), lease("a"))).expect(201)
    (await api.create(path(LEASES, namespace), lease("b"))).refused(409, "AlreadyExists")
    taken = {**made, "spec": {**made["spec"], "holderIdentity": "b"}}
    (await api.update(path(LEASES, namespace, "leader"), taken)).expect(200)
    late = await api.update(path(LEASES, namespace, "leader"), made)
    unversioned = await api.update(path(LEASES, namespace, "leader"), lease("c"))

    late.refused(409, "Conflict")
    unversioned.refused(422, "Invalid")
    assert made["spec"]["renewTime"] == "2026-01-02T03:04:05.678901Z"
