"""The real OpenSSH between pods that plugin `ssh` has wired, with strict modes, as Debian ships it."""

from __future__ import annotations

import base64
import itertools
from typing import Any

import pytest

from pumice.controller.worker.secrets import make_keys
from tests.frameworks.conftest import Run
from tests.frameworks.jobs import ENDS_THE_JOB, SSHD, USERS_SSHD, pod_spec
from tests.frameworks.running import Live
from tests.kit.builders import job, task

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


def nodes(number: int) -> list[str]:
    return [f"pair-node-{index}" for index in range(number)]


def known(name: str) -> str:
    """Waits until a name is in the host file, as a client of a cluster's DNS has to."""
    return f"for i in $(seq 300); do getent hosts {name} >/dev/null && break; sleep 0.1; done"


async def assert_everybody_gets_everywhere(live: Live, user: str, replicas: int = 2) -> None:
    """By the names in the configuration, and by addresses as they stand in host files."""
    await live.started(*nodes(replicas))
    for one, other in itertools.permutations(nodes(replicas), 2):
        await live.execute(one, "sh", "-c", known(f"{other}.pair"))
        for name in (other, f"{other}.pair"):
            answer = await live.execute(one, *SSH, name, "hostname; id -un; id -G")
            assert answer.code == 0, answer.stderr
            assert answer.lines[:2] == [other, user]


async def test_root_logs_in_anywhere_also_where_a_pod_joins_later_and_a_stranger_does_not(
    live: Live,
) -> None:
    await live.create(pair(SSHD, "--ssh-key-type=rsa"))
    await live.started(*nodes(2))
    no_key = ("-F", "/dev/null", "-o", "IdentitiesOnly=yes", "-o", "IdentityFile=/dev/null")
    strange = (*SSH, *no_key, "-o", "StrictHostKeyChecking=no", "pair-node-1.pair", "true")
    await live.execute("pair-node-0", "sh", "-c", known("pair-node-1.pair"))
    answer = await live.execute("pair-node-0", *strange)
    assert answer.code == 255
    assert "Permission denied" in answer.stderr
    await live.scale("pair", 0, 3)
    await assert_everybody_gets_everywhere(live, "root", 3)


@pytest.mark.parametrize("group", [{}, {"fsGroup": 2000}], ids=["alone", "fsGroup"])
async def test_another_user_logs_in_anywhere(live: Live, group: dict[str, int]) -> None:
    await live.create(pair(USERS_SSHD, HOME, "--ssh-port=2222", port=2222, runAsUser=1000, **group))
    await assert_everybody_gets_everywhere(live, "user")


async def test_keys_of_a_secret_of_ones_own(live: Live) -> None:
    private, public = await make_keys("ed25519")
    data = {"ssh-privatekey": private, "ssh-publickey": public}
    own = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "mine"},
        "data": {key: base64.b64encode(each).decode() for key, each in data.items()},
    }
    await live.create(own)
    await live.create(pair(SSHD, "--ssh-key-secret=mine", "--ssh-key-type=ed25519"))
    await assert_everybody_gets_everywhere(live, "root")


def test_a_key_of_roots_that_an_fs_group_may_read_is_refused_as_admission_warns(run: Run) -> None:
    manifest = pair(SSHD, fsGroup=2000)
    visit = f"{known('pair-node-1')}; {' '.join(SSH)} pair-node-1 hostname; echo ended with $?"
    visitor = pod_spec("base", visit, securityContext={"fsGroup": 2000}, restartPolicy="Never")
    manifest["spec"]["tasks"].append(task("visitor", spec=visitor, policies=ENDS_THE_JOB))
    ran = run(manifest)
    assert "spec.tasks[0].template.spec.securityContext.fsGroup" in ran.said
    written = ran.output["pair-visitor-0"]
    assert written[-1] == "ended with 255"
    assert any("Permissions 0640 for '/root/.ssh/id_rsa' are too open" in line for line in written)
