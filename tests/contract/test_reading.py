"""Reading: lists, selectors, pages, tables, discovery."""

import pytest

from tests.contract.api import Api
from tests.contract.kinds import GROUP, JOBS, config_map, definitions, job, path, pod


async def fill(api: Api, namespace: str) -> None:
    """Five ConfigMaps m0 to m4 with label `set`, and their number in label `n`."""
    for number in range(5):
        labels = {"set": "x", "n": str(number)}
        obj = config_map(f"m{number}", labels=labels)
        (await api.create(path("configmaps", namespace), obj)).expect(201)


def names(body: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("set=x", ["m0", "m1", "m2", "m3", "m4"]),
        ("set==x,n!=1", ["m0", "m2", "m3", "m4"]),
        ("n in (1,2), set", ["m1", "m2"]),
        ("set,n notin (0,1,2)", ["m3", "m4"]),
        ("set,!m", ["m0", "m1", "m2", "m3", "m4"]),
        ("set=y", []),
    ],
)
async def test_lists_by_label(api: Api, namespace: str, selector: str, found: list[str]) -> None:
    await fill(api, namespace)

    body = (await api.get(path("configmaps", namespace), labelSelector=selector)).expect(200)

    assert names(body) == found


async def test_lists_by_field(api: Api, pod_namespace: str) -> None:
    namespace = pod_namespace
    await fill(api, namespace)
    (await api.create(path("pods", namespace), pod(nodeName="somewhere"))).expect(201)

    by_name = await api.get(path("configmaps", namespace), fieldSelector="metadata.name=m3")
    by_node = await api.get(path("pods"), fieldSelector="spec.nodeName=somewhere")
    by_phase = await api.get(path("pods", namespace), fieldSelector="status.phase!=Pending")
    by_scheduler = await api.get(
        path("pods", namespace),
        fieldSelector="spec.schedulerName=default-scheduler",
        labelSelector="!volcano.sh/job-name",
    )

    assert names(by_name.expect(200)) == ["m3"]
    assert {item["metadata"]["namespace"] for item in by_node.expect(200)["items"]} >= {namespace}
    assert names(by_phase.expect(200)) == []
    assert names(by_scheduler.expect(200)) == ["p"]
    await api.delete(path("pods", namespace, "p"), {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    "query",
    [
        {"labelSelector": "a in b"},
        {"labelSelector": "a b"},
        {"fieldSelector": "spec.colour=red"},
        {"fieldSelector": "colour"},
        {"resourceVersion": "abc"},
        {"limit": "abc"},
        {"continue": "abc"},
    ],
    ids=lambda query: next(iter(query)),
)
async def test_bad_queries_are_refused(api: Api, namespace: str, query: dict[str, str]) -> None:
    (await api.get(path("configmaps", namespace), **query)).refused(400, "BadRequest")


async def test_custom_kinds_have_two_field_selectors(api: Api, namespace: str) -> None:
    (await api.create(path(JOBS, namespace), job())).expect(201)

    body = await api.get(path(JOBS, namespace), fieldSelector=f"metadata.namespace={namespace}")
    refused = await api.get(path(JOBS, namespace), fieldSelector="spec.queue=default")

    assert names(body.expect(200)) == ["j"]
    assert refused.refused(400, "BadRequest")["message"] == "field label not supported: spec.queue"


async def test_the_form_of_lists(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    (await api.create(path(JOBS, namespace), job())).expect(201)

    core = (await api.get(path("configmaps", namespace), labelSelector="set")).expect(200)
    custom = (await api.get(path(JOBS, namespace))).expect(200)

    assert (core["kind"], core["apiVersion"]) == ("ConfigMapList", "v1")
    assert (custom["kind"], custom["apiVersion"]) == ("SampleJobList", f"{GROUP}/v1alpha1")
    assert int(core["metadata"]["resourceVersion"]) > 0
    # Items of built-in kinds do not repeat what the list says; those of custom kinds do.
    assert {"kind", "apiVersion"} & core["items"][0].keys() == set()
    assert custom["items"][0]["kind"] == "SampleJob"


async def test_pages_show_one_version(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    collection = path("configmaps", namespace)

    first = (await api.get(collection, limit="2", labelSelector="set")).expect(200)
    (await api.delete(f"{collection}/m2")).expect(200)
    (await api.create(collection, config_map("m9", labels={"set": "x"}))).expect(201)
    token = first["metadata"]["continue"]
    second = (
        await api.get(collection, limit="2", labelSelector="set", **{"continue": token})
    ).expect(200)
    token = second["metadata"]["continue"]
    third = (
        await api.get(collection, limit="2", labelSelector="set", **{"continue": token})
    ).expect(200)

    assert [names(page) for page in (first, second, third)] == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1
    assert "continue" not in third["metadata"]


async def test_the_rest_is_counted(api: Api, namespace: str) -> None:
    for number in range(3):
        (await api.create(path(JOBS, namespace), job(f"j{number}"))).expect(201)

    page = (await api.get(path(JOBS, namespace), limit="1")).expect(200)

    assert page["metadata"]["remainingItemCount"] == 2


async def test_lists_at_versions(api: Api, namespace: str) -> None:
    collection = path("configmaps", namespace)
    await fill(api, namespace)
    before = (await api.get(collection, labelSelector="set")).version
    (await api.delete(f"{collection}/m0")).expect(200)

    cached = await api.get(collection, labelSelector="set", resourceVersion="0")
    exact = await api.get(
        collection, labelSelector="set", resourceVersion=before, resourceVersionMatch="Exact"
    )
    newer = await api.get(
        collection, labelSelector="set", resourceVersion=before, resourceVersionMatch="NotOlderThan"
    )

    cached.expect(200)
    assert names(exact.expect(200)) == ["m0", "m1", "m2", "m3", "m4"]
    assert names(newer.expect(200)) == ["m1", "m2", "m3", "m4"]


async def test_the_future_cannot_be_listed(api: Api, namespace: str) -> None:
    answer = await api.get(path("configmaps", namespace), resourceVersion="9999999999")

    status = answer.refused(504, "Timeout")
    assert status["message"].startswith("Timeout: Too large resource version")


async def test_what_is_not_there(api: Api, namespace: str) -> None:
    for missing in ("/api/v1/things", path("pods", namespace, "p", "thing")):
        (await api.get(missing)).refused(404, "NotFound")
    assert (await api.get("/apis/nobody.example.com/v1/things")).code == 404
    assert (await api.get("/nothing")).code == 404
    # A subresource that a custom kind does not have is told apart by the object.
    (await api.get(path(JOBS, namespace, "j", "scale"))).refused(404, "NotFound")


async def test_methods_that_make_no_sense(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "x")

    (await api.create(one, config_map("x"))).refused(405, "MethodNotAllowed")
    (await api.update(path("configmaps", namespace), config_map("x"))).refused(
        405, "MethodNotAllowed"
    )


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def test_tables_of_custom_kinds_have_the_crds_columns(api: Api, namespace: str) -> None:
    (await api.create(path(JOBS, namespace), job())).expect(201)
    status = {"status": {"state": {"phase": "Running"}, "minAvailable": 1, "running": 1}}
    (await api.patch("merge", path(JOBS, namespace, "j", "status"), status)).expect(200)

    table = (await api.send("GET", path(JOBS, namespace), accept=TABLE)).expect(200)

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    [crd] = [each for each in definitions() if each["spec"]["names"]["kind"] == "SampleJob"]
    columns = [each["name"] for each in crd["spec"]["versions"][0]["additionalPrinterColumns"]]
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", *columns]
    [row] = table["rows"]
    assert row["cells"][:4] == ["j", "Running", 1, 1]
    assert row["cells"][4].endswith("s")
    assert row["cells"][5:] == ["default", None]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "j"
    assert "spec" not in row["object"]


async def test_tables_carry_what_is_asked_for(api: Api, namespace: str) -> None:
    (await api.create(path(JOBS, namespace), job())).expect(201)
    one = path(JOBS, namespace, "j")

    whole = await api.send("GET", one, accept=TABLE, includeObject="Object")
    none = await api.send("GET", one, accept=TABLE, includeObject="None")

    assert whole.expect(200)["rows"][0]["object"]["spec"]["minAvailable"] == 1
    assert none.expect(200)["rows"][0].get("object") is None


@pytest.mark.parametrize(
    ("resource", "columns"),
    [
        ("pods", ["Name", "Ready", "Status", "Restarts", "Age"]),
        ("nodes", ["Name", "Status", "Roles", "Age", "Version"]),
        ("namespaces", ["Name", "Status", "Age"]),
        ("services", ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"]),
        ("events", ["Last Seen", "Type", "Reason", "Object", "Message"]),
        ("configmaps", ["Name", "Data", "Age"]),
        ("secrets", ["Name", "Type", "Data", "Age"]),
        ("coordination.k8s.io/v1/leases", ["Name", "Holder", "Age"]),
        (
            "scheduling.k8s.io/v1/priorityclasses",
            ["Name", "Value", "Global-Default", "Age", "PreemptionPolicy"],
        ),
    ],
)
async def test_columns_of_built_in_kinds(api: Api, resource: str, columns: list[str]) -> None:
    table = (await api.send("GET", path(resource), accept=TABLE)).expect(200)

    shown = [each["name"] for each in table["columnDefinitions"] if each["priority"] == 0]
    assert shown == columns


async def test_a_pods_row(api: Api, pod_namespace: str) -> None:
    (await api.create(path("pods", pod_namespace), pod())).expect(201)

    table = (await api.send("GET", path("pods", pod_namespace), accept=TABLE)).expect(200)

    [row] = table["rows"]
    assert row["cells"][:4] == ["p", "0/1", "Pending", "0"]
    assert row["cells"][5:] == ["<none>", "<none>", "<none>", "<none>"]


async def test_bare_metadata(api: Api, namespace: str) -> None:
    (await api.create(path("configmaps", namespace), config_map("x", {"a": "b"}))).expect(201)
    form = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"

    one = await api.send("GET", path("configmaps", namespace, "x"), accept=form.format(""))
    many = await api.send("GET", path("configmaps", namespace), accept=form.format("List"))

    assert one.expect(200)["kind"] == "PartialObjectMetadata"
    assert one.body["metadata"]["name"] == "x"
    assert "data" not in one.body
    assert many.expect(200)["kind"] == "PartialObjectMetadataList"
    assert "x" in names(many.body)


async def test_forms_that_cannot_be_given(api: Api, namespace: str) -> None:
    answer = await api.send("GET", path("configmaps", namespace), accept="text/html")

    answer.refused(406, "NotAcceptable")


async def test_discovery_names_kinds_and_subresources(api: Api) -> None:
    core = (await api.get("/api/v1")).expect(200)
    custom = (await api.get(f"/apis/{GROUP}/v1alpha1")).expect(200)

    rows = {row["name"]: row for row in core["resources"]}
    assert rows["pods"]["kind"] == "Pod"
    assert rows["pods"]["shortNames"] == ["po"]
    assert (rows["nodes"]["namespaced"], rows["pods"]["namespaced"]) == (False, True)
    assert rows["pods/binding"]["verbs"] == ["create"]
    assert rows["pods/eviction"]["kind"] == "Eviction"
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(
        rows["pods"]["verbs"]
    )
    kinds = {row["name"]: row["kind"] for row in custom["resources"]}
    assert kinds["samplejobs"] == kinds["samplejobs/status"] == "SampleJob"


async def test_groups_and_versions(api: Api) -> None:
    groups = (await api.get("/apis")).expect(200)
    one = (await api.get(f"/apis/{GROUP}")).expect(200)
    versions = (await api.get("/api")).expect(200)
    server = (await api.get("/version")).expect(200)

    assert GROUP in {group["name"] for group in groups["groups"]}
    assert one["kind"] == "APIGroup"
    assert versions["versions"] == ["v1"]
    assert (server["major"], server["minor"]) == ("1", "36")


async def test_discovery_at_once(api: Api) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    found = (await api.send("GET", "/apis", accept=accept)).expect(200)

    assert found["kind"] == "APIGroupDiscoveryList"
    [group] = [item for item in found["items"] if item["metadata"]["name"] == GROUP]
    resources = {
        resource["resource"]: resource
        for version in group["versions"]
        for resource in version["resources"]
    }
    assert resources["samplequeues"]["scope"] == "Cluster"
    assert resources["samplejobs"]["subresources"][0]["subresource"] == "status"


@pytest.mark.parametrize("check", ["/healthz", "/readyz", "/livez"])
async def test_health(api: Api, check: str) -> None:
    answer = await api.get(check)

    assert (answer.code, answer.body) == (200, {"text": "ok"})


async def test_openapi_says_that_fields_are_validated(api: Api) -> None:
    index = (await api.get("/openapi/v3")).expect(200)
    url = index["paths"][f"apis/{GROUP}/v1alpha1"]["serverRelativeURL"]
    document = (await api.get(url)).expect(200)

    one = f"/apis/{GROUP}/v1alpha1/namespaces/{{namespace}}/samplejobs/{{name}}"
    patch = document["paths"][one]["patch"]
    assert {"dryRun", "fieldValidation"} <= {each["name"] for each in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "SampleJob"
