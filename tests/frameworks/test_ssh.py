"""The real OpenSSH between pods that plugin `ssh` has wired, with strict modes, as Debian ships it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import SSHD, USERS_SSHD, pod_spec
from tests.kit.builders import job, task
from tests.support.pods.cluster import Running
from tests.support.pods.wired import wired

HOME = "--ssh-key-file-path=/home/user/.ssh"
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectionAttempts=20")


def pair(
    server: str, *arguments: str, replicas: int = 2, port: int = 22, **context: int
) -> dict[str, Any]:
    """A Job with pods that serve ssh; keyword arguments are its security context."""
    fields = {"securityContext": context} if context else {}
    spec = pod_spec("base", server.format(port=port), **fields)
    plugins = {"svc": [], "ssh": list(arguments)}
    return job("pair", [task("node", replicas, spec=spec)], plugins=plugins)


def assert_everybody_gets_everywhere(running: Running, user: str) -> None:
    """By the names in the configuration, and by addresses as they stand in host files."""
    for one, other in itertools.permutations(running.pods, 2):
        for name in (other, f"{other}.pair"):
            answer = running[one].run(*SSH, name, "hostname; id -un; id -G")
            assert answer.code == 0, answer.stderr
            assert answer.lines[:2] == [other, user]


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
async def test_root_logs_in_anywhere(run: Run, kind: str) -> None:
    running = run(await wired(pair(SSHD, f"--ssh-key-type={kind}", replicas=3)))
    running.start()
    assert_everybody_gets_everywhere(running, "root")


@pytest.mark.parametrize("group", [{}, {"fsGroup": 2000}], ids=["alone", "fsGroup"])
async def test_another_user_logs_in_anywhere(run: Run, group: dict[str, int]) -> None:
    manifest = pair(USERS_SSHD, HOME, "--ssh-port=2222", port=2222, runAsUser=1000, **group)
    running = run(await wired(manifest))
    running.start()
    assert_everybody_gets_everywhere(running, "user")


async def test_keys_of_a_secret_of_ones_own(run: Run) -> None:
    donor = await wired(pair(SSHD, "--ssh-key-type=ed25519"))
    made = donor.get("Secret", "pair-ssh")
    assert made is not None
    data = {
        "ssh-privatekey": made["data"]["id_ed25519"],
        "ssh-publickey": made["data"]["id_ed25519.pub"],
    }
    own = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "data": data}
    arguments = ("--ssh-key-secret=mine", "--ssh-key-type=ed25519")
    running = run(await wired(pair(SSHD, *arguments), own))
    running.start()
    assert_everybody_gets_everywhere(running, "root")


async def test_a_pod_that_joins_later_is_found_by_those_from_before(run: Run) -> None:
    running = run(await wired(pair(SSHD)))
    running.start()
    running.become(await wired(pair(SSHD, replicas=3)))
    running.start("pair-node-2")
    assert_everybody_gets_everywhere(running, "root")


async def test_a_key_of_roots_that_an_fs_group_may_read_is_refused_as_admission_warns(
    run: Run,
) -> None:
    admitted = await wired(pair(SSHD, fsGroup=2000))
    (warning,) = admitted.warnings
    assert warning.path.endswith("securityContext.fsGroup")
    running = run(admitted)
    running.start()
    answer = running["pair-node-0"].run(*SSH, "pair-node-1", "hostname")
    assert answer.code == 255
    assert "Permissions 0640 for '/root/.ssh/id_rsa' are too open" in answer.stderr


async def test_a_stranger_is_not_let_in(run: Run) -> None:
    running = run(await wired(pair(SSHD)))
    running.start()
    no_key = ("-o", "IdentitiesOnly=yes", "-o", "IdentityFile=/dev/null")
    answer = running["pair-node-0"].run(
        *SSH,
        "-F",
        "/dev/null",
        "-o",
        "StrictHostKeyChecking=no",
        *no_key,
        "pair-node-1.pair",
        "true",
    )
    assert answer.code == 255
    assert "Permission denied" in answer.stderr
