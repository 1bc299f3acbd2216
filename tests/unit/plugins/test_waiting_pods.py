"""The wait step beside what the templates of waiting pods have: Windows, resources of the whole pod, its name."""

from typing import Any

import pytest

from pumice.plugins import Raw, Wiring, builtin, problems
from tests.unit.plugins.support import job, task

ASKS = [
    pytest.param("pytorch", "master", "master", "worker", id="pytorch"),
    pytest.param("mpi", "workers", "worker", "master", id="mpi"),
    pytest.param("ray", "head", "head", "worker", id="ray"),
]
EACH_PLUGIN = pytest.mark.parametrize(("plugin", "peer", "awaited", "held"), ASKS)


def first_steps(
    plugin: str, peer: str, awaited: str, held: str, strict: bool = False, **spec: Any
) -> tuple[dict[str, Raw], list[str]]:
    """Init containers of a pod that is to wait, and what the Job is told."""
    plugins = {plugin: [f"--wait-{peer}-enabled"]} | {"svc": [], "ssh": []}
    found = job("j", task(awaited), task(held, **spec), plugins=plugins)
    waiting = found.tasks[1]
    pod = {"metadata": {"name": f"j-{held}-0"}, "spec": waiting.pod_spec()}
    wired = Wiring(found, builtin(), strict_upstream=strict).pod(waiting, 0, pod)
    told = problems(found, builtin(), strict_upstream=strict).warnings
    steps = {each["name"]: each for each in wired["spec"].get("initContainers", ())}
    return steps, [each.message for each in told if each.code == "JOB-PLUGIN-ARGUMENT"]


@EACH_PLUGIN
def test_windows_has_no_shell_to_wait_with(plugin: str, peer: str, awaited: str, held: str) -> None:
    steps, told = first_steps(plugin, peer, awaited, held, os={"name": "windows"})

    assert steps == {}
    text = "the wait step is a script of a shell that Windows does not have"
    assert told == [f"--wait-{peer}-enabled has no effect on task {held}: {text}"]


@EACH_PLUGIN
def test_a_container_of_the_steps_name_stays(
    plugin: str, peer: str, awaited: str, held: str
) -> None:
    taken = [{"name": f"wait-for-{peer}", "image": "i"}]
    steps, told = first_steps(plugin, peer, awaited, held, containers=taken)

    assert steps == {}
    (text,) = told
    assert text.startswith(
        f"--wait-{peer}-enabled has no effect on task {held}: it has a container"
    )


@EACH_PLUGIN
def test_what_a_pod_asks_for_as_a_whole_holds_for_the_step_too(
    plugin: str, peer: str, awaited: str, held: str
) -> None:
    """Of its own the step might ask for more than the whole pod, which Kubernetes refuses."""
    whole = {"requests": {"cpu": "5m"}, "limits": {"cpu": "50m"}}
    steps, told = first_steps(plugin, peer, awaited, held, resources=whole)

    step = steps[f"wait-for-{peer}"]
    assert step["resources"] == {"requests": {"memory": "16Mi"}, "limits": {"memory": "32Mi"}}
    assert told == []

    whole = {"requests": {"cpu": "5m"}, "limits": {"memory": "8Mi"}}
    steps, _ = first_steps(plugin, peer, awaited, held, resources=whole)
    assert "resources" not in steps[f"wait-for-{peer}"]


@pytest.mark.parametrize("odd", [None, {}, [], "x", {"limits": 3}, {"requests": None}])
def test_what_asks_for_nothing_changes_nothing(odd: Any) -> None:
    steps, _ = first_steps("ray", "head", "head", "worker", resources=odd, os=odd)

    assert set(steps["wait-for-head"]["resources"]) == {"requests", "limits"}


def test_volcanos_step_is_volcanos() -> None:
    steps, told = first_steps(
        "pytorch", "master", "master", "worker", strict=True, os={"name": "windows"}
    )

    assert "resources" not in steps["wait-for-master"]
    assert "securityContext" not in steps["wait-for-master"]
    assert told == []
