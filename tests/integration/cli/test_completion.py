"""Shells complete the names of Jobs, queues and pods that the cluster has."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from pumice.api.kinds import JOB, POD, QUEUE
from pumice.cli import app, main
from pumice.cli.live import names
from pumice.cluster.client import Client
from tests.integration.cli.servers import Server
from tests.kit.builders import job, pod, queue


async def fill(url: str) -> None:
    async with Client.connect(server=url) as client:
        for name in ("research", "reserve", "vision"):
            await client.create(QUEUE, queue(name))
        for name in ("train", "trial", "other"):
            await client.create(JOB, job(name), "default")
        await client.create(POD, pod("train-worker-0", cpu="1"), "default")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("4") as found:
        asyncio.run(fill(found.url))
        yield found


def completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> list[str]:
    """What bash would offer behind a line; nothing may be said on stderr."""
    monkeypatch.setenv(app.COMPLETION_VARIABLE, "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main([])
    told = capsys.readouterr()
    assert told.err == ""
    return told.out.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pumice job suspend --master {url} t", ["train", "trial"]),
        ("pumice job suspend --master {url} train t", ["trial"]),
        ("pumice job get --master {url} ", ["other", "train", "trial"]),
        ("pumice job get --master {url} -n elsewhere ", []),
        ("pumice queue close --master {url} res", ["research", "reserve"]),
        ("pumice explain --master {url} queue v", ["vision"]),
        ("pumice explain --master {url} q/v", ["q/vision"]),
        ("pumice explain --master {url} pod ", ["train-worker-0"]),
        ("pumice explain --master {url} jo", ["job", "jobflow"]),
        ("pumice explain --master {url} o", ["other"]),
        ("pumice explain --master {url} job/train ", []),
    ],
)
def test_names_are_those_of_the_cluster(
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    expected: list[str],
) -> None:
    assert completed(monkeypatch, capsys, line.format(url=server.url)) == expected


def test_without_a_cluster_nothing_is_offered_and_nothing_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "pumice job get --master http://127.0.0.1:1 "
    assert completed(monkeypatch, capsys, line) == []
    line = "pumice job get --kubeconfig /no/such "
    assert completed(monkeypatch, capsys, line) == []


def test_a_cluster_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(names, "_SECONDS", 0.1)

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        line = f"pumice job get --master http://127.0.0.1:{silent.getsockname()[1]} "
        assert completed(monkeypatch, capsys, line) == []
