"""`pumice plugins`: what a Job may name."""

from pumice.plugins import builtin
from pumice.plugins.arguments import parse
from tests.unit.cli.conftest import Pumice


def test_the_plugins_as_data(pumice: Pumice) -> None:
    ran = pumice("plugins", "-o", "json")
    assert ran.code == 0
    found = {each["name"]: each for each in ran.json}
    assert {"svc", "env", "tensorflow", "task-topology"} <= set(found)
    assert found["tensorflow"]["requires"] == ["svc"]
    port = next(each for each in found["tensorflow"]["arguments"] if each["name"] == "port")
    assert (port["default"], bool(port["help"])) == (2222, True)


def test_the_plugins_for_people(pumice: Pumice) -> None:
    ran = pumice("plugins")
    assert ran.code == 0
    assert "--affinity" in ran.out
    assert "Adds: svc" in ran.out
    assert (
        "  --nproc-per-node (processes, default auto): PET_NPROC_PER_NODE; auto is one a requested accelerator, or one"
        in ran.out
    )
    assert "--disable-network-policy (boolean, default false): make no NetworkPolicy" in ran.out
    assert "--elastic (range, no default): PET_NNODES as a range" in ran.out
    assert "--ssh-key-secret (name, no default): " in ran.out
    assert "`" not in ran.out


def test_one_plugin_with_an_example_that_is_valid(pumice: Pumice) -> None:
    ran = pumice("plugins", "pytorch")
    assert ran.out.startswith("pytorch\n  Tells every container")
    assert ran.out.endswith(
        '    spec:\n      plugins:\n        pytorch: ["--master=master","--worker=worker"]\n'
    )
    assert "tensorflow" not in ran.out
    for plugin, each in zip(builtin().plugins, pumice("plugins", "-o", "json").json, strict=True):
        (one,) = pumice("plugins", plugin.name, "-o", "json").json
        assert one == each
        assert parse(plugin.arguments, each["example"]).problems == ()


def test_a_plugin_that_does_not_exist(pumice: Pumice) -> None:
    ran = pumice("plugins", "tensorbord")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no plugin 'tensorbord' (did you mean \"tensorflow\"?)" in ran.err
    assert "expected NAME, or check MODULE" in pumice("plugins", "svc", "x.py").err
