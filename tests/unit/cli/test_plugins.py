"""`pumice plugins`: what a Job may name."""

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
