"""Inter-pod affinity and topology spread in columns equal the rules of the documentation, pod by pod and node by node."""

from copy import deepcopy
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.nodes import Namespace
from pumice.scheduler.model.tasks import SchedulingStatus, TaskInfo
from pumice.scheduler.session.session import Session
from tests.kit.examples import examples
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.peer_reference import refusals
from tests.unit.scheduler.scenarios import Scenario, config_text, node

EXAMPLES = examples(30)
FILTERS = config_text([["gang", "predicates"]])
KEYS = ["zone", "host", "rack"]
NAMESPACES = ["ns", "other"]

Raw = dict[str, Any]


@st.composite
def selectors(draw: st.DrawFn) -> Raw | None:
    """A label selector; None, empty, by labels or by expressions."""
    kind = draw(st.integers(0, 8))
    if kind == 0:
        return None
    if kind == 1:
        return {}
    if kind < 6:
        return {"matchLabels": {"app": draw(st.sampled_from("ab"))}}
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = ["a"] if operator in ("In", "NotIn") else []
    key = draw(st.sampled_from(["app", "rev"]))
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


@st.composite
def terms(draw: st.DrawFn) -> Raw:
    """A term of pod affinity or anti-affinity."""
    term: Raw = {"topologyKey": draw(st.sampled_from(KEYS))}
    selector = draw(selectors())
    if selector is not None:
        term["labelSelector"] = selector
    namespaces = draw(st.integers(0, 5))
    if namespaces == 0:
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
    elif namespaces == 1:
        team = {"matchLabels": {"team": draw(st.sampled_from("xy"))}}
        term["namespaceSelector"] = draw(st.sampled_from([{}, team]))
    if draw(st.integers(0, 4)) == 0:
        term[draw(st.sampled_from(["matchLabelKeys", "mismatchLabelKeys"]))] = ["rev"]
    return term


@st.composite
def spreads(draw: st.DrawFn) -> Raw:
    """A topology spread constraint."""
    rule: Raw = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from(KEYS)),
        "whenUnsatisfiable": draw(
            st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
        ),
    }
    selector = draw(selectors())
    if selector is not None:
        rule["labelSelector"] = selector
        if draw(st.integers(0, 3)) == 0:
            rule["matchLabelKeys"] = ["rev"]
    if draw(st.integers(0, 3)) == 0:
        rule["minDomains"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        rule["nodeAffinityPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
    if draw(st.integers(0, 3)) == 0:
        rule["nodeTaintsPolicy"] = draw(st.sampled_from(["Honor", "Ignore"]))
    return rule


@st.composite
def rules(draw: st.DrawFn) -> Raw:
    """Rules of a pod, most of them few."""
    spec: Raw = {}
    affinity: Raw = {}
    for side in ("podAffinity", "podAntiAffinity"):
        found = draw(st.lists(terms(), max_size=2)) if draw(st.integers(0, 2)) == 0 else []
        if found:
            affinity[side] = {"requiredDuringSchedulingIgnoredDuringExecution": found}
        if draw(st.integers(0, 4)) == 0:
            weighted = {"weight": draw(st.integers(1, 100)), "podAffinityTerm": draw(terms())}
            affinity.setdefault(side, {})["preferredDuringSchedulingIgnoredDuringExecution"] = [
                weighted
            ]
    if affinity:
        spec["affinity"] = affinity
    if draw(st.integers(0, 2)) == 0:
        spec["topologySpreadConstraints"] = draw(st.lists(spreads(), min_size=1, max_size=2))
    if draw(st.integers(0, 4)) == 0:
        spec["nodeSelector"] = {"zone": "z1"}
    if draw(st.integers(0, 4)) == 0:
        spec["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return spec


@st.composite
def pods(draw: st.DrawFn, index: int, places: list[str]) -> list[Any]:
    """A pod, on a node or waiting."""
    place = draw(st.sampled_from(places))
    options: Raw = {
        "labels": draw(
            st.fixed_dictionaries(
                {}, optional={"app": st.sampled_from("ab"), "rev": st.sampled_from("ab")}
            )
        ),
        "spec": draw(rules()),
    }
    if place and draw(st.integers(0, 5)) == 0:
        options["deleting"] = True
    namespace = draw(st.sampled_from(["ns", "ns", "other"]))
    phase = "Running" if place else "Pending"
    return [namespace, f"p{index}", place, phase, "100m", "1Mi", "g", options]


@st.composite
def clusters(draw: st.DrawFn) -> Raw:
    """Nodes in zones, some without labels, and pods with rules."""
    nodes: list[Any] = []
    for index in range(draw(st.integers(1, 5))):
        labels = {"host": f"h{index}"} if draw(st.integers(0, 7)) else {}
        if draw(st.integers(0, 7)):
            labels["zone"] = draw(st.sampled_from(["z1", "z2", "z3"]))
        if draw(st.booleans()):
            labels["rack"] = draw(st.sampled_from("rs"))
        taints = [{"key": "t", "effect": "NoSchedule"}] if draw(st.integers(0, 5)) == 0 else []
        nodes.append([f"n{index}", 8, "8Gi", {"labels": labels, "taints": taints}])
    places = ["", *(row[0] for row in nodes), "gone"]
    count = draw(st.integers(1, 7))
    namespaces = {"ns": {"team": draw(st.sampled_from("xy"))}}
    if draw(st.booleans()):
        namespaces["other"] = {"team": draw(st.sampled_from("xy"))}
    return {
        "nodes": nodes,
        "namespaces": namespaces,
        "podgroups": [[each, "g", "default", 1, "Inqueue"] for each in NAMESPACES],
        "pods": [draw(pods(index, places)) for index in range(count)],
    }


def _answers(session: Session, task: TaskInfo) -> dict[str, str]:
    """Why the filters by domain refuse nodes."""
    ranking = session.ranking(task, "default")
    found = dict.fromkeys(session.view.node_names, "")
    for filtering in ranking._domain_filters:
        verdict = filtering.judge(session.view.rows)
        codes = verdict.codes if verdict is not None else np.zeros(len(found), dtype=np.int64)
        assert (np.isneginf(filtering.column()) == (codes > 0)).all()
        for name, code in zip(found, codes.tolist(), strict=True):
            if code and not found[name]:
                assert verdict is not None
                found[name] = verdict.texts[code - 1]
    return found


def _compare(session: Session, scenario: Scenario, cluster: Raw, manifests: list[Raw]) -> None:
    nodes = {row[0]: row[3] for row in cluster["nodes"]}
    for manifest in manifests:
        key = f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
        if not manifest["spec"].get("nodeName"):
            wanted = refusals(manifest, nodes, manifests, cluster["namespaces"])
            assert _answers(session, scenario.state.tasks[key]) == wanted


def scenario_of(cluster: Raw, config: str = FILTERS) -> Scenario:
    """The scenario of a cluster, with its namespaces."""
    scenario = Scenario(cluster, config)
    for name, labels in cluster["namespaces"].items():
        scenario.state.set_namespace(
            msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
        )
    return scenario


@EXAMPLES
@given(clusters())
def test_nodes_are_refused_as_the_rules_say(cluster: Raw) -> None:
    scenario = scenario_of(cluster)
    session = open_session(scenario)
    _compare(session, scenario, cluster, list(scenario.pods.values()))


@EXAMPLES
@given(clusters(), st.randoms(use_true_random=False))
def test_tentative_decisions_count_like_pods_on_nodes_and_are_taken_back(
    cluster: Raw, dice: Any
) -> None:
    """Any order of placing, evicting and rolling back: filters that lived equal the rules for what is decided by then."""
    scenario = scenario_of(cluster)
    session = open_session(scenario)
    before = dump(scenario.state)
    statement = session.statement()
    moments = [deepcopy(scenario.pods)]
    for _ in range(6):
        manifests = deepcopy(moments[-1])
        key = dice.choice(list(manifests))
        task, manifest = scenario.state.tasks[key], manifests[key]
        if len(moments) > 1 and dice.random() < 0.3:
            place = dice.randrange(len(moments))
            statement.roll_back(place)
            del moments[place + 1 :]
        elif task.status is SchedulingStatus.PENDING:
            record = dice.choice(scenario.state.nodes.order)
            statement.allocate(task, record)
            manifest["spec"]["nodeName"] = record.name
            moments.append(manifests)
        elif task.status is SchedulingStatus.RUNNING and session.view.row_of(task.node) >= 0:
            statement.evict(task)
            manifest["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
            moments.append(manifests)
        _compare(session, scenario, cluster, list(moments[-1].values()))
    statement.discard()
    _compare(session, scenario, cluster, list(moments[0].values()))
    assert dump(scenario.state) == before


@EXAMPLES
@given(clusters(), st.randoms(use_true_random=False))
def test_later_terminating_pods_are_gone_and_promises_kept(cluster: Raw, dice: Any) -> None:
    scenario = scenario_of(cluster)
    session = open_session(scenario)
    statement = session.statement()
    nodes = {row[0]: row[3] for row in cluster["nodes"]}
    manifests = deepcopy(scenario.pods)
    for key, task in scenario.state.tasks.items():
        if task.status is SchedulingStatus.PENDING and dice.random() < 0.5:
            record = dice.choice(scenario.state.nodes.order)
            statement.pipeline(task, record)
            manifests[key]["spec"]["nodeName"] = record.name
    staying = [each for each in manifests.values() if "deletionTimestamp" not in each["metadata"]]
    now = list(scenario.pods.values())
    both = list(manifests.values())
    for key, task in scenario.state.tasks.items():
        if task.status is not SchedulingStatus.PENDING:
            continue
        ranking = session.ranking(task, "default")
        later = dict.fromkeys(nodes, True)
        for filtering in ranking._domain_filters:
            verdict = filtering.judge(session.view.rows.later())
            if verdict is not None:
                for name, code in zip(nodes, verdict.codes.tolist(), strict=True):
                    later[name] &= code == 0
        namespaces = cluster["namespaces"]
        pod = manifests[key]
        gone = refusals(pod, nodes, staying, namespaces)
        assert later == {name: not reason for name, reason in gone.items()}
        kept, broken = refusals(pod, nodes, both, namespaces), refusals(pod, nodes, now, namespaces)
        wanted = {name: not kept[name] and not broken[name] for name in nodes}
        assert {name: not reason for name, reason in _answers(session, task).items()} == wanted


@EXAMPLES
@given(clusters(), clusters(), st.randoms(use_true_random=False))
def test_counts_that_lived_equal_a_recount(first: Raw, second: Raw, dice: Any) -> None:
    """From one cluster to another, event by event and with settling in between: nothing of the past is left.

    Events also come while the labels of all pods are looked at for the first time.
    """
    lived, again = scenario_of(first), scenario_of(second)
    donor = scenario_of(second)
    state = lived.state
    preparing = state.preparing()
    for _ in range(dice.randint(0, 6)):
        next(preparing, None)
    if dice.random() < 0.5:
        state.settle()
    events: list[Any] = [
        *(lambda name=name: state.remove_node(name) for name in list(state.nodes.records)),
        *(lambda key=key: state.remove_pod(*key.split("/")) for key in list(state.tasks)),
    ]
    dice.shuffle(events)
    arrivals: list[Any] = [
        *(lambda row=row: lived.add_pod(row) for row in second["pods"]),
        *(lambda record=record: state.set_node(record.node) for record in donor.state.nodes.order),
    ]
    dice.shuffle(arrivals)
    for event in [*events, *arrivals]:
        event()
        if dice.random() < 0.3:
            next(preparing, None)
        if dice.random() < 0.3:
            state.settle()
    for name in NAMESPACES:
        state.remove_namespace(name)
    for name, labels in second["namespaces"].items():
        state.set_namespace(
            msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
        )
    assert dump(state)["peers"] == dump(again.state)["peers"]


def test_a_node_that_comes_back_with_its_pods_is_counted_while_an_earlier_session_is_in_memory() -> (
    None
):
    apart = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    options = {"labels": {"app": "a"}, "affinity": rule}
    nodes = [[name, 8, "8Gi", {"labels": {"zone": name}}] for name in ("n1", "n2")]
    cluster: Raw = {
        "nodes": nodes,
        "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
        "pods": [
            ["ns", "r", "n2", "Running", "1", "1Gi", "", options],
            ["ns", "g-0", "", "Pending", "1", "1Gi", "g", options],
        ],
    }
    scenario = Scenario(cluster, FILTERS)
    scenario.state.remove_node("n2")
    session = open_session(scenario)
    ranking = session.ranking(scenario.state.tasks["ns/g-0"], "default")
    scenario.state.set_node(node(nodes[1]))
    assert dump(scenario.state) == dump(Scenario(cluster, FILTERS).state)
    assert ranking is not None


def test_pods_may_change_and_go_while_labels_are_looked_at_for_the_first_time() -> None:
    apart = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    pods = [
        ["ns", name, "n1", "Running", "1", "1Gi", "", {"labels": {"app": "a"}, "affinity": rule}]
        for name in ("first", "moves", "goes")
    ]
    moved = [*pods[1][:2], "n2", *pods[1][3:]]
    nodes = [[name, 8, "8Gi", {"labels": {"zone": name}}] for name in ("n1", "n2")]
    scenario = Scenario({"nodes": nodes, "pods": pods}, FILTERS)
    state = scenario.state
    preparing = state.preparing()
    next(preparing)
    scenario.add_pod(moved)
    state.remove_pod("ns", "goes")
    assert len(list(preparing)) == 2
    assert state.peers._of.keys() == {"ns/first", "ns/moves"}
    assert dump(state) == dump(Scenario({"nodes": nodes, "pods": [pods[0], moved]}, FILTERS).state)
    assert list(state.preparing()) == [], "the labels of all pods are known"
