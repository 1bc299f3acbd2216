"""`pumice job logs` with what kubelets answer, as it is recorded, and with logs and watches that end before their time."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from pumice.api.kinds import POD
from pumice.cli.live import job_logs
from pumice.cluster.client import Client
from tests.integration.cli.kubelets import (
    RUNS,
    Answer,
    Kubelets,
    ended,
    fill,
    line,
    made,
    restarted,
    set_status,
)
from tests.integration.cli.servers import Server, ran
from tests.kit import tables

POD_NAME = "train-worker-0"
CASES = tables.table("cli/kubelets")
ends = partial(set_status, name=POD_NAME, status=ended(0))


@pytest.fixture
def kubelets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kubelets]:
    monkeypatch.setattr(job_logs, "_STATUS_SECONDS", 0.3)
    monkeypatch.setattr(job_logs, "_AGAIN", 0.1)
    with Server("4") as server, Kubelets(server) as found:
        yield found


@pytest.fixture(scope="module")
def filled() -> Iterator[Kubelets]:
    with Server("4") as server, Kubelets(server) as found:
        asyncio.run(fill(server.url, {POD_NAME: restarted(1)}))
        yield found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"])
def test_recorded_answers(filled: Kubelets, case: dict[str, Any]) -> None:
    chunks = tuple(each.encode("latin-1") for each in case["chunks"])
    answer = Answer(chunks, case.get("status", 200), broken=case.get("broken", False))
    filled.answers = {POD_NAME: [answer]}
    failed = case.get("failed", False)
    told = ran("job", "logs", "train", *(["--failed"] if failed else []), "--master", filled.url)
    prefix = f"[{POD_NAME}] " if failed else f"[{POD_NAME}#2] "
    assert [each.removeprefix(prefix) for each in told.out.splitlines()] == case.get("out", [])
    assert told.code == 0
    if expected := case.get("err"):
        title = prefix.strip("[] ")
        assert told.err.startswith(f"{title}: {expected}")
        assert told.err.count("\n") == 1
    else:
        assert told.err == ""


@pytest.mark.parametrize("broken", [False, True])
def test_a_log_that_ends_before_its_container_is_followed_on(
    kubelets: Kubelets, broken: bool
) -> None:
    """A load balancer or an API server that restarts ends the answer, perhaps within a line."""
    asyncio.run(fill(kubelets.server.url, {POD_NAME: RUNS}, phase="Completed"))
    kubelets.answers[POD_NAME] = [
        Answer((line(1, "a"),)),
        Answer((line(1, "a"), line(2, "b"), line(3, "half")[:-3]), broken=broken),
        Answer((line(2, "b"), line(3, "half"), line(4, "c")[:-1]), then=ends),
    ]
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [f"[{POD_NAME}] {each}" for each in ("a", "b", "half", "c")]
    assert kubelets.asked[-1][2]["sinceTime"] == "2026-01-01T00:00:02Z"


def test_a_node_that_does_not_answer_is_named_once_and_asked_again(kubelets: Kubelets) -> None:
    asyncio.run(fill(kubelets.server.url, {POD_NAME: RUNS}, phase="Completed"))
    [refusal] = [each for each in CASES if each.get("status") == 500]
    lost = Answer((refusal["chunks"][0].encode(),), 500)
    kubelets.answers[POD_NAME] = [Answer(()), lost, lost, Answer((line(1, "a"),), then=ends)]
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert (told.code, told.out) == (0, f"[{POD_NAME}] a\n")
    assert told.err == f"{POD_NAME}: {refusal['err']}; tried again\n"


def test_pods_are_watched_again_where_the_watch_is_too_old_or_ends(kubelets: Kubelets) -> None:
    """As the API server says it in a watch that has begun (Kubernetes, API concepts: 410 Gone responses)."""
    status = '"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure"'
    why = '"message":"too old resource version: 1 (2)","reason":"Expired","code":410'
    gone = f'{{"type":"ERROR","object":{{{status},{why}}}}}\n'.encode()
    asyncio.run(fill(kubelets.server.url, {POD_NAME: RUNS}, phase="Completed"))
    late = partial(made, name="train-worker-1", status=ended(0))
    seen = asyncio.Event()

    async def shown(_: Client) -> None:
        seen.set()

    async def last(client: Client) -> None:
        await asyncio.wait_for(seen.wait(), 10)
        await ends(client)

    kubelets.watches = [Answer((), then=late), Answer((gone,))]
    kubelets.answers = {
        POD_NAME: [Answer(()), Answer((line(1, "a"),), then=last)],
        "train-worker-1": [Answer((line(2, "late"),), then=shown)],
    }
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [f"[{POD_NAME}] a", "[train-worker-1] late"]


async def _remade(client: Client) -> None:
    await client.delete(POD, POD_NAME, "default")
    await made(client, POD_NAME, RUNS)


@pytest.mark.parametrize(
    "again", [partial(set_status, name=POD_NAME, status=restarted(1)), _remade]
)
def test_lines_of_a_second_run_are_marked(kubelets: Kubelets, again: Any) -> None:
    """Whether the container was restarted in its pod, or the pod was made again while its log was followed."""
    asyncio.run(fill(kubelets.server.url, {POD_NAME: RUNS}, phase="Completed"))
    kubelets.answers[POD_NAME] = [
        Answer((line(1, "begin"),)),
        Answer((line(2, "boom"),), then=again),
        Answer((line(5, "again"),), then=ends),
    ]
    told = ran("job", "logs", "train", "-f", "--master", kubelets.url)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        f"[{POD_NAME}] begin",
        f"[{POD_NAME}] boom",
        f"[{POD_NAME}#2] again",
    ]


@pytest.mark.parametrize(
    ("status", "run", "failed"),
    [(restarted(2), 3, 2), (restarted(2, waits=True), 3, 3), (ended(1), 1, 1)],
)
def test_the_run_is_that_of_the_lines(
    kubelets: Kubelets, status: dict[str, Any], run: int, failed: int
) -> None:
    """With --failed it is the last that failed, which is the present one where the next has not started yet."""
    asyncio.run(fill(kubelets.server.url, {POD_NAME: status}))
    kubelets.logs[POD_NAME, "main"] = line(1, "a")
    for number, options in ((run, ()), (failed, ("--failed",))):
        told = ran("job", "logs", "train", *options, "--master", kubelets.url)
        mark = f"#{number}" if number > 1 else ""
        assert (told.out, told.err) == (f"[{POD_NAME}{mark}] a\n", "")
