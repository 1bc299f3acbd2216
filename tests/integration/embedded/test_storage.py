"""Claims on the embedded server: bound at once, each to a volume of its own."""

from typing import Any

from pumice.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from pumice.embedded import EmbeddedCluster
from tests.kit.waiting import until

Raw = dict[str, Any]


def _claim(name: str, **spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def _phase(cluster: EmbeddedCluster, name: str) -> str:
    found = cluster.store.get(PERSISTENT_VOLUME_CLAIM, name, "default") or {}
    return str((found.get("status") or {}).get("phase", ""))


async def test_a_claim_gets_a_volume_that_goes_with_it() -> None:
    cluster = EmbeddedCluster()
    cluster.store.create(_claim("before"))
    async with cluster:
        cluster.store.create(_claim("after"))
        await until(lambda: _phase(cluster, "before") == _phase(cluster, "after") == "Bound")
        claim = cluster.store.get(PERSISTENT_VOLUME_CLAIM, "after", "default")
        assert claim is not None
        volume = cluster.store.get(PERSISTENT_VOLUME, claim["spec"]["volumeName"])
        assert volume is not None
        assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
        cluster.store.delete(PERSISTENT_VOLUME_CLAIM, "after", "default")
        await until(lambda: len(cluster.store.list(PERSISTENT_VOLUME)) == 1)


async def test_a_claim_of_a_named_volume_waits_for_it() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.store.create(_claim("data", volumeName="disk"))
        cluster.store.create(_claim("other"))
        await until(lambda: _phase(cluster, "other") == "Bound")
        assert _phase(cluster, "data") != "Bound"
        cluster.store.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "disk"},
                "spec": {},
            }
        )
        await until(lambda: _phase(cluster, "data") == "Bound")


async def test_a_claim_without_a_spec_keeps_no_other_from_being_bound() -> None:
    async with EmbeddedCluster() as cluster:
        bare = _claim("bare")
        del bare["spec"]
        cluster.store.create(bare)
        cluster.store.create(_claim("data"))
        await until(lambda: _phase(cluster, "data") == "Bound")


def _class(name: str, provisioner: str) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


async def test_a_claim_that_waits_is_bound_when_a_node_is_selected() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.store.create(_class("made", "disk.example.com"))
        cluster.store.create(_claim("data", storageClassName="made"))
        cluster.store.create(_claim("other"))
        await until(lambda: _phase(cluster, "other") == "Bound")
        assert _phase(cluster, "data") != "Bound"
        claim = cluster.store.get(PERSISTENT_VOLUME_CLAIM, "data", "default")
        assert claim is not None
        claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "node1"}
        cluster.store.update(claim)
        await until(lambda: _phase(cluster, "data") == "Bound")


async def test_a_claim_that_waits_is_bound_to_the_volume_that_is_reserved_for_it() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.store.create(_class("local", "kubernetes.io/no-provisioner"))
        cluster.store.create(_claim("data", storageClassName="local"))
        spec = {"storageClassName": "local", "capacity": {"storage": "1Gi"}}
        disk = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}}
        disk = cluster.store.create({**disk, "spec": spec})
        cluster.store.create(_claim("other"))
        await until(lambda: _phase(cluster, "other") == "Bound")
        assert _phase(cluster, "data") != "Bound"
        owner = {"namespace": "default", "name": "data"}
        cluster.store.update({**disk, "spec": {**spec, "claimRef": owner}})
        await until(lambda: _phase(cluster, "data") == "Bound")
        volume = cluster.store.get(PERSISTENT_VOLUME, "disk")
        assert volume is not None
        assert volume["status"]["phase"] == "Bound"
        assert volume["spec"]["claimRef"]["uid"]


async def test_of_two_claims_that_name_a_volume_the_first_gets_it() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.store.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "disk"},
                "spec": {},
            }
        )
        cluster.store.create(_claim("first", volumeName="disk"))
        await until(lambda: _phase(cluster, "first") == "Bound")
        cluster.store.create(_claim("second", volumeName="disk"))
        cluster.store.create(_claim("third"))
        await until(lambda: _phase(cluster, "third") == "Bound")
        assert _phase(cluster, "second") != "Bound"
        volume = cluster.store.get(PERSISTENT_VOLUME, "disk")
        assert volume is not None
        assert volume["spec"]["claimRef"]["name"] == "first"
