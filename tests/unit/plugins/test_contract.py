"""What every plugin promises, tried on any Job and any pod."""

import re
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.jobs import Job
from pumice.plugins import JobPlugin, Raw, Registry, Wiring, builtin, problems
from tests.kit.examples import examples
from tests.unit.plugins.support import containers, job, loses_nothing, repeats, task

NAMES = ["ps", "worker", "chief", "a-b", "master", "scheduler", "head"]
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
VARIABLES = [
    "TF_CONFIG",
    "VC_PS_NUM",
    "VC_TASK_INDEX",
    "RANK",
    "MPI_HOST",
    "DMLC_ROLE",
    "ADDRESS",
    "JAX_PROCESS_ID",
    "MINE",
]
VALUES = [
    "worker",
    "ps,worker",
    "head,worker=ps",
    "[[ps]]",
    "8080",
    "-1",
    "1:3",
    "true",
    "maybe",
    "",
    "c",
    "ed25519",
    "cluster",
    "/home/u/.ssh",
    "ADDRESS={address:head};RANK={rank};OWN={self}",
    "X={nothing}",
]


@st.composite
def words(draw: st.DrawFn, plugin: JobPlugin) -> list[str]:
    flags = st.sampled_from([*plugin.arguments.names, "unknown"])
    return draw(st.lists(st.builds("--{}={}".format, flags, st.sampled_from(VALUES)), max_size=3))


@st.composite
def jobs(draw: st.DrawFn, *plugins: JobPlugin) -> Job:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    tasks = [
        task(name, draw(st.integers(0, 3)), draw(st.sampled_from(["", "fixed"]))) for name in names
    ]
    return job("j", *tasks, plugins={each.name: draw(words(each)) for each in plugins})


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
        "ports": st.sampled_from(
            [
                [{"containerPort": 8080, "future": 1}],
                [{"name": "gcs", "containerPort": 1234}, {"containerPort": 23456}],
            ]
        ),
        "restartPolicy": st.just("Always"),
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
@examples(25, always_the_same=False)
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


@given(data=st.data())
@examples(60, always_the_same=False)
def test_any_plugins_together_keep_the_promise(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(PLUGINS), unique_by=lambda each: each.name))
    drawn = data.draw(jobs(*chosen))
    pod = data.draw(PODS)
    if data.draw(st.booleans()) and repeats(of_host(pod)) == []:
        pod = of_host(pod)
    strict = data.draw(st.booleans())
    registry = builtin().with_plugin(example(), "example")
    wiring = Wiring(drawn, registry, strict_upstream=strict)

    wired = wiring.pod(drawn.tasks[0], 1, pod)

    assert wiring.pod(drawn.tasks[0], 1, wired) is wired
    assert strict or loses_nothing(pod, wired)
    assert repeats(wired) == []
    wanted = [(each["kind"], each["metadata"]["name"]) for each in wiring.objects()]
    wanted += [("Secret", each.name) for each in wiring.secrets()]
    assert len(wanted) == len(set(wanted))
    assert_volumes_are_there(wired, wanted)


def of_host(pod: Raw) -> Raw:
    return {**pod, "spec": {**pod["spec"], "hostNetwork": True}}


def assert_volumes_are_there(pod: Raw, wanted: list[tuple[str, str]]) -> None:
    """What is mounted is a volume, and a volume of a plugin is an object that it wants."""
    volumes = {each["name"]: each for each in pod["spec"].get("volumes", ())}
    for container in containers(pod).values():
        for mount in container.get("volumeMounts", ()):
            assert mount["name"] in volumes or "future" in mount
    for volume in volumes.values():
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in wanted
        if "secret" in volume:
            assert ("Secret", volume["secret"]["secretName"]) in wanted


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@given(data=st.data())
@examples(20, always_the_same=False)
def test_what_a_plugin_wants_of_a_job_is_wanted_again(
    plugin: JobPlugin, data: st.DataObject
) -> None:
    drawn = data.draw(jobs(plugin))
    registry = with_builtin(plugin)

    first, second = Wiring(drawn, registry), Wiring(drawn, registry)

    assert first.objects() == second.objects()
    assert first.job_annotations() == second.job_annotations()
    assert problems(drawn, registry) == problems(drawn, registry)
    assert first.secrets() == second.secrets()
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
