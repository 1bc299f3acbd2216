"""HyperNodes without an API server, and the Nodes that they are discovered from."""

import copy
from typing import Any

from pumice.controller.hypernodes import Discovery, plan_discovery
from pumice.controller.hypernodes.domains import TopologyType
from pumice.controller.plan import CreateObject, DeleteObject, Plan, UpdateObject

Raw = dict[str, Any]
Nodes = dict[str, dict[str, str]]

RACK, CLUSTER = "net/rack", "net/cluster"
SOURCE = "volcano.sh/network-topology-source"
DISCOVERY = Discovery(
    enabled=True, types=(TopologyType("topologyA", (RACK, CLUSTER)),), complete=True
)


def fixture_nodes() -> Nodes:
    return {f"n{index}": {RACK: f"r{index // 2}", CLUSTER: f"c{index // 4}"} for index in range(8)}


class FakeCluster:
    """HyperNodes as an API server keeps them."""

    def __init__(self) -> None:
        self.objects: dict[str, Raw] = {}
        self.made = 0

    def add(self, manifest: Raw) -> None:
        self.made += 1
        stored = copy.deepcopy(manifest)
        stored["metadata"]["uid"] = f"u{self.made}"
        assert self.objects.setdefault(stored["metadata"]["name"], stored) is stored

    def carry_out(self, plan: Plan) -> list[int]:
        """How many were created, updated and deleted."""
        writes = [0, 0, 0]
        for step in plan.steps:
            match step:
                case CreateObject():
                    self.add(step.manifest)
                    writes[0] += 1
                case UpdateObject():
                    stored = self.objects[step.name]
                    assert stored["metadata"]["uid"] == step.patch["metadata"]["uid"]
                    stored["metadata"].setdefault("labels", {}).update(
                        step.patch["metadata"].get("labels", {})
                    )
                    stored["spec"] |= step.patch.get("spec", {})
                    writes[1] += 1
                case DeleteObject():
                    assert self.objects.pop(step.name)["metadata"]["uid"] == step.uid
                    writes[2] += 1
        return writes

    def sync(self, nodes: Nodes, discovery: Discovery = DISCOVERY) -> Plan:
        plan = plan_discovery(discovery, nodes, self.objects.values())
        self.writes = self.carry_out(plan)
        return plan

    @property
    def discovered(self) -> dict[str, Raw]:
        return {
            name: each
            for name, each in self.objects.items()
            if each["metadata"].get("labels", {}).get(SOURCE) == "label"
        }

    def paths(self) -> dict[str, str]:
        """Where each discovered HyperNode is: `cluster`, or `cluster/rack`."""
        values = {
            name: next(value for key, value in each["metadata"]["labels"].items() if key != SOURCE)
            for name, each in self.discovered.items()
        }
        above = {
            member: values[name]
            for name, each in self.discovered.items()
            if each["spec"]["tier"] == 2
            for member in members(each)
        }
        return {
            name: f"{above[name]}/{value}" if name in above else value
            for name, value in values.items()
        }

    def tree(self) -> dict[str, list[str]]:
        """Members by path, HyperNodes by their path."""
        paths = self.paths()
        return {
            path: sorted(paths.get(each, each) for each in members(self.objects[name]))
            for name, path in paths.items()
        }

    def named(self, value: str) -> Raw:
        [found] = [
            each
            for each in self.discovered.values()
            if each["metadata"]["labels"].get(RACK) == value
        ]
        return found


def members(hyper_node: Raw) -> list[str]:
    return [each["selector"]["exactMatch"]["name"] for each in hyper_node["spec"]["members"]]


def changed(nodes: Nodes, labels: dict[str, dict[str, str | None]]) -> Nodes:
    found = {name: dict(each) for name, each in nodes.items()}
    for name, changes in labels.items():
        for key, value in changes.items():
            if value is None:
                found[name].pop(key, None)
            else:
                found[name][key] = value
    return found
