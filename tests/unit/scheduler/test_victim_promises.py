"""What plugins promise about their checks of victims, and what is concluded from it, is true of what these checks answer."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given

from pumice.scheduler import load_config
from pumice.scheduler.eviction.search import Search
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.survey import Surveys
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.options import Config
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario
from tests.unit.scheduler.waiting_histories import History, Raw, happen, histories

_SPARED, _WRONG, _FEWER, _ENOUGH = "spared", "wrongly", "fewer", "got enough nevertheless"


def _run(history: History, config: Config | str) -> Counter[str]:
    """Let everything happen, and look where plugins say that this is not needed: how often they say so, and how often they are wrong."""
    seen: Counter[str] = Counter()
    are_all_spared, gets_fewer = Surveys._are_all_spared, Search._gets_fewer
    serve = Search.serve
    fewer: list[bool] = []

    def look(surveys: Surveys, preemptor: Preemptor, rules: EvictionRules) -> bool:
        told = are_all_spared(surveys, preemptor, rules)
        finds_any = surveys.of(preemptor, rules, tentative=True).finds_any
        seen.update([_SPARED] * told + [_WRONG] * (told and finds_any))
        return told

    def search(self: Search, *asked: Any) -> bool:
        fewer.append(gets_fewer(self, *asked))
        return False

    def served(self: Search, *asked: Any) -> Any:
        fewer.clear()
        failure = serve(self, *asked)
        seen.update([_FEWER] * any(fewer) + [_ENOUGH] * (any(fewer) and failure is None))
        return failure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Surveys, "_are_all_spared", look)
        patch.setattr(Search, "_gets_fewer", search)
        patch.setattr(Search, "serve", served)
        scenario = Scenario(history.cluster, config)
        for number, event in enumerate([None, *history.events, None]):
            if event is not None:
                happen(scenario, *event)
            result = scenario.cycle(NOW + 60 * number)
            assert not result.errors
            scenario.start(result)
    return seen


def _full_cluster(draw: Random) -> Raw:
    """Nodes that are full of pods of queues, one of which may take back places for its gangs."""
    pods: list[Any] = []
    nodes = range(draw.randint(2, 4))
    for number in nodes:
        left = 8
        while left > 0:
            cores, gang = min(left, draw.choice([1, 1, 2, 3])), draw.choice("abbbcc")
            size, options = draw.choice([0, 1, 3]), {"preemptable": draw.random() < 0.8}
            row = [f"{gang}-{len(pods)}", f"n{number}", "Running", cores, f"{size}Gi", gang]
            pods.append(["ns", *row, options])
            left -= cores
    classes = {"low": 1, "high": 2}
    prio = [{"prio": draw.choice([*classes])} for _ in range(5)]
    gangs: list[Any] = [["ns", queue, queue, 1, "Running", prio.pop()] for queue in "abc"]
    for name in ("g0", "g1"):
        kinds = [(draw.choice([2, 3, 5, 8]), draw.choice([1, 1, 4])) for _ in range(2)]
        wanted = [draw.choice(kinds) for _ in range(draw.randint(1, 4))]
        gangs.append(["ns", name, "a", len(wanted), "Inqueue", prio.pop()])
        pods += [
            ["ns", f"{name}-{number}", "", "Pending", cores, f"{size}Gi", name]
            for number, (cores, size) in enumerate(wanted)
        ]
    weights = {"a": draw.randint(1, 4), "b": 1, "c": 1}
    return {
        "classes": classes,
        "nodes": [[f"n{number}", 8, draw.choice(["8Gi", "16Gi"])] for number in nodes],
        "queues": [[queue, {"weight": weight}] for queue, weight in weights.items()],
        "podgroups": gangs,
        "pods": pods,
    }


def test_no_gang_for_which_too_little_may_go_gets_enough() -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        seen += _run(History(_full_cluster(Random(seed)), "", []), load_config())
    assert seen[_WRONG] + seen[_ENOUGH] == 0
    assert seen[_SPARED] > 0
    assert seen[_FEWER] > 0


@pytest.mark.parametrize("prefix", ["", "gang"], ids=["pods", "gangs"])
@examples(20)
@given(history=histories())
def test_where_all_gangs_are_spared_no_pod_may_go(prefix: str, history: History) -> None:
    config = history.config
    for action in ("preempt", "reclaim"):
        config = config.replace(action, prefix + action)
    assert not _run(history, config)[_WRONG]
