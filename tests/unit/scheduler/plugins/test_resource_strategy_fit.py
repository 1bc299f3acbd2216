"""How full nodes would be of each resource, and what keeps CPU pods off nodes with GPUs."""

from typing import Any

import pytest

from pumice.scheduler import ConfigError, load_config
from tests.unit.scheduler.answers import ask
from tests.unit.scheduler.scenarios import Scenario, config_text, load_cases

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"


def _text(case: Raw) -> str:
    return config_text([["gang", {"resource-strategy-fit": None, "args": case["args"]}]])


def _pod(name: str, requests: Raw, annotations: Raw) -> list[Any]:
    said = {f"volcano.sh/resource-strategy-{key}": text for key, text in annotations.items()}
    resources = {key: each for key, each in requests.items() if key == GPU}
    options = {"resources": resources, "annotations": said}
    cpu, memory = requests.get("cpu", 0), requests.get("memory", 0)
    return ["ns", name, "", "Pending", cpu, memory, name, options]


def _scenario(case: Raw, **pods: list[Any]) -> Scenario:
    nodes, used = [], []
    for index, (cpu_used, cpu, *gpus) in enumerate(case["nodes"]):
        nodes.append([f"n{index}", cpu, "64Gi", {"resources": {GPU: gpus[1]} if gpus else {}}])
        taken = {"resources": {GPU: gpus[0]}} if gpus and gpus[0] else {}
        used.append(["ns", f"used-{index}", f"n{index}", "Running", cpu_used, 0, "", taken])
    groups = [["ns", name, "default", 1, "Inqueue"] for name in pods]
    rows = [*used, *pods.values()]
    return Scenario({"nodes": nodes, "podgroups": groups, "pods": rows}, _text(case))


@pytest.mark.parametrize(
    "case", load_cases("resource_strategies.yaml", "scores"), ids=lambda case: case["id"]
)
def test_scores(case: Raw) -> None:
    own = _pod("own", case["pod"], case.get("annotations", {}))
    pods = {"own": own, "other": _pod("other", case["pod"], {})}
    events = _scenario(case, **pods).cycle().events
    told = [each for each in events if each.reason == "InvalidScoring"]
    assert [each.name for each in told] == ["own"] * ("warned" in case)
    assert all(case["warned"] in each.message for each in told)
    scenario = _scenario(case, **pods)
    result = [each / 10 for each in ask(scenario, "ns/own").score]
    assert result == pytest.approx(case["expect"])
    others = [each / 10 for each in ask(scenario, "ns/other").score]
    assert others == pytest.approx(case.get("others", case["expect"]))


@pytest.mark.parametrize(
    "case", load_cases("resource_strategies.yaml", "filters"), ids=lambda case: case["id"]
)
def test_filters(case: Raw) -> None:
    scenario = _scenario(case, own=_pod("own", case["pod"], {}))
    assert ask(scenario, "ns/own").allowed == case["expect"]
    if "others" in case:
        scenario = _scenario(case, own=_pod("own", case["others"], {}))
        assert ask(scenario, "ns/own").allowed == [not each for each in case["expect"]]
    if "why" in case:
        scenario = _scenario(case | {"nodes": case["nodes"][:1]}, own=_pod("own", case["pod"], {}))
        assert case["why"] in scenario.cycle().pending["ns/own"].message


@pytest.mark.parametrize("case", load_cases("resource_strategies.yaml", "errors"), ids=str)
def test_errors_of_the_configuration(case: Raw) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(_text(case))
    assert f"tiers[0].plugins[1].arguments.{case['expect']}" in str(raised.value)


@pytest.mark.parametrize("case", load_cases("resource_strategies.yaml", "warnings"), ids=str)
def test_warnings_about_the_configuration(case: Raw) -> None:
    warnings = load_config(_text(case)).warnings
    assert [case["expect"] in each for each in warnings] == [True]


def test_a_full_gpu_node_takes_cpu_pods_until_gpus_are_free_again() -> None:
    """A gang that was kept off waits for a change of nodes, and is not tried before."""
    case = load_cases("resource_strategies.yaml", "filters")[0] | {"nodes": [[0, 32, 8, 8]]}
    scenario = _scenario(case, own=_pod("own", {"cpu": 4}, {}))
    assert scenario.cycle().binds == {"ns/own": "n0"}
    scenario = _scenario(case | {"nodes": [[0, 32, 0, 8]]}, own=_pod("own", {"cpu": 4}, {}))
    result = scenario.cycle()
    assert result.binds == {}
    scenario.add_pod(["ns", "gpus", "n0", "Running", 0, 0, "", {"resources": {GPU: 2}}])
    assert scenario.cycle(1_700_000_002.0).binds == {"ns/own": "n0"}


def test_a_gang_leaves_cores_for_gpus_pod_by_pod() -> None:
    case = load_cases("resource_strategies.yaml", "filters")[0] | {"nodes": [[0, 36, 0, 8]]}
    pods = {f"p{index}": _pod(f"p{index}", {"cpu": 1}, {}) for index in range(6)}
    assert len(_scenario(case, **pods).cycle().binds) == 4
