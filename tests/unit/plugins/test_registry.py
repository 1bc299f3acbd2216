"""Which plugins there are, and in which order they are applied."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from pumice.plugins import JobPlugin, PluginError, Registry, builtin, dependencies


class Plain(JobPlugin):
    name = "plain"
    summary = "Does nothing."


def made(**attributes: Any) -> JobPlugin:
    """A plugin with these attributes."""
    body = {"name": "made", "summary": "Made for a test."} | attributes
    plugin: JobPlugin = type("Made", (JobPlugin,), body)()
    return plugin


def test_the_built_in_plugins_are_applied_in_a_fixed_order() -> None:
    assert builtin().names == (
        "svc",
        "ssh",
        "env",
        "tensorflow",
        "pytorch",
        "mpi",
        "mxnet",
        "ray",
        "roles",
        "hcclrank",
        "task-topology",
    )


def test_origins_tell_where_a_plugin_comes_from() -> None:
    registry = builtin().with_plugin(Plain(), "a package")

    assert [registry.origin(name) for name in ("svc", "plain", "no")] == ["pumice", "a package", ""]


def test_a_registry_is_a_value() -> None:
    registry = builtin()

    registry.with_plugin(Plain(), "a package")

    assert registry.get("plain") is None


def test_declared_order_holds_whatever_the_order_of_registration() -> None:
    last = made(name="rank", after=("made",))
    first = made(name="first", after=())
    registry = Registry(())
    for plugin in (last, made(), first):
        registry = registry.with_plugin(plugin, "test")

    assert registry.names.index("made") < registry.names.index("rank")
    assert registry.names == ("made", "rank", "first")


def test_plugins_of_others_are_applied_after_names_and_index() -> None:
    registry = Registry(()).with_plugin(Plain(), "test")
    for plugin in builtin().plugins:
        registry = registry.with_plugin(plugin, "pumice")

    assert registry.names[:5] == ("svc", "ssh", "env", "plain", "tensorflow")


def test_a_cycle_is_refused() -> None:
    registry = builtin().with_plugin(made(name="one", after=("two",)), "test")

    with pytest.raises(
        PluginError, match=r"cannot be ordered: (one after two after one|two after)"
    ):
        registry.with_plugin(made(name="two", after=("one",)), "test")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (object(), "expected a subclass of pumice.plugins.JobPlugin"),
        (made(name="No Name"), "name: a lowercase RFC 1123 label must consist"),
        (made(name=3), "name: must be a string"),
        (made(summary=""), "summary must be a sentence"),
        (made(requires="svc"), "requires must be a tuple of plugin names"),
        (made(after=["svc"]), "after must be a tuple of plugin names"),
        (made(arguments=()), "arguments must be an ArgumentSpec"),
        (
            made(requires=("svk",)),
            'requires a plugin that does not exist: unable to find job plugin "svk" (did you mean "svc"?)',
        ),
        (made(name="svc"), "the name is taken by the plugin of pumice"),
    ],
)
def test_a_broken_plugin_is_refused_with_its_origin(plugin: Any, message: str) -> None:
    with pytest.raises(PluginError) as refusal:
        builtin().with_plugin(plugin, "some-package")

    assert message in str(refusal.value)
    assert "some-package" in str(refusal.value)


def entry(value: str) -> EntryPoint:
    return EntryPoint("thing", value, "pumice.job_plugins")


def test_an_entry_point_may_name_a_class_or_a_plugin() -> None:
    registry = Registry(()).with_entry_points([entry(f"{__name__}:Plain")])

    assert registry.names == ("plain",)
    assert registry.origin("plain") == f"an unknown package ({__name__}:Plain)"


@pytest.mark.parametrize("value", ["no_such_module:Plain", "json:NoSuchClass", "json:JSONDecoder"])
def test_an_entry_point_that_gives_no_plugin_is_refused(value: str) -> None:
    with pytest.raises(PluginError) as refusal:
        builtin().with_entry_points([entry(value)])

    assert value in str(refusal.value)


def test_without_installed_plugins_there_are_the_built_in_ones() -> None:
    assert builtin().with_entry_points([]).names == builtin().names


@pytest.mark.parametrize(
    ("named", "added"),
    [
        ([], []),
        (["env", "hcclrank", "ssh", "unknown"], []),
        (["tensorflow"], ["svc"]),
        (["pytorch"], ["svc"]),
        (["ray"], ["svc"]),
        (["mxnet"], ["svc"]),
        (["mpi"], ["svc", "ssh"]),
        (["mpi", "ssh"], ["svc"]),
        (["svc", "tensorflow", "mpi"], ["ssh"]),
    ],
)
def test_required_plugins_are_added(named: list[str], added: list[str]) -> None:
    plugins = {name: ["--argument"] for name in named}

    assert dependencies(plugins, builtin()) == {name: [] for name in added}


def test_requirements_of_requirements_are_added() -> None:
    registry = builtin().with_plugin(made(name="a", requires=("tensorflow",)), "test")

    assert dependencies({"a": []}, registry) == {"tensorflow": [], "svc": []}


def test_a_job_without_plugins_needs_none() -> None:
    assert dependencies(None, builtin()) == {}
