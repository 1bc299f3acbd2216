"""`pumice web` over HTTP, against the embedded server: what it says is what `explain` says, and who may ask."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

import pumice.web as web_package
from pumice.api.kinds import EVENT, JOB, NODE, POD, POD_GROUP, QUEUE
from pumice.cli.live import watched
from pumice.cluster.client import Client
from tests.integration.cli.pages import Tags, explained, page_of
from tests.integration.cli.running import pumice
from tests.integration.cli.servers import Server, ran
from tests.kit.builders import job, node, pod, pod_group, queue, task
from tests.kit.waiting import until

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A queue with a limit and two Jobs, of which one waits; a gang of another owner that waits, too."""
    with Server("4", components=True) as found:
        asyncio.run(_fill(found.url))
        yield found


async def _fill(url: str) -> None:
    async with Client.connect(server=url) as client:
        await client.create(QUEUE, queue("team", capability={"cpu": "3"}))
        for name in ("first", "second"):
            raw = job(name, [task(cpu="2")], queue="team", minAvailable=1)
            raw["spec"]["tasks"][0]["template"]["metadata"] = {"labels": {"user": "ada"}}
            raw["metadata"]["labels"] = {"user": "ada"}
            await client.create(JOB, raw, "default")
            await asyncio.sleep(0.3)
        other = pod_group("other", 2, queue="team", annotations={"note": HOSTILE})
        await client.create(POD_GROUP, other, "default")
        for number in range(2):
            await client.create(POD, pod(f"other-{number}", group="other", cpu="9"), "default")

        async def is_told() -> bool:
            found = (await client.list(POD_GROUP))["items"]
            told = {each["involvedObject"]["name"] for each in (await client.list(EVENT))["items"]}
            are_told = sum("conditions" in each.get("status", {}) for each in found) == 3
            return are_told and "other-0" in told

        await until(is_told)


async def test_it_says_what_explain_says(server: Server) -> None:
    async with page_of(server.url) as page:
        waiting = await page.data("/waiting")
        told = (await explained(server.url, "-A"))["waiting"]
        assert len(told) == 2
        keys = ("podGroup", "queue", "summary", "message", "numbers", "phase")
        shown = sorted(waiting["gangs"], key=lambda each: str(each["podGroup"]))
        assert [{k: g[k] for k in keys} for g in shown] == [{k: g[k] for k in keys} for g in told]
        assert [g["position"] for g in waiting["gangs"]] == [1, 2]
        named = {(g["namespace"], g["name"], g["kind"], g["user"]) for g in shown}
        assert named == {
            ("default", "second", "Job", "ada"),
            ("default", "other", "PodGroup", None),
        }

        [team] = [q for q in (await page.data("/queues"))["queues"] if q["queue"] == "team"]
        assert team.pop("depth") == 1
        assert team == await explained(server.url, "queue", "team")

        found = await page.data("/gangs/default/second")
        assert found.pop("computing") is False
        assert found.pop("asOf")
        assert found.pop("unreachableSince") is None
        assert found == await explained(server.url, "job", "second")
        assert found["enough"], "so that the comparison is of something"
        [mine] = [g for g in shown if g["name"] == "second"]
        again = await page.data(f"/gangs/{mine['podGroup']}")
        assert again["job"] == "default/second"

        of_pod = await explained(server.url, "pod", "other-0")
        other = await page.data("/gangs/default/other")
        assert {key: other[key] for key in of_pod} == of_pod
        assert [each["name"] for each in other["pods"]] == ["other-0", "other-1"]

        jobs = (await page.data("/jobs"))["jobs"]
        listed = (
            await asyncio.to_thread(ran, "job", "list", "-A", "--master", server.url, "-o", "json")
        ).json
        assert [{k: row[k] for k in listed["jobs"][0]} for row in jobs] == listed["jobs"]

        [shown_node] = (await page.data("/nodes"))["nodes"]
        assert (shown_node["free"]["cpu"], shown_node["usable"]) == ("2", False)
        assert [each["pod"] for each in shown_node["pods"]] == ["default/first-worker-0"]


async def test_every_view_is_a_page_that_can_be_read_without_scripts(server: Server) -> None:
    async with page_of(server.url) as page:
        waiting = await page.html("/waiting")
        data = await page.data("/waiting")
        for gang in data["gangs"]:
            assert gang["name"] in waiting
            assert gang["summary"].partition(";")[0] in waiting
        assert "pumice explain -A" in waiting
        assert "kubectl get podgroups.scheduling.volcano.sh -A" in waiting
        assert "team" in await page.html("/queues")
        assert "first-worker-0" in await page.html("/nodes?node=node1")
        assert "pumice job list -A" in await page.html("/jobs")
        gang = await page.html("/gangs/default/second")
        assert "pumice explain job second -n default" in gang
        only = await page.data("/waiting?user=ada&queue=team&namespace=default")
        assert [each["name"] for each in only["gangs"]] == ["second"]
        assert (await page.data("/jobs?queue=none"))["jobs"] == []
        logs = await page.data("/gangs/default/first?logs=3&pod=first-worker-0")
        assert [each["pod"] for each in logs["logs"]] == ["first-worker-0"]


async def test_each_view_takes_the_filters(server: Server) -> None:
    async with page_of(server.url) as page:

        async def queues(query: str) -> dict[str, list[str]]:
            found = (await page.data(f"/queues?{query}"))["queues"]
            return {
                q["queue"]: sorted(g["podGroup"].partition("-")[0] for g in q["waiting"])
                for q in found
            }

        async def pods(query: str) -> list[str]:
            found = (await page.data(f"/nodes?{query}"))["nodes"]
            return [pod["pod"] for each in found for pod in each["pods"]]

        assert await queues("queue=team") == {"team": ["default/other", "default/second"]}
        assert await queues("queue=default") == {"default": []}
        assert await queues("user=ada") == {"team": ["default/second"]}
        assert await queues("namespace=none") == {}
        for query in ("user=ada", "queue=team&namespace=default"):
            assert await pods(query) == ["default/first-worker-0"]
        for query in ("user=bob", "queue=default", "namespace=none"):
            assert await pods(query) == []
            assert "first-worker-0" not in await page.html(f"/nodes?{query}")
        for view in ("waiting", "queues", "nodes", "jobs"):
            html = await page.html(f"/{view}?user=ada")
            assert "<option selected>ada</option>" in html
            assert "<option>team</option>" in html
        assert 'href="/waiting?queue=team&amp;user=ada"' in await page.html("/queues?user=ada")


async def test_a_view_says_what_it_takes(server: Server) -> None:
    async with page_of(server.url) as page:
        for path, said in (
            ("/nodes?quue=a", "quue=: /nodes takes namespace, queue, user, node, and format"),
            ("/jobs?node=a", "node=: /jobs takes namespace, queue, user, and format"),
            (
                "/gangs/default/first?queue=a",
                "queue=: /gangs/default/first takes pod, logs, and format",
            ),
        ):
            assert (await page.data(path, 400))["message"] == said


async def test_wrong_addresses_have_an_answer_that_says_so(server: Server) -> None:
    async with page_of(server.url) as page:
        assert "there is no such page" in (await page.data("/none", 404))["message"]
        assert "no gang or Job none" in (await page.data("/gangs/default/none", 404))["message"]
        assert "expected html or json" in await page.html("/waiting?format=xml", 400)
        for lines in ("1001", "000000000999999999", "0" * 5000, "-1", "\u0663"):
            said = await page.html(f"/gangs/default/first?logs={lines}", 400)
            assert "expected a number of lines, at most 1000" in said
        for path in ("/static/none.js", "/static/../server.py", "/static/%2e%2e%2fserver.py"):
            await page.html(path, 404)


async def test_nobody_else_may_ask(server: Server) -> None:
    async with page_of(server.url) as page, aiohttp.ClientSession() as stranger:

        async def code(path: str, method: str = "GET", **headers: str) -> int:
            async with stranger.request(
                method, f"{page.base}{path}", headers=headers, allow_redirects=False
            ) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'self'" in policy
                assert "frame-ancestors 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["Cache-Control"] == "no-store"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert not [name for name in answer.headers if name.startswith("Access-Control")]
                return answer.status

        for path in ("/", "/waiting", "/waiting?format=json", "/events", "/?secret=x", "/none"):
            assert await code(path) == 401, path
        secret = page.address.partition("?")[2]
        assert await code(f"/waiting?{secret}", Host="evil.example") == 403
        assert await code(f"/waiting?{secret}", "POST") == 405
        async with stranger.get(
            f"{page.base}//evil.example/?{secret}", allow_redirects=False
        ) as got:
            assert (got.status, got.headers["Location"]) == (303, "/evil.example/")
            cookie = got.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Lax" in cookie
            assert secret.partition("=")[2] not in cookie
        # The port is in the name of the cookie: that of another start is not this one's.
        name, _, value = cookie.partition(";")[0].partition("=")
        assert await code("/waiting", Cookie=f"{name}={value}") == 200
        assert await code("/waiting", Cookie=f"{name}={value}x") == 401
        # Another program on 127.0.0.1 may set cookies of any form, and of this name.
        others = f'state={{"a": "b", c}}; {name}=x; @[]; {name}={value}; last'
        assert await code("/waiting", Cookie=others) == 200
        assert await code("/waiting", Cookie=f"pumice-web-1={value}") == 401
        assert await code("/waiting", Cookie=f"{name}={value}", Host="evil.example") == 403


async def test_names_and_messages_of_others_are_text(server: Server) -> None:
    async with page_of(server.url) as page, Client.connect(server=server.url) as client:
        raw = pod_group("hostile", 1, queue="team", phase="Inqueue")
        raw["metadata"]["annotations"] = {"user": HOSTILE}
        raw["status"]["conditions"] = [
            {"type": "Unschedulable", "status": "True", "reason": HOSTILE, "message": HOSTILE}
        ]
        await client.create(POD_GROUP, raw, "default")
        await client.create(NODE, node("z", labels={"topology.kubernetes.io/zone": "a-b"}))

        async def is_shown() -> bool:
            return "hostile" in await page.html("/waiting")

        try:
            await until(is_shown)
            for path in (
                "/waiting",
                "/gangs/default/hostile",
                "/nodes",
                "/queues",
                "/jobs",
                "/waiting?user=<script>&queue=%22%3E<b>",
            ):
                tags = Tags()
                tags.feed(await page.html(path))
                assert not tags.wrong, path
                assert tags.number > 20
            assert "&lt;script&gt;alert(1)" in await page.html("/waiting")
        finally:
            await client.delete(POD_GROUP, "hostile", "default")
            await client.delete(NODE, "z")


async def test_with_the_rights_of_a_namespace_the_rest_works(server: Server) -> None:
    async with page_of(server.limited) as page:
        data = await page.data("/waiting")
        told = await explained(server.limited)
        assert {"nodes", "queues", "podgroups of all namespaces"} <= {*data["notAllowed"]}
        assert {each["podGroup"]: each["summary"] for each in data["gangs"]} == {
            each["podGroup"]: each["summary"] for each in told["waiting"]
        }
        assert len(data["gangs"]) == 2
        text = await page.html("/waiting")
        assert "You may not read: nodes, " in text
        assert "Only namespace default is shown" in text
        assert (await page.data("/nodes"))["nodes"] == []
        assert "You may not read: nodes" in await page.html("/nodes")
        assert [each["name"] for each in (await page.data("/jobs"))["jobs"]] == ["first", "second"]
        gang = await page.data("/gangs/default/second")
        assert gang["message"] == (await explained(server.limited, "job", "second"))["message"]


async def test_a_stream_of_events_says_when_there_is_something_new(server: Server) -> None:
    async with page_of(server.url) as page, Client.connect(server=server.url) as client:
        await page.data("/waiting")
        async with page.session.get(f"{page.base}/events") as stream:
            assert stream.content_type == "text/event-stream"
            await client.create(QUEUE, queue("late"))
            while not (line := await asyncio.wait_for(stream.content.readline(), 20)).startswith(
                b"event"
            ):
                assert line
            assert line == b"event: change\n"
        names = [each["queue"] for each in (await page.data("/queues"))["queues"]]
        assert "late" in names
        await client.delete(QUEUE, "late")


async def test_while_the_api_server_is_lost_the_page_says_how_old_it_is(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "_BEAT_SECONDS", 0.1)
    monkeypatch.setattr(server, "limits", False)
    async with page_of(server.limited) as page, Client.connect(server=server.url) as client:
        assert (await page.data("/waiting"))["unreachableSince"] is None

        async def is_lost() -> bool:
            return (await page.data("/waiting"))["unreachableSince"] is not None

        async def is_back() -> bool:
            return not await is_lost()

        async def is_shown() -> bool:
            data = await page.data("/queues")
            return "meanwhile" in [each["queue"] for each in data["queues"]]

        server.is_down = True
        try:
            await until(is_lost)
            assert "The API server does not answer. What is shown is as of" in await page.html(
                "/waiting"
            )
            assert len((await page.data("/waiting"))["gangs"]) == 2
            assert (await page.data("/gangs/default/second"))["enough"]
            await client.create(QUEUE, queue("meanwhile"))
        finally:
            server.is_down = False
        await until(is_shown)
        await until(is_back)
        assert "does not answer" not in await page.html("/waiting")
        await client.delete(QUEUE, "meanwhile")


def test_a_cluster_in_the_background_serves_the_page_until_it_is_stopped(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    started = pumice("dev", "--detach", "--web", "--nodes", "1", **state)
    assert started.returncode == 0, started.stderr
    export, page = started.stdout.splitlines()
    assert export.startswith("export KUBECONFIG=")
    try:
        with pytest.raises(urllib.error.HTTPError, match="401"):  # a client without cookies
            urllib.request.urlopen(page.removeprefix("# "), timeout=60)
    finally:
        assert pumice("dev", "stop", **state).returncode == 0


def test_all_that_a_browser_loads_is_less_than_100_kilobytes() -> None:
    folder = Path(web_package.__file__).parent
    files = [each for each in folder.rglob("*") if each.suffix in (".html", ".css", ".js", ".svg")]
    assert len(files) > 8
    assert sum(each.stat().st_size for each in files) < 100_000
    for each in files:
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", each.read_text("utf-8")), each
