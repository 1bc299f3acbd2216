import asyncio
import json
import os
import signal
from pathlib import Path

import yaml

from pumice.api.kinds import (
    NODE,
)
from pumice.cluster.client import Client
from tests.integration.cli.running import pumice
from tests.kit.waiting import wait_until


def test_a_detached_cluster_answers_when_the_command_returns(tmp_path: Path) -> None:
    config, state = tmp_path / "config", {"XDG_STATE_HOME": str(tmp_path / "state")}
    started = pumice("dev", "--detach", "--nodes", "2,1", "--kubeconfig", str(config), **state)
    try:
        assert started.stdout == f"export KUBECONFIG={config}\n"
        assert "`pumice dev stop` ends it" in started.stderr
        assert len(asyncio.run(nodes_of(str(config)))) == 2
        listed = pumice("dev", "status", **state)
        [row] = [each.split() for each in listed.stdout.splitlines()[1:]]
        assert [row[0], row[3]] == [server_of(config), str(config)]
        assert listed.returncode == 0
        [found] = json.loads(pumice("dev", "status", "-o", "json", **state).stdout)
        assert (found["server"], found["kubeconfig"]) == (server_of(config), str(config))
    finally:
        stopped = pumice("dev", "stop", **state)
    assert (stopped.returncode, stopped.stdout) == (0, "")
    assert stopped.stderr == f"stopped the cluster of {config}\n"
    assert not config.exists()
    assert pumice("dev", "status", **state).returncode == 1
    assert pumice("dev", "stop", **state).stderr == "no cluster runs in the background\n"
    assert list((tmp_path / "state/pumice/dev").iterdir()) == []


async def nodes_of(config: str) -> list[str]:
    async with Client.connect(config) as client:
        found = await client.list(NODE)
        return [each["metadata"]["name"] for each in found["items"]]


def server_of(config: Path) -> str:
    return str(yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"])


def test_a_detached_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    refused = pumice("dev", "--detach", "--nodes", "many", **state)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("pumice dev: --nodes 'many': 'many' is no amount, such as ")
    assert list((tmp_path / "state/pumice/dev").iterdir()) == []
    (tmp_path / "taken").touch()
    refused = pumice("dev", "--detach", XDG_STATE_HOME=str(tmp_path / "taken"))
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.endswith("Not a directory\n")


def test_of_several_detached_clusters_one_is_chosen(tmp_path: Path) -> None:
    """One that was killed is not listed, whatever its process id means by now."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    files = [str(tmp_path / name) for name in ("first", "second", "third")]
    try:
        for file in files:
            pumice("dev", "--detach", "--nodes", "1", "--kubeconfig", file, **state)
        rows = pumice("dev", "status", **state).stdout.splitlines()[1:]
        assert [row.split()[3] for row in rows] == files
        os.kill(int(rows[0].split()[1]), signal.SIGKILL)

        def gone() -> bool:
            listed = pumice("dev", "status", **state).stdout.splitlines()[1:]
            return [row.split()[3] for row in listed] == files[1:]

        wait_until(gone, "the killed cluster is not listed")
        doubtful = pumice("dev", "stop", **state)
        assert doubtful.returncode == 2
        assert (
            f"2 clusters run; name one by --kubeconfig, or --all: {files[1]}, " in doubtful.stderr
        )
        stopped = pumice("dev", "stop", "--kubeconfig", files[2], **state)
        assert stopped.stderr == f"stopped the cluster of {files[2]}\n"
    finally:
        stopped = pumice("dev", "stop", "--all", **state)
    assert stopped.stderr == f"stopped the cluster of {files[1]}\n"
