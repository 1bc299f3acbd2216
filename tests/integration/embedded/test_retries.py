"""Code of the embedded server that fails at one object is tried again, and everything else goes on."""

from typing import Any

import pytest

from pumice.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, REPLICA_SET
from pumice.embedded import EmbeddedCluster, NodeTimings
from pumice.embedded.claims import SimulatedStorage
from pumice.embedded.gc import GarbageCollector
from pumice.embedded.nodes import SimulatedNodes
from pumice.embedded.workloads import SimulatedWorkloads
from tests.kit.breakage import is_about_bad
from tests.kit.builders import pod
from tests.kit.quick_loop import pytest_asyncio_loop_factories, quick_clock
from tests.kit.waiting import until

__all__ = ["pytest_asyncio_loop_factories", "quick_clock"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (SimulatedNodes, "_run"),
        (SimulatedNodes, "_note"),
        (SimulatedStorage, "_bind"),
        (SimulatedWorkloads, "_look"),
        (GarbageCollector, "_collect"),
    ],
)
async def test_it_heals(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0
    works = getattr(owner, name)

    def fail(*arguments: Any) -> Any:
        nonlocal tries
        about = getattr(arguments[1], "key", arguments[1:])
        if is_about_bad(about) and tries < 3:
            tries += 1
            raise ZeroDivisionError("oh")
        return works(*arguments)

    monkeypatch.setattr(owner, name, fail)
    timings = NodeTimings(start=0.0, stop=0.0)
    async with EmbeddedCluster(timings=timings, workloads=True) as cluster:
        cluster.add_node("n1")
        for each in ("bad", "good"):
            made = pod(each, node="n1")
            made["metadata"] = {"name": each, "namespace": "default"}
            if name == "_collect":
                made["metadata"]["ownerReferences"] = [
                    {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "none"}
                ]
            cluster.store.create(made)
            cluster.store.create(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": each, "namespace": "default"},
                    "spec": {"resources": {"requests": {"storage": "1Gi"}}},
                }
            )
            template = {
                "metadata": {"labels": {"a": each}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            cluster.store.create(
                {
                    "apiVersion": "apps/v1",
                    "kind": REPLICA_SET.kind,
                    "metadata": {"name": each, "namespace": "default"},
                    "spec": {
                        "replicas": 1,
                        "selector": {"matchLabels": {"a": each}},
                        "template": template,
                    },
                }
            )

        def done(each: str) -> bool:
            found = cluster.store.get(POD, each, "default")
            claim = cluster.store.get(PERSISTENT_VOLUME_CLAIM, each, "default") or {}
            if name == "_collect":
                return found is None
            return (
                found is not None
                and (name == "_note" or found["status"].get("phase") == "Running")
                and claim.get("status", {}).get("phase") == "Bound"
                and any(
                    pod["metadata"]["name"].startswith(f"{each}-")
                    for pod in cluster.store.list(POD, "default")
                )
            )

        await until(lambda: done("good"))
        await until(lambda: done("bad"))
        assert tries >= 1
