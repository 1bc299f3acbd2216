"""For which pods victims are sought one by one at all, and for which it is certain beforehand that none would help."""

from typing import Any

import pytest

from pumice.api.budgets import ResourceQuota
from pumice.api.meta import ObjectMeta
from pumice.scheduler import load_config
from pumice.scheduler.eviction.attempt import FoundRoom
from pumice.scheduler.eviction.room import gets_fewer
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.model.candidates import Preemptor
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text

PERMITS = {"sla": None, "args": {"sla-waiting-time": "1s"}}
"""Lets gangs that have waited for so long keep places that are too few for them."""


@pytest.fixture
def sought(monkeypatch: pytest.MonkeyPatch) -> list[Preemptor]:
    """The pods for which a place was sought, one by one."""
    asked, place = [], Search.place

    def count(search: Search, preemptor: Preemptor, *others: Any) -> FoundRoom | None:
        asked.append(preemptor)
        return place(search, preemptor, *others)

    monkeypatch.setattr(Search, "place", count)
    return asked


@pytest.mark.parametrize(
    ("first", "minimum", "searches", "evicted"),
    [
        (["gang"], 5, 0, 0),
        (["gang"], 4, 4, 4),
        (["gang", PERMITS], 5, 0, 0),
        ([PERMITS], 5, 4, 4),
    ],
    ids=["too few", "enough", "too few, which one plugin permits", "fewer are permitted first"],
)
def test_no_victims_are_sought_for_a_gang_whose_queue_may_not_take_back_enough(
    sought: list[Preemptor], first: list[Any], minimum: int, searches: int, evicted: int
) -> None:
    """Either of two queues deserves 4 of 8 cpu, and a gang waits that may have to have 5."""
    cluster = {
        "nodes": [["n0", 4, "8Gi"], ["n1", 4, "8Gi"]],
        "queues": [["q1"], ["q2"]],
        "podgroups": [
            ["ns", "new", "q1", minimum, "Inqueue"],
            ["ns", "old", "q2", 1, "Running"],
        ],
        "pods": [
            *(["ns", f"new-{number}", "", "Pending", 1, 0, "new"] for number in range(6)),
            *(
                ["ns", f"old-{number}", f"n{number % 2}", "Running", 1, 0, "old"]
                for number in range(8)
            ),
        ],
    }
    tiers = [first, ["gang"] * ("gang" not in first) + ["proportion", "predicates"]]
    scenario = Scenario(cluster, config_text(tiers, ["allocate", "reclaim"]))
    result = scenario.cycle()
    assert (len(sought), len(result.evicted)) == (searches, evicted)
    if not searches and PERMITS not in first:  # sla would have it tried in every cycle
        scenario.cycle(NOW + 60)
        scenario.state.set_quota(ResourceQuota(metadata=ObjectMeta(name="quota", namespace="ns")))
        assert scenario.cycle(NOW + 120).preemptions == 0, "a change after which it has no turn"


@pytest.mark.parametrize(("capability", "searches"), [(8, 0), (9, 1)])
def test_no_victims_are_sought_for_a_pod_where_no_node_has_enough_for_its_queue(
    sought: list[Preemptor], capability: int, searches: int
) -> None:
    """The pod asks for 3 cpu, and the queue holds 8, of which 2 may go from either node."""
    old = [["ns", f"old-{n}", f"n{n % 2}", "Running", 2, 0, "old"] for n in range(4)]
    cluster = {
        "nodes": [["n0", 8, "8Gi"], ["n1", 8, "8Gi"]],
        "queues": [["q1", {"capability": {"cpu": capability}}]],
        "classes": {"high": 100},
        "podgroups": [
            ["ns", "old", "q1", 1, "Running"],
            ["ns", "new", "q1", 1, "Inqueue", {"prio": "high"}],
        ],
        "pods": [
            ["ns", "new-0", "", "Pending", 3, 0, "new"],
            *([*row, {"preemptable": n < 2}] for n, row in enumerate(old)),
        ],
    }
    tiers = [["priority", "gang"], ["capacity", "predicates"]]
    result = Scenario(cluster, config_text(tiers, ["allocate", "preempt"])).cycle()
    assert (len(sought), len(result.evicted)) == (searches, searches)


@pytest.mark.parametrize(("cores", "searches"), [(4, 0), (3, 1)])
def test_no_victims_are_sought_where_fewer_pods_may_go_than_make_room(
    sought: list[Preemptor], cores: int, searches: int
) -> None:
    """Of 8 cpu the other queue holds 5 and deserves 4, and 2 are free on a node; 1 more may be taken back."""
    cluster = {
        "nodes": [["n0", 4, "8Gi"], ["n1", 4, "8Gi"]],
        "queues": [["q1"], ["q2"]],
        "podgroups": [["ns", "new", "q1", 1, "Inqueue"], ["ns", "old", "q2", 1, "Running"]],
        "pods": [
            *(["ns", f"new-{number}", "", "Pending", cores, 0, "new"] for number in range(2)),
            *(
                ["ns", f"old-{number}", f"n{number % 2}", "Running", 1, 0, "old"]
                for number in range(5)
            ),
        ],
    }
    result = Scenario(cluster, load_config()).cycle()
    assert (len(sought), len(result.evicted)) == (searches, searches)


@pytest.mark.parametrize(
    ("conf", "counts"),
    [
        (None, 2),
        (config_text([["gang"], ["proportion", "predicates"]], ["allocate", "reclaim"]), 0),
    ],
    ids=["plugins tell what may go", "a tier does not"],
)
def test_places_are_counted_once_for_gangs_of_equal_pods(
    monkeypatch: pytest.MonkeyPatch, conf: str | None, counts: int
) -> None:
    """Two sizes of gangs for which too little may go, as above."""
    counted: list[Any] = []

    def count(*asked: Any) -> bool:
        counted.append(asked)
        return gets_fewer(*asked)

    monkeypatch.setattr("pumice.scheduler.eviction.search.gets_fewer", count)
    names = [f"{size}-{number}" for size in (1, 2) for number in range(4)]
    cluster = {
        "nodes": [["n0", 4, "8Gi"], ["n1", 4, "8Gi"]],
        "queues": [["q1"], ["q2"]],
        "podgroups": [
            *(["ns", name, "q1", int(name[0]), "Inqueue"] for name in names),
            ["ns", "old", "q2", 1, "Running"],
        ],
        "pods": [
            *(
                ["ns", f"{name}-{number}", "", "Pending", 4 // int(name[0]), 0, name]
                for name in names
                for number in range(2)
            ),
            *(
                ["ns", f"old-{number}", f"n{number % 2}", "Running", 1, 0, "old"]
                for number in range(5)
            ),
        ],
    }
    assert Scenario(cluster, load_config(conf)).cycle().preemptions == len(names)
    assert len(counted) == counts


@pytest.mark.parametrize(
    "preemptable", [[False, True], [True, False]], ids=["it is first", "it is last"]
)
def test_a_pod_for_which_others_may_go_gets_its_place_beside_one_with_equal_requests(
    preemptable: list[bool],
) -> None:
    """Tdm lets pods go for one that may not be evicted itself; the queue has no room for either before."""
    cluster = {
        "nodes": [["n0", 8, "8Gi"]],
        "queues": [["q1", {"capability": {"cpu": 2}}]],
        "podgroups": [["ns", "old", "q1", 1, "Running"], ["ns", "new", "q1", 1, "Inqueue"]],
        "pods": [
            *(["ns", f"old-{n}", "n0", "Running", 1, 0, "old"] for n in range(2)),
            *(
                ["ns", f"new-{n}", "", "Pending", 1, 0, "new", {"preemptable": each}]
                for n, each in enumerate(preemptable)
            ),
        ],
    }
    tiers = [["tdm", "gang"], ["capacity", "predicates"]]
    result = Scenario(cluster, config_text(tiers, ["allocate", "preempt"])).cycle()
    assert result.evicted == ["ns/old-1"]
    assert result.pipelined == {f"ns/new-{preemptable.index(False)}": "n0"}
