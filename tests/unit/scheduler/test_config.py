"""The configuration file: Volcano's format, its quirks, and what is said about mistakes."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.scheduler import Config, ConfigError, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.config import DEFAULT
from pumice.scheduler.options import SWITCHES
from pumice.scheduler.registry import PLANNED_PLUGINS, builtin_registry
from tests.unit.scheduler.scenarios import case_id, load_cases

ACTIONS = ", ".join(sorted(builtin_registry().actions))
PLUGINS = ", ".join(sorted(builtin_registry().plugins))

VOLCANO_DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


def _errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    return [str(error) for error in caught.value.errors]


def test_the_default_is_quiet_and_complete() -> None:
    config = load_config()
    assert config.warnings == ()
    actions = ["enqueue", "allocate", "backfill", "preempt", "reclaim"]
    assert [spec.name for spec, _ in config.actions] == actions
    assert [(option.tier, option.spec.name) for option in config.plugins] == [
        (0, "priority"),
        (0, "gang"),
        (0, "conformance"),
        (0, "overcommit"),
        (0, "drf"),
        (0, "proportion"),
        (1, "predicates"),
        (1, "nodeorder"),
        (1, "binpack"),
        (1, "network-topology-aware"),
        (1, "task-topology"),
        (1, "nodegroup"),
    ]


def test_the_default_is_what_its_text_says() -> None:
    """It is built without the models that check files of users."""

    def told(config: Config) -> Any:
        actions = [(spec, _given(arguments)) for spec, arguments in config.actions]
        plugins = [
            (each.spec, each.tier, _given(each.arguments), each.switches) for each in config.plugins
        ]
        return actions, plugins, config.warnings, config.missing

    assert told(load_config(None)) == told(load_config(DEFAULT))


def _given(arguments: Arguments) -> tuple[object, ...]:
    return tuple(arguments.texts("")), arguments.warnings, arguments.problems


def test_volcanos_own_file_is_accepted_with_warnings() -> None:
    config = load_config(VOLCANO_DEFAULT)
    assert [spec.name for spec, _ in config.actions] == ["enqueue", "allocate", "backfill"]
    assert config.warnings == ()
    assert config.missing == ()


def test_switches_have_volcanos_defaults() -> None:
    (option,) = load_config("actions: allocate\ntiers: [{plugins: [{name: gang}]}]").plugins
    off = {name for name, is_on in option.switches.items() if not is_on}
    assert off == {"enableHierarchy", "enabledClusterOrder", "EnabledClusterOrder"}
    assert len(SWITCHES) == 26


def test_a_switch_is_read() -> None:
    text = "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: false}]}]"
    (option,) = load_config(text).plugins
    assert option.switches["enableJobOrder"] is False


def test_blanks_around_actions_do_not_matter() -> None:
    config = load_config('actions: "  enqueue ,allocate  "')
    assert [spec.name for spec, _ in config.actions] == ["enqueue", "allocate"]


@pytest.mark.parametrize("case", load_cases("arguments.yaml", "error cache"), ids=case_id)
def test_action_arguments_come_from_configurations(case: dict[str, Any]) -> None:
    given = {"name": case["action"], "arguments": case["arguments"]}
    text = yaml.safe_dump({"actions": case["action"], "configurations": [given]})
    ((_, arguments),) = load_config(text).actions
    assert arguments.flag("predicateErrorCacheEnable") is case["expect"]


def test_unknown_names_are_errors_with_a_guess() -> None:
    text = "actions: enqueue, alocate\ntiers: [{plugins: [{name: gnag}]}, {plugins: [{}]}]"
    action, plugin, nameless = _errors(text)
    assert action == (
        'actions: unknown action "alocate" (did you mean "allocate"?); there are '
        f"{ACTIONS} [SCHED-UNKNOWN-ACTION]"
    )
    assert plugin == (
        'tiers[0].plugins[0].name: unknown plugin "gnag" (did you mean "gang"?); there are '
        f"{PLUGINS} [SCHED-UNKNOWN-PLUGIN]"
    )
    assert nameless == ("tiers[1].plugins[0].name: must be set (name of a plugin) [SCHED-TYPE]")


def test_unknown_fields_are_warned_about_with_a_guess() -> None:
    text = "actions: allocate\ntier: []\ntiers: [{plugins: [{name: gang, enabledJobOrder: false}]}]"
    assert load_config(text).warnings == (
        'tiers[0].plugins[0].enabledJobOrder: unknown key, ignored (did you mean "enableJobOrder"?)',
        'tier: unknown key, ignored (did you mean "tiers"?)',
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("actions: [", "line 2: did not find expected node content [SCHED-YAML]"),
        ("actions: allocate\nactions: enqueue", "line 2: key 'actions' appears twice [SCHED-YAML]"),
        ("actions: allocate\n---\ntiers: []", "line 3: must be one document, here begins another"),
        ("actions: allocate,,backfill", "actions: must name an action between two commas, found"),
        ("actions: null", "actions: must be a string, found nothing"),
        ("[]", "must be an object, found a list [SCHED-TYPE]"),
        (
            "tiers: []",
            'actions: must be set (actions of a cycle, separated by commas, such as "enqueue, allocate")',
        ),
        ("actions: ' '", 'actions: must name actions, separated by commas, such as "allocate, '),
        ("actions: allocate\ntiers: {}", "tiers: must be a list, found an object [SCHED-TYPE]"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: 'no'}]}]",
            'tiers[0].plugins[0].enableJobOrder: must be true or false, found the string "no" [SCHED-TYPE]',
        ),
        (
            "actions: allocate\nconfigurations: [{name: alocate}]",
            'configurations[0].name: unknown action "alocate" (did you mean',
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, arguments: 3}]}]",
            "tiers[0].plugins[0].arguments: must be an object, found the integer 3 [SCHED-TYPE]",
        ),
    ],
)
def test_what_cannot_be_read(text: str, error: str) -> None:
    assert _errors(text)[0].startswith(error)


def test_a_misspelt_key_is_named_with_the_problem_that_it_causes() -> None:
    missing, unknown = _errors("acions: allocate")
    assert missing.startswith("actions: must be set (actions of a cycle")
    assert unknown == 'acions: unknown key, ignored (did you mean "actions"?) [SCHED-TYPE]'


KEYS = st.sampled_from(
    ["actions", "tiers", "plugins", "name", "arguments", "configurations", "kind", "data", 5, None]
)
WORDS = st.sampled_from(["allocate", "gang", "ConfigMap", "", "\x1b[2J"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None)
@given(VALUES)
def test_no_file_is_too_odd(value: Any) -> None:
    """A file is read, or refused with lines that do nothing to a terminal."""
    errors: list[Any] = []
    try:
        load_config(yaml.safe_dump(value))
    except ConfigError as error:
        errors = error.errors
    assert all(str(each).isprintable() for each in errors)


def test_hierarchical_drf_and_proportion_conflict_in_one_tier() -> None:
    drf, proportion = "{name: drf, enableHierarchy: true}", "{name: proportion}"
    (error,) = _errors(f"actions: allocate\ntiers: [{{plugins: [{drf}, {proportion}]}}]")
    assert error.startswith("tiers[0].plugins: proportion and hierarchical drf conflict")
    load_config(f"actions: allocate\ntiers: [{{plugins: [{drf}]}}, {{plugins: [{proportion}]}}]")


def test_a_plugin_named_twice_counts_once() -> None:
    config = load_config("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: gang}]}]")
    assert len(config.plugins) == 1
    assert config.warnings == ("tiers[0].plugins[1]: gang is named twice, ignored",)


def test_metrics_settings_are_accepted() -> None:
    config = load_config("actions: allocate\nmetrics: {type: prometheus}")
    assert config.warnings == ("metrics: not part of this version, ignored",)


@pytest.mark.parametrize("text", ["gangPreempt", "GangPreempt"])
def test_an_action_is_known_in_any_spelling(text: str) -> None:
    """GP-30: users copy the name from Volcano's design document."""
    entry = f"configurations: [{{name: {text}, arguments: {{maxDomains: 3}}}}]"
    config = load_config(f"actions: allocate, {text}\n{entry}")
    (_, (spec, arguments)) = config.actions
    assert (spec.name, arguments.integer("maxDomains")) == ("gangpreempt", 3)
    (warning,) = config.warnings
    assert warning == f"actions: {text} is read as gangpreempt, as Volcano spells it"


def test_gangpreempt_takes_the_place_of_preempt() -> None:
    config = load_config("actions: allocate, preempt, gangpreempt, gangreclaim, reclaim")
    names = [spec.name for spec, _ in config.actions]
    assert names == ["allocate", "gangpreempt", "gangreclaim"]
    assert config.warnings == (
        "actions: preempt is ignored, because gangpreempt takes its place",
        "actions: reclaim is ignored, because gangreclaim takes its place",
    )


def test_what_is_built_is_not_planned() -> None:
    registry = builtin_registry()
    assert not PLANNED_PLUGINS & set(registry.plugins)


def test_names_are_registered_once() -> None:
    registry = builtin_registry()
    with pytest.raises(ValueError, match="scheduler plugin gang is registered twice"):
        registry.extended(plugins=[registry.plugins["gang"]])
    with pytest.raises(ValueError, match="scheduler action allocate is registered twice"):
        registry.extended(actions=[registry.actions["allocate"]])


def test_a_waiting_time_that_is_no_duration_is_ignored_with_a_warning() -> None:
    text = "actions: enqueue\ntiers: [{plugins: [{name: sla, arguments: {sla-waiting-time: 5x}}]}]"
    (warning,) = load_config(text).warnings
    assert warning == (
        "tiers[0].plugins[0].arguments.sla-waiting-time: must be a duration above 0, such as 30s or "
        """1h30m, found "5x"; the default '' stays"""
    )
