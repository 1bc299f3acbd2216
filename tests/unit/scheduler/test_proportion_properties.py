"""What must hold for every cluster whose queues share it by weight."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.model.axis import PODS
from pumice.scheduler.model.queue_specs import UNLIMITED
from pumice.scheduler.model.report_times import ReportDelays
from pumice.scheduler.model.running_pods import Away
from pumice.scheduler.model.tasks import READY
from tests.unit.scheduler.columns import check_sums, dump
from tests.unit.scheduler.events import changes, in_turns
from tests.unit.scheduler.scenarios import Scenario, config_text, queue
from tests.unit.scheduler.test_properties import EXAMPLES, clusters

PLUGINS = config_text(
    [["priority", "gang"], ["overcommit", "predicates", "proportion", "nodeorder"]],
    ("enqueue", "allocate", "backfill"),
)

AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 4), "memory": st.sampled_from(["1Gi", "4Gi"])}
)


@st.composite
def queues(draw: st.DrawFn, name: str) -> list[Any]:
    """A queue with a weight, and perhaps with limits."""
    spec: dict[str, Any] = {"weight": draw(st.integers(1, 3)), "priority": draw(st.integers(0, 1))}
    if draw(st.booleans()):
        spec["capability"] = draw(AMOUNTS)
    if draw(st.integers(0, 3)) == 0:
        spec["guarantee"] = {"resource": draw(AMOUNTS)}
    return [name, spec]


@st.composite
def shared(draw: st.DrawFn) -> dict[str, Any]:
    """A cluster of a few queues."""
    return draw(clusters()) | {"queues": [draw(queues(f"q{number}")) for number in (1, 2, 3)]}


@EXAMPLES
@given(shared())
def test_no_queue_comes_to_hold_more_than_it_may(cluster: dict[str, Any]) -> None:
    scenario = Scenario(cluster, PLUGINS)
    scenario.state.settle()
    shares = scenario.state.shares
    before = shares.allocated.copy()
    scenario.cycle()
    grown = shares.allocated > before
    grown[:, PODS] = False
    assert (shares.allocated <= shares.limits.capability)[grown].all()
    assert (shares.limits.capability <= UNLIMITED).all()
    check_sums(scenario.state)


@EXAMPLES
@given(shared())
def test_guarantees_of_others_are_left_alone(cluster: dict[str, Any]) -> None:
    """What a queue has come to hold on nodes that are ready, it could hold with the guarantees of all others used."""
    scenario = Scenario(cluster, PLUGINS)
    state = scenario.state
    state.settle()
    shares, ready = state.shares, ~state.facts.unready
    away = Away.of(state.nodes.running, state.facts.unready, shares).held
    before = shares.allocated.copy()
    scenario.cycle()
    total = scenario.state.nodes.rows().allocatable[ready].sum(axis=0)
    kept = np.minimum(shares.limits.guarantee, shares.limits.capability)
    most = np.maximum(total - kept.sum(axis=0), 0) + kept
    grown = shares.allocated > before
    grown[:, PODS:] = False
    assert (shares.allocated - away <= most)[grown].all()


@EXAMPLES
@given(shared())
def test_gangs_get_their_minimum_or_nothing(cluster: dict[str, Any]) -> None:
    scenario = Scenario(cluster, PLUGINS)
    result = scenario.cycle()
    for job in scenario.state.jobs.values():
        if any(key in result.binds for key in job.tasks):
            ready = sum(task.status in READY for task in job.tasks.values())
            assert ready >= job.min_member


@EXAMPLES
@given(shared())
def test_a_cycle_leaves_nothing_tentative(cluster: dict[str, Any]) -> None:
    scenario = Scenario(cluster, PLUGINS)
    before = dump(scenario.state)
    result = scenario.cycle()
    for key in result.binds:
        scenario.state.pods.forget(key, "")
    after = dump(scenario.state)
    after["waiting"] = before["waiting"] = None
    assert after == before


@EXAMPLES
@given(shared(), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(cluster: dict[str, Any], dice: Any) -> None:
    shuffled = {key: dice.sample(rows, len(rows)) for key, rows in cluster.items()}
    names = list(shuffled)
    dice.shuffle(names)
    one = Scenario(cluster, PLUGINS).cycle()
    other = Scenario({name: shuffled[name] for name in names}, PLUGINS).cycle()
    assert one.binds == other.binds
    assert {key: each.message for key, each in one.pending.items()} == {
        key: each.message for key, each in other.pending.items()
    }


@EXAMPLES
@given(st.data(), shared(), shared(), st.randoms(use_true_random=False))
def test_gangs_that_are_not_tried_again_would_not_have_been_placed(
    data: st.DataObject, first: dict[str, Any], second: dict[str, Any], dice: Any
) -> None:
    """A gang that its queue refused is placed as soon as when it is tried in each cycle."""
    never = ReportDelays(numbers=1e9)
    thrifty, eager = Scenario(first, PLUGINS, delays=never), Scenario(first, PLUGINS)
    events = changes(first, second)
    events += [
        lambda state, row=row: state.set_queue(queue(row))  # type: ignore[misc]
        for row in second["queues"]
    ]
    for _ in in_turns(data, dice, events, thrifty, eager):
        eager.wake_all()
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert (seen.binds, seen.pipelined) == (wanted.binds, wanted.pipelined)
        assert sorted(seen.pending) == sorted(wanted.pending)
