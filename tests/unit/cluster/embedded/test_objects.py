"""Creating and changing objects: the steps of a request without HTTP."""

from typing import Any

import pytest

from pumice.api.kinds import (
    CONFIG_MAP,
    EVENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    SECRET,
    SERVICE,
    Kind,
)
from pumice.cluster.embedded import EmbeddedCluster
from pumice.cluster.embedded.calls import Call
from pumice.cluster.embedded.statuses import ApiStatusError
from tests.unit.cluster.embedded.support import Clock, config_map, offline, pod, widgets

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def widget(name: str = "w", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, **fields}


def causes(error: ApiStatusError) -> list[str]:
    assert error.details is not None
    return [cause["field"] for cause in error.details["causes"]]


def test_a_new_object_gets_what_only_the_server_gives() -> None:
    made = offline().store.create(
        config_map("x", uid="mine", creationTimestamp="1999-01-01T00:00:00Z", generation=7)
    )

    metadata = made["metadata"]
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert len(metadata["uid"]) == 36
    assert int(metadata["resourceVersion"]) > 1
    assert "generation" not in metadata


def test_two_clusters_give_the_same_uids_in_every_run() -> None:
    first, second = (offline().store.create(config_map("x")) for _ in range(2))

    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    other = offline(seed=1).store.create(config_map("x"))
    assert other["metadata"]["uid"] != first["metadata"]["uid"]


def test_names_are_generated_from_a_prefix() -> None:
    store = offline().store
    nameless = config_map("", generateName="y" * 80)
    del nameless["metadata"]["name"]

    first, second = store.create(nameless), store.create(nameless)

    names = [each["metadata"]["name"] for each in (first, second)]
    assert names[0] != names[1]
    assert all(len(name) == 63 and name.startswith("y" * 58) for name in names)


@pytest.mark.parametrize(
    ("obj", "code", "reason"),
    [
        (config_map(""), 422, "Invalid"),
        (config_map("UPPER"), 422, "Invalid"),
        (config_map("x", labels={"a b": "c"}), 422, "Invalid"),
        (config_map("x", labels={"a": "-"}), 422, "Invalid"),
        (config_map("x", annotations={"/a": "b"}), 422, "Invalid"),
        (config_map("x", finalizers=["unqualified"]), 422, "Invalid"),
        (config_map("x", ownerReferences=[{"name": "y"}]), 422, "Invalid"),
        (config_map("x", labels={"a": 1}), 400, "BadRequest"),
        (config_map("x", labels=["a"]), 400, "BadRequest"),
        (config_map("x", ownerReferences=["a"]), 400, "BadRequest"),
        (config_map("x", finalizers="a"), 400, "BadRequest"),
        (config_map("x", resourceVersion="5"), 500, ""),
        (config_map("x", namespace="elsewhere"), 404, "NotFound"),
        (config_map("taken"), 409, "AlreadyExists"),
        (config_map("x", {"a": 1}), 400, "BadRequest"),  # type: ignore[dict-item]
        (config_map("x") | {"metadata": "text"}, 400, "BadRequest"),
    ],
)
def test_what_cannot_be_created_is_refused(obj: dict[str, Any], code: int, reason: str) -> None:
    store = offline().store
    store.create(config_map("taken"))
    call = Call(store.resource(CONFIG_MAP), "default")
    if isinstance(obj["metadata"], dict):
        call.namespace = obj["metadata"].get("namespace", "default")

    with pytest.raises(ApiStatusError) as caught:
        store.objects.create(call, obj)

    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert len(store.list(CONFIG_MAP)) == 1


def test_two_controllers_of_one_object_are_refused() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
        for name in "ab"
    ]

    with pytest.raises(ApiStatusError, match="Only one reference can have Controller set to true"):
        offline().store.create(config_map("x", ownerReferences=owners))


def test_an_update_that_changes_nothing_writes_nothing() -> None:
    store = offline().store
    made = store.create(config_map("x", {"a": "b"}))
    revision = store.storage.revision

    again = store.update(made)

    assert again == made
    assert store.storage.revision == revision


def test_an_update_needs_the_version_that_it_has_seen() -> None:
    store = offline().store
    made = store.create(config_map("x", {"a": "1"}))
    store.update(made | {"data": {"a": "2"}})

    with pytest.raises(ApiStatusError) as caught:
        store.update(made | {"data": {"a": "3"}})

    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert caught.value.message == (
        'Operation cannot be fulfilled on configmaps "x": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )
    found = store.get(CONFIG_MAP, "x", "default")
    assert found is not None
    assert found["data"] == {"a": "2"}


@pytest.mark.parametrize(("kind", "insists"), [(CONFIG_MAP, False), (LEASE, True), (WIDGET, True)])
def test_some_kinds_insist_on_a_version(kind: Kind, insists: bool) -> None:
    store = offline(crds=[widgets()]).store
    obj = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x", "namespace": "default"},
    }
    store.create(obj)
    call = Call(store.resource(kind), "default", "x")

    if insists:
        with pytest.raises(ApiStatusError, match="must be specified for an update"):
            store.objects.update(call, obj)
    else:
        store.objects.update(call, obj)


def test_an_update_of_another_uid_or_name_is_refused() -> None:
    store = offline().store
    made = store.create(config_map("x"))
    call = Call(store.resource(CONFIG_MAP), "default", "x")

    for change, code in (({"uid": "other"}, 409), ({"name": "y"}, 400), ({"name": ""}, 400)):
        other = {**made, "metadata": {**made["metadata"], **change}}
        with pytest.raises(ApiStatusError) as caught:
            store.objects.update(call, other)
        assert caught.value.code == code


def test_what_the_server_gives_cannot_be_changed() -> None:
    store = offline().store
    made = store.create(config_map("x"))
    forged = {**made["metadata"], "creationTimestamp": "1999-01-01T00:00:00Z", "generation": 9}

    changed = store.update({**made, "metadata": forged, "data": {"a": "b"}})

    assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert "generation" not in changed["metadata"]


def test_generation_counts_changes_of_what_is_wanted() -> None:
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    store = offline(crds=[widgets(schema, subresources={"status": {}})]).store
    made = store.create(widget(spec={"a": 1}, status={"x": 1}))
    assert "status" not in made

    labelled = store.update({**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
    with_status = store.update_status({**labelled, "status": {"x": 1}, "spec": {"a": 5}})
    wanted = store.update({**with_status, "spec": {"a": 2}, "status": {"x": 9}})

    generations = [each["metadata"]["generation"] for each in (made, labelled, with_status, wanted)]
    assert generations == [1, 1, 1, 2]
    assert (with_status["spec"], with_status["status"]) == ({"a": 1}, {"x": 1})
    assert wanted["status"] == {"x": 1}


def test_a_crd_without_status_subresource_keeps_status_like_any_field() -> None:
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    store = offline(crds=[widgets(schema)]).store

    made = store.create(widget(status={"x": 1}))
    changed = store.update({**made, "status": {"x": 2}})

    assert (made["status"], changed["status"]) == ({"x": 1}, {"x": 2})
    assert changed["metadata"]["generation"] == 2


def test_schemas_are_enforced() -> None:
    spec = {
        "type": "object",
        "required": ["n"],
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "d": {"type": "string", "default": "x"},
        },
    }
    store = offline(crds=[widgets({"type": "object", "properties": {"spec": spec}})]).store

    made = store.create(widget(spec={"n": 1, "unknown": 2}))
    with pytest.raises(ApiStatusError) as caught:
        store.create(widget("bad", spec={"n": 0, "d": 5}))

    assert made["spec"] == {"n": 1, "d": "x"}
    assert caught.value.code == 422
    assert caught.value.message.startswith('Widget.example.com "bad" is invalid: [spec.n: ')
    assert causes(caught.value) == ["spec.n", "spec.d"]


def test_unknown_fields_warn_or_are_refused() -> None:
    store = offline(crds=[widgets({"type": "object", "properties": {"spec": OPEN}})]).store
    warned = Call(store.resource(WIDGET), "default")
    strict = Call(store.resource(WIDGET), "default", validation="Strict")
    ignored = Call(store.resource(WIDGET), "default", validation="Ignore")

    store.objects.create(warned, widget("a", typo=1))
    store.objects.create(ignored, widget("b", typo=1))
    with pytest.raises(ApiStatusError) as caught:
        store.objects.create(strict, widget("c", typo=1))

    assert warned.warnings == ['unknown field "typo"']
    assert ignored.warnings == []
    assert caught.value.code == 400
    assert caught.value.message.endswith('strict decoding error: unknown field "typo"')


@pytest.mark.parametrize(
    ("change", "code"),
    [({"kind": "Gadget"}, 422), ({"apiVersion": "example.com/v2"}, 422), ({"kind": ""}, 400)],
)
def test_a_body_of_another_kind_is_refused(change: dict[str, str], code: int) -> None:
    store = offline(crds=[widgets()]).store

    with pytest.raises(ApiStatusError) as caught:
        store.objects.create(Call(store.resource(WIDGET), "default"), widget() | change)

    assert caught.value.code == code


def test_a_dry_run_leaves_no_trace() -> None:
    store = offline().store
    revision = store.storage.revision
    call = Call(store.resource(CONFIG_MAP), "default", dry_run=True)

    version = store.objects.create(call, config_map("x"))

    assert version.obj["metadata"]["uid"]
    assert store.storage.revision == revision
    assert store.get(CONFIG_MAP, "x", "default") is None


def test_pods_get_the_defaults_that_clients_read() -> None:
    made = offline().store.create(
        pod(
            containers=[
                {"name": "a", "image": "registry:5000/a", "ports": [{"containerPort": 80}]},
                {
                    "name": "b",
                    "image": "b:1",
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                },
                {"name": "c", "image": "c@sha256:0"},
            ],
            hostNetwork=True,
        )
    )

    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["schedulerName"] == "default-scheduler"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert [each["imagePullPolicy"] for each in spec["containers"]] == [
        "Always",
        "IfNotPresent",
        "IfNotPresent",
    ]
    assert spec["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP", "hostPort": 80}
    ]
    assert spec["containers"][1]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert made["status"] == {"phase": "Pending", "qosClass": "Burstable"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], quality: str) -> None:
    container = {"name": "a", "image": "i", "resources": resources}

    made = offline().store.create(pod(containers=[container]))

    assert made["status"]["qosClass"] == quality


def test_bad_pods_are_refused_with_every_error() -> None:
    bad = pod(
        containers=[{}, {"name": "A", "image": "i"}, {"name": "b", "image": "i"}] * 2,
        restartPolicy="Sometimes",
        initContainers=[{"name": "i"}],
    )

    with pytest.raises(ApiStatusError) as caught:
        offline().store.create(bad)

    assert causes(caught.value) == [
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.containers[1].name",
        "spec.containers[3].name",
        "spec.containers[3].image",
        "spec.containers[4].name",
        "spec.containers[5].name",
        "spec.initContainers[0].image",
        "spec.restartPolicy",
    ]
    with pytest.raises(ApiStatusError, match=r"spec\.containers: Required value"):
        offline().store.create(pod(containers=[]))


def test_of_a_pod_only_little_may_change() -> None:
    store = offline().store
    made = store.create(pod(tolerations=[{"key": "a"}], schedulingGates=[{"name": "g/h"}]))

    def updated(**spec: Any) -> dict[str, Any]:
        return store.update({**made, "spec": {**made["spec"], **spec}})

    refusals: list[dict[str, Any]] = [
        {"nodeName": "n"},
        {"tolerations": []},
        {"schedulingGates": [{"name": "other/gate"}]},
        {"containers": [{**made["spec"]["containers"][0], "name": "renamed"}]},
    ]
    for refused in refusals:
        with pytest.raises(ApiStatusError) as caught:
            updated(**refused)
        assert caught.value.code == 422
    changed = updated(
        containers=[{**made["spec"]["containers"][0], "image": "newer"}],
        tolerations=[{"key": "a", "tolerationSeconds": 5}, {"key": "b"}],
        activeDeadlineSeconds=5,
        nodeSelector={"a": "b"},
        schedulingGates=[],
    )
    assert changed["metadata"]["generation"] == 2
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"


def test_a_pods_priority_comes_from_its_class() -> None:
    store = offline().store
    store.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
            "preemptionPolicy": "Never",
        }
    )

    high = store.create(pod("a", priorityClassName="high"))
    system = store.create(pod("b", priorityClassName="system-node-critical"))
    with pytest.raises(ApiStatusError) as caught:
        store.create(pod("c", priorityClassName="missing"))

    assert (high["spec"]["priority"], high["spec"]["preemptionPolicy"]) == (1000, "Never")
    assert system["spec"]["priority"] == 2_000_001_000
    assert caught.value.code == 403
    assert caught.value.message == (
        'pods "c" is forbidden: no PriorityClass with name missing was found'
    )


def test_the_lowest_global_default_class_is_the_default() -> None:
    store = offline().store
    for name, value in (("high", 9), ("low", 3)):
        store.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "globalDefault": True,
            }
        )

    made = store.create(pod())

    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("low", 3)


def test_a_priority_class_keeps_its_value() -> None:
    store = offline().store
    made = store.get(PRIORITY_CLASS, "system-node-critical")
    assert made is not None

    with pytest.raises(ApiStatusError) as caught:
        store.update(made | {"value": 1})

    assert causes(caught.value) == ["value"]


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def test_services_get_addresses_unless_they_are_headless() -> None:
    store = offline().store

    first = store.create(service("a", ports=[{"port": 80}]))
    second = store.create(service("b", ports=[{"port": 80}]))
    headless = store.create(service("c", clusterIP="None", selector={"a": "b"}))
    external = store.create(service("d", type="ExternalName", externalName="example.com"))

    assert first["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert first["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]
    assert headless["spec"]["clusterIPs"] == ["None"]
    assert "clusterIP" not in external["spec"]
    assert first["status"] == {"loadBalancer": {}}


def test_a_service_keeps_its_address() -> None:
    store = offline().store
    made = store.create(service(ports=[{"port": 80}]))

    changed = store.update(service(ports=[{"port": 81}]))
    with pytest.raises(ApiStatusError, match="may not change once set"):
        store.update(service(ports=[{"port": 81}], clusterIP="10.96.9.9"))

    assert changed["spec"]["clusterIP"] == made["spec"]["clusterIP"]


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({}, ["spec.ports"]),
        ({"type": "Odd", "clusterIP": "None"}, ["spec.type"]),
        ({"ports": [{"port": 0}]}, ["spec.ports[0].port"]),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}, ["spec.ports[1].name"]),
    ],
)
def test_bad_services_are_refused(spec: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(ApiStatusError) as caught:
        offline().store.create(service(**spec))

    assert causes(caught.value) == fields


def secret(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "s", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **fields}


def test_secrets_take_text_and_keep_base64() -> None:
    store = offline().store

    made = store.create(secret(stringData={"a": "text"}, data={"b": "Yg=="}))

    assert made["data"] == {"a": "dGV4dA==", "b": "Yg=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made
    for bad in ({"data": {"a": "%"}}, {"stringData": {"a": 1}}, {"stringData": "text"}):
        with pytest.raises(ApiStatusError) as caught:
            store.create(secret(**bad))
        assert caught.value.code == 400
    assert len(store.list(SECRET)) == 1


def test_events_stand_where_their_object_is() -> None:
    store = offline().store
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    }

    made = store.create(event)
    with pytest.raises(ApiStatusError, match=r"does not match event\.namespace"):
        store.create(event | {"involvedObject": {"namespace": "kube-system"}})

    assert made["reportingComponent"] == ""
    assert store.list(EVENT, fields="involvedObject.name=p,involvedObject.kind=Pod") == [made]


def test_namespaces_begin_active_and_keep_their_finalizer() -> None:
    store = offline().store
    made = store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})

    changed = store.update(
        {**made, "spec": {}, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
    )

    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "ns"}
    assert changed["spec"] == {"finalizers": ["kubernetes"]}
    names = [each["metadata"]["name"] for each in store.list(NAMESPACE)]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system", "ns"]


def test_a_node_brings_its_status_and_then_keeps_it() -> None:
    store = offline().store
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "1"}},
    }

    made = store.create(node)
    changed = store.update({**made, "spec": {"unschedulable": True}, "status": {}})
    status = store.update_status(
        {**changed, "spec": {}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}}
    )

    assert made["status"]["allocatable"] == {"cpu": "1"}
    assert changed["status"] == made["status"]
    assert status["spec"] == {"unschedulable": True}
    assert status["status"]["capacity"] == {"cpu": "2"}
    assert store.list(NODE, fields="spec.unschedulable=true") == [status]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"group": ""}, ["spec.group"]),
        ({"group": "other.example.com"}, ["metadata.name"]),
        ({"scope": "Somewhere"}, ["spec.scope"]),
        ({"versions": []}, ["spec.versions"]),
        (
            {"versions": [{"name": "v1", "served": True, "storage": False}]},
            ["spec.versions", "spec.versions[0].schema.openAPIV3Schema"],
        ),
    ],
)
def test_bad_definitions_are_refused(change: dict[str, Any], fields: list[str]) -> None:
    crd = widgets()
    crd["spec"] |= change

    with pytest.raises(ApiStatusError) as caught:
        offline().store.create(crd)

    assert causes(caught.value) == fields


def test_a_definition_serves_its_kind_at_once_and_until_it_goes() -> None:
    cluster = offline()
    store = cluster.store
    with pytest.raises(ApiStatusError, match='no matches for kind "Widget"'):
        store.create(widget())
    made = store.create(widgets())
    established = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    store.create(widget())

    store.delete(Kind(**_crd_kind()), "widgets.example.com")
    cluster.settle()

    assert established == {"NamesAccepted": "True", "Established": "True"}
    with pytest.raises(ApiStatusError) as caught:
        store.list(WIDGET)
    assert caught.value.code == 404


def _crd_kind() -> dict[str, Any]:
    return {
        "group": "apiextensions.k8s.io",
        "version": "v1",
        "kind": "CustomResourceDefinition",
        "plural": "customresourcedefinitions",
    }


def test_a_changed_definition_changes_the_schema() -> None:
    store = offline().store
    made = store.create(widgets({"type": "object", "properties": {"a": {"type": "string"}}}))
    version = made["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["b"] = {"type": "string"}

    store.update(made)

    assert store.create(widget(a="1", b="2"))["b"] == "2"


def test_versions_of_one_kind_share_their_objects() -> None:
    crd = widgets()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    store = offline(crds=[crd]).store
    store.create(widget())

    later = Kind("example.com", "v2", "Widget", "widgets")

    assert [each["metadata"]["name"] for each in store.list(later)] == ["w"]


def test_direct_writes_default_to_the_namespace_default_and_copy() -> None:
    clock = Clock()
    store = EmbeddedCluster(clock=clock).store
    given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod()["spec"]}

    made = store.create(given)
    made["spec"]["containers"].clear()

    assert "namespace" not in given["metadata"]
    found = store.get(POD, "p", "default")
    assert found is not None
    assert len(found["spec"]["containers"]) == 1
    assert store.get(SERVICE, "p", "default") is None
