"""Simulated nodes are described in a few characters."""

import pytest

from pumice.cli.exits import UserError
from pumice.cli.nodes import NodeSpec, read_nodes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2,1,4", [NodeSpec("node1", "2"), NodeSpec("node2", "1"), NodeSpec("node3", "4")]),
        ("2x8/64Gi", [NodeSpec("node1", "8", "64Gi"), NodeSpec("node2", "8", "64Gi")]),
        ("500m", [NodeSpec("node1", "500m")]),
        (
            "1x8/64Gi/nvidia.com/gpu=4/hugepages-2Mi=1Gi",
            [NodeSpec("node1", "8", "64Gi", {"nvidia.com/gpu": "4", "hugepages-2Mi": "1Gi"})],
        ),
        ("8/nvidia.com/gpu=4", [NodeSpec("node1", "8", "32Gi", {"nvidia.com/gpu": "4"})]),
        ("2, 2x1", [NodeSpec("node1", "2"), NodeSpec("node2", "1"), NodeSpec("node3", "1")]),
    ],
)
def test_nodes(text: str, expected: list[NodeSpec]) -> None:
    assert read_nodes(text) == expected


@pytest.mark.parametrize(
    "text", ["", ",", "x8", "8/", "8/64Gi/gpu", "-1", "8/64Gi/gpu=x", "99999x1", "8//", "8/=4"]
)
def test_anything_else_is_a_mistake(text: str) -> None:
    with pytest.raises(UserError, match="--nodes"):
        read_nodes(text)
