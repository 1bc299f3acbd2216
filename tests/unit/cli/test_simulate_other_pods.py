"""`pumice simulate` with rules about other pods: a gang in one zone, one over all zones, and namespaces by their labels."""

from typing import Any

import pytest

from tests.kit.builders import job, node, pod, pod_group, queue, task
from tests.unit.cli.conftest import Pumice, texts

ZONE = "topology.kubernetes.io/zone"
OWN = {"matchLabels": {"volcano.sh/job-name": "train"}}
TERM: dict[str, Any] = {"topologyKey": ZONE, "labelSelector": OWN}
TOGETHER = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": OWN,
        }
    ]
}


def zonal(name: str, zone: str) -> dict[str, Any]:
    """A node of 4 cpu in a zone."""
    found = node(name, "4")
    found["metadata"]["labels"] = {ZONE: zone}
    return found


@pytest.mark.parametrize(("rules", "zones"), [(TOGETHER, "b"), (SPREAD, "abc")])
def test_where_the_pods_of_a_job_go(pumice: Pumice, rules: dict[str, Any], zones: str) -> None:
    """Six pods of 1 cpu: only zone b has room for all of them."""
    nodes = [zonal("n1", "a"), zonal("n2", "b"), zonal("n3", "b"), zonal("n4", "c")]
    train = job(tasks=[task(replicas=6, cpu="1", spec=rules)], minAvailable=6)
    ran = pumice(
        "simulate", "--state", "-", "-o", "json", "--cycles", "6",
        stdin=texts(*nodes, queue(), train),
    )  # fmt: skip
    assert ran.code == 0
    binds = {pod: name for cycle in ran.json["cycles"] for pod, name in cycle["binds"].items()}
    zone_of = {"n1": "a", "n2": "b", "n3": "b", "n4": "c"}
    counts = [sum(zone_of[name] == zone for name in binds.values()) for zone in zones]
    assert counts == [6 // len(zones)] * len(zones)
    assert [len(cycle["binds"]) for cycle in ran.json["cycles"]].count(0) == 5


@pytest.mark.parametrize(("team", "bind"), [("x", {}), ("y", {"default/p": "n"})])
def test_namespaces_count_by_their_labels(pumice: Pumice, team: str, bind: dict[str, str]) -> None:
    selector = {"matchLabels": {"team": "x", "kubernetes.io/metadata.name": "other"}}
    term = {"topologyKey": ZONE, "labelSelector": {}, "namespaceSelector": selector}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    lonely = pod("p", group="g", cpu="1")
    lonely["spec"]["affinity"] = rules
    running = pod("q", node="n", phase="Running", cpu="1")
    running["metadata"]["namespace"] = "other"
    labels = {"team": team, "kubernetes.io/metadata.name": "other"}
    other = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "other", "labels": labels},
    }
    ran = pumice(
        "simulate", "--state", "-", "-o", "json",
        stdin=texts(zonal("n", "a"), queue(), other, pod_group("g", 1), lonely, running),
    )  # fmt: skip
    assert ran.json["cycles"][0]["binds"] == bind
