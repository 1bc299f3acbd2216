"""task-topology beyond the worked example: Volcano's mode, annotations, conflicts, placed pods."""

from typing import Any

import numpy as np
import pytest

from pumice.scheduler.topology.rules import TopologyError, check_rules, read_rules
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenes import Scene, case_id, config_text, load_cases
from tests.unit.scheduler.steps import tell, topology_job

VOLCANO = {"task-topology.mode": "volcano"}


@pytest.mark.parametrize("case", load_cases("task_topology_volcano.yaml"), ids=case_id)
def test_mode_volcano(case: dict[str, Any]) -> None:
    scene = topology_job(
        case["tasks"],
        case["nodes"],
        affinity=case.get("affinity", ""),
        anti=case.get("anti", ""),
        order=case.get("order", ""),
        bound=case.get("bound"),
        requests=case.get("requests"),
    )
    story = tell(scene, arguments=VOLCANO | case.get("arguments", {}))
    nodes = list(case["nodes"])
    if "buckets" in case:
        assert story.buckets == case["buckets"]
    if "weights" in case:
        assert story.weights == case["weights"]
    if "largest" in case:
        assert story.largest == case["largest"]
    if "first" in case:
        pod, scores = case["first"]
        assert story.order[0] == pod
        assert [story.steps[0].scores[node] for node in nodes] == pytest.approx(scores, abs=1e-3)
    for step, (pod, scores, node) in zip(story.steps, case.get("steps", []), strict=False):
        assert step.pod == pod
        assert [step.scores[name] for name in nodes] == pytest.approx(scores, abs=1e-3), pod
        assert step.node == node, pod
    assert len(story.steps) == sum(case["tasks"].values()) - len(case.get("bound", {}))
    if "placement" in case:
        assert {node: sorted(pods) for node, pods in story.placement.items()} == {
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
    story = tell(
        topology_job(
            {"chief": 1, "ps": 1, "worker": 2},
            {"n1": 4, "n2": 4},
            affinity="ps,worker",
            order="chief,ps,worker",
        )
    )
    assert story.order == ["ps-0", "worker-0", "worker-1", "chief-0"]
    assert story.buckets == [["ps-0", "worker-0", "worker-1"]]


def test_conflicting_tasks_are_in_no_bucket() -> None:
    """`docs/design/bucket.md` of Volcano: if there is any conflict, the pod is not placed in any bucket."""
    story = tell(
        topology_job(
            {"ps": 1, "worker": 2, "chief": 2},
            {"n1": 8},
            affinity="ps,worker;chief",
            anti="worker,ps",
        )
    )
    assert story.buckets == [["chief-0", "chief-1"]]
    assert story.order == ["chief-0", "chief-1", "ps-0", "worker-0", "worker-1"]


def test_pods_placed_before_the_session_repel_too() -> None:
    """ps-0 runs on n1, which would hold more of the other bucket than n2 does."""
    job = topology_job(
        {"ps": 2, "worker": 2},
        {"n1": 4, "n2": 1},
        affinity="ps,worker",
        anti="ps",
        bound={"ps-0": "n1"},
    )
    assert tell(job).of("ps-1").node == "n2"
    assert tell(job, arguments=VOLCANO).of("ps-1").node == "n1"


def test_the_more_repelling_pods_the_worse() -> None:
    """With nothing free of conflicts, the node with fewer of them is taken."""
    story = tell(
        topology_job(
            {"ps": 4},
            {"n1": 4, "n2": 4},
            anti="ps",
            bound={"ps-0": "n1", "ps-1": "n1", "ps-2": "n2"},
        )
    )
    assert story.of("ps-3").scores == {"n1": -1, "n2": 0}
    assert story.of("ps-3").node == "n2"


def test_a_pod_stays_with_its_bucket_although_a_pod_in_it_repels_it() -> None:
    """Two chiefs attract the worker, one ps repels it: the bucket of all four goes to one node."""
    story = tell(
        topology_job(
            {"ps": 1, "chief": 2, "worker": 1},
            {"n1": 4, "n2": 4},
            affinity="ps,chief;chief,worker",
            anti="ps,worker",
        )
    )
    assert story.buckets == [["chief-0", "chief-1", "ps-0", "worker-0"]]
    assert set(story.placement) == {"n1"}


def test_names_are_sorted_as_people_count() -> None:
    story = tell(topology_job({"w": 12}, {"n1": 12}, affinity="w"))
    assert story.buckets == [[f"w-{index}" for index in range(12)]]
    upstream = tell(topology_job({"w": 12}, {"n1": 12}, affinity="w"), arguments=VOLCANO)
    assert upstream.buckets[0][:4] == ["w-0", "w-1", "w-10", "w-11"]


def test_what_is_left_out_of_a_bucket_is_balanced() -> None:
    """Of 2 ps (2 cpus each) and 4 workers, n1 keeps one of each: workers and ps are left out in turn."""
    story = tell(
        topology_job(
            {"ps": 2, "worker": 4},
            {"n1": 4, "n2": 9},
            affinity="ps,worker",
            requests={"ps": [2, "1Gi"]},
        )
    )
    assert story.of("ps-0").scores == {"n1": 2, "n2": 6}


def test_a_discarded_gang_leaves_its_buckets_as_they_were() -> None:
    """Pods that lose their place go back into their bucket."""
    job = topology_job({"ps": 2, "worker": 4}, {"n1": 2, "n2": 1}, affinity="ps,worker", anti="ps")
    scene = Scene(job, config_text([["gang", "task-topology"]], ["allocate", "allocate"]))
    result = scene.cycle()
    assert result.binds == {}
    assert result.pending["ns/job"].details["schedulable"] == 3


def test_a_typo_is_reported_once() -> None:
    job = topology_job({"ps": 2}, {"n1": 4}, affinity="ps,wroker")
    scene = Scene(job)
    first = scene.cycle()
    assert len(first.binds) == 2, "the job is placed all the same"
    assert [event.message for event in first.events if event.reason == "TaskTopologyIgnored"] == [
        "task-topology is ignored: task wroker do not exist in job <ns/job>"
    ]
    scene.state.forget("ns/job-ps-0", "")
    second = scene.cycle()
    assert [event for event in second.events if event.reason == "TaskTopologyIgnored"] == []


def test_tasks_are_known_by_name_where_pods_say_nothing() -> None:
    """Pods without the task annotation, as Volcano 1.9 had them."""
    job = topology_job({"ps": 1, "ps-chief": 1}, {"n1": 1, "n2": 2}, affinity="ps,ps-chief")
    for row in job["pods"]:
        del row[-1]["role"]
    story = tell(job)
    assert story.buckets == [["ps-0", "ps-chief-0"]]
    assert set(story.placement) == {"n2"}


def test_buckets_outrank_the_sum_of_other_scores() -> None:
    """worker-0 follows ps-0 to the emptier side of a cluster, however much others prefer n2."""
    job = topology_job({"ps": 1, "worker": 3}, {"n1": 4, "n2": 3}, affinity="ps,worker")
    heavy = {"binpack": None, "args": {"binpack.weight": 1000}}
    assert tell(job, others=(heavy,)).placement == {
        "n1": ["ps-0", "worker-0", "worker-1", "worker-2"]
    }


def test_a_given_weight_is_added_to_the_sum() -> None:
    """With an explicit weight the scores are added up, as in Volcano."""
    job = topology_job({"ps": 1, "worker": 3}, {"n1": 4, "n2": 3}, affinity="ps,worker")
    heavy = {"binpack": None, "args": {"binpack.weight": 1000}}
    story = tell(job, arguments={"task-topology.weight": 1}, others=(heavy,))
    assert story.of("ps-0").scores == {"n1": 100, "n2": 75}
    assert story.of("ps-0").node == "n2"


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
    scene = Scene(case, config_text([["task-topology"]]))
    session = open_session(scene)
    tasks = sorted(scene.state.tasks.values(), key=lambda task: task.key)
    (scorer,) = session.extensions.task_scores
    rows = session.view.rows

    def answers() -> list[Any]:
        return [
            (session.task_key(task), np.asarray(scorer.call.score(task, rows)).tolist())
            for task in tasks
        ]

    before = answers()
    statement = session.statement()
    for task in tasks[:3]:
        statement.allocate(task, scene.state.nodes.records["n1"])
    assert answers() != before
    statement.discard()
    assert answers() == before
