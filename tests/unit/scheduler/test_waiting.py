"""Gangs that wait: what parks them, what has them tried again, and that the others would have been refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from pumice.scheduler import CycleResult
from pumice.scheduler.waiting.parked import Cause
from tests.kit.examples import examples
from tests.unit.scheduler.columns import check_waiting
from tests.unit.scheduler.scenarios import (
    NOW,
    Raw,
    Scenario,
    case_config,
    case_id,
    config_text,
    load_cases,
)
from tests.unit.scheduler.waiting_histories import History, happen, histories

CASES = load_cases("waiting.yaml")


class Story:
    """A cluster over time."""

    def __init__(self, case: Raw) -> None:
        config = case_config(case) or config_text([["priority", "gang"], ["predicates"]])
        self.scenario = Scenario(case["cluster"], config)
        self.now = NOW

    def rest(self) -> CycleResult:
        """Cycles until there is nothing left to do; the first of them."""
        first = result = self.scenario.cycle(self.now)
        for _ in range(10):
            if self.scenario.state.is_settled(self.scenario.config, self.now):
                break
            result = self.scenario.cycle(self.now)
            first.binds.update(result.binds)
            first.evicted.extend(result.evicted)
        return first

    def happen(self, events: Raw | list[Raw]) -> CycleResult:
        """Let events happen, and the cluster come to rest."""
        for each in events if isinstance(events, list) else [events]:
            for kind, row in each.items():
                if kind == "at":
                    self.now = NOW + row
                else:
                    happen(self.scenario, kind, row)
        return self.rest()


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_an_event_wakes_what_waits_for_it(case: Raw) -> None:
    story = Story(case)
    story.happen(case.get("first", {}))
    parked_gangs, statuses = story.scenario.state.parked, story.scenario.state.gangs.statuses
    parked = parked_gangs.gangs.get("ns/g")
    names = case["causes"].split(", ")
    causes = Cause.RULES
    for name in names:
        causes |= Cause[name]
    assert (parked.causes if parked is not None else Cause.ANY) == causes
    if "ignores" in case:
        story.happen(case["ignores"])
        assert parked_gangs.gangs["ns/g"] is parked, "it was not tried"
    result = story.happen(case["wakes"])
    then = case["then"]
    assert sorted(result.binds) == then.get("binds", [])
    assert sorted(set(result.evicted)) == then.get("evicts", [])
    entered = [key for key in then.get("enters", []) if statuses[key].phase == "Inqueue"]
    assert entered == then.get("enters", [])
    if "reason" in then:
        assert then["reason"] in story.scenario.state.gangs.pending["ns/g"].message


def test_each_cause_has_a_row() -> None:
    named = {name for case in CASES for name in case["causes"].split(", ")}
    without = {"SIZES", "RULES"}  # no gang waits for sizes alone, and every gang waits for rules
    without |= {"DOMAIN"}  # see test_network_state
    assert named == {*(cause.name for cause in Cause), "ITSELF", "ANY"} - without


# -- decisions and reasons are those of a scheduler that tries every gang ------------------------


def _decided(result: CycleResult) -> Any:
    phases = {key: status.phase for key, status in result.all_pod_groups.items()}
    return result.binds, result.pipelined, result.evicted, result.nominations, phases


def _published(scenario: Scenario) -> Any:
    state = scenario.state
    return {name: np.asarray(state.figure(name)).tolist() for name in state.published}


@examples(100)
@given(histories())
def test_a_gang_that_is_not_tried_would_have_been_refused(history: History) -> None:
    """Whatever happens, a scheduler that tries every gang in each cycle decides the same, and in the end gives the same reasons."""
    thrifty, eager = (Scenario(history.cluster, history.config) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "pumice.scheduler.waiting.parked.RENEWALS_PER_CYCLE", 1
        )  # so that most gangs are not tried
        for number, event in enumerate([None, None, *history.events, *[None] * 8]):
            found = []
            for scenario in (thrifty, eager):
                if event is not None:
                    happen(scenario, *event)
                if scenario is eager:
                    scenario.wake_all()
                    scenario.state.lasting = None  # its plugins begin anew
                scenario.state.settled = None
                found.append(scenario.cycle(NOW + 60 * number))
                scenario.start(found[-1])
            assert _decided(found[0]) == _decided(found[1])
            assert _published(thrifty) == _published(eager)
            check_waiting(thrifty.state)
    assert not thrifty.state.parked.stale
    assert dict(found[0].pending) == dict(found[1].pending)
