"""Pods: defaults, what may change, status, binding, eviction, grace."""

import asyncio
from typing import Any

import pytest

from pumice.api.meta import parse_time
from tests.contract.api import Api, Json
from tests.contract.kinds import manifest, path, pod
from tests.kit.tables import table

pytestmark = pytest.mark.usefixtures("pod_namespace")
CLASSES = "scheduling.k8s.io/v1/priorityclasses"
RUNTIME_CLASSES = "node.k8s.io/v1/runtimeclasses"

OF_EVERY_POD = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]  # fmt: skip


def binding(name: str = "p", node: str = "a-node", **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


async def test_a_new_pod_is_pending_with_its_defaults(api: Api, namespace: str) -> None:
    made = (await api.create(path("pods", namespace), pod())).expect(201)

    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    spec = made["spec"]
    expected = {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "enableServiceLinks": True,
        "securityContext": {},
    }
    assert {key: spec.get(key) for key in expected} == expected
    assert made["metadata"]["generation"] == 1


async def test_limits_are_requests_too(api: Api, namespace: str) -> None:
    resources = {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]

    made = (await api.create(path("pods", namespace), pod(containers=containers))).expect(201)

    found = made["spec"]["containers"][0]["resources"]
    assert found["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert made["status"]["qosClass"] == "Burstable"


async def test_a_bad_pod_is_refused_with_every_cause(api: Api, namespace: str) -> None:
    containers = [{}, {"name": "A", "image": "i"}, {"name": "b", "image": "i"}]
    bad = pod(containers=[*containers, containers[2]], restartPolicy="Sometimes")

    status = (await api.create(path("pods", namespace), bad)).refused(422, "Invalid")

    assert [cause["field"] for cause in status["details"]["causes"]] == [
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.containers[1].name",
        "spec.containers[3].name",
        "spec.restartPolicy",
    ]
    empty = await api.create(path("pods", namespace), pod(containers=[]))
    [cause] = empty.refused(422, "Invalid")["details"]["causes"]
    assert (cause["field"], cause["message"]) == ("spec.containers", "Required value")


async def test_the_spec_of_a_pod_hardly_changes(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    (await api.create(path("pods", namespace), pod())).expect(201)

    node = await api.patch("merge", one, {"spec": {"nodeName": "n"}})
    image = {"spec": {"containers": [{"name": "c", "image": "image:2"}]}}
    changed = await api.patch("strategic", one, image)

    message = node.refused(422, "Invalid")["message"]
    assert "pod updates may not change fields other than" in message
    assert changed.expect(200)["metadata"]["generation"] == 2


async def test_the_status_of_a_pod_is_written_below_it(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    made = (await api.create(path("pods", namespace), pod())).expect(201)
    running = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}

    main = await api.update(one, {**made, "status": running})
    assert main.expect(200)["status"]["phase"] == "Pending"
    below = await api.update(f"{one}/status", {**main.body, "status": running})

    body = below.expect(200)
    assert body["status"]["phase"] == "Running"
    assert body["status"]["qosClass"] == "BestEffort"
    assert body["metadata"]["generation"] == 1


async def test_a_pod_is_bound_once(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    (await api.create(path("pods", namespace), pod())).expect(201)

    first = await api.create(f"{one}/binding", binding())
    second = await api.create(f"{one}/binding", binding(node="another"))

    assert first.expect(201)["status"] == "Success"
    status = second.refused(409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node '
        '"a-node"'
    )
    assert status["details"] == {"name": "p", "kind": "pods/binding"}
    found = (await api.get(one)).expect(200)
    assert found["spec"]["nodeName"] == "a-node"
    [condition] = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    await api.delete(one, {"gracePeriodSeconds": 0})


async def test_a_binding_brings_annotations(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    (await api.create(path("pods", namespace), pod())).expect(201)

    (await api.create(f"{one}/binding", binding(annotations={"a": "b"}))).expect(201)

    assert (await api.get(one)).expect(200)["metadata"]["annotations"] == {"a": "b"}
    await api.delete(one, {"gracePeriodSeconds": 0})


async def test_a_binding_of_another_uid_is_refused(api: Api, namespace: str) -> None:
    (await api.create(path("pods", namespace), pod())).expect(201)

    answer = await api.create(path("pods", namespace, "p", "binding"), binding(uid="1"))

    answer.refused(409, "Conflict")


async def test_what_is_missing_gated_or_going_is_not_bound(api: Api, namespace: str) -> None:
    collection = path("pods", namespace)
    (await api.create(collection, pod("gated", schedulingGates=[{"name": "a/b"}]))).expect(201)
    going = pod("going")
    going["metadata"]["finalizers"] = ["example.com/hold"]
    (await api.create(collection, going)).expect(201)
    (await api.delete(f"{collection}/going")).expect(200)

    missing = await api.create(f"{collection}/missing/binding", binding("missing"))
    gated = await api.create(f"{collection}/gated/binding", binding("gated"))
    late = await api.create(f"{collection}/going/binding", binding("going"))

    missing.refused(404, "NotFound")
    assert "schedulingGates" in gated.refused(409, "Conflict")["message"]
    assert "is being deleted" in late.refused(409, "Conflict")["message"]
    release = {"metadata": {"finalizers": None}}
    (await api.patch("merge", f"{collection}/going", release)).expect(200)


async def test_a_dry_binding_binds_nothing(api: Api, namespace: str) -> None:
    (await api.create(path("pods", namespace), pod())).expect(201)

    answer = await api.create(path("pods", namespace, "p", "binding"), binding(), dryRun="All")

    answer.expect(201)
    found = (await api.get(path("pods", namespace, "p"))).expect(200)
    assert "nodeName" not in found["spec"]


async def test_a_gated_pod_says_so(api: Api, namespace: str) -> None:
    gates = [{"name": "example.com/gate"}]
    one = path("pods", namespace, "p")
    made = (await api.create(path("pods", namespace), pod(schedulingGates=gates))).expect(201)

    lifted = await api.patch("merge", one, {"spec": {"schedulingGates": []}})

    [condition] = made["status"]["conditions"]
    assert (condition["reason"], condition["status"]) == ("SchedulingGated", "False")
    assert not lifted.expect(200)["spec"].get("schedulingGates")


async def test_gates_are_taken_away_from_the_pod_that_was_meant(api: Api, namespace: str) -> None:
    gates = [{"name": "example.com/gate"}]
    one = path("pods", namespace, "p")
    made = (await api.create(path("pods", namespace), pod(schedulingGates=gates))).expect(201)

    of_another = {"metadata": {"uid": "another"}, "spec": {"schedulingGates": None}}
    assert (await api.patch("merge", one, of_another)).code in (409, 422)
    own = {"metadata": {"uid": made["metadata"]["uid"]}, "spec": {"schedulingGates": None}}
    lifted = (await api.patch("merge", one, own)).expect(200)

    assert "schedulingGates" not in lifted["spec"]
    assert (await api.create(f"{one}/binding", binding())).code == 201


def eviction(**options: Any) -> Json:
    obj: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    if options:
        obj["deleteOptions"] = options
    return obj


async def test_an_eviction_deletes(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    (await api.create(path("pods", namespace), pod())).expect(201)

    dry = await api.create(f"{one}/eviction", eviction(dryRun=["All"]))
    assert dry.expect(201)["status"] == "Success"
    assert (await api.get(one)).code == 200
    evicted = await api.create(f"{one}/eviction", eviction())
    again = await api.create(f"{one}/eviction", eviction())

    assert evicted.expect(201)["status"] == "Success"
    again.refused(404, "NotFound")


async def test_an_unbound_pod_goes_at_once_a_bound_one_gets_its_grace(
    api: Api, namespace: str
) -> None:
    collection = path("pods", namespace)
    (await api.create(collection, pod("unbound"))).expect(201)
    bound = pod("bound", nodeName="somewhere", terminationGracePeriodSeconds=20)
    (await api.create(collection, bound)).expect(201)

    unbound = (await api.delete(f"{collection}/unbound")).expect(200)
    marked = (await api.delete(f"{collection}/bound")).expect(200)
    forced = (await api.delete(f"{collection}/bound", {"gracePeriodSeconds": 0})).expect(200)

    assert (unbound["kind"], unbound["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert (await api.get(f"{collection}/unbound")).code == 404
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 20
    assert marked["metadata"]["generation"] == 2
    assert forced["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(f"{collection}/bound")).code == 404


async def test_a_shorter_grace_counts_from_the_first_request(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    (await api.create(path("pods", namespace), pod(nodeName="somewhere"))).expect(201)

    first = (await api.delete(one, {"gracePeriodSeconds": 300})).expect(200)["metadata"]
    await asyncio.sleep(1.1)  # times have whole seconds
    again = (await api.delete(one)).expect(200)["metadata"]
    shorter = (await api.delete(one, {"gracePeriodSeconds": 100})).expect(200)["metadata"]
    longer = (await api.delete(one, {"gracePeriodSeconds": 200})).expect(200)["metadata"]
    now = (await api.delete(one, {"gracePeriodSeconds": 0})).expect(200)["metadata"]

    assert [
        each["deletionGracePeriodSeconds"] for each in (first, again, shorter, longer, now)
    ] == [*(300, 300, 100, 100, 0)]
    ends = [parse_time(each["deletionTimestamp"]) or 0.0 for each in (first, shorter, now)]
    assert ends[0] - 300 == ends[1] - 100 < ends[2]


async def test_an_ended_pod_goes_at_once(api: Api, namespace: str) -> None:
    one = path("pods", namespace, "p")
    (await api.create(path("pods", namespace), pod(nodeName="somewhere"))).expect(201)
    (await api.patch("merge", f"{one}/status", {"status": {"phase": "Succeeded"}})).expect(200)

    (await api.delete(one)).expect(200)

    assert (await api.get(one)).code == 404


async def test_priority_comes_from_the_class(api: Api, namespace: str) -> None:
    name = f"class-of-{namespace}"
    obj = manifest(CLASSES, "PriorityClass", name, value=1000, preemptionPolicy="Never")
    (await api.create(path(CLASSES), obj)).expect(201)

    made = await api.create(path("pods", namespace), pod(priorityClassName=name))
    unknown = await api.create(path("pods", namespace), pod("q", priorityClassName="unknown"))

    spec = made.expect(201)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    assert unknown.refused(403, "Forbidden")["message"] == (
        'pods "q" is forbidden: no PriorityClass with name unknown was found'
    )
    (await api.delete(path(CLASSES, None, name))).expect(200)


async def test_a_headless_service_has_no_address(api: Api, namespace: str) -> None:
    spec = {"clusterIP": "None", "selector": {"a": "b"}}
    obj = manifest("services", "Service", "s", spec=spec)

    made = (await api.create(path("services", namespace), obj)).expect(201)
    deleted = (await api.delete(path("services", namespace, "s"))).expect(200)

    assert (made["spec"]["clusterIP"], made["spec"]["clusterIPs"]) == ("None", ["None"])
    assert made["status"] == {"loadBalancer": {}}
    assert deleted["kind"] == "Service"


async def test_secrets_take_text(api: Api, namespace: str) -> None:
    obj = manifest("secrets", "Secret", "s", stringData={"a": "text"})

    made = (await api.create(path("secrets", namespace), obj)).expect(201)

    assert made["data"] == {"a": "dGV4dA=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


async def test_a_runtime_class_is_written_into_its_pods(api: Api, namespace: str) -> None:
    for number, case in enumerate(table("embedded/runtime-classes")):
        spec = dict(case["pod"])
        if "class" in case:
            name = spec["runtimeClassName"] = f"{namespace}-{number}"
            fields = {"handler": "kata", **case["class"]}
            made = manifest(RUNTIME_CLASSES, "RuntimeClass", name, **fields)
            (await api.create(path(RUNTIME_CLASSES), made)).expect(201)
        # The real API server adds tolerations of its own if these are not there.
        spec["tolerations"] = [*spec.get("tolerations", ()), *OF_EVERY_POD]
        asked = pod(f"p-{number}", **spec)

        answer = await api.create(path("pods", namespace), asked, dryRun="All")

        if "refused" in case:
            message = answer.refused(403, "Forbidden")["message"]
            assert message == f'pods "p-{number}" is forbidden: {case["refused"]}'
            continue
        expected = dict(case["found"])
        own = expected.pop("tolerations", ()) or ()
        found = answer.expect(201)["spec"]
        assert [each for each in found["tolerations"] if each not in OF_EVERY_POD] == [*own]
        assert {key: found.get(key) for key in expected} == expected, case["says"]
