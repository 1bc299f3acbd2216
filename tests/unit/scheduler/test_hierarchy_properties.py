"""Hierarchical dominant shares for any cluster: against a slow reference written from the formulae."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import keys
from pumice.scheduler.fairness.fair_shares import DominantShare
from pumice.scheduler.fairness.hierarchy import ShareTree
from pumice.scheduler.model.queues import MAX_DEPTH
from pumice.scheduler.model.tasks import SchedulingStatus
from pumice.scheduler.session.session import Session
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import Scenario, config_text
from tests.unit.scheduler.test_share_properties import EXAMPLES, HDRF, HELD, clusters


class _Slow:
    """A node of the tree, with fractions."""

    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.children: dict[str, _Slow] = {}
        self.jobs: list[tuple[list[Fraction], list[Fraction]]] = []


def _asked(session: Session) -> dict[str, list[Fraction]]:
    """What jobs hold and ask for."""
    return {
        job.key: [Fraction(int(each)) for each in (job.allocated + job.pending)[:3]]
        for job in session.state.jobs.values()
    }


def _slow_keys(
    session: Session, requests: dict[str, list[Fraction]]
) -> dict[str, tuple[tuple[bool, Fraction], ...]]:
    """Keys of queues in the tree, by the formulae.

    Args:
        session: The session.
        requests: What jobs held and asked for when it began.
    """
    state, shares = session.state, session.view.shares
    total = [Fraction(int(each)) for each in session.view.total()[:3]]
    root, paths = _Slow(1), {}
    for name, queue in sorted(state.queues.items()):
        text = queue.metadata.annotation(keys.HIERARCHY)
        if text:
            names = text.split("/")[1:]
            weights = [
                int(each)
                for each in queue.metadata.annotation(keys.HIERARCHY_WEIGHTS).split("/")[1:]
            ]
        else:
            names = [shares.names[each] for each in reversed(shares.paths[shares.rows[name]])]
            names = names[1:] if names[0] == "root" else names
            weights = [state.queues[each].spec.weight or 1 for each in names]
        node, path = root, []
        for each, weight in zip(names, weights, strict=False):
            node = node.children.setdefault(each, _Slow(weight))
            path.append(node)
        paths[name] = path
    used = [Fraction(0)] * 3
    for job in state.jobs.values():
        if job.queue not in state.queues or not job.tasks:
            continue
        held = [Fraction(0)] * 3
        asked = requests[job.key]
        for task in job.tasks.values():
            for column in range(3):
                amount = Fraction(int(task.shape.vector[column]))
                held[column] += amount * (task.status in HELD)
        if any(asked):
            (paths[job.queue][-1] if paths[job.queue] else root).jobs.append((held, asked))
            used = [one + other for one, other in zip(used, held, strict=True)]
    demanding = [one < other for one, other in zip(used, total, strict=True)]

    def share(vector: list[Fraction]) -> Fraction:
        return max(
            (one / other for one, other in zip(vector, total, strict=True) if other),
            default=Fraction(0),
        )

    found: dict[int, tuple[bool, Fraction]] = {}

    def visit(node: _Slow) -> tuple[list[Fraction], bool]:
        members = [visit(child) for child in node.children.values()]
        for held, asked in node.jobs:
            full = any(
                held[r] and asked[r] and (held[r] >= asked[r] or not demanding[r])
                for r in range(3)
                if total[r]
            )
            members.append((held, full))
        live = [share(held) for held, full in members if share(held) and not full]
        smallest = min([*live, Fraction(1)])
        sums = [Fraction(0)] * 3
        for held, full in members:
            if share(held):
                factor = Fraction(1) if full else smallest / share(held)
                sums = [one + other * factor for one, other in zip(sums, held, strict=True)]
        is_full = bool(members) and all(full for _, full in members)
        found[id(node)] = (is_full, share(sums) / node.weight)
        return sums, is_full

    visit(root)
    return {name: tuple(found[id(node)] for node in path) for name, path in paths.items()}


def _same(seen: Any, wanted: tuple[tuple[bool, Fraction], ...]) -> bool:
    return [full for full, _ in seen] == [full for full, _ in wanted] and [
        share for _, share in seen
    ] == pytest.approx([float(share) for _, share in wanted], abs=1e-9)


@EXAMPLES
@given(clusters(), st.data())
def test_shares_in_the_tree_equal_a_slow_reference(
    cluster: dict[str, Any], data: st.DataObject
) -> None:
    """At first, after each placement, and after all of them are undone."""
    scenario = Scenario(cluster, config_text(HDRF))
    session = open_session(scenario)
    requests = _asked(session)

    def check() -> None:
        for name, wanted in _slow_keys(session, requests).items():
            assert _same(session.answers.queue_key(scenario.state.queues[name])[0], wanted), name

    check()
    statement = session.statement()
    for task in list(scenario.state.tasks.values()):
        if task.status is SchedulingStatus.PENDING and data.draw(st.booleans()):
            statement.allocate(task, scenario.state.nodes.order[0])
            check()
        elif task.status is SchedulingStatus.RUNNING and data.draw(st.booleans()):
            statement.evict(task)
            check()
    statement.discard()
    check()


@EXAMPLES
@given(clusters())
def test_lines_of_queues_answer_with_the_first_key(cluster: dict[str, Any]) -> None:
    """Whatever is placed while queues wait, the one that is taken out has the smallest key of all."""
    scenario = Scenario(cluster, config_text(HDRF))
    session = open_session(scenario)
    waiting = list(scenario.state.queues.values())
    line = session.answers.ordered_queues(waiting)
    pending = [
        task for task in scenario.state.tasks.values() if task.status is SchedulingStatus.PENDING
    ]
    statement = session.statement()
    while waiting:
        if pending:
            statement.allocate(pending.pop(), scenario.state.nodes.order[0])
        first = min(waiting, key=session.answers.queue_key)
        assert line.pop() is first
        waiting.remove(first)


def test_a_path_has_as_many_levels_as_count_for_queues() -> None:
    """Each level is computed again after each placement."""
    annotations = {keys.HIERARCHY: "root" + "/a" * 1_000, keys.HIERARCHY_WEIGHTS: "1" + "/1" * 999}
    cluster = {
        "nodes": [["n1", 4, "8Gi"]],
        "queues": [["default", {"annotations": annotations}]],
        "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
        "pods": [["ns", "p", "", "Pending", 1, "1Gi", "g"]],
    }
    scenario = Scenario(cluster, config_text(HDRF))
    view = open_session(scenario).view
    tree = ShareTree(view, DominantShare(view.total()), lambda job: job.allocated)
    assert len(tree.key("default")) == MAX_DEPTH
