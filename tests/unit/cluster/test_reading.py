"""Equal parts of large objects are kept once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pumice.api.kinds import JOB, POD
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache
from pumice.cluster.reading import LARGE
from tests.kit.waiting import NO_CLIENT

Raw = dict[str, Any]
MANY = 2000


def pod(number: int, **spec: Any) -> Raw:
    """A pod of a template with many labels and annotations; its own label and volume differ from those of the others."""
    own = {"volcano.sh/task-index": str(number)}
    owner = {"kind": "Job", "name": "j", "uid": "u", "controller": True}
    return {
        "metadata": {
            "name": f"p-{number}",
            "labels": {f"l{each}": "a" for each in range(MANY)} | own,
            "annotations": {"note": "x" * LARGE} | own,
            "ownerReferences": [owner],
        },
        "spec": {"volumes": [{"name": f"kube-api-access-{number}"}], **spec},
    }


def job(number: int) -> Raw:
    env = [{"name": f"E{each}"} for each in range(MANY)]
    tasks = [{"name": "t", "template": {"spec": {"containers": [{"env": env}]}}}]
    return {"metadata": {"name": f"j-{number}"}, "spec": {"tasks": tasks, "queue": f"q{number}"}}


class Store:
    """A cache of one kind, fed with the JSON of objects as a watch does."""

    def __init__(self, kind: Any, type_: Any, trim: Any = None) -> None:
        self.objects: WatchCache[Any] = WatchCache(NO_CLIENT, kind, type_, trim=trim)

    def put(self, obj: Raw) -> Any:
        name = obj["metadata"]["name"]
        read = self.objects.read(msgspec.Raw(msgspec.json.encode(obj)))
        self.objects.put(("", name), "1", read)
        return self.objects.get(name)

    def remove(self, obj: Raw) -> None:
        self.objects.remove(("", obj["metadata"]["name"]))

    @property
    def parts(self) -> int:
        return len(self.objects._reader.parts)


def test_labels_and_annotations_of_pods_of_a_template_are_kept_as_differences() -> None:
    store = Store(POD, Pod)
    kept = [store.put(pod(number)) for number in range(5)]
    for number, each in enumerate(kept):
        wanted = pod(number)["metadata"]
        assert dict(each.metadata.labels) == wanted["labels"]
        assert each.metadata.labels == wanted["labels"]
        assert each.metadata.label("l7") == "a"
        assert each.metadata.label("volcano.sh/task-index") == str(number)
        assert each.metadata.annotations == wanted["annotations"]
    for field in ("labels", "annotations"):
        first, *others = (getattr(each.metadata, field) for each in kept)
        assert [each.maps[1] is first for each in others] == [True] * 4
        assert [len(each.maps[0]) for each in others] == [1] * 4


def test_labels_that_differ_much_are_kept_as_they_are() -> None:
    store = Store(POD, Pod)
    first, second = pod(0), pod(1)
    second["metadata"]["labels"] = dict.fromkeys(first["metadata"]["labels"], "b")
    third = pod(2)
    third["metadata"]["labels"] = second["metadata"]["labels"] | {"l1": "c"}
    fourth = pod(3)
    del fourth["metadata"]["labels"]["l5"]
    for each in (first, second, third, fourth):
        assert store.put(each).metadata.labels == each["metadata"]["labels"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": f"c{each}"} for each in range(MANY)]},
        {"initContainers": [{"name": "c", "ports": [{"containerPort": 1}] * MANY}]},
        {"tolerations": [{"operator": "Exists"}] * MANY},
        {"nodeSelector": {f"l{each}": "a" for each in range(MANY)}},
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}] * MANY}}},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}] * MANY},
        {"schedulingGates": [{"name": "g"}] * MANY},
        {"overhead": {f"l{each}": "1" for each in range(MANY)}},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}] * MANY},
    ],
    ids=lambda spec: next(iter(spec)),
)  # fmt: skip
def test_parts_of_specs_are_kept_once(spec: Raw) -> None:
    store = Store(POD, Pod)
    first, second = (store.put(pod(number, **spec)) for number in range(2))
    (name,) = spec
    field = "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
    part = getattr(first.spec, field)
    assert part
    assert getattr(second.spec, field) is part
    assert first.spec is not second.spec


def test_of_volumes_only_claims_are_kept() -> None:
    claim = {"name": "c", "persistentVolumeClaim": {"claimName": "x"}}
    made = {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}
    volumes = [{"name": "s", "emptyDir": {}}, claim, made]
    kept = Store(POD, Pod, Pod.drop_unread).put(pod(0, volumes=volumes))
    assert [each.name for each in kept.spec.volumes] == ["c", "e"]


def test_raw_objects_share_parts_and_are_otherwise_their_own() -> None:
    store = Store(JOB, dict)
    first, second = (store.put(job(number)) for number in range(2))
    assert first["spec"]["tasks"] is second["spec"]["tasks"]
    assert [first, second] == [job(0), job(1)]


def test_parts_of_removed_and_changed_objects_are_forgotten() -> None:
    store = Store(JOB, dict)
    for number in range(3):
        store.put(job(number))
    assert store.parts == 1
    changed = job(0)
    changed["spec"]["tasks"][0]["name"] = "other"
    store.put(changed)
    assert store.parts == 2
    store.remove(changed)
    assert store.parts == 1
    store.remove(job(1))
    store.remove(job(2))
    assert store.parts == 0


def test_what_cannot_be_encoded_is_kept_as_it_is() -> None:
    store = Store(JOB, dict)
    text = msgspec.json.encode(job(0)).replace(b'"queue":"q0"', b'"queue":[' + b"9" * 30 + b"]")
    read = store.objects.read(msgspec.Raw(text))
    assert isinstance(read, dict)
    assert read["spec"]["queue"] == [float("9" * 30)] or read["spec"]["queue"] == [int("9" * 30)]


def test_small_objects_are_left_alone() -> None:
    store = Store(POD, Pod)
    for number in range(2):
        small = pod(number)
        small["metadata"]["labels"] = {"a": "b"}
        small["metadata"]["annotations"] = {"a": "b"}
        kept = store.put(small)
    assert [each.name for each in kept.spec.volumes] == ["kube-api-access-1"]
    assert store.parts == 0
