"""Secrets with key pairs: made once, kept current around the keys, replaced only when nobody has them."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from pumice.api.kinds import POD, SECRET
from pumice.controller.loop.key_pairs import make_keys
from tests.kit.builders import job, task
from tests.unit.controller.world import World

Raw = dict[str, Any]

KEYS = ("id_rsa", "id_rsa.pub", "authorized_keys")


def _world(**fields: Any) -> World:
    plugins: dict[str, list[str]] = {"svc": [], "ssh": []}
    return World(job("train", [task("worker", 2)], uid="u1", plugins=plugins, **fields))


def _running() -> World:
    world = _world()
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()
    return world


def _secret(world: World) -> Raw:
    (found,) = world.of(SECRET)
    return found


def _text(secret: Raw, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


def test_a_pair_is_made_before_any_pod() -> None:
    world = _world()

    world.settle()

    secret = _secret(world)
    assert secret["metadata"]["name"] == "train-ssh"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert _text(secret, "id_rsa.pub") == _text(secret, "authorized_keys")
    assert _text(secret, "id_rsa") != _text(secret, "id_rsa.pub")
    assert "Host train-worker-1\n  HostName train-worker-1.train\n" in _text(secret, "config")
    assert world.names(POD) == []


def test_scaling_keeps_the_keys_and_writes_the_configuration() -> None:
    world = _running()
    before = {key: _text(_secret(world), key) for key in KEYS}

    world.job["spec"]["tasks"][0]["replicas"] = 3
    world.settle()

    assert {key: _text(_secret(world), key) for key in KEYS} == before
    assert "Host train-worker-2\n" in _text(_secret(world), "config")


def test_a_restart_keeps_the_keys() -> None:
    world = _running()
    before = _secret(world)["metadata"]["uid"]

    world.command("RestartJob")
    world.settle()
    world.admit()
    world.settle()

    assert world.pods
    assert _secret(world)["metadata"]["uid"] == before


@pytest.mark.parametrize("damage", [None, "", "not base64!"])
def test_a_secret_without_usable_keys_is_left_alone_while_pods_may_hold_them(damage: Any) -> None:
    world = _running()
    _damage(world, damage)
    before = _secret(world)["metadata"]["uid"]

    world.settle()

    assert _secret(world)["metadata"]["uid"] == before


@pytest.mark.parametrize("damage", [None, "", "not base64!"])
def test_and_made_anew_when_no_pod_is_left(damage: Any) -> None:
    world = _world()
    world.settle()
    _damage(world, damage)
    before = _secret(world)["metadata"]["uid"]

    world.settle()

    assert _secret(world)["metadata"]["uid"] != before
    assert _text(_secret(world), "id_rsa") == "private"


def test_pods_that_run_get_an_event_that_their_secret_was_lost() -> None:
    world = _running()
    del world.objects[SECRET, "train-ssh"]

    world.settle()

    (event,) = [each for each in world.events if each.reason == "KeysReplaced"]
    assert event.type == "Warning"
    assert "Secret train-ssh was gone" in event.message
    assert "the 2 that run cannot log in" in event.message
    assert _text(_secret(world), "id_rsa") == "private"


def test_a_pair_that_no_pod_has_is_replaced_without_a_word() -> None:
    world = _world()
    world.settle()
    world.admit()
    world.settle()
    assert world.pods
    del world.objects[SECRET, "train-ssh"]

    world.settle()

    assert world.names(SECRET) == ["train-ssh"]
    assert "KeysReplaced" not in [each.reason for each in world.events]


def test_a_secret_of_another_owner_is_not_touched_and_named() -> None:
    world = _world()
    mine = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "train-ssh"}, "data": {}}
    world.put(mine)

    world.settle()

    assert _secret(world)["data"] == {}
    assert "Secret train-ssh exists and does not belong to this Job" in world.reason[1]


def test_the_keys_go_with_the_job_s_other_objects() -> None:
    world = _running()

    world.succeed()
    world.settle()

    assert world.phase == "Completed"
    assert list(world.of(SECRET)) == []


def test_a_users_own_pair_is_written_as_it_is() -> None:
    plugins = {"ssh": ["--ssh-private-key=PRIVATE", "--ssh-public-key=PUBLIC"]}
    world = World(job("train", [task("worker", 2)], uid="u1", plugins=plugins))

    world.settle()

    secret = _secret(world)
    assert [_text(secret, key) for key in KEYS] == ["PRIVATE", "PUBLIC", "PUBLIC"]
    assert "stringData" not in secret


@pytest.mark.parametrize("algorithm", ["rsa", "ed25519"])
async def test_pairs_are_such_as_openssh_reads(algorithm: str) -> None:
    private, public = await make_keys(algorithm)

    key: Any = {
        "rsa": serialization.load_pem_private_key,
        "ed25519": serialization.load_ssh_private_key,
    }[algorithm](private, None)
    line = serialization.load_ssh_public_key(public)
    parts = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    assert line.public_bytes(*parts) == key.public_key().public_bytes(*parts)
    heads = {
        "rsa": (b"BEGIN RSA PRIVATE KEY", b"ssh-rsa "),
        "ed25519": (b"OPENSSH", b"ssh-ed25519 "),
    }
    assert heads[algorithm][0] in private
    assert public.startswith(heads[algorithm][1])
    assert public.endswith(b"\n")
    assert len(public.split()) == 2


def _damage(world: World, value: Any) -> None:
    secret = _secret(world)
    if value is None:
        del secret["data"]["id_rsa"]
    else:
        secret["data"]["id_rsa"] = value
    world.touch(secret)
