"""Numbers of Nodes in HyperNodes: the cases."""

import msgspec
import pytest

from pumice.api.hypernodes import HyperNode
from pumice.controller.hypernodes import NodeCounter
from tests.kit.tables import table
from tests.unit.controller.hypernodes.fake_cluster import Nodes, Raw


@pytest.mark.parametrize("case", table("hypernodes/node-counts"), ids=lambda case: case["id"])
def test_how_many_nodes_there_are(case: Raw) -> None:
    nodes: Nodes = {f"n{index}": {"rack": "r1"} if index in (2, 3) else {} for index in range(8)}
    nodes |= {name: {} for name in case.get("nodes", ())}
    hyper_nodes = {
        name: msgspec.convert(
            {"metadata": {"name": name}, "spec": {"members": [_member(each) for each in found]}},
            HyperNode,
        )
        for name, found in case["members"].items()
    }
    counter = NodeCounter()
    later = nodes.pop("n1")
    counter.count(hyper_nodes, nodes | {"n1x": {}})
    assert counter.count(hyper_nodes, nodes | {"n1": later}) == case["counts"]
    assert NodeCounter().count(hyper_nodes, nodes | {"n1": later}) == case["counts"]


def _member(each: Raw) -> Raw:
    selector = {
        "exactMatch": {"name": each["exact"]} if "exact" in each else None,
        "regexMatch": {"pattern": each["regex"]} if "regex" in each else None,
        "labelMatch": {"matchLabels": each["labels"]} if "labels" in each else None,
    }
    return {"type": each.get("of", "Node"), "selector": selector}
