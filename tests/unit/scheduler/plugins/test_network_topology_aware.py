"""Scores of nodes by how full the domains around them are, and arguments; gangs are in `test_network_topology`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.scheduler import load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.options import open_session
from pumice.scheduler.plugins.network_topology_aware import SPEC, NetworkTopologyAware
from pumice.scheduler.points import PodClass
from pumice.scheduler.session.session import Session
from tests.unit.scheduler.network_clusters import Cluster
from tests.unit.scheduler.scenarios import NOW, Raw, config_text

FULL = {"n0": 8, "n2": 8, "n4": 8}


def opened(arguments: dict[str, Any], **case: Any) -> tuple[Session, Callable[[], list[float]]]:
    """A session, and the scores of nodes for a pod of 8 cpu."""
    cluster = Cluster({"used": FULL, "gang": {"pods": 2, "cpu": 8}} | case)
    cluster.state.settle()
    plugins: list[list[Raw | str]] = [["gang", {"network-topology-aware": None, "args": arguments}]]
    session = open_session(cluster.state, load_config(config_text(plugins)), NOW)
    task = cluster.state.tasks["ns/pg-worker-0"]
    every = np.ones(len(session.view.rows), dtype=np.bool_)
    (build,) = session.extensions.domain_score
    score = build.call.build(PodClass(task.shape, "default", every))
    assert score is not None
    return session, lambda: score.column().tolist()


def test_checked_values() -> None:
    """The difference to the nodes of the emptiest rack; those that have all nodes count the same for all, and are left out."""
    session, scores = opened({})
    first = scores()
    root = 100 * (0.64 + 0.512) * 0.5 / 2.952
    assert first[1] + root == pytest.approx(73.71, abs=0.005)
    assert first[3] + root == pytest.approx(73.71, abs=0.005)
    assert first[5] + root == pytest.approx(66.94, abs=0.005)
    assert first[6:] == pytest.approx([50 - root] * 2, abs=0.005)
    nodes, task = session.state.nodes, session.state.tasks["ns/pg-worker-1"]
    statement = session.statement()
    statement.allocate(task, nodes.records["n1"])
    root = 100 * (0.64 + 0.512) * 40 / 64 / 2.952
    assert scores()[3] + root == pytest.approx(85.37, abs=0.005)
    assert scores()[5] + root == pytest.approx(71.82, abs=0.005)
    statement.discard()
    assert scores() == first
    session.close()


def test_followed_scores_are_those_of_a_new_session() -> None:
    session, scores = opened({})
    scores()
    statement = session.statement()
    for index, node in enumerate(("n7", "n1")):
        task = session.state.tasks[f"ns/pg-worker-{index}"]
        statement.allocate(task, session.state.nodes.records[node])
    _, again = opened({}, used=FULL | {"n7": 8, "n1": 8})
    assert scores() == again()
    statement.discard()
    session.close()


@pytest.mark.parametrize(
    ("fading", "same_as"), [(0, "tier 1 alone"), (-1, 0.8), (1e300, "the root alone")]
)
def test_fading(fading: float, same_as: float | str) -> None:
    _, scores = opened({"hypernode.binpack.normal-pod.fading": fading})
    found = scores()
    if same_as == "tier 1 alone":
        assert found == pytest.approx([100] * 6 + [50] * 2)
    elif same_as == "the root alone":
        assert found == pytest.approx([0] * 8)
    else:
        assert found == opened({"hypernode.binpack.normal-pod.fading": same_as})[1]()


def test_a_node_in_two_domains_of_a_tier_counts_in_both() -> None:
    """For its score the first by name decides; what it takes is counted in either."""
    more = {"t0": {"tier": 1, "nodes": ["n1", "n7"]}}
    session, scores = opened({}, more=more)
    statement = session.statement()
    statement.allocate(session.state.tasks["ns/pg-worker-0"], session.state.nodes.records["n1"])
    found = scores()
    _, again = opened({}, more=more, used=FULL | {"n1": 8})
    assert found == again()
    statement.discard()
    session.close()


def test_a_weight_of_0_turns_off_scores_and_not_the_search() -> None:
    case = {"used": {"n2": 1, "n3": 1}, "gang": {"pods": 2, "cpu": 4, "hard": 1}}
    off = [{"network-topology-aware": None, "args": {"weight": 0}}]
    cluster = Cluster(case | {"plugins": ["gang", "predicates", *off]})
    cluster.cycle()
    assert cluster.nodes() == ["n0", "n0"]


@pytest.mark.parametrize("name", ["weight", "hypernode.binpack.cpu"])
def test_a_negative_weight_is_1(name: str) -> None:
    assert NetworkTopologyAware(Arguments({name: -5}, SPEC.arguments)).open is not None
    session, scores = opened({name: -5})
    session.close()
    assert scores() == opened({})[1]()


def test_switches() -> None:
    """Without scores domains of a tier are taken by name; without the search a gang that must be in one waits."""
    gang = {"pods": 2, "cpu": 4, "hard": 1}
    case = {"used": {"n2": 1, "n3": 1}, "gang": gang}
    switches = ["HyperNodeGradient", "NodeOrder"]
    cluster = Cluster(case | {"plugins": ["gang", {"network-topology-aware": switches}]})
    cluster.cycle()
    assert cluster.nodes() == ["n0", "n0"]
    cluster = Cluster(case | {"plugins": ["gang", {"network-topology-aware": ["HyperNodeOrder"]}]})
    assert "enabledHyperNodeGradient" in cluster.cycle().pending["ns/pg"].summary
