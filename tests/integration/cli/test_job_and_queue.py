"""`pumice job` and `pumice queue` against the embedded server: lists, and Commands that a controller carries out, or none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import HYPER_NODE, JOB, QUEUE
from pumice.cli.live import observed
from pumice.cluster.client import Client
from tests.integration.cli.filled import RACK, commands, fill, made, removed
from tests.integration.cli.servers import Server, ran
from tests.kit.builders import job, queue, task
from tests.unit.cli.conftest import Ran

_JOB_KEYS = [
    "namespace",
    "name",
    "queue",
    "phase",
    "minAvailable",
    "replicas",
    "pending",
    "running",
    "succeeded",
    "failed",
    "retries",
    "priorityClassName",
    "creationTimestamp",
    "waiting",
    "position",
    "gangsWaiting",
    "reason",
]
_QUEUE_KEYS = [
    "name",
    "parent",
    "state",
    "pending",
    "inqueue",
    "running",
    "unknown",
    "completed",
    "weight",
    "priority",
    "capability",
    "allocated",
    "creationTimestamp",
    "reason",
]
_NUMBERS = "needs 2 × 3 cpu; 1 pod has a place; the largest place left is 1 cpu (node1); nodes have room for 1 of 2 such pods, even when empty"


@pytest.fixture(scope="module")
def still() -> Iterator[Server]:
    """A cluster in which no controller works."""
    with Server("4") as found:
        fill(found.url)
        yield found


@pytest.fixture(scope="module")
def live() -> Iterator[Server]:
    """A cluster with controller and scheduler, a Job that runs and one that does not fit."""
    with Server("4", components=True) as found:
        for name, cpu in (("fits", "1"), ("big", "9")):
            made(found.url, JOB, job(name, [task("w", 2, cpu=cpu)], minAvailable=2))
        yield found


def test_a_list_has_a_line_a_job_in_order(still: Server) -> None:
    told = ran("job", "list", "--master", still.url)
    assert (told.code, told.err) == (0, "")
    assert [" ".join(line.split()[:6] + line.split()[7:]) for line in told.out.splitlines()] == [
        "NAME QUEUE PHASE MIN RUNNING POSITION REASON",
        f"big default Pending 2 0/2 2/3 {_NUMBERS}",
        "broken default Failed 2 0/2 - pod x failed",
        "busy default Running 2 2/2 -",
        "done default Completed 2 0/2 -",
        f"more default Pending 2 0/2 3/3 {_NUMBERS}",
    ]
    wide = ran("job", "list", "-A", "-o", "wide", "--master", still.url)
    assert wide.out.split()[:2] == ["NAMESPACE", "NAME"]
    assert "RETRIES" in wide.out


def test_positions_are_those_of_explain(still: Server) -> None:
    told = ran("job", "list", "-o", "json", "--master", still.url).json
    assert [sorted(each) for each in told["jobs"]] == [sorted(_JOB_KEYS)] * 5
    explained = ran("explain", "queue", "default", "-o", "json", "--master", still.url).json
    line = [
        each["podGroup"].rpartition("/")[2].partition("-uid")[0] for each in explained["waiting"]
    ]
    reasons = [each["summary"] for each in explained["waiting"]]
    assert line[0] == "other"
    waiting = sorted((each["position"], each) for each in told["jobs"] if each["waiting"])
    assert [place for place, _ in waiting] == [2, 3]
    assert [each["reason"] for _, each in waiting] == reasons[1:]
    assert all(line[place - 1].startswith(each["name"]) for place, each in waiting)


def test_forecasts_stand_beside_reasons(still: Server) -> None:
    told = ran("job", "list", "--forecast", "-o", "json", "--master", still.url).json
    found = {each["name"]: each["forecast"] for each in told["jobs"]}
    assert found["busy"] is None
    assert found["big"]["seconds"] is None
    assert found["big"]["message"].startswith("does not start")
    text = ran("explain", "job", "big", "--forecast", "--master", still.url).out
    assert f"\nForecast: {found['big']['message']}\n" in text
    odd = job("odd", annotations={"pumice.dev/duration": "abc"})
    made(still.url, JOB, odd)
    for verb in (("job", "list"), ("explain", "job", "big")):
        err = ran(*verb, "--forecast", "--master", still.url).err
        assert err.startswith("annotation pumice.dev/duration of Job default/odd is ignored: ")
        assert err.count("\n") == 1
    removed(still.url, JOB, "odd")
    limited = ran("job", "list", "--forecast", "--master", still.limited)
    assert "no forecast: it needs nodes" in limited.out
    refused = ran("explain", "queue", "default", "--forecast", "--master", still.url)
    assert (refused.code, "name one" in refused.err) == (2, True)


def test_a_list_costs_few_requests(still: Server) -> None:
    still.limits = False
    try:
        for selector, expected in (
            ("waits=no", ["jobs"]),
            ("waits!=no", ["jobs", "nodes", "podgroups", "pods", "queues", "priorityclasses"]),
        ):
            still.paths.clear()
            assert ran("job", "list", "-l", selector, "--master", still.limited).code == 0
            assert [each.rpartition("/")[2] for each in still.paths] == expected
    finally:
        still.limits = True


def test_a_list_with_the_rights_of_a_namespace(still: Server) -> None:
    told = ran("job", "list", "-l", "waits!=no", "--master", still.limited)
    assert told.code == 0
    assert told.err == (
        "Not allowed to read: nodes, queues, priorityclasses. Positions are left out, and reasons are those "
        "on the PodGroups and Jobs.\n"
    )
    big = told.out.splitlines()[1]
    assert big.split()[:6] == ["big", "default", "Pending", "2", "0/2", "-"]
    assert big.endswith("2 of 2 pods do not run yet")
    assert ran("job", "list", "-A", "--master", still.limited).err == (
        'pumice job list: not allowed: jobs is forbidden: User "ann" cannot list it at the cluster scope\n'
    )


def test_one_job_and_other_forms(still: Server) -> None:
    told = ran("job", "get", "vcjob/big", "--master", still.url)
    assert "Position: 2/3 of the gangs that wait in the queue\n" in told.out
    assert f"Reason:   {_NUMBERS}\n" in told.out
    data = ran("job", "get", "big", "-o", "json", "--master", still.url).json
    assert sorted(data) == sorted([*_JOB_KEYS, "tasks", "phases", "notAllowed"])
    assert data["tasks"] == [{"name": "w", "replicas": 2, "minAvailable": 2, "pods": {}}]
    assert ran("job", "get", "big", "-o", "yaml", "--master", still.url).out.startswith(
        "---\nnamespace: default\nname: big\n"
    )
    names = ran("job", "list", "-o", "name", "-l", "waits=no", "--master", still.url)
    assert names.out.split() == [
        f"job.batch.volcano.sh/{each}" for each in ("broken", "busy", "done")
    ]
    empty = ran("job", "list", "-n", "empty", "--master", still.url)
    assert empty.out == "no Jobs in namespace empty\n"


def test_watch_prints_again_what_has_changed(
    still: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = []

    async def change(client: Client, seen: observed.ReadableCluster) -> None:
        turns.append([kind.plural for kind, _, _ in seen.versions])
        if len(turns) == 2:  # nothing had changed before
            await client.create(JOB, job("late", namespace="watched"), "watched")
        if len(turns) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(observed, "change", change)
    told = ran("job", "list", "-n", "watched", "-w", "-o", "json", "--master", still.url)
    assert told.code == 130
    lists = [json.loads(line)["jobs"] for line in told.out.splitlines()]
    assert [[each["name"] for each in one] for one in lists] == [[], ["late"]]
    assert turns == [["jobs"], ["jobs"], ["jobs", "podgroups"]]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("suspend", "nope"),
            2,
            "pumice job suspend: job/nope: there is no such Job in namespace default",
        ),
        (("suspend", "queue/x"), 2, "pumice job suspend: 'queue/x': expected NAME or job/NAME"),
        (("suspend", "big", "--timeout", "soon"), 2, "--timeout 'soon': expected a duration"),
        (
            ("suspend", "done"),
            1,
            "job.batch.volcano.sh/done is Completed: a Job that has ended, or",
        ),
        (
            ("resume", "broken"),
            1,
            "job.batch.volcano.sh/broken is Failed: a Job that has ended, or",
        ),
    ],
)
def test_what_cannot_be_done_makes_no_command(
    still: Server, arguments: tuple[str, ...], code: int, message: str
) -> None:
    told = ran("job", *arguments, "--master", still.url)
    assert (told.code, told.out) == (code, "")
    assert message in told.err
    assert told.err.count("\n") == 1
    assert commands(still.url) == []


def test_without_a_controller_the_command_stays(still: Server) -> None:
    told = ran("job", "suspend", "busy", "--timeout", "100ms", "--master", still.url)
    assert told.code == 1
    [command] = commands(still.url)
    meta = command["metadata"]
    assert told.err.startswith(
        f"job.batch.volcano.sh/busy no controller has carried out Command default/{meta['name']} after 0.1 s; "
        "is `pumice controller` running?"
    )
    assert meta["name"].startswith("busy-abortjob-")
    [owner] = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "busy", True)
    assert (command["action"], command["target"]) == ("AbortJob", owner)
    sent = ran("queue", "close", "default", "--timeout", "0", "-o", "json", "--master", still.url)
    [command] = commands(still.url)
    assert command["target"]["kind"] == "Queue"
    assert sent.json == {
        "results": [
            {
                "object": "default",
                "action": "CloseQueue",
                "command": command["metadata"]["name"],
                "state": "Open",
                "done": True,
                "message": "",
            }
        ]
    }


def order(live: Server, *arguments: str) -> Ran:
    return ran(*arguments, "--master", live.url)


def test_a_job_is_suspended_and_resumed(live: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    done = order(live, "job", "resume", "fits", "--wait")
    assert (done.code, done.out) == (0, "job.batch.volcano.sh/fits already resumed (Running)\n")
    done = order(live, "job", "suspend", "fits", "--wait")
    assert (done.code, done.out) == (0, "job.batch.volcano.sh/fits suspended (Aborted)\n")
    again = order(live, "job", "suspend", "fits", "-o", "json").json["results"][0]
    assert (again["command"], again["state"], again["done"]) == ("", "Aborted", True)
    [row] = order(live, "job", "get", "fits", "-o", "json").json["phases"][-1:]
    assert row["phase"] == "Aborted"
    done = order(live, "job", "resume", "job/fits", "--wait")
    assert (done.code, done.out) == (0, "job.batch.volcano.sh/fits resumed (Running)\n")


def test_waiting_ends_with_the_reason(live: Server) -> None:
    told = order(live, "job", "resume", "big", "--wait", "--timeout", "300ms")
    assert (told.code, told.out) == (1, "")
    assert "job.batch.volcano.sh/big is Pending after 0.3 s, expected Running: " in told.err


def test_queues_are_closed_and_opened(live: Server) -> None:
    made(live.url, QUEUE, queue("team", state=""), None)
    made(live.url, QUEUE, queue("below", state="", parent="team"), None)
    assert order(live, "queue", "open", "below", "--wait").code == 0
    done = order(live, "queue", "close", "team", "--wait")
    assert (done.code, done.out) == (0, "queue.scheduling.volcano.sh/team closed (Closed)\n")
    stays = order(live, "queue", "open", "below")
    assert (stays.code, stays.out) == (1, "")
    assert "below is Closed after " in stays.err
    assert "queue team above it is closed" in stays.err
    listed = order(live, "queue", "list", "-o", "json").json["queues"]
    assert [sorted(each) for each in listed] == [sorted(_QUEUE_KEYS)] * 4
    assert [(each["name"], each["state"]) for each in listed] == [
        ("below", "Closed"), ("default", "Open"), ("root", "Open"), ("team", "Closed"),
    ]  # fmt: skip
    assert "closed by its user" in order(live, "queue", "list").out
    opened = order(live, "queue", "open", "q/team")
    assert opened.out == "queue.scheduling.volcano.sh/team opened (Open)\n"
    busy = order(live, "queue", "close", "default", "root", "--wait", "--timeout", "300ms")
    assert busy.code == 1
    assert "default is Closing after 0.3 s, expected Closed: 2 PodGroups in it" in busy.err
    assert "root holds all other queues" in busy.err
    assert order(live, "queue", "open", "default").code == 0


def test_a_job_is_tried_in_the_cluster_and_not_submitted(still: Server, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"

    def tried(name: str, cpu: str, pods: int, url: str = still.url, **spec: Any) -> Ran:
        raw = job(name, [task("w", pods, cpu=cpu)], minAvailable=pods, **spec)
        file.write_text(json.dumps(raw))
        return ran("simulate", "--live", str(file), "-o", "json", "--master", url)

    fits = tried("small", "1", 2)
    assert fits.code == 0, fits.err
    assert fits.json == {
        "job": "default/small",
        "fitsNow": True,
        "forecast": {"seconds": 0.0, "message": "starts now (if nothing changes)"},
        "podsNow": 2,
        "replicas": 2,
    }
    noted = job("small", annotations={"pumice.dev/duration": "abc"})
    file.write_text(json.dumps(noted))
    told = ran("simulate", "--live", str(file), "--master", still.url)
    assert (told.code, "duration of Job default/small is ignored" in told.err) == (0, True)
    assert told.out.startswith("Job default/small: starts now (if nothing changes)\n")
    large = tried("large", "2", 3)
    assert (large.code, large.json["fitsNow"], large.json["podsNow"]) == (1, False, 2)
    assert large.json["forecast"]["message"].startswith("does not start")
    taken = tried("big", "1", 1)
    assert (taken.code, "Job default/big exists" in taken.err) == (2, True)
    other = tried("small", "1", 2, schedulerName="other")
    assert (other.code, "only that of volcano is" in other.err) == (2, True)
    hurry = tried("small", "1", 2, priorityClassName="urgent")
    assert (hurry.code, 'there is no PriorityClass "urgent"' in hurry.err) == (1, True)
    assert tried("small", "1", 2, priorityClassName="system-node-critical").code == 0
    raw = job("small", [task("w", 1)], namespace="nowhere")
    file.write_text(json.dumps(raw))
    lost = ran("simulate", "--live", str(file), "--master", still.url)
    assert (lost.code, "there is no namespace nowhere" in lost.err) == (2, True)
    limited = tried("small", "1", 2, still.limited)
    assert (limited.code, "no forecast: it needs nodes" in limited.err) == (2, True)
    made(still.url, HYPER_NODE, RACK, None)  # no gang that is there asks for one
    hard = {"mode": "hard", "highestTierAllowed": 1}
    apart = tried("small", "1", 2, networkTopology=hard)
    assert (apart.code, apart.json["fitsNow"]) == (1, False)
    removed(still.url, HYPER_NODE, "rack")
    names = [
        each["name"]
        for each in ran("job", "list", "-o", "json", "--master", still.url).json["jobs"]
    ]
    assert not {"small", "large"} & set(names)
