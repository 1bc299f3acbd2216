"""`pumice job logs` and `explain --logs` against the embedded server, with a proxy that has the logs, as kubelets have."""

import asyncio
import json
import threading
from collections.abc import Iterator

import pytest

from pumice.cluster.client import Client
from tests.integration.cli.kubelets import RUNS, Kubelets, ended, fill, line, made
from tests.integration.cli.servers import Server, ran


@pytest.fixture
def kubelets() -> Iterator[Kubelets]:
    with Server("4") as server, Kubelets(server) as found:
        yield found


def test_all_pods_in_the_order_of_the_lines(kubelets: Kubelets) -> None:
    pods = {"train-worker-0": ended(0), "train-worker-1": RUNS, "train-ps-0": ended(3)}
    waiting = {"phase": "Pending"}
    asyncio.run(fill(kubelets.server.url, pods | {"train-worker-2": waiting}))
    kubelets.logs = {
        ("train-worker-0", "main"): line(1, "begin") + line(4, "end\x1b[2J"),
        ("train-worker-1", "main"): line(2.5, "step"),
        ("train-ps-0", "main"): line(2, "serve") + line(3, "boom"),
    }
    told = ran("job", "logs", "train", "--master", kubelets.url)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "[train-worker-0] begin",
        "[train-ps-0] serve",
        "[train-worker-1] step",
        "[train-ps-0] boom",
        "[train-worker-0] end",
    ]
    told = ran("job", "logs", "job/train", "--failed", "--since", "90s", "--master", kubelets.url)
    assert told.out.splitlines() == ["[train-ps-0] serve", "[train-ps-0] boom"]
    assert kubelets.asked[-1][2]["sinceSeconds"] == "90"
    told = ran("job", "logs", "train", "--task", "worker", "--master", kubelets.url)
    assert "ps" not in told.out
    told = ran("job", "logs", "train", "--task", "wrker", "--master", kubelets.url)
    assert told.code == 2
    assert "has no pods" in told.err
    assert "ps, worker" in told.err


def test_what_cannot_be_read_is_said(kubelets: Kubelets) -> None:
    pods = {"train-worker-0": ended(0), "train-worker-1": RUNS}
    asyncio.run(fill(kubelets.server.url, pods))
    kubelets.logs = {("train-worker-0", "main"): line(1, "a"), ("train-worker-1", "main"): 400}
    told = ran("job", "logs", "train", "--master", kubelets.url)
    assert told.out == "[train-worker-0] a\n"
    assert told.err == "train-worker-1: container main is waiting to start\n"
    told = ran("job", "logs", "train", "--failed", "--master", kubelets.url)
    assert (told.code, told.out) == (0, "")
    assert told.err == "no container of job/train has failed\n"
    told = ran("job", "logs", "trian", "--master", kubelets.url)
    assert told.code == 2
    assert "job/trian: there is no such Job in namespace default" in told.err
    told = ran("job", "logs", "train", "--since", "soon", "--master", kubelets.url)
    assert told.code == 2
    assert "--since 'soon'" in told.err


def test_the_rights_of_kubectl_logs_are_enough(kubelets: Kubelets) -> None:
    """Without any right on Jobs; and without that on logs one line says so."""
    asyncio.run(fill(kubelets.server.url, {"train-worker-0": ended(0)}))
    kubelets.logs = {("train-worker-0", "main"): line(1, "a")}
    kubelets.forbidden = ("/jobs/train", "/jobs")
    for further in ((), ("-f",)):
        told = ran("job", "logs", "train", *further, "--master", kubelets.url)
        assert (told.code, told.out) == (0, "[train-worker-0] a\n"), told.err
    kubelets.forbidden = ("/jobs/gone",)
    told = ran("job", "logs", "gone", "--master", kubelets.url)
    assert told.code == 2
    assert "job/gone: no pods of a Job of this name in namespace default" in told.err
    kubelets.forbidden = ("/log",)
    told = ran("job", "logs", "train", "--master", kubelets.url)
    assert told.code == 2
    assert "not allowed: pods/log is forbidden" in told.err


def test_a_job_without_pods_is_followed_with_a_note(kubelets: Kubelets) -> None:
    asyncio.run(fill(kubelets.server.url, {}, phase="Completed"))
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert (told.code, told.out) == (0, "")
    assert told.err == "job/train has no pods; `pumice explain job train` says why\n"


def test_a_job_is_followed_to_its_end(kubelets: Kubelets) -> None:
    """Lines of a container that runs are not repeated; a pod that starts later is added."""
    asyncio.run(fill(kubelets.server.url, {"train-worker-0": RUNS}, phase="Completed"))
    kubelets.logs = {("train-worker-0", "main"): line(1, "old")}
    kubelets.following = {
        ("train-worker-0", "main"): [line(2, "new"), line(3, "newer"), line(7, "last")],
        ("train-worker-1", "main"): [line(5, "late")],
    }
    timer = threading.Timer(0.3, lambda: asyncio.run(_add(kubelets.server.url)))
    timer.start()
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    timer.join()
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    assert [each for each in lines if "worker-0" in each] == [
        f"[train-worker-0] {text}" for text in ("old", "new", "newer", "last")
    ]
    assert "[train-worker-1] late" in lines
    followed = [query for name, _, query in kubelets.asked if query.get("follow")]
    assert followed[0]["sinceTime"] == "2026-01-01T00:00:01Z"


async def _add(url: str) -> None:
    async with Client.connect(server=url) as client:
        await made(client, "train-worker-1", RUNS)


def test_too_many_logs_are_refused(kubelets: Kubelets, monkeypatch: pytest.MonkeyPatch) -> None:
    from pumice.cli.live import job_logs

    monkeypatch.setattr(job_logs, "MOST_FOLLOWED", 1)
    pods = {"train-worker-0": ended(0), "train-worker-1": RUNS}
    asyncio.run(fill(kubelets.server.url, pods))
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert told.code == 2
    assert "job/train has 2 logs, expected at most 1 to follow" in told.err


def test_explain_shows_last_lines(kubelets: Kubelets) -> None:
    pods = {"train-worker-0": ended(3), "train-worker-1": ended(3), "train-ps-0": ended(0)}
    asyncio.run(fill(kubelets.server.url, pods))
    kubelets.logs = {("train-worker-0", "main"): b"step 1\n  at line 3\nerror\x1b[2J\n"}
    told = ran("explain", "job/train", "--logs", "2", "--master", kubelets.url, "-o", "json")
    found = json.loads(told.out)
    assert [each["pods"] for each in found["failures"]] == [["train-worker-0", "train-worker-1"]]
    [log] = found["logs"]
    assert (log["pod"], log["lines"]) == ("train-worker-0", ["step 1", "  at line 3", "error"])
    assert kubelets.asked[-1][2]["tailLines"] == "2"
    kubelets.forbidden = ("/log",)
    told = ran("explain", "job/train", "--logs", "2", "--master", kubelets.url)
    assert told.code == 0
    assert "Not allowed to read: pods/log." in told.out
