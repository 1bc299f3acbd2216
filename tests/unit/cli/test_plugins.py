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
    assert (
        "  --nproc-per-node (processes, default auto): PET_NPROC_PER_NODE; auto is one a requested accelerator, or one"
        in ran.out
    )
    assert "--disable-network-policy (boolean, default false): make no NetworkPolicy" in ran.out
    assert "--elastic (range, no default): PET_NNODES as a range" in ran.out
    assert "--ssh-key-secret (name, no default): " in ran.out
    assert "`" not in ran.out
