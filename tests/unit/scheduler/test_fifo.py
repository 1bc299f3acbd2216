"""Queues that take their gangs in order: the first that does not fit holds up those behind it."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.waiting.priority_queue import PriorityQueue
from tests.unit.scheduler.scenarios import Scenario, config_text, pod_group, queue

PLUGINS: list[Any] = [["priority", "gang"], ["capacity", "predicates", "nodeorder"]]


def _cluster(strategy: str, phase: str = "Inqueue") -> dict[str, Any]:
    """A small gang behind one for which the node is too small; another queue beside them."""
    return {
        "nodes": [["n", 4, "8Gi"]],
        "queues": [["q", {"dequeueStrategy": strategy, "capability": {"cpu": 6}}], ["other"]],
        "podgroups": [
            ["ns", name, queue, size, phase, {"created": f"2024-01-0{day}T00:00:00Z", **needs}]
            for day, (name, queue, size, needs) in enumerate(
                [
                    ("big", "q", 5, {"minRes": {"cpu": 5 if phase == "Inqueue" else 7}}),
                    ("small", "q", 2, {"minRes": {"cpu": 2}}),
                    ("beside", "other", 1, {}),
                ],
                1,
            )
        ],
        "pod_sets": [
            {"pg": "big", "count": 5},
            {"pg": "small", "count": 2},
            {"pg": "beside", "count": 1},
        ],
    }


@pytest.mark.parametrize("phase", ["Inqueue", "Pending"])
@pytest.mark.parametrize(
    ("strategy", "placed"),
    [("fifo", ["ns/beside-0"]), ("traverse", ["ns/beside-0", "ns/small-0", "ns/small-1"])],
)
def test_the_first_gang_that_does_not_fit(strategy: str, placed: list[str], phase: str) -> None:
    scenario = Scenario(_cluster(strategy, phase), config_text(PLUGINS))
    bound: list[str] = []
    for _ in range(2):  # the gang that found no node is not worth another try, and still is ahead
        result = scenario.cycle()
        bound += result.binds
    assert sorted(bound) == placed
    if strategy == "fifo":
        reason = result.pending["ns/small"]
        assert reason.reason == "BehindInQueue"
        assert reason.details == {"queue": "q", "ahead": "ns/big"}


def test_gangs_go_on_when_the_one_ahead_is_gone() -> None:
    scenario = Scenario(_cluster("fifo"), config_text(PLUGINS))
    scenario.cycle()
    for number in range(5):
        scenario.state.remove_pod("ns", f"big-{number}")
    scenario.state.remove_pod_group("ns", "big")
    assert sorted(scenario.cycle().binds) == ["ns/small-0", "ns/small-1"]


def test_gangs_go_on_when_the_one_ahead_fits() -> None:
    scenario = Scenario(_cluster("fifo"), config_text(PLUGINS))
    scenario.cycle()
    scenario.state.set_pod_group(
        pod_group(["ns", "big", "q", 1, "Inqueue", {"created": "2024-01-01T00:00:00Z"}])
    )
    assert sorted(scenario.cycle().binds) == ["ns/big-0", "ns/small-0", "ns/small-1"]


def test_pods_beyond_the_minimum_of_a_gang_hold_up_no_other() -> None:
    cluster = _cluster("fifo")
    cluster["nodes"][0][1] = 5
    cluster["podgroups"][0][3] = 1
    cluster["queues"][0][1]["capability"] = {}
    cluster["pod_sets"][0]["cpu"] = 2
    scenario = Scenario(cluster, config_text(PLUGINS))
    assert "ns/small-0" in scenario.cycle().binds


def test_a_gang_for_which_its_queue_has_no_room_holds_up_the_others_in_each_cycle() -> None:
    """Its refusal by the queue is remembered, and gangs behind it would fit below the limit."""
    cluster = _cluster("fifo")
    cluster["nodes"][0][1] = 8
    cluster["queues"][0][1]["capability"] = {"cpu": 4}
    scenario = Scenario(cluster, config_text(PLUGINS), delays=ReportDelays(numbers=30.0))
    for _ in range(3):
        result = scenario.cycle()
        assert not [pod for pod in result.binds if "small" in pod]
        assert result.pending["ns/small"].reason == "BehindInQueue"


@pytest.mark.parametrize("limit", [{"capability": {"cpu": 4}}, {"capability": {"cpu": 9}}])
def test_a_queue_that_becomes_strict_holds_up_the_others_at_once(limit: dict[str, Any]) -> None:
    """Whether the queue or the nodes lack room for the first gang."""
    cluster = _cluster("traverse")
    cluster["podgroups"][1][3] = 5
    cluster["queues"][0][1] |= limit
    for number in range(4):  # so many gangs that not all reasons are renewed in the next cycle
        cluster["podgroups"].append(["ns", f"more-{number}", "other", 5, "Inqueue"])
        cluster["pod_sets"].append({"pg": f"more-{number}", "count": 5})
    scenario = Scenario(cluster, config_text(PLUGINS))
    scenario.cycle()
    scenario.state.set_queue(queue(["q", {"dequeueStrategy": "fifo", **limit}]))
    created = {"created": "2024-01-02T00:00:00Z"}
    scenario.state.set_pod_group(pod_group(["ns", "small", "q", 1, "Inqueue", created]))
    result = scenario.cycle()
    assert result.binds == {}
    assert result.pending["ns/small"].reason == "BehindInQueue"


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize(("strategy", "goes"), [("fifo", []), ("traverse", ["ns/low-0"])])
def test_no_pod_goes_for_gangs_that_are_held_up(
    action: str, strategy: str, goes: list[str]
) -> None:
    """The node is too small for the first gang; one that is evicted would make room for the second."""
    scenario = Scenario(
        {
            "classes": {"high": 10},
            "nodes": [["n", 4, "8Gi"]],
            "queues": [["q", {"dequeueStrategy": strategy, "deserved": {"cpu": 9}}], ["other"]],
            "podgroups": [
                ["ns", "low", "q" if action == "preempt" else "other", 1, "Running"],
                ["ns", "big", "q", 5, "Inqueue", {"prio": "high"}],
                ["ns", "small", "q", 2, "Inqueue", {"prio": "high"}],
            ],
            "pods": [["ns", "low-0", "n", "Running", 4, 0, "low"]],
            "pod_sets": [{"pg": "big", "count": 5}, {"pg": "small", "count": 2}],
        },
        config_text(
            [["priority", {"gang": ["JobReady", "JobPipelined", "JobStarving"]}, "capacity"]],
            ["allocate", action],
        ),
    )
    assert scenario.cycle().evicted == goes


def test_a_gang_that_has_begun_gets_the_pod_that_it_lacks() -> None:
    """The first gang waits for its end, and it cannot end without that pod."""
    names = ["first", "broken-a", "broken-b", "new"]
    scenario = Scenario(
        {
            "nodes": [["n", 4, "8Gi"]],
            "queues": [["q", {"dequeueStrategy": "fifo"}]],
            "podgroups": [
                ["ns", name, "q", 2, "Inqueue", {"created": f"2024-01-0{day}T00:00:00Z"}]
                for day, name in enumerate(names, 1)
            ],
            "pods": [
                *(["ns", f"{name}-0", "n", "Running", 1, 0, name] for name in names[1:3]),
                *(["ns", f"{name}-1", "", "Pending", 1, 0, name] for name in names[1:3]),
                *(["ns", f"new-{number}", "", "Pending", 0, 0, "new"] for number in range(2)),
            ],
            "pod_sets": [{"pg": "first", "count": 2, "cpu": 2, "memory": 0}],
        },
        config_text(PLUGINS),
    )
    result = scenario.cycle()
    assert sorted(result.binds) == ["ns/broken-a-1", "ns/broken-b-1"]
    assert result.pending["ns/new"].reason == "BehindInQueue"


def test_gangs_that_have_begun_are_left_in_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of them find no node, each is looked at once more when the first of them does not fit."""
    names = [f"b{number:02}" for number in range(40)]
    scenario = Scenario(
        {
            "nodes": [["n", 40, "80Gi"]],
            "queues": [["q", {"dequeueStrategy": "fifo"}]],
            "podgroups": [["ns", name, "q", 2, "Inqueue"] for name in ("a-first", *names)],
            "pods": [
                *(["ns", f"{name}-0", "n", "Running", 1, 0, name] for name in names),
                *(["ns", f"{name}-1", "", "Pending", 1, 0, name] for name in names),
            ],
            "pod_sets": [{"pg": "a-first", "count": 2}],
        },
        config_text(PLUGINS),
    )
    pushed: list[str] = []
    push, begin = PriorityQueue.push, PriorityQueue.begin

    def noting(line: PriorityQueue[Any], item: Any) -> None:
        pushed.append(getattr(item, "key", ""))
        push(line, item)

    def noting_all(line: PriorityQueue[Any], items: Sequence[Any], keys: Iterable[Any]) -> None:
        pushed.extend(getattr(item, "key", "") for item in items)
        begin(line, items, keys)

    monkeypatch.setattr(PriorityQueue, "push", noting)
    monkeypatch.setattr(PriorityQueue, "begin", noting_all)
    scenario.cycle()
    assert sum(key.startswith("ns/b") for key in pushed) == 2 * len(names) - 1
