"""A queue that is for some namespaces takes gangs as soon as they may use it, and only these."""

from typing import Any

import msgspec
import pytest

from pumice.api.keys import NAMESPACES
from pumice.api.nodes import Namespace
from tests.unit.scheduler.scenarios import Scenario, queue

SELECTS = '{"matchLabels": {"team": "a"}}'


def _namespace(**labels: str) -> Namespace:
    return msgspec.convert({"metadata": {"name": "ns", "labels": labels}}, Namespace)


def _waiting(users: str, phase: str) -> Scenario:
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"]],
            "queues": [["theirs", {"annotations": {NAMESPACES: users}}]],
            "podgroups": [["ns", "a", "theirs", 1, phase]],
            "pods": [["ns", "a-0", "", "Pending", 1, "1Gi", "a"]],
        }
    )
    scenario.state.set_namespace(_namespace())
    for _ in range(2):
        assert scenario.cycle().binds == {}
    assert scenario.phase("ns/a") == phase
    return scenario


def _labelled(scenario: Scenario) -> None:
    scenario.state.set_namespace(_namespace(team="a"))


def _named(scenario: Scenario) -> None:
    scenario.state.set_queue(queue(["theirs", {"annotations": {NAMESPACES: "other, ns"}}]))


def _opened(scenario: Scenario) -> None:
    scenario.state.set_queue(queue(["theirs"]))


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
@pytest.mark.parametrize(
    ("users", "change"), [(SELECTS, _labelled), ("other", _named), ("{", _opened)]
)
def test_a_gang_is_bound_once_its_namespace_may_use_the_queue(
    users: str, change: Any, phase: str
) -> None:
    scenario = _waiting(users, phase)
    change(scenario)
    assert scenario.cycle().binds == {"ns/a-0": "n1"}


def test_a_namespace_that_is_not_known_yet_has_no_label() -> None:
    """Otherwise a selector that leaves out a label would take gangs of every namespace for a moment."""
    selects = '{"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}'
    scenario = Scenario(
        {
            "queues": [["theirs", {"annotations": {NAMESPACES: selects}}]],
            "podgroups": [["ns", "a", "theirs", 1, "Pending"]],
        }
    )
    scenario.cycle()
    assert scenario.phase("ns/a") == "Pending"
    scenario.state.set_namespace(_namespace())
    scenario.cycle()
    assert scenario.phase("ns/a") == "Inqueue"


def test_labels_of_a_namespace_make_no_gang_be_tried_again_where_no_queue_selects_by_them() -> None:
    scenario = _waiting("other", "Inqueue")
    parked = scenario.state.parked
    parked.begin({}, (), ())
    _labelled(scenario)
    parked.begin({}, (), ())
    assert not parked.events
