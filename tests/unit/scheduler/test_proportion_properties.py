"""What must hold for every cluster whose queues share it by weight."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.model.axis import PODS
from pumice.scheduler.model.limits import UNLIMITED
from pumice.scheduler.model.tasks import READY
from pumice.scheduler.reports import ReportDelays
from tests.unit.scheduler.columns import check_sums, dump
from tests.unit.scheduler.scenes import Scene, config_text, node, pod, pod_group, queue
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
    scene = Scene(cluster, PLUGINS)
    scene.state.settle()
    shares = scene.state.shares
    before = shares.allocated.copy()
    scene.cycle()
    grown = shares.allocated > before
    grown[:, PODS] = False
    assert (shares.allocated <= shares.limits.capability)[grown].all()
    assert (shares.limits.capability <= UNLIMITED).all()
    check_sums(scene.state)


@EXAMPLES
@given(shared())
def test_guarantees_of_others_are_left_alone(cluster: dict[str, Any]) -> None:
    """What a queue has come to hold, it could hold with the guarantees of all others used."""
    scene = Scene(cluster, PLUGINS)
    scene.state.settle()
    shares, ready = scene.state.shares, ~scene.state.facts.unready
    before = shares.allocated.copy()
    scene.cycle()
    total = scene.state.nodes.rows().allocatable[ready].sum(axis=0)
    kept = np.minimum(shares.limits.guarantee, shares.limits.capability)
    most = np.maximum(total - kept.sum(axis=0), 0) + kept
    grown = shares.allocated > before
    grown[:, PODS:] = False
    assert (shares.allocated <= most)[grown].all()


@EXAMPLES
@given(shared())
def test_gangs_get_their_minimum_or_nothing(cluster: dict[str, Any]) -> None:
    """Pods without requests count as placed in the gang, wherever backfill finds no slot for one of them."""
    scene = Scene(cluster, PLUGINS)
    result = scene.cycle()
    for job in scene.state.jobs.values():
        if any(key in result.binds for key in job.tasks):
            ready = sum(task.status in READY for task in job.tasks.values())
            assert ready + job.pending_empty >= job.min_member


@EXAMPLES
@given(shared())
def test_a_cycle_leaves_nothing_tentative(cluster: dict[str, Any]) -> None:
    scene = Scene(cluster, PLUGINS)
    before = dump(scene.state)
    result = scene.cycle()
    for key in result.binds:
        scene.state.forget(key, "")
    after = dump(scene.state)
    after["waiting"] = before["waiting"] = None
    assert after == before


@EXAMPLES
@given(shared(), st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(cluster: dict[str, Any], dice: Any) -> None:
    shuffled = {key: dice.sample(rows, len(rows)) for key, rows in cluster.items()}
    names = list(shuffled)
    dice.shuffle(names)
    one = Scene(cluster, PLUGINS).cycle()
    other = Scene({name: shuffled[name] for name in names}, PLUGINS).cycle()
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
    thrifty, eager = Scene(first, PLUGINS, delays=never), Scene(first, PLUGINS)
    events: list[Any] = [
        *(lambda state, row=row: state.set_node(node(row)) for row in second["nodes"]),
        *(lambda state, row=row: state.set_queue(queue(row)) for row in second["queues"]),
        *(
            lambda state, row=row: state.set_pod_group(pod_group(row))
            for row in second["podgroups"]
        ),
        *(lambda state, row=row: state.set_pod(pod(row)) for row in second["pods"]),
        *(lambda state, row=row: state.remove_node(row[0]) for row in first["nodes"]),
        *(lambda state, row=row: state.remove_pod(*row[:2]) for row in first["pods"]),
    ]
    dice.shuffle(events)
    while events:
        for _ in range(data.draw(st.integers(1, 4))):
            if events:
                event = events.pop()
                event(thrifty.state)
                event(eager.state)
        eager.state.gains.any_gang = True
        for job in eager.state.jobs.values():
            job.shortage = job.asks = None
        seen, wanted = thrifty.cycle(), eager.cycle()
        assert (seen.binds, seen.pipelined) == (wanted.binds, wanted.pipelined)
        assert sorted(seen.pending) == sorted(wanted.pending)
