"""The worked example of `docs/design/task-topology-plugin.md` of Volcano, step by step.

A TensorFlow job with 6 tasks: ps0, ps1, worker0, worker1, worker2, worker3; each needs 1 cpu.
`affinity: ps,worker`, `anti-affinity: ps`. Three nodes have 2, 1 and 4 cpus.
"""

import pytest

from pumice.scheduler import load_config
from tests.unit.scheduler.placement_records import PlacementRecord, record_placement, topology_job
from tests.unit.scheduler.scenarios import Scenario

EXAMPLE = topology_job(
    {"ps": 2, "worker": 4},
    {"node1": 2, "node2": 1, "node3": 4},
    affinity="ps,worker",
    anti="ps",
)


@pytest.fixture(scope="module")
def record() -> PlacementRecord:
    """The example, placed with task-topology alone scoring."""
    return record_placement(EXAMPLE)


def test_buckets_are_generated_by_affinity_and_balance(record: PlacementRecord) -> None:
    """ps1 opens a second bucket, because ps repels ps; workers go to the lighter one in turn."""
    assert record.buckets == [
        ["ps-0", "worker-0", "worker-2"],
        ["ps-1", "worker-1", "worker-3"],
    ]


def test_pods_are_placed_bucket_by_bucket(record: PlacementRecord) -> None:
    assert record.order == ["ps-0", "worker-0", "worker-2", "ps-1", "worker-1", "worker-3"]


def test_ps0_goes_where_most_of_its_bucket_fits(record: PlacementRecord) -> None:
    """node1 holds ps0 and worker0, node2 holds ps0, node3 the whole bucket."""
    assert record.of("ps-0").scores == {"node1": 2, "node2": 1, "node3": 3}
    assert record.of("ps-0").node == "node3"


def test_worker0_follows_ps0(record: PlacementRecord) -> None:
    """On node3, ps0 counts beside worker0 and worker2."""
    assert record.of("worker-0").scores == {"node1": 2, "node2": 1, "node3": 3}
    assert record.of("worker-0").node == "node3"


def test_the_same_to_worker2(record: PlacementRecord) -> None:
    assert record.of("worker-2").node == "node3"


def test_ps1_avoids_the_node_of_ps0(record: PlacementRecord) -> None:
    assert record.of("ps-1").scores == {"node1": 2, "node2": 1, "node3": 0}
    assert record.of("ps-1").node == "node1"


def test_worker1_follows_ps1(record: PlacementRecord) -> None:
    assert record.of("worker-1").node == "node1"


def test_for_worker3_node2_and_node3_score_the_same(record: PlacementRecord) -> None:
    scores = record.of("worker-3").scores
    assert scores["node2"] == scores["node3"]
    assert scores["node1"] == 0, "node1 is full"


@pytest.mark.parametrize(
    ("other", "node"),
    [
        ({"binpack": None}, "node3"),
        ({"nodeorder": None, "args": {"balancedresource.weight": 0}}, "node2"),
    ],
    ids=["binpack", "least-requested"],
)
def test_worker3_is_decided_by_other_plugins(other: dict[str, object], node: str) -> None:
    """Binpack takes node3, which would be the fuller one; for least-requested both would be full."""
    record = record_placement(EXAMPLE, others=(other,))
    assert record.of("worker-3").node == node


def test_the_example_comes_out_with_the_default_configuration() -> None:
    """All plugins score, and none of them tears a bucket apart."""
    result = Scenario(EXAMPLE, load_config()).cycle()
    assert {pod.removeprefix("ns/job-"): node for pod, node in result.binds.items()} == {
        "ps-0": "node3",
        "worker-0": "node3",
        "worker-2": "node3",
        "ps-1": "node1",
        "worker-1": "node1",
        "worker-3": "node3",
    }
