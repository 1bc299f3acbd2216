"""`pumice simulate --cycles` evicts gangs as the scheduler does: the same rows, from files."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.cli.conftest import Pumice, texts
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import case_id, node, pod_group, pod_manifest, queue
from tests.unit.scheduler.test_gang_eviction import TABLE, cluster, configuration

Raw = dict[str, Any]

CYCLES = 6


def _manifests(case: Raw) -> list[Raw]:
    rows = cluster(case)
    volcano = "scheduling.volcano.sh/v1beta1"
    kinds = [("v1", "Node", node), (volcano, "Queue", queue), (volcano, "PodGroup", pod_group)]
    found = [
        {"apiVersion": version, "kind": kind} | msgspec.to_builtins(make(row))
        for (version, kind, make), name in zip(kinds, ("nodes", "queues", "podgroups"), strict=True)
        for row in rows[name]
    ]
    found += [{"apiVersion": "v1", "kind": "Pod"} | pod_manifest(row) for row in rows["pods"]]
    found += [hyper_node(name, **fields) for name, fields in rows["hyper_nodes"].items()]
    found += [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in rows["classes"].items()
    ]
    found += [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"selector": {}},
            "status": {"disruptionsAllowed": allowed},
        }
        for name, allowed in case.get("budgets", {}).items()
    ]
    return found


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: f"{case['id']}-{case_id(case)}")
def test_gangs_are_evicted_for_gangs(pumice: Pumice, tmp_path: Path, case: Raw) -> None:
    file, expect = tmp_path / "scheduler.conf", case["expect"]
    file.write_text(configuration(case))
    objects = _manifests(case)
    options = ("--config", file, "--state", "-", "--cycles", CYCLES, "-o", "json")
    ran = pumice("simulate", *options, stdin=texts(*objects))
    cycles = ran.json["cycles"]
    wanted = sorted(f"ns/{name}" for name in expect.get("evicted", []))
    assert sorted(cycles[0]["evicted"]) == wanted
    assert not any(cycle["evicted"] for cycle in cycles[1:])
    runs = Counter(
        {name: len(gang[4]) if len(gang) > 4 else 0 for name, gang in case["gangs"].items()}
    )
    runs -= Counter(name.rpartition("-")[0] for name in expect.get("evicted", []))
    runs += Counter(
        key.removeprefix("ns/").rpartition("-")[0] for cycle in cycles for key in cycle["binds"]
    )
    assert runs == expect["runs"]
