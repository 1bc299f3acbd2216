"""The pod of one replica."""

import copy
from typing import Any

import pytest

from pumice.controller.jobs.pods import build
from pumice.controller.jobs.subject import read
from pumice.plugins import Wiring, builtin
from tests.kit.builders import job, task
from tests.kit.tables import table

Raw = dict[str, Any]

CASES = table("controller/pods")


def _job(case: Raw) -> Raw:
    fields = dict(case.get("job", {}))
    labels = fields.pop("labels", None)
    given = dict(case.get("task", {}))
    template = given.pop("template", {})
    subject = task(given.pop("name", "worker"), 1, spec=case.get("spec"), **given)
    subject["template"] |= template
    made = job(fields.pop("name", "train"), [subject], uid=fields.pop("uid", "u1"), **fields)
    if labels:
        made["metadata"]["labels"] = labels
    return made


def _pod(manifest: Raw, index: int = 0, *, forwarding: bool = False) -> Raw:
    subject = read(manifest)
    wire = Wiring(subject, builtin()).pod
    return build(subject, subject.tasks[0], index, wire, forwarding=forwarding)


def _at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj[part]
    return obj


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_build(case: Raw) -> None:
    pod = _pod(_job(case), case.get("index", 0), forwarding=case.get("forwarding", False))
    for path, value in case.get("expect", {}).items():
        assert _at(pod, path) == value, path
    labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    assert labels | case.get("label", {}) == labels
    assert annotations | case.get("annotation", {}) == annotations
    for key in case.get("absent", ()):
        assert key not in labels
        assert key not in annotations


def test_each_claim_is_one_volume_mounted_at_each_of_its_paths() -> None:
    """PB-5, PB-6; Volcano loses the second path and skips init containers."""
    subject = task(spec={"initContainers": [{"name": "init"}], "volumes": [{"name": "mine"}]})
    volumes = [
        {"mountPath": "/data1", "volumeClaimName": "pvc-1"},
        {"mountPath": "/data2", "volumeClaimName": "pvc-2"},
        {"mountPath": "/again", "volumeClaimName": "pvc-1"},
    ]
    spec = _pod(job(tasks=[subject], uid="u1", volumes=volumes))["spec"]
    mine, first, second = spec["volumes"]
    assert mine == {"name": "mine"}
    assert first["persistentVolumeClaim"] == {"claimName": "pvc-1"}
    assert second["persistentVolumeClaim"] == {"claimName": "pvc-2"}
    mounts = [
        {"name": first["name"], "mountPath": "/data1"},
        {"name": first["name"], "mountPath": "/again"},
        {"name": second["name"], "mountPath": "/data2"},
    ]
    assert spec["containers"][0]["volumeMounts"] == mounts
    assert spec["initContainers"][0]["volumeMounts"] == mounts


def test_volume_names_are_the_same_in_every_pod_and_fit_a_label() -> None:
    name = "a-very-long-job-name.with-a-dot-that-would-not-fit-into-a-label"
    volumes = [{"mountPath": "/data", "volumeClaimName": "claim"}]
    manifest = job(name, [task(replicas=2)], uid="u1", volumes=volumes)
    (first,), (second,) = (_pod(manifest, index)["spec"]["volumes"] for index in (0, 1))
    assert first == second
    assert len(first["name"]) <= 63
    assert "." not in first["name"]


def test_a_path_that_the_container_mounts_itself_is_left_to_it() -> None:
    own = {"name": "own", "mountPath": "/data"}
    containers = [{"name": "main", "volumeMounts": [own]}]
    volumes = [{"mountPath": "/data", "volumeClaimName": "claim"}]
    pod = _pod(job(tasks=[task(spec={"containers": containers})], uid="u1", volumes=volumes))
    assert pod["spec"]["containers"][0]["volumeMounts"] == [own]


@pytest.mark.parametrize("path", ["/data", "/data/"])
def test_a_path_at_which_the_container_has_a_block_device_is_left_to_it(path: str) -> None:
    devices = [{"name": "own", "devicePath": path}]
    containers = [{"name": "main", "volumeDevices": devices}, {"name": "side"}]
    volumes = [{"mountPath": "/data", "volumeClaimName": "claim"}]
    pod = _pod(job(tasks=[task(spec={"containers": containers})], uid="u1", volumes=volumes))
    main, side = pod["spec"]["containers"]
    assert "volumeMounts" not in main
    assert [each["mountPath"] for each in side["volumeMounts"]] == ["/data"]


def test_the_template_is_never_changed() -> None:
    volumes = [{"mountPath": "/data", "volumeClaimName": "claim"}]
    plugins: dict[str, list[str]] = {"svc": [], "env": []}
    manifest = job(tasks=[task()], uid="u1", volumes=volumes, plugins=plugins)
    before = copy.deepcopy(manifest)
    _pod(manifest)
    assert manifest == before


def test_unknown_fields_of_the_template_survive() -> None:
    pod = _pod(job(tasks=[task(spec={"fieldOfTheFuture": {"deep": [1]}})], uid="u1"))
    assert pod["spec"]["fieldOfTheFuture"] == {"deep": [1]}


def test_the_plugins_wire_the_pod() -> None:
    plugins: dict[str, list[str]] = {"svc": [], "env": []}
    pod = _pod(job(tasks=[task(replicas=4)], uid="u1", plugins=plugins), 3)
    names = [each["name"] for each in pod["spec"]["containers"][0]["env"]]
    assert names == ["VC_WORKER_HOSTS", "VC_WORKER_NUM", "VK_TASK_INDEX", "VC_TASK_INDEX"]
    assert pod["metadata"]["annotations"]["pumice.dev/wired"] == "svc,env"
    assert pod["spec"]["hostname"] == "train-worker-3"
