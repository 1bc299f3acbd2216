"""What proportion answers about queues, pods and victims."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.api.quantities import QuantityError
from pumice.scheduler.fairness.division import QueueDivision
from pumice.scheduler.model.candidates import Candidates, Preemptor
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.victims import judge
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, config_text, node, pod_group, queue

RC_2: dict[str, Any] = {
    "nodes": [["n1", 4, "4Gi"]],
    "queues": [["q1"], ["q2"], ["q3"]],
    "podgroups": [["c1", f"pg{n}", f"q{n}", 1, "Inqueue"] for n in (1, 2, 3)],
    "pods": [
        *(
            ["c1", f"preemptee{n}-{m}", "n1", "Running", 1, "1G", f"pg{n}"]
            for n in (1, 2)
            for m in (1, 2)
        ),
        ["c1", "preemptor1", "", "Pending", 1, "1G", "pg3"],
    ],
}
"""The cluster of RC-2: queues 1 and 2 hold 2 cpu and deserve 1.5."""

PLUGINS = config_text([["proportion"]])


def _session(case: dict[str, Any] = RC_2) -> tuple[Scenario, Session]:
    scenario = Scenario(case, PLUGINS)
    return scenario, open_session(scenario)


def test_queues_of_equal_priority_go_by_their_share() -> None:
    scenario, session = _session()
    keys = {
        name: session.answers.queue_key(scenario.state.queues[name])[0]
        for name in ("q1", "q2", "q3")
    }
    assert keys["q1"] == keys["q2"] == (0, pytest.approx(1.3333, abs=1e-4))
    assert keys["q3"] == (0, 0.0)


def test_the_priority_of_a_queue_goes_before_its_share() -> None:
    case = RC_2 | {"queues": [["q1", {"priority": 3}], ["q2", {"priority": 7}], ["q3"]]}
    scenario, session = _session(case)
    queues = sorted(
        (scenario.state.queues[f"q{n}"] for n in (1, 2, 3)), key=session.answers.queue_key
    )
    assert [each.metadata.name for each in queues] == ["q2", "q1", "q3"]


def test_a_queue_may_take_back_what_keeps_it_within_what_it_deserves() -> None:
    scenario, session = _session()
    task = scenario.state.tasks["c1/preemptor1"]
    assert session.answers.why_not_preemptive(scenario.state.queues["q3"], task) is None
    refused = session.answers.why_not_preemptive(scenario.state.queues["q1"], task)
    assert refused is not None
    assert refused.details["shortages"][0]["limit"] == 1500


def test_victims_are_pods_of_queues_above_what_they_deserve_until_they_are_not() -> None:
    """Each queue gives up one pod of 1 cpu: then it holds 1 cpu of 1.5."""
    scenario, session = _session()
    state = scenario.state
    tasks = [state.tasks[f"c1/preemptee{n}-{m}"] for n in (1, 2) for m in (1, 2)]
    candidates = Candidates(
        state.nodes.running,
        np.array([task.row for task in tasks]),
        [state.jobs["c1/pg1"], state.jobs["c1/pg2"]],
        np.array([0, 0, 1, 1]),
        np.array([0, 0, 0, 0]),
    )
    preemptor = Preemptor(state.tasks["c1/preemptor1"], state.jobs["c1/pg3"], state.queues["q3"])
    assert judge(session.extensions.reclaimable, preemptor, candidates).may.tolist() == [
        True,
        False,
        True,
        False,
    ]


def test_whether_a_queue_holds_more_than_it_deserves_follows_each_decision_of_a_session() -> None:
    scenario, session = _session()
    state = scenario.state
    (check,) = session.extensions.reclaimable
    spares = session.extensions.spares_gangs[id(check.call)]
    preemptor = Preemptor(state.tasks["c1/preemptor1"], state.jobs["c1/pg3"], state.queues["q3"])
    statement, gangs = session.statement(), [state.jobs["c1/pg1"]]
    assert not spares(preemptor, gangs)
    statement.evict(state.tasks["c1/preemptee1-1"])
    assert spares(preemptor, gangs)
    statement.discard()
    assert not spares(preemptor, gangs)


def test_an_amount_that_cannot_be_read_leaves_the_queue_as_it_was() -> None:
    scenario, _ = _session()
    with pytest.raises(QuantityError):
        scenario.state.set_queue(queue(["q1", {"capability": {"cpu": "many"}}]))
    assert scenario.state.queues["q1"].spec.capability is None


def test_what_pods_of_a_gang_hold_tentatively_does_not_count_as_used() -> None:
    """The sentence is about the gang: what was used before it had its turn, and what all of its pods need."""
    scenario = Scenario(
        {
            "nodes": [["n1", 8, "8Gi"]],
            "queues": [["default", {"capability": {"cpu": 4}}]],
            "podgroups": [["ns", "g", "default", 3, "Inqueue"]],
            "pods": [
                ["ns", "g-0", "", "Pending", 1, 0, "g"],
                ["ns", "g-1", "", "Pending", 2, 0, "g"],
                ["ns", "g-2", "", "Pending", 3, 0, "g"],
            ],
        },
        config_text([["gang", "predicates", "proportion"]]),
    )
    message = scenario.cycle().pending["ns/g"].message
    assert message.endswith("queue default: 0 of 4 cpu used, 4 more allowed, needs 6")


def test_a_queue_that_deserves_the_whole_cluster_leaves_it_to_the_nodes_to_refuse() -> None:
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"], ["n2", 1, "8Gi"]],
            "podgroups": [["ns", "g", "default", 2, "Inqueue"]],
            "pod_sets": [{"pg": "g", "count": 2, "cpu": 3}],
        },
        config_text([["gang", "predicates", "proportion"]]),
    )
    assert scenario.cycle().pending["ns/g"].summary == (
        "needs 2 × 3 cpu; 1 pod has a place; the largest place left is 1 cpu (n1); "
        "1 node is too small even when empty; nodes have room for 1 of 2 such pods, even when empty"
    )


# -- what one session has computed serves the next -----------------------------------------------


def test_what_queues_deserve_is_kept_and_cannot_be_changed_by_who_reads_it() -> None:
    scenario = Scenario(RC_2, PLUGINS)
    figures = []
    for _ in range(2):
        scenario.cycle()
        names = ("deserved", "real_capacity", "capacity")
        figures.append([scenario.state.figure(name) for name in names])
        scenario.state.settled = None
    assert all(one is other for one, other in zip(*figures, strict=True))
    division = _divide(open_session(scenario), None)
    ceilings = division.ceilings
    columns = [*figures[0], ceilings.guarantee, ceilings.highest, ceilings.weighted]
    for each in [*columns, division.deserved, division.whole, division.rights]:
        assert isinstance(each, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            each[:] = 0


@pytest.mark.parametrize("ready", [True, False])
def test_what_pods_hold_on_nodes_that_are_not_ready_cannot_be_changed_by_a_plugin(
    ready: bool,
) -> None:
    cluster = {
        "nodes": [["n1", 4, "8Gi", {"ready": ready}]],
        "queues": [["q"]],
        "podgroups": [["ns", "g", "q", 1, "Running"]],
        "pods": [["ns", "p", "n1", "Running", 1, "1Gi", "g"]],
    }
    away = open_session(Scenario(cluster, PLUGINS)).view.away
    assert away.held.any() != ready
    assert len(away.gangs) == (not ready)
    for each in (away.held, away.needed, *away.gangs.values()):
        with pytest.raises(ValueError, match="read-only"):
            each[:] = 0


def _divide(session: Session, known: QueueDivision | None) -> QueueDivision:
    view = session.view
    return QueueDivision.of(
        known, view.facts.total(), view.shares, view.away, view.shares.allocated
    )


CHANGES: dict[str, Callable[[Scenario], object]] = {
    "the spec of a queue": lambda given: given.state.set_queue(queue(["q2", {"weight": 3}])),
    "a node that comes": lambda given: given.state.set_node(node(["n2", 2, "4Gi"])),
    "a node that is not ready": lambda given: given.state.set_node(
        node(["n1", 4, "4Gi", {"ready": False}])
    ),
    "a pod that waits": lambda given: given.add_pod(
        ["c1", "preemptor2", "", "Pending", 1, "1G", "pg3"]
    ),
    "a pod that ends": lambda given: given.state.remove_pod("c1", "preemptee1-1"),
    "the first gang of a queue": lambda given: given.state.set_pod_group(
        pod_group(["c1", "pg4", "default", 1, "Inqueue"])
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_queues_deserve_is_computed_again_if_what_it_follows_from_has_changed(
    change: str,
) -> None:
    scenario, session = _session()
    known = _divide(session, None)
    session.close()
    again = open_session(scenario)
    assert _divide(again, known) is known
    again.close()
    CHANGES[change](scenario)
    scenario.state.settle()
    changed = open_session(scenario)
    found, fresh = _divide(changed, known), _divide(changed, None)
    assert found is not known
    for name in ("deserved", "whole", "rights"):
        assert getattr(found, name).tolist() == getattr(fresh, name).tolist()
    assert found.ceilings.highest.tolist() == fresh.ceilings.highest.tolist()
