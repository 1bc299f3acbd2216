"""When reasons are written: once for each cause that lasts, and not for each number that moves."""

from typing import Any

from pumice.scheduler.reports import ReportDelays
from tests.unit.scheduler.scenes import NOW, Scene, node, pod_group

DELAYS = ReportDelays(cause=1.0, pods=5.0, numbers=30.0, arrival=3.0)
CASE: dict[str, Any] = {
    "nodes": [["n1", 1, "8Gi"]],
    "podgroups": [["ns", "g", "default", 2, "Inqueue"]],
    "pod_sets": [{"pg": "g", "count": 2}],
}


def _scene(case: dict[str, Any] = CASE) -> Scene:
    return Scene(case, delays=DELAYS)


def _message(scene: Scene) -> str | None:
    conditions = scene.state.statuses["ns/g"].conditions or []
    return next((each.message for each in conditions if each.type == "Unschedulable"), None)


def test_a_cause_is_written_once_it_has_stood_for_a_moment() -> None:
    scene = _scene()
    assert scene.cycle(NOW).pod_groups == {}
    assert scene.cycle(NOW + 0.9).pod_groups == {}
    late = scene.cycle(NOW + 1.0)
    assert list(late.pod_groups) == ["ns/g"]
    assert [event.reason for event in late.events] == ["Unschedulable"]
    assert scene.cycle(NOW + 2.0).pod_groups == {}


def test_a_cause_that_passes_by_itself_is_never_written() -> None:
    scene = _scene()
    scene.cycle(NOW)
    scene.state.set_node(node(["n2", 4, "8Gi"]))
    result = scene.cycle(NOW + 0.5)
    assert sorted(result.binds) == ["ns/g-0", "ns/g-1"]
    assert scene.conditions("ns/g") == {"Scheduled": "True"}
    assert scene.cycle(NOW + 5).pods == {}


def test_changed_numbers_wait_and_make_no_event() -> None:
    scene = _scene()
    scene.cycle(NOW)
    scene.cycle(NOW + 1)
    assert "0/1 nodes" in (_message(scene) or "")
    scene.state.set_node(node(["n2", "500m", "8Gi"]))
    assert scene.cycle(NOW + 2).pod_groups == {}
    assert scene.cycle(NOW + 30.9).pod_groups == {}
    result = scene.cycle(NOW + 31)
    assert "0/2 nodes" in (_message(scene) or "")
    assert result.events == []


def test_another_cause_is_written_soon() -> None:
    scene = _scene()
    scene.cycle(NOW)
    scene.cycle(NOW + 1)
    scene.state.set_node(node(["n1", 4, "8Gi", {"unschedulable": True}]))
    scene.cycle(NOW + 2)
    result = scene.cycle(NOW + 3)
    assert "unschedulable" in (_message(scene) or "")
    assert [event.reason for event in result.events] == ["Unschedulable"]


def test_pods_are_reported_later_than_their_gang() -> None:
    scene = _scene()
    assert scene.cycle(NOW).pods == {}
    assert scene.cycle(NOW + 1).pods == {}
    (verdict,) = scene.cycle(NOW + 5).pods.values()
    assert (verdict.reason, verdict.is_new) == ("Unschedulable", True)
    scene.state.set_node(node(["n2", "500m", "8Gi"]))
    assert scene.cycle(NOW + 6).pods == {}
    (verdict,) = scene.cycle(NOW + 35).pods.values()
    assert ("0/2 nodes" in verdict.message, verdict.is_new) == (True, False)


def test_a_gang_whose_pods_are_arriving_is_not_explained() -> None:
    scene = _scene({**CASE, "pod_sets": [{"pg": "g", "count": 1}]})
    assert scene.cycle(NOW).pending == {}
    scene.cycle(NOW + 2.9)
    assert _message(scene) is None
    scene.cycle(NOW + 3)
    scene.cycle(NOW + 4)
    assert "Not enough valid tasks" in (_message(scene) or "")


def test_a_successor_does_not_repeat_what_stands() -> None:
    scene = _scene()
    scene.cycle(NOW)
    scene.cycle(NOW + 1)
    (row,) = CASE["podgroups"]
    successor = _scene()
    job = successor.state.jobs["ns/g"]
    job.status = scene.state.statuses["ns/g"]
    assert row[1] == "g"
    for seconds in range(40):
        result = successor.cycle(NOW + 100 + seconds)
        assert (result.pod_groups, result.events) == ({}, [])


def test_a_condition_that_is_lost_is_written_again() -> None:
    scene = _scene()
    scene.cycle(NOW)
    scene.cycle(NOW + 1)
    job = scene.state.jobs["ns/g"]
    group = job.group
    assert group is not None
    scene.state.remove_pod_group("ns", "g")
    scene.state.set_pod_group(group)
    scene.cycle(NOW + 2)
    scene.cycle(NOW + 3)
    assert _message(scene) is not None


def test_pods_that_arrive_anew_are_arriving_too() -> None:
    """After a restart the pods come one by one: that some lack is not worth a word."""
    scene = _scene({**CASE, "nodes": [["n1", 1, "8Gi"]], "pod_sets": []})
    names = ["ns/g-0", "ns/g-1"]
    for row in (
        ["ns", "g-0", "n1", "Running", 1, "1Gi", "g"],
        ["ns", "g-1", "n1", "Running", 0, "0", "g"],
    ):
        scene.add_pod(row)
    scene.cycle(NOW)
    for key in names:
        scene.state.remove_pod(*key.split("/"))
    scene.cycle(NOW + 60)
    scene.add_pod(["ns", "g-0", "", "Pending", 1, "1Gi", "g"])
    for seconds in (61, 62, 63):
        scene.cycle(NOW + seconds)
    assert _message(scene) is None


def test_a_second_wait_for_the_same_cause_is_reported_like_the_first() -> None:
    scene = _scene()
    scene.cycle(NOW)
    assert len(scene.cycle(NOW + 5).pods) == 1
    scene.state.set_node(node(["n1", 4, "8Gi"]))
    assert len(scene.cycle(NOW + 6).binds) == 2
    for key in ("ns/g-0", "ns/g-1"):
        task = scene.state.tasks[key]
        scene.state.forget(key, task.uid)
    scene.state.set_node(node(["n1", 1, "8Gi"]))
    assert scene.cycle(NOW + 3600).pods == {}
    (verdict,) = scene.cycle(NOW + 3605).pods.values()
    assert verdict.is_new


def test_a_condition_whose_cause_has_gone_is_replaced() -> None:
    gated = {"gates": ["hold"]}
    pods = [["ns", f"g-{number}", "", "Pending", 1, "1Gi", "g", gated] for number in range(2)]
    scene = Scene({**CASE, "nodes": [["n1", "500m", "8Gi"]], "pod_sets": [], "pods": pods})
    assert {each.reason for each in scene.cycle(NOW).pods.values()} == {"SchedulingGated"}
    for row in pods:
        scene.add_pod(row[:7])
    told = scene.cycle(NOW + 1).pods
    assert {key: each.reason for key, each in told.items()} == {
        "ns/g-0": "Unschedulable",
        "ns/g-1": "Unschedulable",
    }
    assert "waits for its gang" in told["ns/g-1"].message


def test_a_podgroup_made_anew_is_reported_anew() -> None:
    scene = _scene()
    scene.cycle(NOW)
    assert len(scene.cycle(NOW + 1).events) == 1
    scene.state.remove_pod_group("ns", "g")
    scene.cycle(NOW + 2)
    scene.state.set_pod_group(pod_group(["ns", "g", "default", 2, "Inqueue"]))
    assert scene.cycle(NOW + 3).pod_groups == {}
    assert [event.reason for event in scene.cycle(NOW + 4).events] == ["Unschedulable"]


def test_finished_gangs_cost_no_cycles() -> None:
    pods = [
        ["ns", "g-0", "n1", "Succeeded", 1, "1Gi", "g"],
        ["ns", "g-1", "n1", "Failed", 1, "1Gi", "g"],
    ]
    scene = _scene({**CASE, "pod_sets": [], "pods": pods})
    for seconds in range(20):
        scene.cycle(NOW + seconds)
    cycles = scene.state.cycles
    scene.cycle(NOW + 100)
    assert scene.state.cycles == cycles


def test_only_phases_and_reasons_are_urgent() -> None:
    """Numbers of pods, the condition `Scheduled` and the end of a gang may wait for a moment."""
    scene = _scene()
    scene.cycle(NOW)
    late = scene.cycle(NOW + 1)
    assert late.urgent == {"ns/g"}, "the reason"
    scene.state.set_node(node(["n2", 4, "8Gi"]))
    placed = scene.cycle(NOW + 2)
    assert scene.conditions("ns/g")["Scheduled"] == "True"
    assert (list(placed.pod_groups), placed.urgent) == (["ns/g"], set())
    scene.show_all("ns/g", "Pending")
    bound = scene.cycle(NOW + 3)
    assert scene.phase("ns/g") == "Running"
    assert (list(bound.pod_groups), bound.urgent) == (["ns/g"], {"ns/g"})
    scene.show_all("ns/g", "Running")
    counted = scene.cycle(NOW + 3)
    assert (list(counted.pod_groups), counted.urgent) == (["ns/g"], set())
    scene.show_all("ns/g", "Succeeded")
    ended = scene.cycle(NOW + 4)
    assert scene.phase("ns/g") == "Completed"
    assert (list(ended.pod_groups), ended.urgent) == (["ns/g"], set())


def test_an_event_tells_that_a_gang_got_its_place_only_if_one_told_that_it_waits() -> None:
    warned, quiet = _scene(), _scene()
    for moment in (NOW, NOW + 1):
        warned.cycle(moment)
    quiet.cycle(NOW)
    for scene, reasons in ((warned, ["Scheduled"]), (quiet, [])):
        scene.state.set_node(node(["n2", 4, "8Gi"]))
        result = scene.cycle(NOW + 2)
        assert len(result.binds) == 2
        assert [event.reason for event in result.events] == reasons
