"""Simulated nodes are described in a few characters."""

import pytest

from pumice.cli.development.dev_nodes import SimulatedNode, read_nodes
from pumice.cli.exits import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "2,1,4",
            [SimulatedNode("node1", "2"), SimulatedNode("node2", "1"), SimulatedNode("node3", "4")],
        ),
        ("2x8/64Gi", [SimulatedNode("node1", "8", "64Gi"), SimulatedNode("node2", "8", "64Gi")]),
        ("500m", [SimulatedNode("node1", "500m")]),
        (
            "1x8/64Gi/nvidia.com/gpu=4/hugepages-2Mi=1Gi",
            [SimulatedNode("node1", "8", "64Gi", {"nvidia.com/gpu": "4", "hugepages-2Mi": "1Gi"})],
        ),
        ("8/nvidia.com/gpu=4", [SimulatedNode("node1", "8", "32Gi", {"nvidia.com/gpu": "4"})]),
        (
            "2x8gpu,32cpu,256Gi + 4",  # as `pumice simulate --trace --nodes` has it
            [
                SimulatedNode("node1", "32", "256Gi", {"nvidia.com/gpu": "8"}),
                SimulatedNode("node2", "32", "256Gi", {"nvidia.com/gpu": "8"}),
                SimulatedNode("node3", "4"),
            ],
        ),
        (
            "2, 2x1",
            [SimulatedNode("node1", "2"), SimulatedNode("node2", "1"), SimulatedNode("node3", "1")],
        ),
    ],
)
def test_nodes(text: str, expected: list[SimulatedNode]) -> None:
    assert read_nodes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "x8",
        "0x4",
        "8/",
        "8/64Gi/gpu",
        "-1",
        "8/64Gi/gpu=x",
        "99999x1",
        "8//",
        "8/=4",
        "8gpu",
    ],
)
def test_anything_else_is_a_mistake(text: str) -> None:
    with pytest.raises(UserError, match="--nodes"):
        read_nodes(text)
