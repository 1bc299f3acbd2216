"""Usage of namespaces with a half-life, the order of their gangs, and the gate of their queue."""

import math
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from pumice.scheduler import ConfigError, load_config
from pumice.scheduler.plugins.fairshare import fair_level
from pumice.scheduler.state.usage import SavedUsage
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, load_cases

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
MINUTE = 60.0


def _config(args: Raw, plugins: list[str] | None = None) -> str:
    given = {f"fairshare.{key}": value for key, value in args.items()}
    named = {"fairshare": None, "args": given}
    return config_text(
        [
            [named if each == "fairshare" else each for each in plugins or ["gang", "fairshare"]],
            ["predicates"],
        ]
    )


def _saved(at: float, namespaces: Raw) -> SavedUsage:
    pairs = ", ".join(f'"{name}": {pair}' for name, pair in namespaces.items())
    return SavedUsage.read(
        f'{{"at": {at}, "queues": {{"q": {{"resource": "{GPU}", "namespaces": {{{pairs}}}}}}}}}'
    )


def _pod(name: str, namespace: str, gpus: int, node: str = "n", group: str = "g") -> list[Any]:
    phase = "Running" if node else "Pending"
    return [namespace, name, node, phase, 1, 0, group, {"resources": {GPU: gpus}}]


def _cluster(gpus: int = 64, namespaces: str = "abc", **queue: Any) -> Raw:
    return {
        "nodes": [["n", 64, "64Gi", {"resources": {GPU: gpus}}]],
        "queues": [["q", queue], ["other"]],
        "podgroups": [[name, "g", "q", 0, "Running"] for name in namespaces],
    }


def _at(scenario: Scenario, moment: float) -> dict[str, float]:
    return {name: used for name, (used, _) in scenario.state.usage.of("q", moment).items()}


@pytest.mark.parametrize("case", load_cases("fairshare.yaml", "usage"), ids=lambda case: case["id"])
def test_usage(case: Raw) -> None:
    scenario = Scenario(_cluster(), _config(case["args"]))
    usage = scenario.state.usage
    if "saved" not in case:
        scenario.cycle(NOW)
    for minute, what, namespace, *gpus in case["events"]:
        usage.moment = NOW + minute * MINUTE
        if what == "runs":
            scenario.add_pod(_pod("p", namespace, gpus[0]))
        else:
            scenario.state.remove_pod(namespace, "p")
    if "saved" in case:  # what runs is known when the scheduler begins
        minute, namespaces = case["saved"]
        usage.restore(_saved(NOW + minute * MINUTE, namespaces))
        scenario.cycle(NOW)
    for minute, expected in case["expect"].items():
        assert _at(scenario, NOW + minute * MINUTE) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "case", load_cases("fairshare.yaml", "orders"), ids=lambda case: case["id"]
)
def test_orders(case: Raw) -> None:
    cluster = _cluster(case.get("nodes", 1) + sum(case.get("holds", {}).values()))
    gangs, pods = cluster["podgroups"], []
    for number, (name, namespace, *sizes) in enumerate(case["gangs"]):
        created = f"2023-01-01T00:00:{number:02}Z"
        gangs.append([namespace, name, "q", len(sizes) or 1, "Inqueue", {"created": created}])
        for index, gpus in enumerate(sizes or [1]):
            pods.append(_pod(f"{name}-{index}", namespace, gpus, "", name))
    held = [_pod("held", name, gpus) for name, gpus in case.get("holds", {}).items()]
    if "drf" in case.get("plugins", ()):
        held = [[*each[:6], "one", each[7]] for each in held]
    scenario = Scenario(
        cluster | {"pods": held + pods}, _config(case.get("args", {}), case.get("plugins"))
    )
    scenario.state.usage.restore(
        _saved(NOW, {name: [used, 0] for name, used in case["used"].items()})
    )
    result = scenario.cycle(NOW)
    placed = [key.removesuffix("-0") for key in result.binds]
    if case.get("runs"):
        assert placed == case["expect"]
        return
    assert placed == case["expect"][:1]
    assert [key for key in case["expect"] if key in result.pending] == case["expect"][1:]


@pytest.mark.parametrize("case", load_cases("fairshare.yaml", "gates"), ids=lambda case: case["id"])
def test_gates(case: Raw) -> None:
    limits = {"capability": {GPU: case["capability"]}} if "capability" in case else {}
    cluster = _cluster(case.get("nodes", 64), "abc", **limits)
    for number, (name, namespace, gpus) in enumerate(case["gangs"]):
        created = f"2023-01-01T00:00:{number:02}Z"
        options = {"created": created, "minRes": {GPU: gpus} if gpus else {"cpu": 1}}
        cluster["podgroups"].append([namespace, name, "q", 1, "Pending", options])
    pods = [_pod("held", name, gpus) for name, gpus in case["holds"].items()]
    scenario = Scenario(
        cluster | {"pods": pods}, _config({"enableEnqueueGate": True} | case.get("args", {}))
    )
    result = scenario.cycle(NOW)
    entered = [key for key, status in result.pod_groups.items() if status.phase == "Inqueue"]
    assert sorted(entered) == case["expect"]
    refused = [key for key, why in result.pending.items() if why.reason == "OverFairShare"]
    gangs = [f"{space}/{name}" for name, space, _ in case["gangs"]]
    assert sorted([*entered, *refused]) == sorted(gangs)
    if "why" in case:
        reason = result.pending[refused[0]]
        assert case["why"] in reason.summary
        assert reason.details["namespace"] == refused[0].partition("/")[0]


@pytest.mark.parametrize("case", load_cases("fairshare.yaml", "errors"), ids=str)
def test_errors_of_the_configuration(case: Raw) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(_config(case["args"]))
    assert f"arguments.{case['expect']}" in str(raised.value)


def test_drf_before_it_is_warned_of() -> None:
    warning = "tiers[0].plugins[1]: drf stands before fairshare and decides about the order of gangs first"
    (found,) = load_config(_config({}, ["drf", "fairshare"])).warnings
    assert found.startswith(warning)
    assert load_config(_config({}, ["fairshare", "drf"])).warnings == ()


def test_a_queue_whose_resource_no_node_has_is_told_once() -> None:
    cluster = _cluster(namespaces="a") | {"nodes": [["n", 8, "8Gi"]]}
    scenario = Scenario(cluster, _config({}))
    events = [each for each in scenario.cycle(NOW).events if each.reason == "NoUsage"]
    assert [(each.kind, each.name) for each in events] == [("Queue", "q")]
    assert "counts nvidia.com/gpu in this queue, which no node has" in events[0].message
    scenario.add_pod(_pod("p", "a", 0))
    assert [each for each in scenario.cycle(NOW + 1).events if each.reason == "NoUsage"] == []


def test_nothing_is_counted_without_the_plugin() -> None:
    scenario = Scenario(_cluster(), _config({}))
    scenario.add_pod(_pod("p", "a", 8))
    scenario.cycle(NOW)
    assert _at(scenario, NOW + 60) == pytest.approx({"a": 480}, rel=0.01)
    scenario.config = load_config(config_text([["gang"]]))
    scenario.state.settled = None
    scenario.cycle(NOW + 60)
    assert (scenario.state.usage.rules, scenario.state.nodes.running.told) == (None, None)
    assert _at(scenario, NOW + 60) == {}


def test_another_half_life_keeps_what_was_used() -> None:
    scenario = Scenario(_cluster(), _config({"halfLifeMinutes": 60}))
    scenario.add_pod(_pod("p", "a", 8))
    scenario.cycle(NOW)
    used = _at(scenario, NOW + 3600)["a"]
    scenario.config = load_config(_config({"halfLifeMinutes": 1}))
    scenario.state.usage.moment = NOW + 3600
    scenario.state.remove_pod("a", "p")
    scenario.cycle(NOW + 3600)
    before = _at(scenario, NOW + 3600)["a"]
    assert 20_000 < before < used + 1
    assert _at(scenario, NOW + 3660)["a"] == pytest.approx(before / 2)


@given(
    demands=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=1),
    room=st.integers(0, 100),
)
@examples(200)
def test_the_fair_level_gives_out_what_is_wanted_and_no_more(
    demands: dict[str, int], room: int
) -> None:
    level = fair_level(demands, room)
    given_out = sum(min(each, level) for each in demands.values())
    assert given_out == pytest.approx(min(room, sum(demands.values())))


EVENTS = st.lists(
    st.tuples(st.floats(0, 7200), st.sampled_from("abc"), st.integers(0, 3), st.integers(1, 8)),
    max_size=15,
)
"""Moment, namespace, pod, GPUs: the pod begins to run, or if it runs, ends."""


def _history(
    events: list[tuple[float, str, int, int]],
) -> dict[str, list[tuple[float, float, int]]]:
    """When pods run, by namespace: from, to, GPUs."""
    running: dict[tuple[str, int], tuple[float, int]] = {}
    spans: dict[str, list[tuple[float, float, int]]] = {}
    for moment, namespace, number, gpus in sorted(events):
        if (namespace, number) in running:
            begin, held = running.pop((namespace, number))
            spans.setdefault(namespace, []).append((begin, moment, held))
        else:
            running[namespace, number] = moment, gpus
    for (namespace, _), (begin, held) in running.items():
        spans.setdefault(namespace, []).append((begin, END, held))
    return spans


END, HALF_LIFE = 7200.0, 1800.0


def _replay(scenario: Scenario, events: list[tuple[float, str, int, int]], every: float) -> None:
    """Let events happen, and cycles run at a rate."""
    cycles = [number * every for number in range(int(END / every) + 1)]
    for moment, namespace, number, gpus in sorted(
        [*((each, "", 0, 0) for each in cycles), *events]
    ):
        if not namespace:
            scenario.cycle(NOW + moment)
            continue
        scenario.state.usage.moment = NOW + moment
        if f"{namespace}/p{number}" in scenario.state.tasks:
            scenario.state.remove_pod(namespace, f"p{number}")
        else:
            scenario.add_pod(_pod(f"p{number}", namespace, gpus))


@given(events=EVENTS, rates=st.tuples(st.floats(10, 100), st.floats(500, 5000)))
@examples(60)
def test_two_cycle_rates_give_one_usage(
    events: list[tuple[float, str, int, int]], rates: tuple[float, float]
) -> None:
    rate = math.log(2) / HALF_LIFE
    expected = {
        namespace: sum(
            held * (math.exp(-rate * (END - to)) - math.exp(-rate * (END - begin))) / rate
            for begin, to, held in spans
        )
        for namespace, spans in _history(events).items()
    }
    for every in rates:
        scenario = Scenario(_cluster(), _config({"halfLifeMinutes": HALF_LIFE / 60}))
        _replay(scenario, events, every)
        assert _at(scenario, NOW + END) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(events=EVENTS, interval=st.floats(10, 600), restart=st.floats(0, END))
@examples(60)
def test_a_restart_loses_at_most_one_interval(
    events: list[tuple[float, str, int, int]], interval: float, restart: float
) -> None:
    config = _config({"halfLifeMinutes": HALF_LIFE / 60})
    scenario = Scenario(_cluster(), config)
    scenario.cycle(NOW)
    last = SavedUsage.read('{"at": 0, "queues": {}}')
    flushes = [number * interval for number in range(int(restart / interval) + 1)]
    happened = [each for each in events if each[0] <= restart]
    for moment, namespace, number, gpus in sorted(
        [*((each, "", 0, 0) for each in flushes), *happened]
    ):
        scenario.state.usage.moment = NOW + moment
        if not namespace:
            last = SavedUsage.read(scenario.state.usage.saved().encoded())
        elif f"{namespace}/p{number}" in scenario.state.tasks:
            scenario.state.remove_pod(namespace, f"p{number}")
            del scenario.pods[f"{namespace}/p{number}"]
        else:
            scenario.add_pod(_pod(f"p{number}", namespace, gpus))
    again = Scenario(_cluster(), config)
    for manifest in scenario.pods.values():
        again.show(manifest)
    again.state.usage.restore(last)
    again.cycle(NOW + restart)
    before, after = _at(scenario, NOW + restart), _at(again, NOW + restart)
    for namespace, used in before.items():
        most = max((sum(e[3] for e in happened if e[1] == namespace), 0))
        assert used - most * interval - 2 <= after.get(namespace, 0.0) <= used + most * interval + 2


def test_what_is_read_may_be_anything() -> None:
    import msgspec

    for text in (
        "",
        "[]",
        '{"at": "x"}',
        '{"at": -1, "queues": {}}',
        '{"at": 1, "queues": {"q": {"resource": "r", "namespaces": {"a": [1e999, 0]}}}}',
    ):
        with pytest.raises(msgspec.MsgspecError):
            SavedUsage.read(text)


def test_namespaces_that_used_little_long_ago_are_forgotten() -> None:
    scenario = Scenario(_cluster(gpus=2048), _config({"halfLifeMinutes": 1}))
    scenario.cycle(NOW)
    usage = scenario.state.usage
    for number in range(600):
        usage.moment = NOW + 60 * number
        scenario.add_pod(_pod("p", f"n{number}", 1))
        usage.moment += 10
        scenario.state.remove_pod(f"n{number}", "p")
    assert len(usage.of("default", usage.moment)) < 300


def test_the_largest_usage_is_saved_and_no_more_than_fits() -> None:
    scenario = Scenario(_cluster(), _config({}))
    namespaces = {f"n{number:05}": [number, 0] for number in range(6000)}
    scenario.state.usage.restore(_saved(NOW, namespaces))
    scenario.cycle(NOW)
    saved = scenario.state.usage.saved()
    assert len(saved.queues["q"].namespaces) == 5000
    assert len(saved.encoded()) < 512 * 1024
    assert "n05999" in saved.queues["q"].namespaces
