"""What a cluster of `pumice dev` begins with, and what it says of the life of Jobs and pods."""

import copy
import operator
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from typing import Any

import pytest
from structlog.testing import capture_logs

from pumice.api.crds import all_crds
from pumice.api.kinds import JOB, NODE, POD
from pumice.api.meta import Raw
from pumice.cli.development.dev_state import load, log_life
from pumice.cli.exits import UserError
from pumice.cli.files.manifests import Manifest, Source
from pumice.embedded import ApiStatusError, EmbeddedCluster
from tests.kit.builders import job, task


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(all_crds())


def manifests(*objects: Raw) -> list[Manifest]:
    return [Manifest(each, Source("state.yaml", at)) for at, each in enumerate(objects, 1)]


def from_a_cluster(obj: Raw, uid: str, **meta: object) -> Raw:
    head = {**obj["metadata"], "namespace": "team", "uid": uid, "resourceVersion": "77", **meta}
    return {**obj, "metadata": head}


POD_OF_JOB: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "j-t-0"},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Running"},
}
NAMESPACE: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
NODE_N: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


TEMPLATE: Raw = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
OWNERS: list[Raw] = [
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}, "spec": {"template": TEMPLATE}},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": {"replicas": 1, "template": TEMPLATE}},
]  # fmt: skip


def broken(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """A value with any part of it replaced by one of another type."""
    wrong: tuple[Any, ...] = (None, 1, "x", [], {}, [1], True)
    if path and path[0] not in ("apiVersion", "kind"):
        yield from ((path, each) for each in wrong)
    inner: Any = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value) if isinstance(value, list) else inner:
        yield from broken(each, (*path, key))


@pytest.mark.parametrize(
    "obj", [job("j"), POD_OF_JOB, NODE_N, NAMESPACE, *OWNERS], ids=lambda obj: obj["kind"]
)
@pytest.mark.parametrize("uid", [{}, {"uid": "u"}], ids=str)
def test_a_part_of_a_wrong_type_is_refused(cluster: EmbeddedCluster, obj: Raw, uid: Raw) -> None:
    whole = obj | {"metadata": obj["metadata"] | uid}
    for path, wrong in broken(whole):
        changed = copy.deepcopy(whole)
        reduce(operator.getitem, path[:-1], changed)[path[-1]] = wrong
        with suppress(UserError):
            load(cluster, manifests(changed))


def test_objects_of_another_cluster_are_taken_over_as_they_were(cluster: EmbeddedCluster) -> None:
    owner = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": "u-job"}
    given = manifests(
        from_a_cluster(POD_OF_JOB, "u-pod", ownerReferences=[{**owner, "controller": True}]),
        from_a_cluster(
            {**job("j", [task("t", 1)]), "status": {"state": {"phase": "Running"}}},
            "u-job",
            creationTimestamp="2026-01-01T00:00:00Z",
        ),
        NODE_N,
        NAMESPACE,
    )
    load(cluster, given)
    cluster.settle()
    found = cluster.store.get(JOB, "j", "team")
    assert found is not None
    assert found["metadata"]["uid"] == "u-job"
    assert found["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert found["status"]["state"]["phase"] == "Running"
    pod = cluster.store.get(POD, "j-t-0", "team")
    assert pod is not None
    assert (pod["metadata"]["uid"], pod["status"]["phase"]) == ("u-pod", "Running")
    assert cluster.store.get(NODE, "n") is not None


def test_each_object_that_is_refused_is_named(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    nameless = {**POD_OF_JOB, "metadata": {"namespace": "default"}}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}
    with pytest.raises(UserError) as refused:
        load(cluster, manifests(unknown, nameless, {**NODE_N, "spec": 1}))
    _, second, third = refused.value.messages  # a line each
    assert second.startswith("state.yaml: document 3")
    assert third.startswith("state.yaml: document 2")
    assert "Thing/default/x is left out" in capsys.readouterr().err


def test_each_problem_of_an_object_that_is_refused_is_a_line(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of admission is a list."""

    def refuse(_: Raw) -> None:
        raise ApiStatusError(422, "Invalid", 'Job "bad" has 2 problems:\n  spec.a: x\n  spec.b: y')

    monkeypatch.setattr(cluster, "add_object", refuse)
    with pytest.raises(UserError) as refused:
        load(cluster, manifests(job("bad", [task("t", 1)])))
    where = "state.yaml: document 1, line 1: Job/default/bad: "
    assert refused.value.messages[1:] == (
        f'{where}Job "bad" has 2 problems:',
        f"{where}spec.a: x",
        f"{where}spec.b: y",
    )


def test_the_life_of_a_pod_is_a_line_for_each_change_of_phase_or_node(
    cluster: EmbeddedCluster,
) -> None:
    cluster.store.storage.listen(log_life)
    with capture_logs() as logged:
        load(cluster, manifests(NAMESPACE, from_a_cluster(POD_OF_JOB, "u-pod")))
        found = cluster.store.get(POD, "j-t-0", "team")
        assert found is not None
        found["metadata"]["labels"] = {"seen": "yes"}
        found = cluster.store.update(found)
        found["status"]["phase"] = "Succeeded"
        cluster.store.update_status(found)
        cluster.store.delete(POD, "j-t-0", "team")
    assert [{key: each[key] for key in each if key != "log_level"} for each in logged] == [
        {"event": "Pod team/j-t-0 is created", "node": "n", "phase": "Running"},
        {"event": "Pod team/j-t-0", "phase": "Succeeded"},
        {"event": "Pod team/j-t-0 is deleted"},
    ]
