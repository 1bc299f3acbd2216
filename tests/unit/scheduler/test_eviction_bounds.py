"""What is known of nodes before victims are sought there, over decisions and searches that follow each other."""

from typing import Any

import numpy as np

from pumice.scheduler.eviction.bounds import NodeBounds, highest_importance
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.settings import rules_for
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, config_text
from tests.unit.scheduler.test_victim_search import PREEMPT, waiting


def test_a_gang_breaks_on_no_node_any_more_once_decisions_are_undone() -> None:
    """Gang `old` has two pods and needs one: without the first, the second breaks it."""
    cluster = {
        "classes": {"high": 100},
        "nodes": [["n0", 4, "8Gi"], ["n1", 4, "8Gi"]],
        "queues": [["q1"]],
        "podgroups": [
            ["ns", "old", "q1", 1, "Running"],
            ["ns", "new", "q1", 1, "Inqueue", {"prio": "high"}],
        ],
        "pods": [
            *(["ns", f"old-{node}", node, "Running", 4, 0, "old"] for node in ("n0", "n1")),
            ["ns", "new-0", "", "Pending", 4, 0, "new"],
        ],
    }
    session = open_session(Scenario(cluster, config_text([["priority"], ["predicates"]])))
    (preemptor,) = waiting(session)
    nodes = session.state.nodes
    tasks = [task for record in nodes.order for task in record.tasks.values()]
    bounds = NodeBounds(session, preemptor, np.array([task.row for task in tasks], dtype=np.int64))
    (first,) = nodes.order[0].tasks.values()
    (second,) = nodes.order[1].tasks.values()
    two = (highest_importance(session, [second]), 0, 2)
    statement = session.statement()
    statement.evict(first)
    bounds.settle(1, None)
    bounds.reset()
    assert bounds.take({0}, two) is None
    statement.discard()
    bounds.undone()
    assert bounds.take({0}, two) == 1
    session.close()


def test_bounds_take_no_more_memory_with_every_search_for_pods_of_their_class() -> None:
    """The port is taken everywhere; on the first node by a pod that may not go."""
    free = [[f"n{number}", 4, "8Gi"] for number in range(3)]
    ports = {"ports": [80]}
    cluster = {
        "classes": {"high": 100},
        "nodes": free,
        "queues": [["q1"]],
        "podgroups": [
            ["ns", "old", "q1", 0, "Running"],
            ["ns", "new", "q1", 1, "Inqueue", {"prio": "high"}],
        ],
        "pods": [
            *(["ns", f"old-{name}", name, "Running", 1, 0, "old", ports] for name, *_ in free[1:]),
            ["ns", "alone", "n0", "Running", 1, 0, "", ports],
            ["ns", "new-0", "", "Pending", 1, 0, "new", ports],
        ],
    }
    tiers: list[list[Any]] = [["priority", "gang"], ["predicates"]]
    session = open_session(Scenario(cluster, config_text(tiers)))
    search, statement = Search(session, PREEMPT), session.statement()
    (preemptor,) = waiting(session)
    rules = rules_for(session, PREEMPT, preemptor.job, preemptor.queue)
    sizes = []
    for _ in range(4):
        places = search.nodes(preemptor, rules, statement)
        assert search.find(places, statement) is not None
        sizes.append(len(places.bounds._heap))
    assert len(set(sizes[1:])) == 1
    session.close()
