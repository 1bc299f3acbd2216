"""What a state keeps of objects that are gone: nothing, in a leader and in a candidate, which waits for months without a cycle."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from pumice.api.budgets import ResourceQuota
from pumice.api.hypernodes import HyperNode
from pumice.api.nodes import Namespace
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.kit.growth import sizes_of
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import NOW, Scenario, node, pod_group, queue
from tests.unit.scheduler.volume_scenarios import claim, node_row, storage_classes, volume

Raw = dict[str, Any]

SPREAD: Raw = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}
APART: Raw = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
}


def come_and_go(scenario: Scenario, number: int, *, cycles: bool) -> None:
    """One object of each kind appears under a name of its own, is used, and goes."""
    state = scenario.state
    name = f"n{number}"
    gang, where, late = f"gang-{number}", f"node-{number}", f"late-{number}"
    state.set_namespace(
        msgspec.convert({"metadata": {"name": name, "labels": {"a": name}}}, Namespace)
    )
    state.set_queue(queue([name, {"capability": {"cpu": 4}}]))
    quota = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"hard": {"pods": "100"}}}
    state.set_quota(msgspec.convert(quota, ResourceQuota))
    state.set_node(node(node_row(where, "a")))
    near = hyper_node(
        name, nodes=[where], below=[name], regex=where, labels={"matchLabels": {"a": name}}
    )
    state.set_hyper_node(msgspec.convert(near, HyperNode))
    local = {"metadata": {"name": name}} | storage_classes()["local"]
    state.set_storage_class(msgspec.convert(local, StorageClass))
    manifest = volume(name, 1, where)
    state.set_volume(msgspec.convert({"metadata": {"name": name}, **manifest}, PersistentVolume))
    asked = claim(name, {"class": name})
    state.set_claim(msgspec.convert(asked, PersistentVolumeClaim))
    parts = {"policies": [{"matchLabelKeys": ["app"]}]}
    state.set_pod_group(pod_group(["ns", gang, name, 2, "Inqueue", parts]))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    for row in (
        ["ns", f"{gang}-0", "", "Pending", 1, "1Gi", gang, {"labels": {"app": "web"}, "affinity": APART}],
        ["ns", f"{gang}-1", "", "Pending", 1, "1Gi", gang, {"labels": {"app": "web"}, "spec": SPREAD}],
        ["ns", f"{gang}-2", "", "Pending", 1, "1Gi", gang, {"spec": {"volumes": volumes}}],
        ["ns", f"{gang}-3", "", "Pending", 99, "1Gi", gang],
        ["ns", f"other-{number}", where, "Running", 1, "1Gi", "", {"scheduler": "default-scheduler"}],
    ):  # fmt: skip
        scenario.add_pod(row)
    state.set_pod_group(pod_group(["ns", late, name, 9, "Pending"]))
    scenario.add_pod(["ns", f"{late}-0", "", "Pending", 1, "1Gi", late])
    if cycles:
        scenario.start(scenario.cycle(NOW + number))
        scenario.cycle(NOW + number + 0.5)
    for key in list(scenario.pods):
        state.remove_pod(*key.split("/"))
        del scenario.pods[key]
    state.remove_pod_group("ns", gang)
    state.remove_pod_group("ns", late)
    state.remove_claim("ns", name)
    state.remove_volume(name)
    state.remove_hyper_node(name)
    state.remove_storage_class(name)
    state.remove_node(where)
    state.remove_quota("ns", name)
    state.remove_queue(name)
    state.remove_namespace(name)


@pytest.mark.parametrize("cycles", [False, True], ids=["candidate", "leader"])
def test_a_state_does_not_grow_with_what_comes_and_goes(cycles: bool) -> None:
    scenario = Scenario({"nodes": [node_row("n1", "a"), node_row("n2", "b")]})
    sizes: list[Counter[str]] = []
    for number in range(120):
        come_and_go(scenario, number, cycles=cycles)
        if number % 20 == 19:
            if cycles:
                scenario.cycle(NOW + number + 0.9)
            else:
                scenario.state.settle(NOW + number + 0.9)
            sizes.append(sizes_of(scenario.state))
    assert sizes[-1] - sizes[1] == Counter(), "what grew"
