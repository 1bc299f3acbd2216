"""NodeRankings stay what a new ranking would say, however many placements lie between."""

import random
from typing import Any

import numpy as np
import pytest

from pumice.scheduler.model.axis import Floats
from pumice.scheduler.model.free_room import FreeColumns
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import FilterResult, PodClass
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session.node_ranking import NodeRanking
from pumice.scheduler.session.node_values import NOWHERE, FixedPart, NodeValues
from pumice.scheduler.session.session import Session
from tests.unit.scheduler.answers import open_session
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, node

SPREADING = config_text([["gang"], ["predicates", "nodeorder"]])
PACKING = config_text([["gang"], ["predicates", "binpack", {"nodeorder": None, "args": {}}]])
LIMITED = config_text([["gang"], ["predicates", "nodeorder", "nodegroup"]])


def _scenario(config: str, **options: Any) -> Scenario:
    labels = {"volcano.sh/nodegroup-name": "g"}
    limits = {"volcano.sh/nodegroup-resource-limits": '{"g": {"cpu": "9"}}'}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}
    return Scenario(
        {
            "nodes": [
                [f"n{number}", 4 + number % 3, "16Gi", {"labels": labels}] for number in range(6)
            ],
            "queues": [
                ["default", {"annotations": limits, "affinity": {"nodeGroupAffinity": required}}]
            ],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [
                *(["ns", f"a{i}", "", "Pending", 1, "1Gi", "g", options] for i in range(30)),
                *(["ns", f"b{i}", "", "Pending", "500m", "3Gi", "g"] for i in range(30)),
            ],
        },
        config,
    )


def _fresh(session: Session, ranking: NodeRanking) -> NodeRanking:
    allowed = np.ones(len(session.view.rows), dtype=np.bool_)
    pods = PodClass(ranking.pods.shape, ranking.pods.queue, allowed)
    rows, extensions, touched = session.view.rows, session.extensions, session.touched
    room = FreeColumns(rows, touched)
    fixed = FixedPart(pods, rows, extensions)
    values = NodeValues(pods, fixed, rows, extensions, touched, room)
    return NodeRanking(pods, values, extensions, touched, session.view.node_names, room)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("config", "options"),
    [(SPREADING, {}), (PACKING, {}), (LIMITED, {}), (SPREADING, {"ports": [80]})],
    ids=["spreading", "packing", "limited", "ports"],
)
def test_rows_follow_placements_of_all_classes_and_their_undoing(
    config: str, options: dict[str, Any], seed: int
) -> None:
    dice = random.Random(seed)
    scenario = _scenario(config, **options)
    session = open_session(scenario)
    tasks = scenario.state.tasks
    waiting = {kind: [tasks[f"ns/{kind}{i}"] for i in range(30)] for kind in "ab"}
    statements = []
    for _ in range(40):
        statement = session.statement()
        kind = dice.choice("ab")
        for task in waiting[kind][: dice.randrange(1, 6)]:
            ranking = session.ranking(task, "default")
            row = ranking.best(task)
            assert row == _fresh(session, ranking).best(task)
            if row == NOWHERE:
                break
            statement.allocate(task, scenario.state.nodes.order[row])
        statements.append(statement)
        if dice.random() < 0.6:
            dice.choice(statements).discard()
        waiting["ab"[dice.randrange(2)]].sort(key=lambda task: task.node != "")
        for line in waiting.values():
            line.sort(key=lambda task: task.node != "")
            if line[0].node:
                return


def test_the_first_of_equal_nodes_by_name_is_taken() -> None:
    scenario = Scenario(
        {
            "nodes": [["b", 4, "8Gi"], ["a", 4, "8Gi"], ["c", 4, "8Gi"]],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [["ns", "p", "", "Pending", 1, "1Gi", "g"]],
        },
        config_text([["nodeorder"]]),
    )
    assert scenario.cycle().binds == {"ns/p": "a"}


def test_reasons_are_those_of_the_moment() -> None:
    """Full by the gang's own pods: the reason for the third pod counts the places of the first two."""
    scenario = Scenario(
        {
            "nodes": [["n1", 1, "8Gi"], ["n2", 1, "512Mi"]],
            "podgroups": [["ns", "g", "default", 2, "Inqueue"]],
            "pods": [["ns", f"p{i}", "", "Pending", 1, "1Gi", "g"] for i in range(2)],
        }
    )
    session = open_session(scenario)
    task = scenario.state.tasks["ns/p0"]
    ranking = session.ranking(task, "default")
    assert ranking.why_not().refusals.counts == {"Insufficient memory": 1}
    session.statement().allocate(task, scenario.state.nodes.order[0])
    assert ranking.why_not().refusals.counts == {"Insufficient cpu": 1, "Insufficient memory": 1}


def test_a_session_without_nodes_has_no_best_one() -> None:
    scenario = Scenario({"pods": [["ns", "p", "", "Pending", 1, "1Gi", "g"]]})
    session = open_session(scenario)
    task = scenario.state.tasks["ns/p"]
    ranking = session.ranking(task, "default")
    assert (ranking.best(task), ranking.best_later(task)) == (NOWHERE, NOWHERE)
    assert np.array_equal(ranking.pods.allowed, [])


def _queues(**options: Any) -> Scenario:
    return Scenario(
        {
            "nodes": [[f"n{number}", 8, "16Gi"] for number in range(3)],
            "queues": [["a", options], ["b"], ["c"]],
            "podgroups": [["ns", f"g{queue}", queue, 2, "Inqueue"] for queue in "abc"],
            "pods": [
                ["ns", f"{queue}{i}", "", "Pending", 1 + i, "1Gi", f"g{queue}"]
                for queue in "abc"
                for i in range(2)
            ],
        }
    )


def test_alike_queues_share_boards_and_those_with_wishes_do_not() -> None:
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": ["g"]}
    scenario = _queues(affinity={"nodeGroupAffinity": terms})
    session = open_session(scenario)
    tasks = scenario.state.tasks
    rankings = [session.ranking(tasks[f"ns/{queue}0"], queue) for queue in "abc"]
    assert rankings[1] is rankings[2]
    assert rankings[0] is not rankings[1]


def test_a_filter_that_does_not_say_which_queues_are_alike_is_asked_for_each() -> None:
    scenario = _queues()
    session = open_session(scenario)
    asked: list[str] = []
    registrar = Registrar(session.extensions, "own", 0, {"enablePredicate": True})
    registrar.node_filter(lambda pods, _: asked.append(pods.queue))
    for queue in "abc":
        session.ranking(scenario.state.tasks[f"ns/{queue}0"], queue)
    assert asked == ["a", "b", "c"]


def test_a_filter_that_does_not_say_that_it_reads_rules_alone_is_asked_for_each_shape() -> None:
    scenario = _queues()
    session = open_session(scenario)
    asked: list[int] = []
    registrar = Registrar(session.extensions, "own", 0, {"enablePredicate": True})
    registrar.alike_queues()
    registrar.node_filter(lambda pods, _: asked.append(int(pods.shape.vector[0])))
    for name in ("a0", "a1", "b0", "b1"):
        session.ranking(scenario.state.tasks[f"ns/{name}"], name[0])
    assert asked == [1000, 2000]


def test_rankings_that_were_dropped_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _queues().cycle().binds
    monkeypatch.setattr("pumice.scheduler.session.node_rankings._KEPT", 1)
    scenario = _queues()
    assert scenario.cycle().binds == expected
    session = open_session(_queues())
    for task in list(session.state.tasks.values()):
        session.ranking(task, "b")
    assert len(session._rankings) == 1


def test_scorers_are_asked_once_a_node_has_room() -> None:
    """On a full cluster thousands of pods of other sizes would ask them for nothing."""
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"], ["n2", 4, "8Gi"]],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [
                ["ns", "r", "n1", "Running", 3, "1Gi", ""],
                ["ns", "s", "n2", "Running", 3, "1Gi", ""],
                *(["ns", f"p{cpu}", "", "Pending", cpu, "1Gi", "g"] for cpu in (1, 2, 3)),
            ],
        },
        SPREADING,
    )
    session = open_session(scenario)
    asked: list[int] = []

    def score(pods: PodClass, rows: Any) -> Any:
        asked.append(pods.shape.amounts[0])
        return np.where(rows.used[:, 0] > 3500, 500.0, 0.0)

    Registrar(session.extensions, "own", 0, {"enableNodeOrder": True}).node_score(
        score, scope="row"
    )
    tasks = scenario.state.tasks
    two = session.ranking(tasks["ns/p2"], "default")
    assert two.best(tasks["ns/p2"]) == NOWHERE
    assert asked == []
    one = session.ranking(tasks["ns/p1"], "default")
    assert one.best(tasks["ns/p1"]) != NOWHERE
    assert len(asked) == 1
    session.state.nodes.discard(tasks["ns/s"])
    assert two.best(tasks["ns/p2"]) == _fresh(session, two).best(tasks["ns/p2"]) == 1


def test_the_best_node_is_the_same_if_scores_were_asked_for_before() -> None:
    scenario = Scenario(
        {
            "nodes": [[f"n{number}", 8, "16Gi"] for number in range(3)],
            "podgroups": [["ns", "g", "default", 1, "Inqueue"]],
            "pods": [["ns", "p", "", "Pending", 1, "1Gi", "g"]],
        }
    )
    session = open_session(scenario)
    Registrar(session.extensions, "own", 0, {"enableNodeOrder": True}).node_score(
        lambda _, rows: np.arange(3.0)[rows.index], scope="row"
    )
    task = scenario.state.tasks["ns/p"]
    ranking = session.ranking(task, "default")
    ranking.scores()
    assert ranking.best(task) == _fresh(session, ranking).best(task) == 2


def test_gangs_that_only_rules_about_other_pods_set_apart_share_scores_of_nodes() -> None:
    scored = []

    def score(pods: PodClass, rows: Rows) -> Floats:
        scored.append(len(rows))
        return np.arange(len(rows), dtype=np.float64)

    def apart(gang: str) -> dict[str, Any]:
        term = {
            "labelSelector": {"matchLabels": {"app": gang}},
            "topologyKey": "kubernetes.io/hostname",
        }
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"labels": {"app": gang}, "affinity": {"podAntiAffinity": rule}}

    scenario = Scenario(
        {
            "nodes": [
                [f"n{number}", 8, "16Gi", {"labels": {"kubernetes.io/hostname": f"n{number}"}}]
                for number in range(3)
            ],
            "podgroups": [["ns", gang, "default", 1, "Inqueue"] for gang in "ab"],
            "pods": [["ns", gang, "", "Pending", 1, "1Gi", gang, apart(gang)] for gang in "ab"],
        }
    )
    session = open_session(scenario)
    registrar = Registrar(session.extensions, "own", 0, {"enableNodeOrder": True})
    registrar.node_score(score, scope="row")
    tasks = [scenario.state.tasks[f"ns/{gang}"] for gang in "ab"]
    rankings = [session.ranking(task, "default") for task in tasks]
    assert [each.best(task) for each, task in zip(rankings, tasks, strict=True)] == [2, 2]
    assert (rankings[0] is not rankings[1], scored) == (True, [3])


_SWITCHES = {"enablePredicate": True, "enableNodeOrder": True}
_WISHES = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 5, "preference": {"matchExpressions": [{"key": "big", "operator": "Exists"}]}}
    ]
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("config", [SPREADING, PACKING], ids=["spreading", "packing"])
def test_what_nodes_are_worth_lasts_whatever_happens_between_sessions(
    config: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods are placed, end or come by another scheduler, nodes change, or what a plugin says of them, the log of changes is begun again, and places are only promised."""
    monkeypatch.setattr("pumice.scheduler.model.nodes._LONGEST_CHANGES", 40)
    dice = random.Random(seed)
    scenario = _scenario(config)
    rows = [(f"n{number}", 4 + number % 3) for number in range(6)]
    for number in range(12):
        wish = {"affinity": {"nodeAffinity": _WISHES}}
        scenario.add_pod(["ns", f"c{number}", "", "Pending", 1, "1Gi", "g", wish])
    closed, better, lasted = np.zeros(6, dtype=np.int64), np.zeros(6), 0
    own = Registrar(open_session(scenario).extensions, "own", 0, _SWITCHES)
    own.alike_queues()
    own.node_filter(lambda _, rows: FilterResult(closed[rows.index], ("closed",)))
    own.node_score(lambda _, rows: better[rows.index])
    for moment in range(40):
        event = dice.randrange(9)
        running = [key for key, task in scenario.state.tasks.items() if task.node]
        if event < 1:
            scenario.start(scenario.cycle(NOW + moment))
        elif event < 4:
            for key in dice.sample(running, min(5, len(running))):
                scenario.state.remove_pod(*key.split("/"))
        elif event == 4:
            scenario.add_pod(["ns", f"o{moment}", f"n{dice.randrange(6)}", "Running", 1, "1Gi", ""])
        elif event == 5 and dice.random() < 0.5:
            name, cpu = dice.choice(rows)
            says = dice.choice([{"labels": {"big": "1"}}, {"unschedulable": True}, {}])
            scenario.state.set_node(node([name, cpu + dice.randrange(2), "16Gi", says]))
        elif event == 6:
            closed[dice.randrange(6)] ^= 1
        elif event == 7:
            better[dice.randrange(6)] = dice.randrange(3)
        session = open_session(scenario)
        waiting = [task for task in session.state.tasks.values() if not task.node]
        for task in dice.sample(waiting, min(4, len(waiting))):
            kept = set(map(id, session.extensions.node_values.values()))
            ranking = session.ranking(task, "default")
            lasted += id(ranking._values) in kept
            rows_of = {id(each.rows) for each in session.extensions.node_values.values()}
            assert rows_of == {id(session.view.rows)}, "nothing of nodes that are gone is kept"
            row = ranking.best(task)
            assert row == _fresh(session, ranking).best(task)
            found, expected = ranking._values.now(), _fresh(session, ranking)._values.now()
            assert found is None or expected is None or found.tolist() == expected.tolist()
            if row != NOWHERE:
                place = dice.choice([session.statement().allocate, session.statement().pipeline])
                place(task, session.state.nodes.order[row])
        session.close()
    assert lasted > 20
