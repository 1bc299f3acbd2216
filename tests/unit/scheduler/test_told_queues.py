"""What a queue is told, when the configuration does not enforce what it asks for or when a value counts as another."""

import pytest
import yaml

from pumice.scheduler import builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.unit.scheduler.scenarios import (
    WITHOUT_SHARES,
    Scenario,
    config_text,
    node,
    queue,
    with_plugins,
)

CLUSTER = {"nodes": [["n1", 1, "8Gi"]]}


def test_a_queue_that_asks_for_what_nothing_enforces_is_reported_once() -> None:
    scenario = Scenario(CLUSTER, WITHOUT_SHARES)
    scenario.cycle()
    spec = {"capability": {"cpu": "4"}, "guarantee": {"resource": {"cpu": "1"}}}
    scenario.state.set_queue(queue(["team", spec]))
    (event,) = scenario.cycle().events
    assert (event.kind, event.name, event.type, event.reason) == (
        "Queue",
        "team",
        "Warning",
        "NotEnforced",
    )
    assert event.message == (
        "spec.capability and spec.guarantee: no configured plugin of the scheduler enforces this; use capacity"
    )
    scenario.state.set_node(node(["n9", 1, "8Gi"]))
    assert [each for each in scenario.cycle().events if each.kind == "Queue"] == []
    scenario.state.set_queue(queue(["team", spec | {"reclaimable": False}]))
    assert [each for each in scenario.cycle().events if each.kind == "Queue"] == []
    scenario.state.set_queue(queue(["team", spec | {"deserved": {"cpu": "2"}}]))
    assert len([each for each in scenario.cycle().events if each.kind == "Queue"]) == 1


def test_a_queue_is_told_of_what_nothing_enforces_any_more() -> None:
    """A running scheduler takes up another configuration, and the queue stays as it is."""
    scenario = Scenario({"queues": [["team", {"capability": {"cpu": 4}}]]})

    def told(config: str | None) -> list[tuple[str, str]]:
        scenario.config = load_config(config)
        return [(event.reason, event.name) for event in scenario.cycle().events]

    assert told(None) == []
    assert told(WITHOUT_SHARES) == [("NotEnforced", "team")]
    assert told(WITHOUT_SHARES) == [], "it has been told"
    assert told(None) == []
    assert told(WITHOUT_SHARES) == [("NotEnforced", "team")]


def test_a_queue_is_told_that_its_limits_do_not_hold_for_the_queues_below_it() -> None:
    """Of the configurations only capacity with a tree keeps pods of the team within the limit of the department."""
    cluster = {
        "nodes": [["n1", 8, "16Gi"]],
        "queues": [["department", {"capability": {"cpu": 2}}]],
        "podgroups": [["ns", "g", "team", 1, "Inqueue"]],
        "pod_sets": [{"pg": "g", "count": 4}],
    }
    beside = "spec.capability: no configured plugin of the scheduler enforces this for the queues below; use capacity with enableHierarchy: true"
    in_tree = yaml.safe_load(config_text([["gang", "capacity", "predicates"]]))
    in_tree["tiers"][0]["plugins"][1]["enableHierarchy"] = True
    for config, bound, told in (
        (None, 4, [beside]),
        (config_text([["gang", "capacity", "predicates"]]), 4, [beside]),
        (yaml.safe_dump(in_tree), 2, []),
    ):
        scenario = Scenario(cluster, load_config(config))
        assert [each for each in scenario.cycle().events if each.kind == "Queue"] == []
        scenario.state.set_queue(queue(["team", {"parent": "department"}]))
        result = scenario.cycle()
        assert len(result.binds) == bound
        assert [each.message for each in result.events if each.kind == "Queue"] == told


@pytest.mark.parametrize(
    ("actions", "switches", "lacks"),
    [
        (("allocate", "reclaim"), {}, None),
        (("allocate",), {}, ("spec.deserved", "action reclaim")),
        (
            ("allocate", "reclaim"),
            {"enabledAllocatable": False},
            ("spec.capability", "enabledAllocatable: true"),
        ),
    ],
)
def test_a_plugin_enforces_nothing_where_it_is_not_asked(
    actions: tuple[str, ...], switches: dict[str, bool], lacks: tuple[str, str] | None
) -> None:
    text = yaml.safe_load(config_text([["gang", "capacity", "predicates"]], actions))
    text["tiers"][0]["plugins"][1] |= switches
    spec = {"capability": {"cpu": "4"}, "deserved": {"cpu": "2"}}
    scenario = Scenario(CLUSTER | {"queues": [["team", spec]]}, yaml.safe_dump(text))
    told = [each.message for each in scenario.cycle().events if each.kind == "Queue"]
    said = "{}: no configured plugin of the scheduler enforces this; use capacity with {}"
    assert told == ([said.format(*lacks)] if lacks else [])


def test_a_queue_is_not_told_of_what_a_plugin_enforces() -> None:
    spec = PluginSpec("limits", "A test's plugin.", _Limits, enforces=frozenset({"capability"}))
    config = load_config(config_text([["gang", "limits"]]), with_plugins(builtin_registry(), spec))
    scenario = Scenario(
        {"queues": [["team", {"capability": {"cpu": 4}, "deserved": {"cpu": 2}}]]}, config
    )
    messages = [event.message for event in scenario.cycle().events]
    assert [message.partition(":")[0] for message in messages] == ["spec.deserved"]


@pytest.mark.parametrize(("weight", "counts_as"), [(-5, 0), (2**63, 65535)])
@pytest.mark.parametrize("annotations", [{}, {"volcano.sh/hierarchy": "root/team"}])
def test_a_weight_that_admission_would_have_refused_is_reported_and_counts_as_the_nearest(
    weight: int, counts_as: int, annotations: dict[str, str]
) -> None:
    """With any configuration, and without a warning of NumPy, which would fail the test as a warning."""
    row = ["team", {"weight": weight, "annotations": annotations}]
    for plugin in ("proportion", "capacity", {"drf": ["Hierarchy"]}):
        cluster = CLUSTER | {"queues": [row, ["other"]]}
        scenario = Scenario(cluster, load_config(config_text([["gang", plugin, "predicates"]])))
        told = [each for each in scenario.cycle().events if each.reason == "InvalidWeight"]
        assert [(each.kind, each.name, each.message) for each in told] == [
            (
                "Queue",
                "team",
                f"spec.weight: counts as {counts_as}; must be between 1 and 65535",
            )
        ]
        scenario.state.set_queue(queue(["team", {"weight": weight, "reclaimable": False}]))
        assert [each for each in scenario.cycle().events if each.kind == "Queue"] == []


class _Limits:
    """A plugin that registers nothing."""

    def __init__(self, _arguments: Arguments) -> None:
        pass

    def open(self, _session: SessionView, _register: Registrar) -> None:
        pass
