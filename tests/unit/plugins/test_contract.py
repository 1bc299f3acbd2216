"""What every plugin promises, tried on any Job and any pod."""

import re
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.jobs import Job
from pumice.plugins import JobPlugin, Registry, Wiring, builtin, problems
from tests.unit.plugins.support import job, loses_nothing, repeats, task

NAMES = ["ps", "worker", "chief", "a-b"]
EXAMPLE = Path(__file__).parents[3] / "examples" / "job-plugin" / "pumice_jax.py"


def example() -> JobPlugin:
    spec = spec_from_file_location("pumice_jax", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    plugin: JobPlugin = module.Jax()
    return plugin


PLUGINS = [*builtin().plugins, example()]
VARIABLES = ["TF_CONFIG", "VC_PS_NUM", "VC_TASK_INDEX", "JAX_PROCESS_ID", "MINE"]


@st.composite
def words(draw: st.DrawFn, plugin: JobPlugin) -> list[str]:
    values = st.sampled_from(["worker", "ps,worker", "[[ps]]", "8080", "true", "maybe", ""])
    flags = st.sampled_from([*plugin.arguments.names, "unknown"])
    return draw(st.lists(st.builds("--{}={}".format, flags, values), max_size=3))


@st.composite
def jobs(draw: st.DrawFn, plugin: JobPlugin) -> Job:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    tasks = [
        task(name, draw(st.integers(0, 3)), draw(st.sampled_from(["", "fixed"]))) for name in names
    ]
    return job("j", *tasks, plugins={plugin.name: draw(words(plugin))})


CONTAINER = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "d"]), "future": st.integers()},
    optional={
        "env": st.lists(
            st.builds(
                lambda name: {"name": name, "value": "mine", "future": 1},
                st.sampled_from(VARIABLES),
            ),
            max_size=2,
            unique_by=lambda each: each["name"],
        ),
        "volumeMounts": st.just([{"name": "j-svc", "mountPath": "/etc/volcano", "future": 1}]),
        "ports": st.just([{"containerPort": 1234, "future": 1}]),
    },
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.just("j-worker-0"), "future": st.integers()}),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(CONTAINER, min_size=1, max_size=2), "future": st.integers()},
            optional={
                "initContainers": st.lists(CONTAINER, max_size=1),
                "volumes": st.just([{"name": "j-svc", "emptyDir": {}}]),
                "hostname": st.just("mine"),
            },
        ),
    }
)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@given(data=st.data())
@settings(max_examples=40)
def test_wiring_is_pure_idempotent_and_loses_and_repeats_nothing(
    plugin: JobPlugin, data: st.DataObject
) -> None:
    drawn = data.draw(jobs(plugin))
    pod = data.draw(PODS)
    strict = data.draw(st.booleans())
    index = data.draw(st.integers(0, 3))
    chosen = data.draw(st.sampled_from(drawn.tasks))
    before = deepcopy(pod)
    wiring = Wiring(drawn, with_builtin(plugin), strict_upstream=strict)

    wired = wiring.pod(chosen, index, pod)

    assert pod == before
    assert wiring.pod(chosen, index, wired) is wired
    assert wiring.pod(chosen, index, deepcopy(pod)) == wired
    assert strict or loses_nothing(before, wired)
    assert repeats(wired) == []


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@given(data=st.data())
@settings(max_examples=30)
def test_what_a_plugin_wants_of_a_job_is_wanted_again(
    plugin: JobPlugin, data: st.DataObject
) -> None:
    drawn = data.draw(jobs(plugin))
    registry = with_builtin(plugin)

    first, second = Wiring(drawn, registry), Wiring(drawn, registry)

    assert first.objects() == second.objects()
    assert first.job_annotations() == second.job_annotations()
    assert problems(drawn, registry) == problems(drawn, registry)
    for manifest in first.objects():
        assert manifest["metadata"]["namespace"] == "ns"
        assert "ownerReferences" not in manifest["metadata"]


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_a_plugin_says_what_it_is(plugin: JobPlugin) -> None:
    assert re.fullmatch(r"[A-Z].*\.", plugin.summary)
    for argument in plugin.arguments:
        assert argument.help
        assert not argument.help.endswith(".")


def with_builtin(plugin: JobPlugin) -> Registry:
    registry = builtin()
    return registry if plugin.name in registry.names else registry.with_plugin(plugin, "example")
