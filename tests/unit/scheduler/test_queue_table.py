"""Queues in columns: the tree, and sums that follow every event."""

from typing import Any

import pytest

from pumice.api.quantities import QuantityError
from pumice.scheduler import ClusterState
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.queues import MAX_DEPTH
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import check_sums
from tests.unit.scheduler.scenarios import Scenario, node, pod_group, queue


def parents_of(*rows: list[Any]) -> dict[str, str]:
    state = ClusterState()
    for row in rows:
        state.set_queue(queue(row))
    state.settle()
    shares = state.shares
    above = {name: shares.parents[row] for name, row in shares.rows.items()}
    return {name: shares.names[row] if row >= 0 else "" for name, row in above.items()}


def test_a_queue_without_a_parent_is_below_root() -> None:
    parents = parents_of(["root"], ["a"], ["b", {"parent": "a"}])
    assert parents == {"root": "", "a": "root", "b": "a", "default": "root"}


def test_a_parent_that_does_not_exist_is_none() -> None:
    assert parents_of(["a", {"parent": "gone"}])["a"] == ""


def test_a_queue_that_changes_is_taken_up_where_it_is_and_where_it_moves() -> None:
    """Sums are kept while the tree is the same, and counted again when a queue has another parent."""
    scenario = Scenario(
        {
            "nodes": [["n", 8, "8Gi"]],
            "queues": [["root"], ["a"], ["b"], ["c", {"parent": "a"}]],
            "podgroups": [["ns", "runs", "c", 1, "Running"]],
            "pods": [["ns", "runs-0", "n", "Running", 3, "1Gi", "runs"]],
        }
    )
    state, shares = scenario.state, scenario.state.shares
    for change, holders in (
        ({"parent": "a", "weight": 5}, ["a", "c", "root"]),
        ({"parent": "b", "weight": 7}, ["b", "c", "root"]),
    ):
        state.set_queue(queue(["c", change]))
        state.settle()
        cpu = shares.tree[:, 0]
        assert [name for name in shares.names if cpu[shares.rows[name]]] == holders
        assert shares.queues[shares.rows["c"]].spec.weight == change["weight"]
        assert shares.limits.weights[shares.rows["c"]] == change["weight"]
        check_sums(state)


@pytest.mark.parametrize(
    "rows",
    [
        [["a", {"parent": "a"}]],
        [["a", {"parent": "b"}], ["b", {"parent": "a"}]],
        [["a", {"parent": "b"}], ["b", {"parent": "c"}], ["c", {"parent": "b"}]],
        [[f"q{n}", {"parent": f"q{n + 1}"}] for n in range(5 * MAX_DEPTH)],
    ],
    ids=["itself", "each other", "a circle above", "a long chain"],
)
def test_parents_in_a_cycle_and_long_chains_end(rows: list[list[Any]]) -> None:
    parents = parents_of(*rows)
    for name in parents:
        depth = 1
        while name := parents[name]:
            depth += 1
        assert depth <= MAX_DEPTH


def test_what_a_queue_and_those_below_it_hold_reserve_and_have_beyond_the_minimum() -> None:
    scenario = Scenario(
        {
            "nodes": [["n", 8, "8Gi"]],
            "queues": [["root"], ["a"], ["b", {"parent": "a"}]],
            "podgroups": [
                ["ns", "in", "b", 2, "Inqueue", {"minRes": {"cpu": 2, "requests.cpu": 2}}],
                ["ns", "runs", "b", 1, "Running", {"minRes": {"cpu": 1}}],
            ],
            "pods": [
                ["ns", "in-0", "n", "Running", 1, 0, "in"],
                ["ns", "runs-0", "n", "Running", 3, 0, "runs"],
                ["ns", "runs-1", "", "Pending", 4, 0, "runs"],
            ],
        }
    )
    scenario.state.settle()
    shares, row = scenario.state.shares, scenario.state.shares.rows
    assert [shares.allocated[row[name]][0] for name in ("b", "a", "root")] == [4000, 0, 0]
    assert [shares.tree[row[name]][0] for name in ("b", "a", "root")] == [4000, 4000, 4000]
    assert shares.pending[row["b"]][0] == 4000
    assert shares.reserved[row["b"]][0] == 1000
    assert shares.elastic[row["b"]][0] == 2000
    assert shares.below(shares.elastic)[row["root"]][0] == 2000
    assert shares.jobs[row["b"]] == 2


def test_a_gang_that_changes_its_queue_is_counted_there() -> None:
    scenario = Scenario(
        {
            "queues": [["a"], ["b"]],
            "podgroups": [["ns", "g", "a", 1, "Inqueue", {"minRes": {"cpu": 1}}]],
            "pods": [["ns", "g-0", "n", "Running", 3, 0, "g"]],
        }
    )
    check_sums_after_settling(scenario)
    scenario.state.set_pod_group(pod_group(["ns", "g", "b", 1, "Inqueue", {"minRes": {"cpu": 1}}]))
    check_sums_after_settling(scenario)
    assert scenario.state.shares.allocated[scenario.state.shares.rows["b"]][0] == 3000
    scenario.state.remove_queue("b")
    check_sums_after_settling(scenario)
    assert scenario.state.shares.allocated[scenario.state.shares.rows["default"]][0] == 3000


def check_sums_after_settling(scenario: Scenario) -> None:
    scenario.state.settle()
    check_sums(scenario.state)


def test_resources_that_only_podgroups_name_open_no_columns() -> None:
    names = {f"example.com/r{n}": 1 for n in range(100)}
    row = ["ns", "g", "default", 1, "Inqueue", {"minRes": {"cpu": 1} | names}]
    scenario = Scenario({"podgroups": [row]})
    scenario.state.settle()
    assert len(scenario.state.axis) == 5
    job = scenario.state.jobs["ns/g"]
    assert job.minimum[0] == 1000
    scenario.state.set_node(node(["n", 8, "8Gi", {"resources": {"example.com/r7": 3}}]))
    check_sums_after_settling(scenario)
    assert job.minimum.tolist() == [1000, 0, 0, 0, 0, 1]


def test_a_promised_place_counts_as_held() -> None:
    """Within a session; afterwards the pod waits again."""
    scenario = Scenario(
        {
            "nodes": [["n", 4, "8Gi"]],
            "queues": [["a"]],
            "podgroups": [["ns", "g", "a", 1, "Inqueue"]],
            "pods": [["ns", "g-0", "", "Pending", 3, 0, "g"]],
        }
    )
    session = open_session(scenario)
    shares, row = scenario.state.shares, scenario.state.shares.rows["a"]
    statement = session.statement()
    statement.pipeline(scenario.state.tasks["ns/g-0"], scenario.state.nodes.order[0])
    assert (shares.allocated[row][0], shares.pending[row][0]) == (3000, 0)
    check_sums(scenario.state)
    statement.commit()
    session.close()
    assert (shares.allocated[row][0], shares.pending[row][0]) == (0, 3000)


def test_amounts_of_queues_are_put_into_columns_once_and_follow_changes() -> None:
    scenario = Scenario(
        {
            "nodes": [["n", 4, "8Gi"]],
            "queues": [["a", {"capability": {"cpu": "1500m", "memory": "1Gi"}}]],
        }
    )
    scenario.state.settle()
    shares = scenario.state.shares
    limits = shares.limits
    stated = [1500, 1 << 30, UNLIMITED, UNLIMITED, UNLIMITED]
    assert limits.capability[shares.rows["a"]].tolist() == stated
    assert shares.limits is limits
    scenario.state.set_queue(queue(["a", {"guarantee": {"resource": {"cpu": 1}}}]))
    scenario.state.settle()
    assert shares.limits.capability[shares.rows["a"]].min() == UNLIMITED
    assert shares.limits.guarantee[shares.rows["a"]][0] == 1000


def test_a_queue_with_an_amount_that_cannot_be_read_is_refused() -> None:
    state = ClusterState()
    with pytest.raises(QuantityError):
        state.set_queue(queue(["a", {"deserved": {"cpu": "many"}}]))
    assert "a" not in state.queues
