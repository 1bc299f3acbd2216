"""Whatever stands in a body, the answer is an object or a refusal, never a fault of the server."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pytest

from pumice.api.raw import merged
from pumice.embedded.apply import apply
from pumice.embedded.patches import JSON_PATCH, STRATEGIC_PATCH, patched
from pumice.embedded.resources import Call
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Version
from pumice.embedded.tables import Tables
from tests.unit.embedded.support import Clock, config_map, offline, pod, widgets

T = TypeVar("T")
NONSENSE: tuple[Any, ...] = (
    None,
    1,
    -1.5,
    True,
    "",
    "x",
    [],
    [None],
    ["x"],
    [1],
    {},
    {"x": 1},
    [{}],
)


def whole_pod() -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
    }
    obj = pod(
        containers=[container],
        initContainers=[{**container, "name": "i"}],
        tolerations=[{"key": "a"}],
        schedulingGates=[{"name": "a/b"}],
        nodeSelector={"a": "b"},
        priorityClassName="system-node-critical",
        hostNetwork=True,
        terminationGracePeriodSeconds=5,
    )
    obj["metadata"] |= {
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["a/b"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}],
    }
    return obj


def other(kind: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


COLUMN = {"name": "N", "type": "string", "jsonPath": ".spec.n"}
MANIFESTS = (
    whole_pod(),
    config_map("x", {"a": "b"}),
    other("Secret", data={"a": "Yg=="}, stringData={"c": "d"}, type="Opaque"),
    other("Service", spec={"type": "ClusterIP", "ports": [{"port": 80}], "selector": {"a": "b"}}),
    other("Node", spec={"taints": [{"key": "a"}]}, status={"capacity": {"cpu": "1"}}),
    other("Namespace", spec={"finalizers": ["kubernetes"]}),
    other("Event", involvedObject={"kind": "Pod", "namespace": "default"}, count=1),
    other("Lease", "coordination.k8s.io/v1", spec={"holderIdentity": "a"}),
    other("PriorityClass", "scheduling.k8s.io/v1", value=1, globalDefault=True),
    widgets(additionalPrinterColumns=[COLUMN], subresources={"status": {}}),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value but the value itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def spoiled(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in places(manifest):
        if path[0] in {"apiVersion", "kind"}:
            continue
        for nonsense in NONSENSE:
            bad = copy.deepcopy(manifest)
            holder: Any = bad
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = copy.deepcopy(nonsense)
            yield bad


def outcome(work: Callable[[], T]) -> tuple[T | None, int]:
    """What some work gives, and the code of its refusal (200 for none)."""
    try:
        return work(), 200
    except ApiStatusError as error:
        return None, error.code


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_nonsense_is_refused_or_kept(manifest: dict[str, Any]) -> None:
    cluster = offline()
    store = cluster.store
    tables = Tables(Clock())
    call = store.call_of(manifest)
    kept = refused = 0
    for bad in spoiled(manifest):
        made, code = outcome(partial(store.objects.create, _again(call), bad))
        if made is None:
            # Kubernetes, too, calls a version in a new object a fault.
            assert code < 500 or "resourceVersion" in bad["metadata"], bad
            refused += 1
            continue
        kept += 1
        tables.table(call.resource, [made], "", headed=True)
        key = (call.resource.key, call.namespace, made.obj["metadata"]["name"])
        store.storage.remove(*key, dict(made.obj))
        cluster.settle()
    assert kept
    assert refused


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_nonsense_in_changes_is_refused_or_kept(manifest: dict[str, Any]) -> None:
    store = offline().store
    call = store.call_of(manifest)
    made = store.create(manifest)
    call.name = made["metadata"]["name"]

    def attempt(number: int, bad: dict[str, Any]) -> None:
        change = _again(call)
        change.dry_run = True
        if number % 3 == 0:
            apply(store.objects, change, bad)
        elif number % 3 == 1:
            change.subresource = "status" if call.resource.subresource("status") else ""
            store.objects.change(change, lambda old: merged(old, bad))
        else:
            store.objects.update(change, bad)

    for number, bad in enumerate(spoiled(made)):
        _, code = outcome(partial(attempt, number, bad))
        assert code < 500, bad


OPERATIONS = (
    {"op": "add", "path": "/spec/x", "value": 1},
    {"op": "move", "path": "/spec/x", "from": "/spec/containers/0"},
    {"op": "test", "path": "/spec/containers/0/name", "value": "c"},
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation["op"])
def test_nonsense_in_json_patches_is_refused(operation: dict[str, Any]) -> None:
    for field in operation:
        for nonsense in NONSENSE:
            bad = [operation | {field: nonsense}]
            _, code = outcome(partial(patched, JSON_PATCH, whole_pod(), bad))
            assert code in {200, 400, 422}, bad


STRATEGIC = {
    "metadata": {"finalizers": ["c/d"], "$deleteFromPrimitiveList/finalizers": ["a/b"]},
    "spec": {
        "$setElementOrder/containers": [{"name": "c"}],
        "containers": [{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}],
        "volumes": [{"name": "v", "$retainKeys": ["name"]}],
    },
}


def test_nonsense_in_strategic_patches_is_refused() -> None:
    for bad in spoiled(STRATEGIC):
        _, code = outcome(partial(patched, STRATEGIC_PATCH, whole_pod(), bad))
        assert code in {200, 400}, bad


def _again(call: Call) -> Call:
    return Call(call.resource, call.namespace, call.name)


def test_copies_are_private() -> None:
    version = Version({"metadata": {"name": "x"}}, 1)

    version.copy()["metadata"]["name"] = "y"

    assert version.obj["metadata"]["name"] == "x"
