"""task-topology beyond the worked example: Volcano's mode, annotations, conflicts, placed pods."""

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.buckets.task_rules import TopologyError, check_rules, read_rules
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.placement_records import record_placement, topology_job
from tests.unit.scheduler.scenarios import Scenario, case_id, config_text, load_cases

VOLCANO = {"task-topology.mode": "volcano"}


@pytest.mark.parametrize("case", load_cases("task_topology_volcano.yaml"), ids=case_id)
def test_mode_volcano(case: dict[str, Any]) -> None:
    scenario = topology_job(
        case["tasks"],
        case["nodes"],
        affinity=case.get("affinity", ""),
        anti=case.get("anti", ""),
        order=case.get("order", ""),
        bound=case.get("bound"),
        requests=case.get("requests"),
    )
    record = record_placement(scenario, arguments=VOLCANO | case.get("arguments", {}))
    nodes = list(case["nodes"])
    if "buckets" in case:
        assert record.buckets == case["buckets"]
    if "weights" in case:
        assert record.weights == case["weights"]
    if "largest" in case:
        assert record.largest == case["largest"]
    if "first" in case:
        pod, scores = case["first"]
        assert record.order[0] == pod
        assert [record.steps[0].scores[node] for node in nodes] == pytest.approx(scores, abs=1e-3)
    for step, (pod, scores, node) in zip(record.steps, case.get("steps", []), strict=False):
        assert step.pod == pod
        assert [step.scores[name] for name in nodes] == pytest.approx(scores, abs=1e-3), pod
        assert step.node == node, pod
    assert len(record.steps) == sum(case["tasks"].values()) - len(case.get("bound", {}))
    if "placement" in case:
        assert {node: sorted(pods) for node, pods in record.placement.items()} == {
            node: sorted(pods) for node, pods in case["placement"].items()
        }


@pytest.mark.parametrize("case", load_cases("task_topology_annotations.yaml"), ids=case_id)
def test_annotations(case: dict[str, Any]) -> None:
    annotations = {
        f"volcano.sh/task-topology{suffix}": case[key]
        for key, suffix in (
            ("affinity", "-affinity"),
            ("anti", "-anti-affinity"),
            ("order", "-task-order"),
            ("json", ""),
        )
        if key in case
    }

    def read() -> Any:
        rules = read_rules(annotations, "default/job1")
        if rules is not None:
            check_rules(rules, case["roles"], "default/job1")
        return rules

    if "error" in case or "error_start" in case:
        with pytest.raises(TopologyError) as caught:
            read()
        assert str(caught.value).startswith(case.get("error") or case["error_start"])
        if "error" in case:
            assert str(caught.value) == case["error"]
        return
    rules = read()
    if case["rules"] is None:
        assert rules is None
        return
    assert {
        "affinity": [list(group) for group in rules.affinity],
        "anti": [list(group) for group in rules.anti_affinity],
        "order": list(rules.order),
    } == case["rules"]


def test_tasks_without_a_wish_come_last() -> None:
    """`docs/design/bucket.md` of Volcano: pods without a bucket are placed at the end."""
    record = record_placement(
        topology_job(
            {"chief": 1, "ps": 1, "worker": 2},
            {"n1": 4, "n2": 4},
            affinity="ps,worker",
            order="chief,ps,worker",
        )
    )
    assert record.order == ["ps-0", "worker-0", "worker-1", "chief-0"]
    assert record.buckets == [["ps-0", "worker-0", "worker-1"]]


def test_conflicting_tasks_are_in_no_bucket() -> None:
    """`docs/design/bucket.md` of Volcano: if there is any conflict, the pod is not placed in any bucket."""
    record = record_placement(
        topology_job(
            {"ps": 1, "worker": 2, "chief": 2},
            {"n1": 8},
            affinity="ps,worker;chief",
            anti="worker,ps",
        )
    )
    assert record.buckets == [["chief-0", "chief-1"]]
    assert record.order == ["chief-0", "chief-1", "ps-0", "worker-0", "worker-1"]


def test_pods_placed_before_the_session_repel_too() -> None:
    """ps-0 runs on n1, which would hold more of the other bucket than n2 does."""
    job = topology_job(
        {"ps": 2, "worker": 2},
        {"n1": 4, "n2": 1},
        affinity="ps,worker",
        anti="ps",
        bound={"ps-0": "n1"},
    )
    assert record_placement(job).of("ps-1").node == "n2"
    assert record_placement(job, arguments=VOLCANO).of("ps-1").node == "n1"


def test_the_more_repelling_pods_the_worse() -> None:
    """With nothing free of conflicts, the node with fewer of them is taken."""
    record = record_placement(
        topology_job(
            {"ps": 4},
            {"n1": 4, "n2": 4},
            anti="ps",
            bound={"ps-0": "n1", "ps-1": "n1", "ps-2": "n2"},
        )
    )
    assert record.of("ps-3").scores == {"n1": -1, "n2": 0}
    assert record.of("ps-3").node == "n2"


def test_a_pod_stays_with_its_bucket_although_a_pod_in_it_repels_it() -> None:
    """Two chiefs attract the worker, one ps repels it: the bucket of all four goes to one node."""
    record = record_placement(
        topology_job(
            {"ps": 1, "chief": 2, "worker": 1},
            {"n1": 4, "n2": 4},
            affinity="ps,chief;chief,worker",
            anti="ps,worker",
        )
    )
    assert record.buckets == [["chief-0", "chief-1", "ps-0", "worker-0"]]
    assert set(record.placement) == {"n1"}


def test_names_are_sorted_as_people_count() -> None:
    record = record_placement(topology_job({"w": 12}, {"n1": 12}, affinity="w"))
    assert record.buckets == [[f"w-{index}" for index in range(12)]]
    upstream = record_placement(
        topology_job({"w": 12}, {"n1": 12}, affinity="w"), arguments=VOLCANO
    )
    assert upstream.buckets[0][:4] == ["w-0", "w-1", "w-10", "w-11"]


def test_what_is_left_out_of_a_bucket_is_balanced() -> None:
    """Of 2 ps (2 cpus each) and 4 workers, n1 keeps one of each: workers and ps are left out in turn."""
    record = record_placement(
        topology_job(
            {"ps": 2, "worker": 4},
            {"n1": 4, "n2": 9},
            affinity="ps,worker",
            requests={"ps": [2, "1Gi"]},
        )
    )
    assert record.of("ps-0").scores == {"n1": 2, "n2": 6}


def test_a_discarded_gang_leaves_its_buckets_as_they_were() -> None:
    """Pods that lose their place go back into their bucket."""
    job = topology_job({"ps": 2, "worker": 4}, {"n1": 2, "n2": 1}, affinity="ps,worker", anti="ps")
    scenario = Scenario(job, config_text([["gang", "task-topology"]], ["allocate", "allocate"]))
    result = scenario.cycle()
    assert result.binds == {}
    assert result.pending["ns/job"].details["schedulable"] == 3


def test_a_typo_is_reported_once() -> None:
    job = topology_job({"ps": 2}, {"n1": 4}, affinity="ps,wroker")
    scenario = Scenario(job)
    first = scenario.cycle()
    assert len(first.binds) == 2, "the job is placed all the same"
    assert [event.message for event in first.events if event.reason == "TaskTopologyIgnored"] == [
        "task-topology is ignored: task wroker do not exist in job <ns/job>"
    ]
    scenario.state.pods.forget("ns/job-ps-0", "")
    second = scenario.cycle()
    assert [event for event in second.events if event.reason == "TaskTopologyIgnored"] == []


def test_tasks_are_known_by_name_where_pods_say_nothing() -> None:
    """Pods without the task annotation, as Volcano 1.9 had them."""
    job = topology_job({"ps": 1, "ps-chief": 1}, {"n1": 1, "n2": 2}, affinity="ps,ps-chief")
    for row in job["pods"]:
        del row[-1]["role"]
    record = record_placement(job)
    assert record.buckets == [["ps-0", "ps-chief-0"]]
    assert set(record.placement) == {"n2"}


def test_buckets_outrank_the_sum_of_other_scores() -> None:
    """worker-0 follows ps-0 to the emptier side of a cluster, however much others prefer n2."""
    job = topology_job({"ps": 1, "worker": 3}, {"n1": 4, "n2": 3}, affinity="ps,worker")
    heavy = {"binpack": None, "args": {"binpack.weight": 1000}}
    assert record_placement(job, others=(heavy,)).placement == {
        "n1": ["ps-0", "worker-0", "worker-1", "worker-2"]
    }


def test_a_given_weight_is_added_to_the_sum() -> None:
    """With an explicit weight the scores are added up, as in Volcano."""
    job = topology_job({"ps": 1, "worker": 3}, {"n1": 4, "n2": 3}, affinity="ps,worker")
    heavy = {"binpack": None, "args": {"binpack.weight": 1000}}
    record = record_placement(job, arguments={"task-topology.weight": 1}, others=(heavy,))
    assert record.of("ps-0").scores == {"n1": 100, "n2": 75}
    assert record.of("ps-0").node == "n2"


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({"volcano.sh/task-topology": "[" * 1100}, "cannot be read"),
        (
            {"volcano.sh/task-topology-affinity": "a," * 9000},
            "at most 16384 characters, found 18000",
        ),
        (
            {"volcano.sh/task-topology-affinity": ",".join(f"t{each}" for each in range(201))},
            "at most 200 tasks, found 201",
        ),
    ],
)
def test_annotations_of_any_size_and_depth_are_refused(
    annotations: dict[str, str], problem: str
) -> None:
    with pytest.raises(TopologyError, match=problem):
        read_rules(annotations, "default/job1")


def test_a_placement_that_is_undone_leaves_buckets_as_they_were() -> None:
    nodes = {"n1": 6.0, "n2": 6.0}
    case = topology_job({"ps": 2, "worker": 4}, nodes, affinity="ps,worker", anti="ps")
    scenario = Scenario(case, config_text([["task-topology"]]))
    session = open_session(scenario)
    tasks = sorted(scenario.state.tasks.values(), key=lambda task: task.key)
    (scorer,) = session.extensions.task_score
    rows = session.view.rows

    def answers() -> list[Any]:
        return [
            (session.answers.task_key(task), np.asarray(scorer.call.score(task, rows)).tolist())
            for task in tasks
        ]

    before = answers()
    statement = session.statement()
    for task in tasks[:3]:
        statement.allocate(task, scenario.state.nodes.records["n1"])
    assert answers() != before
    statement.discard()
    assert answers() == before
