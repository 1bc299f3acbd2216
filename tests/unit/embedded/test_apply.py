"""Server-side apply and who owns which field."""

import copy
from typing import Any

import pytest

from pumice.api.crds import all_crds
from pumice.api.kinds import CONFIG_MAP, JOB, Kind
from pumice.api.raw import merged
from pumice.cli.development.dev_cluster import StoreView
from pumice.embedded import EmbeddedCluster, fieldsets
from pumice.embedded.apply import apply
from pumice.embedded.fieldtypes import field_type
from pumice.embedded.resources import Call, Resource
from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Version
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings
from tests.kit.builders import job, queue, task
from tests.unit.embedded.support import Clock, cases, config_map, offline, widgets

KINDS = {
    "ConfigMap": CONFIG_MAP,
    "StatefulSet": Kind("apps", "v1", "StatefulSet", "statefulsets"),
}


class Applied:
    """One object under the hands of several managers."""

    def __init__(self, cluster: EmbeddedCluster, kind: Kind) -> None:
        self.clock = Clock()
        self._objects = cluster.store.objects
        self._resource = cluster.store.resource(kind)

    def call(self, manager: str, *, force: bool = False, subresource: str = "") -> Call:
        return Call(
            self._resource, "default", "o", subresource=subresource, manager=manager, force=force
        )

    @property
    def resource(self) -> Resource:
        return self._resource

    def current(self) -> Version | None:
        return self._objects.storage.get(self._resource.key, "default", "o")

    def manifest(self, parts: dict[str, Any]) -> dict[str, Any]:
        kind = self._resource.kind
        base = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "o"}}
        return dict(merged(base, copy.deepcopy(parts)))

    def apply(self, manager: str, parts: dict[str, Any], **options: Any) -> Version:
        call = self.call(manager, **options)
        return apply(self._objects, call, self.manifest(parts))[0]

    def update(self, manager: str, patch: dict[str, Any]) -> None:
        call = self.call(manager)
        if self.current() is None:
            self._objects.create(call, self.manifest(patch))
        else:
            self._objects.change(call, lambda old: merged(old.copy(), patch))

    def owners(self) -> dict[str, list[str]]:
        version = self.current()
        assert version is not None
        return {
            entry["manager"]: sorted(map(fieldsets.shown, fieldsets.decode(entry["fieldsV1"])))
            for entry in version.obj["metadata"].get("managedFields", [])
        }


def holds(obj: dict[str, Any], parts: dict[str, Any]) -> None:
    for part, wanted in parts.items():
        if part == "metadata":
            assert {key: obj["metadata"][key] for key in wanted} == wanted
        else:
            assert obj[part] == wanted


@pytest.mark.parametrize("row", cases("apply"), ids=lambda row: row["name"])
def test_apply(row: dict[str, Any]) -> None:
    applied = Applied(offline(), KINDS[row["kind"]])
    for step in row["steps"]:
        before = applied.current()
        if "update" in step:
            applied.update(step["update"], step["patch"])
        elif "conflicts" in step:
            with pytest.raises(ApiStatusError) as caught:
                applied.apply(step["apply"], step["config"])
            details = caught.value.details
            assert caught.value.code == 409
            assert details is not None
            assert [cause["field"] for cause in details["causes"]] == step["conflicts"]
        else:
            applied.apply(step["apply"], step["config"], force=step.get("force", False))

        current = applied.current()
        assert current is not None
        holds(current.obj, step["result"])
        if step.get("unchanged"):
            assert current is before
        if "owners" in step:
            found = applied.owners()
            assert {manager: found.get(manager) for manager in step["owners"]} == step["owners"]
            assert step["owners"] != {} or found == {}


def test_conflicts_name_the_manager_and_the_field() -> None:
    applied = Applied(offline(), CONFIG_MAP)
    applied.apply("a", {"data": {"x": "1", "y": "1"}})
    applied.update("editor", {"data": {"y": "2"}})

    with pytest.raises(ApiStatusError) as one:
        applied.apply("b", {"data": {"x": "2"}})
    with pytest.raises(ApiStatusError) as two:
        applied.apply("b", {"data": {"x": "2", "y": "3"}})

    assert one.value.message == 'Apply failed with 1 conflict: conflict with "a": .data.x'
    assert two.value.message == (
        'Apply failed with 2 conflicts: conflicts with "a":\n- .data.x\n'
        'conflicts with "editor" using v1:\n- .data.y'
    )


def test_the_record_keeps_its_time_while_nothing_changes() -> None:
    clock = Clock()
    cluster = EmbeddedCluster(clock=clock)
    applied = Applied(cluster, CONFIG_MAP)
    first = applied.apply("a", {"data": {"x": "1"}})
    clock.moment += 60

    again = applied.apply("a", {"data": {"x": "1"}})

    assert again is first


def test_status_belongs_to_its_subresource() -> None:
    schema = {
        "type": "object",
        "properties": {
            part: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            for part in ("spec", "status")
        },
    }
    cluster = offline(crds=[widgets(schema, subresources={"status": {}})])
    applied = Applied(cluster, Kind("example.com", "v1", "Widget", "widgets", status=True))
    applied.apply("user", {"spec": {"a": 1}, "status": {"x": 1}})

    applied.apply("controller", {"spec": {"a": 2}, "status": {"x": 2}}, subresource="status")

    current = applied.current()
    assert current is not None
    assert (current.obj["spec"], current.obj["status"]) == ({"a": 1}, {"x": 2})
    assert applied.owners() == {"user": [".spec.a"], "controller": [".status.x"]}


def test_a_status_cannot_be_applied_to_nothing() -> None:
    applied = Applied(offline(), KINDS["StatefulSet"])

    with pytest.raises(ApiStatusError) as caught:
        applied.apply("a", {"status": {"replicas": 1}}, subresource="status")

    assert caught.value.code == 404


def test_a_record_in_the_configuration_is_refused() -> None:
    applied = Applied(offline(), CONFIG_MAP)

    with pytest.raises(ApiStatusError) as caught:
        applied.apply("a", {"metadata": {"managedFields": [{"manager": "x"}]}})

    assert caught.value.code == 400


def test_the_record_can_be_dropped() -> None:
    applied = Applied(offline(), CONFIG_MAP)
    applied.apply("a", {"data": {"x": "1"}})

    applied.update("u", {"metadata": {"managedFields": []}})

    assert applied.owners() == {}


def test_a_dry_run_applies_nothing() -> None:
    cluster = offline()
    cluster.store.create(config_map("o", {"x": "1"}))
    applied = Applied(cluster, CONFIG_MAP)
    call = applied.call("a")
    call.dry_run = True

    version, created = apply(cluster.store.objects, call, applied.manifest({"data": {"y": "2"}}))

    assert not created
    assert version.obj["data"] == {"x": "1", "y": "2"}
    current = applied.current()
    assert current is not None
    assert current.obj["data"] == {"x": "1"}


def test_field_sets_survive_being_written_down() -> None:
    cluster = offline()
    resource = cluster.store.resource(KINDS["StatefulSet"])
    obj = {
        "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"], "uid": "not owned"},
        "spec": {
            "empty": {},
            "list": [1, 2],
            "containers": [{"name": "c", "ports": [{"containerPort": 80}]}],
        },
    }

    paths = fieldsets.leaves(obj, field_type(resource))

    assert fieldsets.decode(fieldsets.encode(paths)) == paths
    assert sorted(map(fieldsets.shown, paths)) == [
        '.metadata.finalizers[="x/y"]',
        ".metadata.labels.a",
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].name',
        '.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]',
        '.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].containerPort',
        ".spec.empty",
        ".spec.list",
    ]


def test_lists_of_crds_are_merged_as_their_schema_says() -> None:
    item = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "main"},
            "value": {"type": "string"},
        },
    }
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": item,
    }
    plain = {"type": "array", "items": item}
    spec = {"type": "object", "properties": {"keyed": keyed, "plain": plain}}
    cluster = offline(crds=[widgets({"type": "object", "properties": {"spec": spec}})])
    applied = Applied(cluster, Kind("example.com", "v1", "Widget", "widgets"))
    applied.apply("a", {"spec": {"keyed": [{"value": "1"}], "plain": [{"value": "1"}]}})

    applied.apply("b", {"spec": {"keyed": [{"name": "other", "value": "2"}]}})
    applied.apply("a", {"spec": {"keyed": [{"value": "3"}], "plain": [{"value": "3"}]}})

    current = applied.current()
    assert current is not None
    assert current.obj["spec"] == {
        "keyed": [{"name": "other", "value": "2"}, {"name": "main", "value": "3"}],
        "plain": [{"name": "main", "value": "3"}],
    }


def test_what_was_not_set_by_a_user_follows_where_writes_are_recorded_from_the_start() -> None:
    """Client-side apply scales a Job down: `minAvailable`, which admission wrote, belongs to no manager."""
    view = StoreView()
    admission = Admission(AdmissionSettings(), view, builtin())
    cluster = offline(
        crds=all_crds(), admission=admission, registrations=REGISTRATIONS, records=True
    )
    view.store = cluster.store
    cluster.store.create(queue("default"))
    objects, resource = cluster.store.objects, cluster.store.resource(JOB)
    manifest = job("j", [task("t", 4)])
    call = Call(resource, "default", "j", manager="kubectl-client-side-apply")
    created = objects.create(call, manifest).obj
    assert created["spec"]["minAvailable"] == 4
    [entry] = created["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl-client-side-apply", "Update")
    assert "f:minAvailable" not in entry["fieldsV1"]["f:spec"]

    def scaled(old: Version) -> dict[str, Any]:
        new = old.copy()
        new["spec"]["tasks"][0] |= {"replicas": 2, "minAvailable": 2}
        return dict(new)

    assert objects.change(call, scaled).obj["spec"]["minAvailable"] == 2
    status = Call(resource, "default", "j", subresource="status", manager="controller")
    changed = objects.change(status, lambda old: merged(old.copy(), {"status": {"running": 1}})).obj
    entries = {each["manager"]: each for each in changed["metadata"]["managedFields"]}
    assert entries["controller"]["subresource"] == "status"
    assert entries["controller"]["fieldsV1"] == {"f:status": {"f:running": {}}}
