"""What the server says about itself, and what paths mean."""

from typing import Any

import pytest

from pumice.embedded import discovery, openapi
from pumice.embedded.builtin import builtin_resources
from pumice.embedded.crds import resource_of
from pumice.embedded.media import MediaForm, decode, wanted_form
from pumice.embedded.resources import ResourceRegistry, locate
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import widgets


@pytest.fixture
def registry() -> ResourceRegistry:
    spec = {"type": "object", "properties": {"n": {"type": "integer", "description": "Number."}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    crd = widgets(schema, subresources={"status": {}})
    return ResourceRegistry([*builtin_resources(), *resource_of(crd)])


def test_groups_list_their_versions_the_preferred_first(registry: ResourceRegistry) -> None:
    extra = widgets()
    for name in ("v1beta1", "v2", "v1alpha1", "odd", "v10"):
        version = {**extra["spec"]["versions"][0], "name": name}
        extra["spec"]["versions"].append(version)
    for resource in resource_of(extra):
        registry.add(resource)

    group = discovery.api_groups(registry, "example.com")

    assert group is not None
    found = [each["version"] for each in group["versions"]]
    assert found == ["v10", "v2", "v1", "v1beta1", "v1alpha1", "odd"]
    assert discovery.api_groups(registry, "nobody.example.com") is None


def test_resources_list_their_subresources(registry: ResourceRegistry) -> None:
    found = discovery.resource_list(registry, "", "v1")

    assert found is not None
    rows = {row["name"]: row for row in found["resources"]}
    assert rows["pods"]["shortNames"] == ["po"]
    assert rows["pods/binding"]["kind"] == "Binding"
    assert (rows["pods/eviction"]["group"], rows["pods/eviction"]["kind"]) == ("policy", "Eviction")
    assert rows["nodes"]["namespaced"] is False
    assert discovery.resource_list(registry, "apps", "v9") is None


def test_aggregated_discovery_says_the_same(registry: ResourceRegistry) -> None:
    groups = ["", *registry.groups()]

    found = discovery.discovery_list(registry, groups, "apidiscovery.k8s.io/v2")

    for group, item in zip(groups, found["items"], strict=True):
        for version in item["versions"]:
            plain = discovery.resource_list(registry, group, version["version"])
            assert plain is not None
            names = [
                name
                for resource in version["resources"]
                for name in (
                    resource["resource"],
                    *(
                        f"{resource['resource']}/{each['subresource']}"
                        for each in resource.get("subresources", ())
                    ),
                )
            ]
            assert names == [row["name"] for row in plain["resources"]]


def test_every_group_version_has_an_openapi_document(registry: ResourceRegistry) -> None:
    index = openapi.document(registry, ["v3"])

    assert index is not None
    for root, reference in index["paths"].items():
        assert reference == {"serverRelativeURL": f"/openapi/v3/{root}"}
        found = openapi.document(registry, ["v3", *root.split("/")])
        assert found is not None
        assert found["paths"]
    assert openapi.document(registry, ["v3", "apis", "nobody", "v1"]) is None
    assert openapi.document(registry, ["v2"]) is None


def test_openapi_documents_describe_crds_and_what_patches_can_do(
    registry: ResourceRegistry,
) -> None:
    found = openapi.document(registry, ["v3", "apis", "example.com", "v1"])

    assert found is not None
    schema = found["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["n"]["description"] == "Number."
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]
    patch = found["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert {each["name"] for each in patch["parameters"]} >= {"dryRun", "fieldValidation"}
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("api/v1/pods", ("pods", "", "", "")),
        ("api/v1/namespaces", ("namespaces", "", "", "")),
        ("api/v1/namespaces/ns", ("namespaces", "", "ns", "")),
        ("api/v1/namespaces/ns/status", ("namespaces", "", "ns", "status")),
        ("api/v1/namespaces/ns/finalize", ("namespaces", "", "ns", "finalize")),
        ("api/v1/namespaces/ns/pods", ("pods", "ns", "", "")),
        ("api/v1/namespaces/ns/pods/p", ("pods", "ns", "p", "")),
        ("api/v1/namespaces/ns/pods/p/binding", ("pods", "ns", "p", "binding")),
        ("api/v1/watch/namespaces/ns/pods", ("pods", "ns", "", "")),
        ("api/v1/nodes/n", ("nodes", "", "n", "")),
        ("apis/example.com/v1/namespaces/ns/widgets/w/status", ("widgets", "ns", "w", "status")),
        ("apis/example.com/v1/namespaces/ns/widgets/w/scale", ("widgets", "ns", "w", "scale")),
        ("apis/example.com/v1/widgets", ("widgets", "", "", "")),
        ("apis/example.com/v2/widgets", None),
        ("apis/example.com/v1/gadgets", None),
        ("api/v1/namespaces/ns/nodes", None),
        ("api/v1/pods/p", None),
        ("api/v1/namespaces/ns/pods/p/scale", None),
        ("api/v1/namespaces/ns/pods/p/a/b", None),
        ("api/v1/watch", None),
    ],
)
def test_paths(registry: ResourceRegistry, path: str, expected: tuple[str, ...] | None) -> None:
    target = locate(registry, path.split("/"))

    found = target and (
        target.resource.kind.plural,
        target.namespace,
        target.name,
        target.subresource,
    )
    assert found == expected


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", MediaForm()),
        ("application/json", MediaForm()),
        ("*/*", MediaForm()),
        ("application/vnd.kubernetes.protobuf,application/json", MediaForm()),
        (f"{TABLE},application/json", MediaForm("Table", "meta.k8s.io/v1")),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            MediaForm("discovery", "apidiscovery.k8s.io/v2"),
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json",
            MediaForm(),
        ),
        ("application/json;as=Unheard,application/json", MediaForm()),
    ],
)
def test_the_first_form_that_can_be_given_is_given(accept: str, form: MediaForm) -> None:
    assert wanted_form(accept) == form


def test_other_forms_are_not_acceptable() -> None:
    with pytest.raises(ApiStatusError) as caught:
        wanted_form("text/html")

    assert caught.value.code == 406


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        (b'{"a": 1}', "application/json", {"a": 1}),
        (b'{"a": 1}', "", {"a": 1}),
        (b"a: 1\n", "application/yaml", {"a": 1}),
        (b"a: 1\n", "application/apply-patch+yaml", {"a": 1}),
        (b'{"a": 1}', "application/apply-patch+yaml; charset=utf-8", {"a": 1}),
    ],
)
def test_bodies(body: bytes, media: str, expected: Any) -> None:
    assert decode(body, media) == expected


@pytest.mark.parametrize(
    ("body", "media", "code"),
    [
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"a: [", "application/yaml", 400),
        (b"a: !!python/object:os.system {}", "application/yaml", 400),
        (b"a", "text/plain", 415),
        (b"a", "application/vnd.kubernetes.protobuf", 400),
    ],
)
def test_bodies_that_cannot_be_read(body: bytes, media: str, code: int) -> None:
    with pytest.raises(ApiStatusError) as caught:
        decode(body, media)

    assert caught.value.code == code
