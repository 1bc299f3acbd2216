"""Plugins on the pods of other controllers, row by row of `tests/cases/plugins/other_owners.yaml`.

A row gives `owner` (its kind and shape, in short), and `pod`: where it stands, and what it has itself. It
expects, where it says so, `task` [name, index], `hostname`, `subdomain`, `has` ("NAME=value" of the container),
`objects` and `secrets` of the pod's Job, `selector` of its policy, `head`: selector of Ray's Service, `files`: some
keys of the hosts' ConfigMap, `ssh`: pieces of the client configuration, `errors` and `doubts`: pieces of
them; `found: false` where no Job has the pod, or `refused`: a piece of why the annotation is no good.
"""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.plugins import Raw, builtin
from pumice.plugins.addresses import Hostnames
from pumice.plugins.other_owners import (
    OWNERS,
    Owner,
    OwnerWirings,
    PodPlace,
    RequestError,
    Wired,
    place,
)
from pumice.plugins.other_owners.request import read_plugins, read_tasks
from pumice.plugins.settings import PluginSettings
from tests.kit.counting import calls
from tests.unit.plugins.support import loses_nothing, repeats, rows

KINDS = {kind.kind: kind for kind in kinds.WIRED_OWNERS}
ROWS = rows("other_owners")


def template(plugins: str, tasks: str = "", marker: str = "") -> Raw:
    found = {
        "pumice.dev/plugins": plugins,
        "pumice.dev/tasks": tasks,
        "pumice.dev/wired": marker,
    }
    annotations = {key: value for key, value in found.items() if value}
    spec = {"hostname": "ignored", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def job_spec(size: int, plugins: str, **fields: Any) -> Raw:
    mode = fields.pop("mode", "Indexed")
    return {
        "completions": size,
        "parallelism": fields.get("parallelism", size),
        "completionMode": mode,
        "template": template(plugins, fields.get("tasks", ""), fields.get("wired", "")),
    }


def manifest(shape: Raw) -> Raw:
    """The owner that a row describes."""
    kind = KINDS[shape["kind"]]
    spec: Raw
    metadata = {"name": shape["name"], "namespace": "ns", "uid": "u1", "generation": 1}
    if kind == kinds.INDEXED_JOB:
        rest = {
            key: shape[key] for key in ("parallelism", "tasks", "mode", "wired") if key in shape
        }
        spec = job_spec(shape["completions"], shape["plugins"], **rest)
    elif kind == kinds.JOB_SET:
        spec = {
            "replicatedJobs": [
                {
                    "name": name,
                    "replicas": replicas,
                    "template": {"spec": job_spec(size, plugins, **(rest[0] if rest else {}))},
                }
                for name, replicas, size, plugins, *rest in shape["jobs"]
            ]
        }
        if "network" in shape:
            spec["network"] = shape["network"]
    else:
        spec = {
            "replicas": shape["groups"],
            "leaderWorkerTemplate": {
                "size": shape["size"],
                "workerTemplate": template(shape["plugins"]),
            },
            "networkConfig": {"subdomainPolicy": shape.get("policy", "Shared")},
        }
        if "leader" in shape:
            leader = template(shape["leader"])
            spec["leaderWorkerTemplate"]["leaderTemplate"] = leader
        if "surge" in shape:
            spec["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxSurge": shape["surge"]}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def owner_of(shape: Raw) -> Owner:
    found = manifest(shape)
    return msgspec.convert(found, OWNERS[KINDS[shape["kind"]]])


def pod_of(shape: Raw, where: Raw) -> Raw:
    """The pod as the owner's controller makes it."""
    name, index = shape["name"], str(where["index"])
    labels: dict[str, str] = {}
    annotations = {"pumice.dev/plugins": "stands in the owner"}
    job = name
    if shape["kind"] == "LeaderWorkerSet":
        labels = {
            "leaderworkerset.sigs.k8s.io/name": name,
            "leaderworkerset.sigs.k8s.io/group-index": str(where["number"]),
            "leaderworkerset.sigs.k8s.io/worker-index": index,
        }
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": "s"}
    else:
        if shape["kind"] == "JobSet":
            labels = {
                "jobset.sigs.k8s.io/jobset-name": name,
                "jobset.sigs.k8s.io/replicatedjob-name": where["group"],
                "jobset.sigs.k8s.io/job-index": str(where["job"]),
            }
            job = f"{name}-{where['group']}-{where['job']}"
        labels |= {
            "batch.kubernetes.io/job-name": job,
            "batch.kubernetes.io/job-completion-index": index,
        }
        annotations["batch.kubernetes.io/job-completion-index"] = index
        reference = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job,
            "uid": where.get("uid", "u1"),
        }
    spec: Raw = {"containers": [{"name": "c", "image": "i"}]}
    if "hostname" in where:
        spec["hostname"] = where["hostname"]
    if "env" in where:
        spec["containers"][0]["env"] = [{"name": n, "value": v} for n, v in where["env"].items()]
    metadata: Raw = {
        "namespace": "ns",
        "generateName": "x-",
        "labels": labels,
        "annotations": annotations,
    }
    metadata["ownerReferences"] = [reference | {"controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def find(row: Raw, wirings: OwnerWirings) -> tuple[Raw, PodPlace, Wired | None]:
    pod = pod_of(row["owner"], row["pod"])
    where = place(pod)
    assert where is not None
    return pod, where, wirings.find(owner_of(row["owner"]), where)


@pytest.mark.parametrize("row", [each for each in ROWS if "refused" in each.values[0]])
def test_an_annotation_that_is_no_good_is_refused(row: Raw) -> None:
    with pytest.raises(RequestError) as refusal:
        list(OwnerWirings(builtin()).of(owner_of(row["owner"])))
    assert row["refused"] in str(refusal.value)


@pytest.mark.parametrize("row", [each for each in ROWS if "pod" in each.values[0]])
def test_a_pod_is_wired_as_the_table_says(row: Raw) -> None:
    wirings = OwnerWirings(builtin(), PluginSettings(strict_upstream=True))
    pod, where, found = find(row, wirings)
    if not row.get("found", True):
        assert found is None
        return
    assert found is not None
    before = copy.deepcopy(pod)

    made = wirings.pod(found, where, pod)

    assert pod == before
    assert loses_nothing(pod, made)
    assert not repeats(made)
    assert wirings.pod(found, where, made) is made
    assert made["metadata"]["annotations"]["pumice.dev/wired"]
    if "task" in row:
        place_in = found.pods.find(where)
        assert place_in is not None
        assert [place_in[0].name, place_in[1]] == row["task"]
    for field in ("hostname", "subdomain"):
        if field in row:
            assert made["spec"][field] == row[field]
    env = (
        [f"{each['name']}={each.get('value')}" for each in made["spec"]["containers"][0]["env"]]
        if "has" in row
        else []
    )
    assert [each for each in row.get("has", ()) if each not in env] == []
    for expected, said in (
        (row.get("errors", ()), found.errors),
        (row.get("doubts", ()), found.doubts),
    ):
        assert len(expected) == len(said), said
        assert all(piece in text for piece, text in zip(expected, said, strict=True))


@pytest.mark.parametrize(
    "row", [each for each in ROWS if each.values[0].get("found", "pod" in each.values[0])]
)
def test_a_unit_wants_what_the_table_says(row: Raw) -> None:
    _, _, found = find(row, OwnerWirings(builtin()))
    assert found is not None
    objects = {
        f"{each['kind']}/{each['metadata']['name']}": each for each in found.wiring.objects()
    }
    secrets = {each.name: each for each in found.wiring.secrets()}
    name = found.pods.job.metadata.name
    assert all(each["metadata"]["namespace"] == "ns" for each in objects.values())
    if "objects" in row:
        assert list(objects) == row["objects"]
    if "secrets" in row:
        assert list(secrets) == row["secrets"]
    if "selector" in row:
        spec = objects[f"NetworkPolicy/{name}"]["spec"]
        assert spec["podSelector"]["matchLabels"] == row["selector"]
        if f"Service/{name}" in objects:
            assert objects[f"Service/{name}"]["spec"]["selector"] == row["selector"]
    if "head" in row:
        assert objects[f"Service/{name}-head-svc"]["spec"]["selector"] == row["head"]
    data = objects[f"ConfigMap/{name}-svc"]["data"] if "files" in row else {}
    assert {key: data[key] for key in row.get("files", ())} == row.get("files", {})
    for piece in row.get("ssh", ()):
        assert piece in secrets[f"{name}-ssh"].texts["config"]


def test_a_template_without_plugins_is_forgotten() -> None:
    shape = {"kind": "Job", "name": "t", "completions": 2, "plugins": ""}
    owner = owner_of(shape)
    assert not owner.wants_plugins
    assert "containers" not in str(owner)


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"metadata": {"labels": [], "ownerReferences": "x"}},
        {"metadata": {"ownerReferences": [1, {"controller": True, "kind": "ReplicaSet"}]}},
        {"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j"}]}},
    ],
)
def test_a_pod_without_an_owner_has_no_place(pod: Raw) -> None:
    assert place(pod) is None


@pytest.mark.parametrize("index", [None, "", "-1", "x", 3])
def test_a_pod_without_an_index_has_none(index: object) -> None:
    annotations = {"batch.kubernetes.io/job-completion-index": index}
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
    where = place({"metadata": {"annotations": annotations, "ownerReferences": [reference]}})
    assert where is not None
    assert where.index is None


def test_wirings_are_remembered_by_generation() -> None:
    wirings = OwnerWirings(builtin())
    shape = {"kind": "Job", "name": "t", "completions": 2, "plugins": "pytorch"}
    [first] = wirings.of(owner_of(shape))
    [again] = wirings.of(owner_of(shape))
    assert again is first
    grown = manifest(shape | {"completions": 3})
    grown["metadata"]["generation"] = 2
    [later] = wirings.of(msgspec.convert(grown, OWNERS[kinds.INDEXED_JOB]))
    assert later.pods.job.replicas == 3


@given(
    st.integers(1, 300),
    st.sampled_from(["pytorch", "tensorflow", "mpi", "ray", "svc,env"]),
    st.data(),
)
def test_every_index_has_a_rank_and_an_address_of_its_own(
    size: int, plugins: str, data: st.DataObject
) -> None:
    shape = {"kind": "Job", "name": "t", "completions": size, "plugins": plugins}
    [found] = OwnerWirings(builtin()).of(owner_of(shape))
    index = data.draw(st.integers(0, size - 1))
    where = place(pod_of(shape, {"index": index}))
    assert where is not None
    placed = found.pods.find(where)
    assert placed is not None
    assert placed[0].hostnames.at(placed[1]) == f"t-{index}"
    assert found.pods.job.replicas == size


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("plugins", "tasks"),
    [
        (BOMB, ""),
        ("x" * 20_000, ""),
        ("{0x" + "f" * 5_000 + ": []}", ""),
        ("svc: 0x" + "f" * 5_000, ""),
        ('{"svc": "' + "x" * 9_000 + '"}', ""),
        ("[" * 9_000, ""),
        ("p" * 9_000, ""),
        ("svc", "a=" + "9" * 5_000),
        ("svc", "a=" + "x" * 5_000),
        ("svc", "A" * 5_000),
        ("svc", ",".join(f"task-{number}" for number in range(1_000))),
        ("svc", "a=1," * 9_000),
    ],
)
def test_no_annotation_makes_a_long_message(plugins: str, tasks: str) -> None:
    shape = {"kind": "Job", "name": "t", "completions": 2, "plugins": plugins, "tasks": tasks}
    with pytest.raises(RequestError) as refusal:
        list(OwnerWirings(builtin()).of(owner_of(shape)))
    assert len(str(refusal.value)) < 500


def test_an_annotation_has_at_most_16_kib() -> None:
    """In bytes, of UTF-8."""
    start, end = '{"svc": ["', '"]}'
    most = (16 * 1024 - len(start) - len(end)) // len("é".encode())
    assert read_plugins(f"{start}{'é' * most}{end}")
    with pytest.raises(RequestError, match=r"expected at most 16384 bytes, found 1638[56]$"):
        read_plugins(f"{start}{'é' * (most + 1)}{end}")
    tasks = f"{'a=1,b':<16384}"
    assert read_tasks(tasks, 2) == [("a", 1), ("b", 1)]
    with pytest.raises(RequestError, match=r"expected at most 16384 bytes, found 16385$"):
        read_tasks(f"{tasks} ", 2)


def test_a_large_set_of_groups_is_read_group_by_group() -> None:
    """A review of one pod makes the group of that pod, and no other."""
    shape = {
        "kind": "LeaderWorkerSet",
        "name": "t",
        "groups": 1_000,
        "size": 100,
        "plugins": "svc",
    }
    where = place(pod_of(shape, {"number": 997, "index": 3}))
    assert where is not None
    OwnerWirings(builtin()).find(owner_of(shape), where)  # what is remembered is not counted
    of_many = calls(lambda: OwnerWirings(builtin()).find(owner_of(shape), where))
    shape["groups"] = 998
    of_fewer = calls(lambda: OwnerWirings(builtin()).find(owner_of(shape), where))
    assert of_many <= 1.1 * of_fewer
    assert of_many < 5_000


@given(
    st.integers(0, 2_000),
    st.integers(0, 300),
    st.sampled_from([0, 1, 3, 10, 101]),
    st.booleans(),
)
def test_the_size_of_hostnames_is_that_of_all_of_them(
    first: int, count: int, per_job: int, leader: bool
) -> None:
    names = Hostnames("stem", first, per_job, leader and not per_job)
    listed = [names.at(index) for index in range(count)]
    assert names.joined_size(count) == sum(map(len, listed))
