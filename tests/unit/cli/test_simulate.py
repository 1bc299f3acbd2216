"""`pumice simulate`: who goes where, why the rest waits, and what is honoured."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.traces import jobs
from tests.kit.builders import job, node, pod, pod_group, queue, task
from tests.kit.faulty import Fault, faulty_config
from tests.unit.cli.conftest import Pumice, Ran, texts

EXAMPLES = Path(__file__).parents[3] / "examples"
SEED_NODES = [node("node1", "2"), node("node2", "1"), node("node3", "4")]


def simulate(pumice: Pumice, *objects: dict[str, Any], options: tuple[object, ...] = ()) -> Ran:
    return pumice("simulate", "--state", "-", "-o", "json", *options, stdin=texts(*objects))


def test_a_gang_is_placed(pumice: Pumice) -> None:
    pods = [pod(f"p-{n}", group="pg", cpu="1") for n in range(2)]
    ran = simulate(pumice, node("n", "4"), queue(), pod_group("pg", 2), *pods)
    assert ran.code == 0
    assert ran.json == {
        "cycles": [
            {"binds": {"default/p-0": "n", "default/p-1": "n"}, "pipelined": {}, "evicted": []}
        ],
        "podGroups": {"default/pg": ran.json["podGroups"]["default/pg"]},
        "pending": {},
    }
    assert set(ran.json["podGroups"]["default/pg"]) == {"phase", "conditions"}


def test_a_gang_that_does_not_fit_waits_with_a_reason(pumice: Pumice) -> None:
    pods = [pod(f"p-{n}", group="pg", cpu="3") for n in range(2)]
    ran = simulate(pumice, node("n", "4"), queue(), pod_group("pg", 2), *pods)
    assert ran.code == 1
    assert ran.json["cycles"][0]["binds"] == {}
    waits = ran.json["pending"]["default/pg"]
    assert set(waits) == {"reason", "message", "summary"}
    assert (
        waits["summary"]
        == "needs 2 × 3 cpu; 1 pod has a place; the largest place left is 1 cpu (n); nodes have room for 1 of 2 such pods, even when empty"
    )
    assert waits["reason"] == "NotEnoughResources"
    assert "Insufficient cpu" in waits["message"]
    explained = simulate(
        pumice, node("n", "4"), queue(), pod_group("pg", 2), *pods, options=("--explain",)
    )
    details = explained.json["pending"]["default/pg"]["details"]
    assert details["nodes"] == 1
    assert details["numbers"] == {
        "pods": 2,
        "placed": 1,
        "asked": {"cpu": "3", "pods": "1"},
        "largestFree": {"node": "n", "resource": "cpu", "free": "1"},
        "candidates": 1,
        "tooSmall": 0,
    }


def test_a_plugin_of_the_scheduler_that_raises_is_a_sentence(
    pumice: Pumice, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = faulty_config(Fault("overused", "any"))
    monkeypatch.setattr("pumice.cli.simulate.read_config", lambda _: config)
    ran = simulate(pumice, node("n", "4"), pod_group("g", 1), pod("p", group="g"))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    said = "pumice simulate: a cycle of the scheduler failed: ZeroDivisionError: fault at overused"
    assert ran.err.startswith(said)


def test_jobs_of_one_generated_name_are_several(pumice: Pumice) -> None:
    unnamed = job(tasks=[task("w")])
    unnamed["metadata"] = {"generateName": "sweep-"}
    ran = simulate(pumice, node("n", "4"), unnamed, unnamed)
    assert ran.json["cycles"][0]["binds"] == {
        "default/sweep-00001-w-0": "n",
        "default/sweep-00002-w-0": "n",
    }


def test_bound_pods_run_in_the_next_cycle(pumice: Pumice) -> None:
    objects = (node("n", "4"), queue(), pod_group("pg", 1), pod("p-0", group="pg", cpu="1"))
    first = simulate(pumice, *objects)
    assert first.json["podGroups"]["default/pg"]["phase"] == "Inqueue"
    third = simulate(pumice, *objects, options=("--cycles", 3))
    assert third.json["podGroups"]["default/pg"]["phase"] == "Running"
    assert [cycle["binds"] for cycle in third.json["cycles"]] == [{"default/p-0": "n"}, {}, {}]


def test_a_node_that_is_given_and_a_phase_are_honoured(pumice: Pumice) -> None:
    taken = pod("taken", node="n", phase="Running", cpu="3")
    other = pod("other", schedulerName="default-scheduler", node="n", phase="Running", cpu="1")
    done = pod("done", node="n", phase="Succeeded", cpu="4")
    waiting = pod("p-0", group="pg", cpu="1")
    objects = [node("n", "4"), queue(), pod_group("pg", 1), done, waiting]
    assert simulate(pumice, *objects, taken).code == 0
    assert simulate(pumice, *objects, taken, other).code == 1


def test_terminating_pods_make_room_one_cycle_later(pumice: Pumice) -> None:
    leaving = pod("leaving", node="n", phase="Running", cpu="4")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"
    objects = (
        node("n", "4"),
        queue(),
        pod_group("pg", 1),
        pod("p-0", group="pg", cpu="4"),
        leaving,
    )
    ran = simulate(pumice, *objects, options=("--cycles", 2))
    first, second = ran.json["cycles"]
    assert (first["binds"], first["pipelined"]) == ({}, {"default/p-0": "n"})
    assert second["binds"] == {"default/p-0": "n"}
    assert ran.code == 0


def test_jobs_are_admitted_and_become_gangs(pumice: Pumice) -> None:
    ran = pumice(
        "simulate",
        "--state",
        "-",
        "--state",
        EXAMPLES / "tensorflow.yaml",
        "-o",
        "json",
        stdin=texts(*SEED_NODES),
    )
    assert ran.code == 0
    binds = ran.json["cycles"][0]["binds"]
    assert {binds[f"default/train-{name}"] for name in ("ps-0", "worker-0", "worker-2")} == {
        "node3"
    }
    assert {binds[f"default/train-{name}"] for name in ("ps-1", "worker-1")} == {"node1"}
    assert len(binds) == 6


def test_a_refused_job_is_reported_and_counts(pumice: Pumice) -> None:
    ran = pumice("simulate", "--state", EXAMPLES / "bad-job.yaml", "-o", "json")
    assert ran.code == 1
    assert ran.json["podGroups"] == {}
    assert "Job/default/bad is refused: spec.plugins.tensorbaord" in ran.err


@pytest.mark.parametrize("status", [[], "x", {"state": 3}])
def test_a_job_of_any_shape_is_refused_and_not_a_crash(pumice: Pumice, status: Any) -> None:
    ran = simulate(pumice, job() | {"status": status})
    assert ran.code == 1
    assert "Job/default/train is refused" in ran.err


def test_a_job_that_lives_is_not_admitted_again(pumice: Pumice) -> None:
    ended = job("ended", queue="gone", status={"state": {"phase": "Completed"}})
    ran = simulate(pumice, node(), ended)
    assert (ran.code, ran.json["podGroups"]) == (0, {})


def test_a_task_that_depends_on_another_comes_later(pumice: Pumice) -> None:
    tasks = [
        task("server", 1, cpu="1"),
        task("client", 1, cpu="1", dependsOn={"name": ["server"]}),
    ]
    ran = simulate(
        pumice, node("n", "4"), job(tasks=tasks, minAvailable=1), options=("--cycles", 3)
    )
    binds = [list(cycle["binds"]) for cycle in ran.json["cycles"]]
    assert binds == [["default/train-server-0"], ["default/train-client-0"], []]


def test_a_job_that_is_not_let_in_has_no_pods(pumice: Pumice) -> None:
    """What it asks for is what its PodGroup says, and is not counted twice."""
    jobs_ = [job(name, [task("w", 2, cpu="2")], queue="team") for name in ("a", "b", "c")]
    objects = (node("n", "12"), queue(), queue("team", capability={"cpu": "6"}), *jobs_)
    ran = simulate(pumice, *objects, options=("--timings", "--cycles", "2"))
    assert ran.code == 1
    assert [list(cycle["binds"]) for cycle in ran.json["cycles"]] == [
        ["default/a-w-0", "default/a-w-1"],
        [],
    ]
    phases = {each["job"]: each["phase"] for each in ran.json["podGroups"].values()}
    assert phases == {"default/a": "Running", "default/b": "Pending", "default/c": "Pending"}
    reasons = {each["summary"] for each in ran.json["pending"].values()}
    assert reasons == {"queue team: 4 of 6 cpu used or reserved, 2 more allowed, needs 4"}
    assert [json.loads(line)["pods"] for line in ran.err.splitlines()] == [2, 2]


def test_without_action_enqueue_jobs_of_open_queues_have_pods(
    pumice: Pumice, tmp_path: Path
) -> None:
    conf = tmp_path / "allocate.conf"
    conf.write_text('actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]')
    closed = queue("closed", state="Closed")
    waits = job("waits", queue="closed", status={"state": {"phase": "Pending"}})
    objects = (node("n", "4"), queue(), closed, job("runs"), waits)
    ran = simulate(pumice, *objects, options=("--config", conf))
    assert ran.json["cycles"][0]["binds"] == {"default/runs-worker-0": "n"}
    phases = {each["job"]: each["phase"] for each in ran.json["podGroups"].values()}
    assert phases == {"default/runs": "Inqueue", "default/waits": "Pending"}


def test_a_job_that_does_not_settle_is_reported(
    pumice: Pumice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PASSES", 0)
    ran = simulate(pumice, node("n", "4"), job(tasks=[task("w")]))
    assert ran.json["cycles"][0]["binds"] == {}
    assert ran.err.startswith(
        "Job/default/train: the controller still plans changes after 0 passes"
    )


def test_pods_of_a_class_have_its_priority(pumice: Pumice) -> None:
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 100,
    }
    pods = [
        pod("a-0", group="low", cpu="4"),
        pod("b-0", group="high", cpu="4", priorityClassName="high"),
    ]
    groups = [pod_group("low", 1), pod_group("high", 1, priorityClassName="high")]
    ran = simulate(pumice, node("n", "4"), queue(), high, *groups, *pods)
    assert ran.json["cycles"][0]["binds"] == {"default/b-0": "n"}
    assert list(ran.json["pending"]) == ["default/low"]


def _runtime_class(**fields: Any) -> dict[str, Any]:
    meta = {"name": "kata"}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": meta, "handler": "kata", **fields}  # fmt: skip


def test_pods_of_a_runtime_class_have_its_overhead_and_nodes(pumice: Pumice) -> None:
    kata = _runtime_class(
        overhead={"podFixed": {"cpu": "500m"}}, scheduling={"nodeSelector": {"vm": "yes"}}
    )
    small, large = node("n", "4"), node("vm", "2", labels={"vm": "yes"})
    named = task("w", replicas=2, cpu="1")
    named["template"]["spec"]["runtimeClassName"] = "kata"
    ran = simulate(pumice, small, large, job(tasks=[named]), kata)
    assert (ran.code, ran.json["cycles"][0]["binds"]) == (1, {})
    [waits] = ran.json["pending"].values()
    assert "Insufficient cpu" in waits["message"]
    larger = node("vm", "3", labels={"vm": "yes"})
    ran = simulate(pumice, small, larger, job(tasks=[named]), kata)
    assert (ran.code, set(ran.json["cycles"][0]["binds"].values())) == (0, {"vm"})
    ran = simulate(pumice, small, large, job(tasks=[named]))
    assert (ran.code, len(ran.json["cycles"][0]["binds"])) == (0, 2)
    assert 'RuntimeClass "kata" is not in the state' in ran.err


def test_what_contradicts_its_runtime_class_is_refused(pumice: Pumice) -> None:
    kata = _runtime_class(overhead={"podFixed": {"cpu": "500m"}})
    named = task("w", cpu="1")
    named["template"]["spec"] |= {"runtimeClassName": "kata", "overhead": {"cpu": "1"}}
    alone = pod("p-0", group="pg", runtimeClassName="kata", overhead={"cpu": "1"})
    del alone["metadata"]["uid"]
    ran = simulate(pumice, node("n", "4"), pod_group("pg", 1), alone, job(tasks=[named]), kata)
    assert (ran.code, ran.json["cycles"][0]["binds"]) == (1, {})
    why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert f"Pod/default/p-0 is refused: {why}" in ran.err
    assert f"Job/default/train is refused: spec.tasks[0].template.spec: {why}" in ran.err


def test_the_moment(pumice: Pumice) -> None:
    group = pod_group("pg", 1)
    group["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    objects = (node("n", "4"), queue(), group, pod("p-0", group="pg", cpu="8"))

    def stamped(*options: object) -> str:
        ran = simulate(pumice, *objects, options=options)
        found: str = ran.json["podGroups"]["default/pg"]["conditions"][0]["lastTransitionTime"]
        return found

    assert stamped() == "2026-01-01T00:00:00Z"
    assert stamped("--at", "2026-02-03T04:05:06Z") == "2026-02-03T04:05:06Z"
    assert stamped("--at", "0") == "1970-01-01T00:00:00Z"


def test_timings(pumice: Pumice) -> None:
    objects = (node("n", "4"), queue(), pod_group("pg", 1), pod("p-0", group="pg", cpu="1"))
    ran = simulate(pumice, *objects, options=("--cycles", 2, "--timings"))
    lines = [json.loads(line) for line in ran.err.splitlines()]
    assert [list(line) for line in lines] == [
        ["cycle", "nodes", "pods", "decided", "cpu_seconds"]
    ] * 2
    assert [(each["cycle"], each["nodes"], each["pods"], each["decided"]) for each in lines] == [
        (1, 1, 1, 1),
        (2, 1, 1, 0),
    ]


def test_a_configuration_of_volcano(pumice: Pumice, tmp_path: Path) -> None:
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text('actions: "enqueue, allocate, no-such"\n')
    ran = simulate(pumice, node(), options=("--config", conf))
    assert ran.code == 2
    assert "no-such" in ran.err
    conf.write_text('actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n')
    assert simulate(pumice, node(), options=("--config", conf)).code == 0
    conf.write_bytes(b"\xff")
    assert simulate(pumice, node(), options=("--config", conf)).code == 2


def test_text_for_people(pumice: Pumice) -> None:
    pods = [pod("p-0", group="pg", cpu="1"), pod("q-0", group="big", cpu="9")]
    groups = [pod_group("pg", 1), pod_group("big", 1)]
    ran = pumice(
        "simulate", "--state", "-", "--explain", stdin=texts(node("n"), queue(), *groups, *pods)
    )
    assert ran.code == 1
    assert "Cycle 1\nPOD          NODE  WHAT\ndefault/p-0  n     bound\n" in ran.out
    assert "default/big  Inqueue" in ran.out
    assert "Insufficient cpu" in ran.out
    assert '"minMember":1' in ran.out


def test_kinds_that_do_not_count_are_reported(pumice: Pumice) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    ran = simulate(pumice, node(), service)
    assert ran.code == 0
    assert "skipped 1 Service" in ran.err


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"apiVersion": "v1", "kind": "Node", "metadata": {}}, "metadata.name is missing"),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata.name is missing"),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": 3}},
            "Pod/default/p: Expected `str`, got `int` - at `$.spec.nodeName`",
        ),
        (node("n", cpu="many"), "quantities must match"),
        (pod_group("pg", minResources={"cpu": "x"}), "quantities must match"),
        (pod("p", group="pg", cpu="x"), "quantities must match"),
    ],
)
def test_what_cannot_be_read_is_a_mistake(
    pumice: Pumice, broken: dict[str, Any], message: str
) -> None:
    ran = simulate(pumice, broken)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_rows_name_jobs_and_not_the_groups_that_the_controller_makes_of_them(
    pumice: Pumice,
) -> None:
    wide = job("wide", [task("w", 3, cpu="3")], minAvailable=3)
    stdin = texts(node("node1", cpu="4"), wide, pod_group("pg", 1))
    ran = pumice("simulate", "--state", "-", "--explain", stdin=stdin)
    rows = [line.split("  ")[0] for line in ran.out.splitlines() if line.startswith("default/")]
    assert rows[:2] == ["default/pg", "default/wide (Job)"]
    assert "00000000" not in ran.out
    groups = pumice("simulate", "--state", "-", "-o", "json", stdin=stdin).json["podGroups"]
    assert [each.get("job") for each in groups.values()] == [None, "default/wide"]


def test_without_nodes_it_is_said_how_to_give_them(pumice: Pumice) -> None:
    ran = pumice("simulate", "--state", "-", stdin=texts(pod_group("pg", 1)))
    assert ran.err.startswith(
        "no Nodes are given, so no pod is placed: add them to --state, for example "
    )
    assert ran.err.count("\n") == 1
