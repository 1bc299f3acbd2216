"""Secrets with key pairs: made once, kept current around the keys, replaced only when nobody has them."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from pumice.api.kinds import POD, SECRET
from pumice.controller.worker.secrets import make_keys
from tests.kit.builders import job, task
from tests.unit.controller.fake_cluster import FakeCluster

Raw = dict[str, Any]

KEYS = ("id_rsa", "id_rsa.pub", "authorized_keys")


def _cluster(**fields: Any) -> FakeCluster:
    plugins: dict[str, list[str]] = {"svc": [], "ssh": []}
    return FakeCluster(job("train", [task("worker", 2)], uid="u1", plugins=plugins, **fields))


def _running() -> FakeCluster:
    cluster = _cluster()
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()
    return cluster


def _secret(cluster: FakeCluster) -> Raw:
    (found,) = cluster.of(SECRET)
    return found


def _text(secret: Raw, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


def test_a_pair_is_made_before_any_pod() -> None:
    cluster = _cluster()

    cluster.settle()

    secret = _secret(cluster)
    assert secret["metadata"]["name"] == "train-ssh"
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert _text(secret, "id_rsa.pub") == _text(secret, "authorized_keys")
    assert _text(secret, "id_rsa") != _text(secret, "id_rsa.pub")
    assert "Host train-worker-1\n  HostName train-worker-1.train\n" in _text(secret, "config")
    assert cluster.names(POD) == []


def test_scaling_keeps_the_keys_and_writes_the_configuration() -> None:
    cluster = _running()
    before = {key: _text(_secret(cluster), key) for key in KEYS}

    cluster.job["spec"]["tasks"][0]["replicas"] = 3
    cluster.settle()

    assert {key: _text(_secret(cluster), key) for key in KEYS} == before
    assert "Host train-worker-2\n" in _text(_secret(cluster), "config")


def test_a_restart_keeps_the_keys() -> None:
    cluster = _running()
    before = _secret(cluster)["metadata"]["uid"]

    cluster.command("RestartJob")
    cluster.settle()
    cluster.admit()
    cluster.settle()

    assert cluster.pods
    assert _secret(cluster)["metadata"]["uid"] == before


@pytest.mark.parametrize("damage", [None, "", "not base64!"])
def test_a_secret_without_usable_keys_is_left_alone_while_pods_may_hold_them(damage: Any) -> None:
    cluster = _running()
    _damage(cluster, damage)
    before = _secret(cluster)["metadata"]["uid"]

    cluster.settle()

    assert _secret(cluster)["metadata"]["uid"] == before


@pytest.mark.parametrize("damage", [None, "", "not base64!"])
def test_and_made_anew_when_no_pod_is_left(damage: Any) -> None:
    cluster = _cluster()
    cluster.settle()
    _damage(cluster, damage)
    before = _secret(cluster)["metadata"]["uid"]

    cluster.settle()

    assert _secret(cluster)["metadata"]["uid"] != before
    assert _text(_secret(cluster), "id_rsa") == "private"


def test_pods_that_run_get_an_event_that_their_secret_was_lost() -> None:
    cluster = _running()
    del cluster.objects[SECRET, "train-ssh"]

    cluster.settle()

    (event,) = [each for each in cluster.events if each.reason == "KeysReplaced"]
    assert event.type == "Warning"
    assert "Secret train-ssh was gone" in event.message
    assert "the 2 that run cannot log in" in event.message
    assert _text(_secret(cluster), "id_rsa") == "private"


def test_a_pair_that_no_pod_has_is_replaced_without_a_word() -> None:
    cluster = _cluster()
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert cluster.pods
    del cluster.objects[SECRET, "train-ssh"]

    cluster.settle()

    assert cluster.names(SECRET) == ["train-ssh"]
    assert "KeysReplaced" not in [each.reason for each in cluster.events]


def test_a_secret_of_another_owner_is_not_touched_and_named() -> None:
    cluster = _cluster()
    mine = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "train-ssh"}, "data": {}}
    cluster.put(mine)

    cluster.settle()

    assert _secret(cluster)["data"] == {}
    assert "Secret train-ssh exists and does not belong to this Job" in cluster.reason[1]


def test_the_keys_go_with_the_job_s_other_objects() -> None:
    cluster = _running()

    cluster.succeed()
    cluster.settle()

    assert cluster.phase == "Completed"
    assert list(cluster.of(SECRET)) == []


def test_a_users_own_pair_is_written_as_it_is() -> None:
    plugins = {"ssh": ["--ssh-private-key=PRIVATE", "--ssh-public-key=PUBLIC"]}
    cluster = FakeCluster(job("train", [task("worker", 2)], uid="u1", plugins=plugins))

    cluster.settle()

    secret = _secret(cluster)
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


def _damage(cluster: FakeCluster, value: Any) -> None:
    secret = _secret(cluster)
    if value is None:
        del secret["data"]["id_rsa"]
    else:
        secret["data"]["id_rsa"] = value
    cluster.touch(secret)
