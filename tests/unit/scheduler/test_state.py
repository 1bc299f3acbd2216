"""The state follows events, and only those that matter."""

import pytest

from pumice.api import keys
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Node, NodeStatus, PriorityClass
from pumice.api.quantities import QuantityError
from pumice.scheduler import ClusterState
from pumice.scheduler.model.axis import CPU
from pumice.scheduler.model.tasks import SchedulingStatus
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import Scenario, config_text, node, pod, pod_group, queue

GROUP = ["ns", "g", "default", 1, "Inqueue"]
POD = ["ns", "p", "", "Pending", 1, "1Gi", "g"]


@pytest.fixture
def state() -> ClusterState:
    """One node and one gang."""
    state = ClusterState()
    state.set_node(node(["n1", 4, "8Gi"]))
    state.set_pod_group(pod_group(GROUP))
    return state


def _placed(name: str, phase: str = "Running", **options: object) -> list[object]:
    return ["ns", name, "n1", phase, 1, "1Gi", "g", options]


def test_events_that_change_nothing_leave_the_version(state: ClusterState) -> None:
    state.set_pod(pod(POD))
    state.set_queue(queue(["q"]))
    version = state.parked.version
    assert not state.set_node(node(["n1", 4, "8Gi"]))
    assert not state.set_pod(pod(POD))
    assert not state.set_pod_group(pod_group(GROUP))
    assert not state.set_queue(queue(["q"]))
    assert not state.remove_pod("ns", "gone")
    assert not state.remove_node("gone")
    assert not state.remove_queue("gone")
    assert not state.remove_pod_group("ns", "gone")
    assert not state.remove_priority_class("gone")
    assert not state.pods.forget("ns/p", "")
    assert state.parked.version == version


@pytest.mark.parametrize(
    "row",
    [
        ["n1", 5, "8Gi"],
        ["n1", 4, "8Gi", {"labels": {"a": "b"}}],
        ["n1", 4, "8Gi", {"taints": [{"key": "t", "effect": "NoSchedule"}]}],
        ["n1", 4, "8Gi", {"unschedulable": True}],
        ["n1", 4, "8Gi", {"ready": False}],
        ["n1", 4, "8Gi", {"resources": {"nvidia.com/gpu": 1}}],
    ],
)
def test_changes_of_a_node_matter(state: ClusterState, row: list[object]) -> None:
    assert state.set_node(node(row))


@pytest.mark.parametrize("phase", ["Running", "Pending", "Unknown"])
def test_placed_pods_use_their_node(state: ClusterState, phase: str) -> None:
    state.set_pod(pod(_placed("p", phase)))
    assert dump(state)["nodes"]["n1"]["used"]["cpu"] == 1000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_do_not(state: ClusterState, phase: str) -> None:
    state.set_pod(pod(_placed("p", phase)))
    assert dump(state)["nodes"]["n1"]["used"] == {}
    assert state.jobs["ns/g"].counts[SchedulingStatus[phase.upper()]] == 1


def test_terminating_pods_use_their_node_and_are_about_to_leave_it(state: ClusterState) -> None:
    state.set_pod(pod(_placed("p", deleting=True)))
    columns = dump(state)["nodes"]["n1"]
    assert columns["used"]["cpu"] == columns["releasing"]["cpu"] == 1000


def test_a_pod_may_come_before_its_node(state: ClusterState) -> None:
    early, late = ClusterState(), ClusterState()
    placed = pod(_placed("p", resources={"example.com/foo": 2}))
    early.set_pod(placed)
    early.set_node(node(["n1", 4, "8Gi"]))
    late.set_node(node(["n1", 4, "8Gi"]))
    late.set_pod(placed)
    assert dump(early) == dump(late)


def test_a_node_may_go_and_come_back_with_its_pods(state: ClusterState) -> None:
    state.set_pod(pod(_placed("p")))
    before = dump(state)
    assert state.remove_node("n1")
    assert dump(state)["nodes"] == {}
    state.set_node(node(["n1", 4, "8Gi"]))
    assert dump(state) == before


def test_what_ready_nodes_have_follows_each_change_of_a_node(state: ClusterState) -> None:
    def cpus() -> int:
        state.settle()
        return int(state.facts.total()[CPU])

    assert cpus() == 4_000
    state.set_node(node(["n2", 2, "8Gi"]))
    assert cpus() == 6_000
    state.set_node(node(["n1", 5, "8Gi"]))
    assert cpus() == 7_000
    state.set_node(node(["n1", 5, "8Gi", {"ready": False}]))
    assert cpus() == 2_000
    state.set_node(node(["n3", 1, "8Gi", {"resources": {"nvidia.com/gpu": 1}}]))
    assert cpus() == 3_000
    assert len(state.facts.total()) == len(state.axis)
    state.remove_node("n3")
    state.remove_node("n2")
    assert cpus() == 0


def test_a_node_may_go_and_come_back_between_two_cycles(state: ClusterState) -> None:
    state.set_pod(pod(_placed("p")))
    before = dump(state)
    state.remove_node("n1")
    state.set_node(node(["n1", 4, "8Gi"]))
    assert dump(state) == before
    assert state.nodes.names == ("n1",)


def test_rows_are_in_the_order_of_names() -> None:
    state = ClusterState()
    for name in ("b", "c", "a"):
        state.set_node(node([name, 4, "8Gi"]))
    state.settle()
    assert state.nodes.names == ("a", "b", "c")
    state.set_node(node(["aa", 1, "1Gi"]))
    state.remove_node("b")
    state.settle()
    assert state.nodes.names == ("a", "aa", "c")
    assert state.nodes.rows().allocatable[:, 0].tolist() == [4000, 1000, 4000]


def test_many_nodes_and_new_resources() -> None:
    state = ClusterState()
    for number in range(200):
        resources = {f"example.com/r{number % 7}": number}
        state.set_node(node([f"n{number:03}", number, "8Gi", {"resources": resources}]))
    state.settle()
    rows = state.nodes.rows()
    assert rows.allocatable[:, 0].tolist() == [1000 * number for number in range(200)]
    assert rows.allocatable.shape[1] == len(state.axis) == 5 + 7
    assert not rows.allocatable.flags.writeable


def test_a_resource_that_only_a_pod_names_opens_a_column(state: ClusterState) -> None:
    state.set_pod(pod(["ns", "a", "n1", "Running", 1, "1Gi", ""]))
    state.set_pod(pod(["ns", "b", "n1", "Running", 1, "1Gi", "", {"resources": {"x/y": 3}}]))
    state.set_pod(pod(["ns", "a", "n1", "Succeeded", 1, "1Gi", ""]))
    used = dump(state)["nodes"]["n1"]["used"]
    assert (used["cpu"], used["x/y"]) == (1000, 3)


def test_thousands_of_resources_of_a_pod_share_a_column() -> None:
    """No node has them, so the pod waits; what a node names later has a column of its own."""
    scenario = Scenario(
        {"nodes": [["n1", 4, "8Gi"]], "podgroups": [GROUP, ["ns", "h", "default", 1, "Inqueue"]]},
        config_text([["gang", "predicates"]]),
    )
    many = {f"example.com/r{place}": 1 for place in range(3000)}
    scenario.add_pod(["ns", "many", "", "Pending", 1, "1Gi", "g", {"resources": many}])
    scenario.add_pod(
        ["ns", "few", "", "Pending", 1, "1Gi", "h", {"resources": {"example.com/own": 1}}]
    )
    result = scenario.cycle()
    assert result.binds == {}
    assert "Insufficient other resources" in result.pending["ns/h"].message
    assert len(scenario.state.axis) < 100
    scenario.state.remove_pod("ns", "few")
    scenario.state.set_node(node(["n2", 4, "8Gi", {"resources": {"example.com/own": 1}}]))
    scenario.add_pod(
        ["ns", "later", "", "Pending", 1, "1Gi", "h", {"resources": {"example.com/own": 1}}]
    )
    assert scenario.cycle().binds == {"ns/later": "n2"}


def test_a_node_without_a_limit_of_pods_takes_110() -> None:
    state = ClusterState()
    status = NodeStatus(capacity={"cpu": "1", "count/secrets": 7})
    state.set_node(Node(metadata=ObjectMeta(name="n"), status=status))
    assert dump(state)["nodes"]["n"]["allocatable"]["pods"] == 110
    assert "count/secrets" not in state.axis.names


def test_unreadable_amounts_change_nothing(state: ClusterState) -> None:
    before, version = dump(state), state.parked.version
    with pytest.raises(QuantityError):
        state.set_node(node(["n1", "four", "8Gi"]))
    with pytest.raises(QuantityError):
        state.set_pod(pod(["ns", "p", "n1", "Running", "many", "1Gi", "g"]))
    with pytest.raises(QuantityError):
        state.set_pod_group(pod_group([*GROUP[:1], "new", *GROUP[2:], {"minRes": {"cpu": "x"}}]))
    assert (dump(state), state.parked.version) == (before, version)


def test_huge_amounts_do_not_overflow() -> None:
    """Scores and sums of a node with 8 exabytes stay in range, and it is the emptier one."""
    scenario = Scenario(
        {
            "nodes": [["n1", "8E", "8E"], ["n2", 1, "1Gi"]],
            "podgroups": [GROUP],
            "pods": [["ns", "p", "", "Pending", 1, "1Gi", "g"]],
        },
        config_text([["gang", "nodeorder"]]),
    )
    assert scenario.cycle().binds == {"ns/p": "n1"}


@pytest.mark.parametrize("amount", ["9e30", "-9e30", 2**63, -(2**63)])
def test_a_minimum_that_is_out_of_range_affects_no_other_object(amount: str | int) -> None:
    scenario = Scenario({"nodes": [["n1", 1, "8Gi"]], "podgroups": [GROUP]})
    scenario.state.set_pod_group(
        pod_group([*GROUP[:1], "a", *GROUP[2:], {"minRes": {"cpu": amount}}])
    )
    scenario.add_pod(["ns", "other", "", "Pending", 0, 0, "", {"resources": {"x/y": 1}}])
    scenario.add_pod(POD)
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_a_priority_that_is_out_of_range_affects_no_other_pod() -> None:
    first = ["ns", "a", "n1", "Running", 1, "1Gi", "g", {"annotations": {"volcano.sh/task-priority": "9" * 30}}]  # fmt: skip
    scenario = Scenario({"nodes": [["n1", 2, "8Gi"]], "podgroups": [GROUP], "pods": [first, POD]})
    assert scenario.cycle().binds == {"ns/p": "n1"}
    assert scenario.state.remove_pod("ns", "a")


@pytest.mark.parametrize(
    ("digits", "binds"), [("0" * 5_000, {"ns/p": "n1"}), ("9" * 5_000, {})], ids=["0", "9"]
)
def test_thousands_of_digits_are_compared_as_go_reads_them(
    digits: str, binds: dict[str, str]
) -> None:
    above = {"key": "generation", "operator": "Gt", "values": [digits]}
    term = {"nodeSelectorTerms": [{"matchExpressions": [above]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    scenario = Scenario(
        {
            "nodes": [["n1", 1, "8Gi", {"labels": {"generation": "7"}}]],
            "podgroups": [GROUP],
            "pods": [[*POD, {"affinity": affinity}]],
        },
        config_text([["gang", "predicates"]]),
    )
    assert scenario.cycle().binds == binds


def test_the_group_annotation_and_the_scheduler_make_a_pod_ours(state: ClusterState) -> None:
    volcano = {"annotations": {"scheduling.volcano.sh/group-name": "g"}}
    state.set_pod(pod(["ns", "a", "", "Pending", 1, "1Gi", "", volcano]))
    state.set_pod(pod(["ns", "b", "", "Pending", 1, "1Gi", "g", {"scheduler": "other"}]))
    state.set_pod(pod(["ns", "c", "", "Pending", 1, "1Gi", ""]))
    assert sorted(state.jobs["ns/g"].tasks) == ["ns/a"]


def test_other_scheduler_names_can_be_ours() -> None:
    state = ClusterState(scheduler_names=("mine", "volcano"))
    state.set_pod(pod(["ns", "b", "", "Pending", 1, "1Gi", "g", {"scheduler": "mine"}]))
    assert sorted(state.jobs["ns/g"].tasks) == ["ns/b"]


@pytest.mark.parametrize(
    ("options", "priority"),
    [
        ({}, 1),
        ({"prio": 7}, 7),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": "9"}}, 9),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": "high"}}, 7),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": "-2147483648"}}, -(2**31)),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": "9" * 20}}, 7),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": str(2**31 - 1)}}, 2**31 - 1),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": str(2**31)}}, 7),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": str(-(2**31) - 1)}}, 7),
        ({"prio": 7, "annotations": {"volcano.sh/task-priority": "9" * 5_000}}, 7),
    ],
)
def test_priority_of_a_pod(state: ClusterState, options: dict[str, object], priority: int) -> None:
    state.set_pod(pod([*POD, options]))
    assert state.tasks["ns/p"].priority == priority


def test_priority_of_a_gang_follows_its_class() -> None:
    scenario = Scenario(
        {
            "classes": {"high": 1000},
            "podgroups": [[*GROUP, {"prio": "high"}], ["ns", "h", "default", 1, "Inqueue"]],
        }
    )
    jobs = scenario.state.jobs
    assert (jobs["ns/g"].priority, jobs["ns/h"].priority) == (1000, 0)
    scenario.state.set_priority_class(_class("base", 5, is_default=True))
    assert (jobs["ns/g"].priority, jobs["ns/h"].priority) == (1000, 5)
    assert not scenario.state.set_priority_class(_class("base", 5, is_default=True))
    scenario.state.remove_priority_class("high")
    assert jobs["ns/g"].priority == 0


def _class(name: str, value: int, *, is_default: bool) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=is_default)


def test_a_decided_bind_is_assumed_until_it_is_confirmed() -> None:
    scenario = Scenario({"nodes": [["n1", 1, "8Gi"]], "podgroups": [GROUP], "pods": [POD]})
    assert scenario.cycle().binds == {"ns/p": "n1"}
    scenario.state.set_pod(pod(POD))
    statuses = [scenario.state.tasks["ns/p"].status]
    assert scenario.cycle().binds == {}
    scenario.state.set_pod(pod(["ns", "p", "n1", *POD[3:]]))
    statuses.append(scenario.state.tasks["ns/p"].status)
    assert statuses == [SchedulingStatus.BINDING, SchedulingStatus.BOUND], (
        "an old event does not undo it"
    )


@pytest.mark.parametrize("phases", [["Running"], ["Pending", "Running"]], ids="-".join)
def test_a_bound_pod_that_runs_counts_as_one_that_always_ran(phases: list[str]) -> None:
    cluster = {"nodes": [["n1", 1, "8Gi"]], "podgroups": [GROUP]}
    scenario = Scenario(cluster | {"pods": [POD]})
    scenario.cycle()
    version = scenario.state.parked.version
    bound = {keys.QUEUE: "default"}
    for phase in phases:
        assert scenario.state.set_pod(pod(_placed("p", phase, annotations=bound)))
    assert scenario.state.parked.version == version + len(phases)
    others = ClusterState()
    others.set_node(node(["n1", 1, "8Gi"]))
    others.set_pod_group(pod_group(GROUP))
    others.set_pod(pod(_placed("p", annotations=bound)))
    assert dump(scenario.state) == dump(others)
    (task,) = scenario.state.tasks.values()
    assert scenario.state.nodes.running.runs[task.row]


def test_a_refused_bind_is_forgotten_and_tried_again() -> None:
    scenario = Scenario({"nodes": [["n1", 1, "8Gi"]], "podgroups": [GROUP], "pods": [POD]})
    before = dump(scenario.state)
    scenario.cycle()
    assert scenario.state.pods.forget("ns/p", "")
    assert dump(scenario.state) == before
    assert scenario.cycle().binds == {"ns/p": "n1"}


def test_a_pod_that_was_bound_elsewhere_is_taken_as_it_is() -> None:
    scenario = Scenario(
        {"nodes": [["n1", 1, "8Gi"], ["n2", 1, "8Gi"]], "podgroups": [GROUP], "pods": [POD]}
    )
    scenario.cycle()
    scenario.state.set_pod(pod(["ns", "p", "n2", *POD[3:]]))
    assert dump(scenario.state)["on"] == {"n2": ["ns/p"]}


def test_the_default_queue_cannot_be_lost(state: ClusterState) -> None:
    state.set_queue(queue(["default", {"state": "Closed"}]))
    assert not state.queues["default"].is_open
    state.remove_queue("default")
    assert state.queues["default"].is_open


def test_everything_can_be_forgotten(state: ClusterState) -> None:
    """Nothing is left of what was removed, so a scheduler does not grow with its past."""
    state.set_pod(pod(_placed("p", ports=[80])))
    state.set_pod(pod([*POD[:1], "q", *POD[2:]]))
    state.set_queue(queue(["q"]))
    state.remove_pod("ns", "p")
    state.remove_pod("ns", "q")
    state.remove_pod_group("ns", "g")
    state.remove_queue("q")
    state.remove_node("n1")
    empty = dump(ClusterState())
    assert dump(state) == empty
    assert state.nodes.records == {}
    assert len(state.shapes) == 0
