"""What the server knows of the built-in kinds: their defaults, and what it refuses."""

from typing import Any

import pytest

from pumice.api.kinds import (
    EVENT,
    NAMESPACE,
    NODE,
    PRIORITY_CLASS,
    SECRET,
)
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import causes, offline, pod


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
