"""Terms as sums of groups of pods: what they select, what is counted for them, and how much work that is."""

import math
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.model import domains
from pumice.scheduler.model.affinity_terms import Selection, TermKey, holds
from pumice.scheduler.model.group_tree import GroupTree
from pumice.scheduler.model.peer_groups import (
    HAS_LABEL,
    IN_NAMESPACE,
    IS_KNOWN,
    NAMESPACE_HAS_LABEL,
    Groups,
    Mark,
    groups_of,
)
from pumice.scheduler.model.tasks import NEEDS_ROOM, SchedulingStatus, TaskInfo
from pumice.scheduler.state.watched_cluster import ClusterState
from tests.kit.examples import examples
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import asked_of, counted
from tests.unit.scheduler.scenarios import Scenario, config_text
from tests.unit.scheduler.test_peers import scenario_of

Raw = dict[str, Any]
Labels = Mapping[str, str]

BOTH = config_text([["gang", "predicates", "nodeorder"]])
KEYS, VALUES = ["a", "b", "c"], ["v", "w", "x", "y"]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
NAMESPACES = ["ns", "other", "unknown"]
OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Odd"]


@st.composite
def expressions(draw: st.DrawFn) -> tuple[str, str, tuple[str, ...]]:
    """A requirement in the form of `terms`; an unknown operator selects nothing."""
    operator = draw(st.sampled_from([*OPERATORS[:4] * 4, OPERATORS[4]]))
    values: list[str] = []
    if operator in ("In", "NotIn"):
        values = draw(st.lists(st.sampled_from(VALUES), unique=True, max_size=4))
    return draw(st.sampled_from(KEYS)), operator, tuple(sorted(values))


REQUIREMENTS = st.lists(expressions(), max_size=6).map(lambda found: tuple(sorted(set(found))))
SELECTIONS = st.builds(
    Selection,
    st.lists(st.sampled_from(NAMESPACES), unique=True).map(tuple),
    st.none() | REQUIREMENTS,
    st.none() | REQUIREMENTS,
)


def _selects(
    key: TermKey, namespace: str, labels: Labels, namespaces: Mapping[str, Labels]
) -> bool:
    return all(
        holds(part.selector, labels)
        and (
            namespace in part.namespaces
            or part.namespace_selector == ()
            or (namespace in namespaces and holds(part.namespace_selector, namespaces[namespace]))
        )
        for part in key
    )


def _marks(namespace: str, labels: Labels, namespaces: Mapping[str, Labels]) -> set[Mark]:
    found: set[Mark] = {(IN_NAMESPACE, "", namespace)}
    found |= {(HAS_LABEL, key, value) for key, value in labels.items()}
    found |= {(HAS_LABEL, key, None) for key in labels}
    if namespace in namespaces:
        found.add((IS_KNOWN, "", None))
        of_namespace = namespaces[namespace]
        found |= {(NAMESPACE_HAS_LABEL, key, value) for key, value in of_namespace.items()}
        found |= {(NAMESPACE_HAS_LABEL, key, None) for key in of_namespace}
    return found


@given(st.lists(SELECTIONS, min_size=1, max_size=2).map(tuple), LABELS, st.data())
def test_a_sum_counts_each_pod_that_a_term_selects_once_and_others_not(
    key: TermKey, labels: Labels, data: st.DataObject
) -> None:
    namespace = data.draw(st.sampled_from(NAMESPACES))
    namespaces = {"ns": data.draw(LABELS), "other": data.draw(LABELS)}
    marks = _marks(namespace, labels, namespaces)

    def has(group: frozenset[Mark | Selection]) -> bool:
        return all(
            _selects((step,), namespace, labels, namespaces)
            if isinstance(step, Selection)
            else step in marks
            for step in group
        )

    found: Groups = groups_of(key)
    wanted = _selects(key, namespace, labels, namespaces)
    assert sum(times for group, times in found.items() if has(group)) == wanted
    tree = GroupTree()
    groups = {tree.use(steps): steps for steps in found}
    within = tree.having(marks, lambda step: _selects((step,), namespace, labels, namespaces))
    assert {groups[group] for group in within} == {group for group in found if has(group)}
    assert all(set(group.steps()) == steps for group, steps in groups.items())
    for group in groups:
        assert tree.release(group)
    assert not tree.having(marks, lambda _: True)


def test_a_sum_keeps_the_counts_by_domain_of_its_large_parts() -> None:
    """Other sums share them as long as it is in use."""
    large, small = domains.DomainCounts(), domains.DomainCounts()
    for row in range(100):
        large.add(row, SchedulingStatus.RUNNING, 1)
    zones = domains.Topology(np.arange(100) // 10, 10)
    known = weakref.ref(large.domains("zone", zones))
    assert known() is None
    in_use = domains.total(((large, 1), (small, 1))).domains("zone", zones)
    known = weakref.ref(large.domains("zone", zones))
    assert known() is not None
    del in_use
    assert known() is None


def test_a_sum_has_a_limit() -> None:
    many = tuple(sorted((f"k{number}", "NotIn", ("v",)) for number in range(30)))
    assert len(groups_of((Selection(("ns",), None, many),))) <= 16 + 4 * (2 * 30 + 1)
    values = tuple(sorted(f"v{number}" for number in range(500)))
    assert len(groups_of((Selection(("ns",), None, (("k", "NotIn", values),)),))) == 501


# -- counts --------------------------------------------------------------------------------------


@st.composite
def peer_terms(draw: st.DrawFn) -> Raw:
    """A term with up to three expressions, often about the labels that pods have in this test."""
    expressions_of: list[Raw] = []
    for _ in range(draw(st.integers(0, 3))):
        operator = draw(st.sampled_from(["In", "NotIn", "NotIn", "Exists", "DoesNotExist"]))
        each: Raw = {"key": draw(st.sampled_from(KEYS)), "operator": operator}
        if operator in ("In", "NotIn"):
            each["values"] = draw(st.lists(st.sampled_from(VALUES), min_size=1, unique=True))
        expressions_of.append(each)
    term: Raw = {
        "topologyKey": draw(st.sampled_from(["zone", "host", "nowhere"])),
        "labelSelector": {"matchExpressions": expressions_of},
    }
    scope = draw(st.integers(0, 4))
    if scope == 0:
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
    elif scope == 1:
        operator = draw(st.sampled_from(["NotIn", "In"]))
        team = {"key": "team", "operator": operator, "values": [draw(st.sampled_from("xy"))]}
        term["namespaceSelector"] = draw(st.sampled_from([{}, {"matchExpressions": [team]}]))
    if draw(st.integers(0, 4)) == 0:
        term[draw(st.sampled_from(["matchLabelKeys", "mismatchLabelKeys"]))] = ["a"]
    return term


@st.composite
def peer_pods(draw: st.DrawFn, index: int) -> list[Any]:
    """A pod with some terms, on a node or waiting."""
    affinity: Raw = {}
    for side in ("podAffinity", "podAntiAffinity"):
        found = draw(st.lists(peer_terms(), max_size=2))
        wishes = [
            {"weight": draw(st.integers(1, 9)), "podAffinityTerm": term}
            for term in draw(st.lists(peer_terms(), max_size=1))
        ]
        affinity[side] = {
            "requiredDuringSchedulingIgnoredDuringExecution": found,
            "preferredDuringSchedulingIgnoredDuringExecution": wishes,
        }
    place = draw(st.sampled_from(["", "n0", "n1", "n2", "gone"]))
    options: Raw = {"labels": draw(LABELS), "spec": {"affinity": affinity}}
    if place and draw(st.integers(0, 4)) == 0:
        options["deleting"] = True
    phase = "Running" if place else "Pending"
    namespace = draw(st.sampled_from(["ns", "ns", "other"]))
    return [namespace, f"p{index}", place, phase, "100m", "1Mi", "g", options]


@st.composite
def peer_clusters(draw: st.DrawFn) -> Raw:
    """Three nodes and some pods with terms."""
    labels = [{"zone": f"z{number % 2}", "host": f"h{number}"} for number in range(3)]
    return {
        "nodes": [[f"n{number}", 8, "8Gi", {"labels": each}] for number, each in enumerate(labels)],
        "namespaces": {"ns": {"team": "x"}, "other": {"team": draw(st.sampled_from("xy"))}},
        "podgroups": [[each, "g", "default", 1, "Inqueue"] for each in ("ns", "other")],
        "pods": [draw(peer_pods(index)) for index in range(draw(st.integers(1, 6)))],
    }


def _check(state: ClusterState) -> None:
    """Shared counts equal a count of each pod for each term."""
    placed = [
        task
        for task in state.tasks.values()
        if state.nodes.row_of(task.node) >= 0
        and (task.status in NEEDS_ROOM or task.status is SchedulingStatus.PIPELINED)
    ]

    def add(sums: list[dict[str, int]], task: TaskInfo, weight: int) -> None:
        promised = task.status is SchedulingStatus.PIPELINED
        for place in (2,) if promised else (0, 1)[: 1 + (task.status.name == "RELEASING")]:
            sums[place][task.node] = sums[place].get(task.node, 0) + weight
            if not sums[place][task.node]:
                del sums[place][task.node]

    def selects(key: TermKey, task: TaskInfo) -> bool:
        labels: Labels = task.labels or {}
        return _selects(key, task.namespace, labels, state.peers.namespaces)

    for key in state.peers.terms:
        sums: list[dict[str, int]] = [{}, {}, {}]
        for task in placed:
            if selects(key, task):
                add(sums, task, 1)
        assert counted(state, state.peers.tally(key).parts()) == sums
        for task in state.tasks.values():
            assert state.peers.selects(key, state.peers.class_of(task)) == selects(key, task)
    for name, target in state.tasks.items():
        asked: dict[tuple[str, str], list[dict[str, int]]] = {}
        for task in placed:
            rules = task.shape.peers
            if rules is None:
                continue
            sides = {
                "repelling": [(wish, 1) for wish in rules.anti_affinity],
                "attracting": [(wish, wish.weight) for wish in (*rules.wishes, *rules.attractions)],
            }
            for side, wishes in sides.items():
                for wish, weight in wishes:
                    if selects(wish.term, target):
                        add(asked.setdefault((side, wish.key), [{}, {}, {}]), task, weight)
        assert asked_of(state, name) == {place: each for place, each in asked.items() if any(each)}


@examples(40)
@given(peer_clusters(), st.randoms(use_true_random=False))
def test_shared_counts_equal_a_count_of_each_pod_for_each_term(cluster: Raw, dice: Any) -> None:
    """With placements, promises and evictions, undone or not, and pods that come and go before and between cycles."""
    rows = cluster.pop("pods")
    scenario = scenario_of({**cluster, "pods": rows[: len(rows) // 2]}, BOTH)
    state = scenario.state
    preparing = state.preparing()
    for _ in range(dice.randint(0, 2)):
        next(preparing, None)
    for row in rows[len(rows) // 2 :]:
        scenario.add_pod(row)
        if dice.random() < 0.5:
            state.settle()
        next(preparing, None)
    for _ in range(2):
        session = open_session(scenario)
        _check(state)
        statement = session.statement()
        moments = [0]
        for _ in range(6):
            task = state.tasks[dice.choice(list(state.tasks))]
            record = dice.choice(state.nodes.order)
            if task.status is SchedulingStatus.PENDING and dice.random() < 0.6:
                statement.allocate(task, record)
            elif task.status is SchedulingStatus.PENDING:
                statement.pipeline(task, record)
            elif task.status is SchedulingStatus.RUNNING and state.nodes.row_of(task.node) >= 0:
                statement.evict(task)
            elif moments[-1]:
                statement.roll_back(moments[-1] - 1)
                moments.pop()
                continue
            else:
                continue
            moments.append(moments[-1] + 1)
            _check(state)
        statement.discard()
        _check(state)
        session.close()
        key = dice.choice(list(state.tasks))
        state.remove_pod(*key.split("/"))
        if not state.tasks:
            return
        state.remove_node("n1") if dice.random() < 0.3 else None


# -- work ----------------------------------------------------------------------------------------


def _term(operator: str, key: str = "a", *values: str, **more: Any) -> Raw:
    each: Raw = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"topologyKey": "host", "labelSelector": {"matchExpressions": [each]}, **more}


def _preferred(side: str, term: Raw) -> Raw:
    wish = {"weight": 5, "podAffinityTerm": term}
    return {"affinity": {side: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}}


def _required(side: str, term: Raw) -> Raw:
    return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(term: Raw, when: str) -> Raw:
    rule = {"maxSkew": 9, "topologyKey": "host", "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": term["labelSelector"]}]}


def _pool(number: int) -> list[str]:
    return sorted({f"v{(number * step) % 23}" for step in range(1, 9)})


NEAR, APART = "podAffinity", "podAntiAffinity"
EVERY: Raw = {"topologyKey": "host", "labelSelector": {}}
SHAPES: dict[str, Callable[[int], Raw]] = {
    "all but its own": lambda i: _preferred(APART, _term("NotIn", "a", f"v{i}")),
    "near to all but its own": lambda i: _preferred(NEAR, _term("NotIn", "a", f"v{i}")),
    "its own": lambda i: _required(APART, _term("In", "a", f"v{i}")),
    "required, all but its own": lambda i: _required(
        APART, {**_term("NotIn", "a", f"v{i}"), "topologyKey": "nowhere"}
    ),
    "affinity to all but another": lambda i: _required(NEAR, _term("NotIn", "a", f"u{i}")),
    "other keys": lambda i: _preferred(APART, _term("Exists", f"k{i}")),
    "without other keys": lambda i: _preferred(APART, _term("DoesNotExist", f"k{i}")),
    "some of many values": lambda i: _preferred(APART, _term("In", "a", *_pool(i))),
    "none of many values": lambda i: _preferred(APART, _term("NotIn", "a", *_pool(i))),
    "spread": lambda i: _spread(_term("NotIn", "a", f"v{i}"), "DoNotSchedule"),
    "spread anyway": lambda i: _spread(_term("NotIn", "a", f"v{i}"), "ScheduleAnyway"),
    "label keys": lambda _: _preferred(APART, {**EVERY, "mismatchLabelKeys": ["a"]}),
    "namespaces": lambda i: _preferred(APART, {**EVERY, "namespaces": ["ns", f"x{i}"]}),
    "labels of namespaces": lambda i: _preferred(
        APART, {**EVERY, "namespaceSelector": _term("NotIn", "team", f"v{i}")["labelSelector"]}
    ),
    "topology keys": lambda i: _preferred(APART, {**EVERY, "topologyKey": f"t{i}"}),
}


def _work(rules: Callable[[int], Raw], count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Comparisons of pods with groups, changes of counts, and counts that are added up, in a cycle that places one gang."""
    work = 0
    add, init = domains.DomainCounts.add, domains.Domains.__init__

    def counting_add(self: domains.DomainCounts, *args: Any) -> None:
        nonlocal work
        work += 1
        add(self, *args)

    def counting_init(self: domains.Domains, parts: domains.Parts, *args: Any) -> None:
        nonlocal work
        work += len(parts)
        init(self, parts, *args)

    case = {
        "nodes": [
            [f"n{number:02}", 64, "64Gi", {"labels": {"host": f"h{number}"}}] for number in range(9)
        ],
        "namespaces": {"ns": {"team": "x"}},
        "podgroups": [["ns", "g", "default", count, "Inqueue"]],
        "pods": [
            ["ns", f"g-{i:03}", "", "Pending", "1m", "1Mi", "g",
             {"labels": {"a": f"v{i}", f"k{i}": "x"}, "spec": rules(i)}]
            for i in range(count)
        ],
    }  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(domains.DomainCounts, "add", counting_add)
        patch.setattr(domains.Domains, "__init__", counting_init)
        scenario = scenario_of(case, BOTH)
        result = scenario.cycle()
    assert result.decided >= count
    return work + scenario.state.peers.tree.compared


@pytest.mark.parametrize("rules", SHAPES.values(), ids=SHAPES.keys())
def test_twice_as_many_pods_with_terms_of_their_own_are_twice_the_work(
    rules: Callable[[int], Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    once, twice = (_work(rules, count, monkeypatch) for count in (40, 80))
    assert twice < 2.4 * once, math.log2(twice / once)


def test_many_topology_keys_are_narrowed_down_to_those_of_nodes() -> None:
    names = [f"t{number}" for number in range(1000)]
    scenario = Scenario({"nodes": [["n1", 8, "8Gi", {"labels": {"host": "h"}}]]}, BOTH)
    facts = scenario.state.facts
    scenario.state.settle()
    assert list(facts.known_labels([*names, "host"])) == ["host"]
    assert list(facts.known_labels(names[:3])) == names[:3], "few are not worth it"
