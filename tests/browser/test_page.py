"""The page of `pumice web` in a real browser, on a cluster of `pumice dev`: it follows without being loaded again, and works for everybody.

`PUMICE_SCREENSHOTS` names a folder for the pictures of docs/web.md.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from pumice.api.kinds import JOB, POD_GROUP, QUEUE, Kind
from pumice.cluster.client import Client
from tests.browser.driving import SECONDS, page_at
from tests.integration.cli.running import Running, running
from tests.integration.cli.servers import ran
from tests.kit.builders import job, node, pod_group, queue, task
from tests.kit.waiting import wait_until

VIEWS = ("/waiting", "/queues", "/nodes?node=node1", "/jobs", "/gangs/default/waits")
ZONE = "topology.kubernetes.io/zone"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


class Cluster:
    """A cluster of `pumice dev`, and the page on it.

    Attributes:
        kubeconfig: Its kubeconfig.
        process: The process of the cluster.
        address: The page, with the secret.
        base: The same without it.
    """

    def __init__(self, kubeconfig: str, process: Running) -> None:
        self.kubeconfig = kubeconfig
        self.process = process
        self.address = self.base = ""

    def opened(self, address: str) -> None:
        self.address = address
        self.base = address.partition("/?")[0]

    def create(self, kind: Kind, *raws: dict[str, Any]) -> None:
        async def create(client: Client) -> None:
            for raw in raws:
                await client.create(kind, raw, "default" if kind.namespaced else None)

        self._do(create)

    def delete(self, kind: Kind, name: str) -> None:
        self._do(lambda client: client.delete(kind, name, "default"))

    def _do(self, what: Callable[[Client], Coroutine[Any, Any, object]]) -> None:
        async def do() -> None:
            async with Client.connect(self.kubeconfig) as client:
                await what(client)

        _elsewhere(lambda: asyncio.run(do()))

    def explained(self, *arguments: str) -> Any:
        options = ("-o", "json", "--kubeconfig", self.kubeconfig)
        told = _elsewhere(lambda: ran("explain", *arguments, *options))
        assert told.code == 0, told.err
        return told.json


def _elsewhere(what: Callable[[], Any]) -> Any:
    """Do something in a thread: Playwright's event loop runs in that of the test."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(what).result()


@pytest.fixture(scope="module", autouse=True)
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Three large nodes and many small ones; they start while the browser does."""
    state = tmp_path_factory.mktemp("state") / "nodes.json"
    nodes = [node(f"node{each}", "8", labels={ZONE: "a"}) for each in range(1, 4)]
    nodes += [node(f"small{each}", "2", labels={ZONE: "ab"[each % 2]}) for each in range(45)]
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    with running("dev", "--state", str(state), "--run-delay", "20ms") as found:
        yield found


@pytest.fixture(scope="module")
def cluster(dev: Running) -> Iterator[Cluster]:
    """A Job runs on the large nodes, others on small ones, and two wait, of which one never fits."""
    file = dev.line("export KUBECONFIG=").partition("=")[2]
    with running("web", "--no-browser", KUBECONFIG=file) as web:
        found = Cluster(file, dev)
        limits = {"cpu": "96", "memory": "512Gi"}
        shares = {"cpu": "64", "memory": "256Gi"}
        held = {"resource": {"cpu": "8"}}
        team = queue("team", capability=limits, deserved=shares, guarantee=held)
        found.create(QUEUE, team, queue("vision"))
        found.create(
            JOB,
            _job("train", 14, "2", "grace", queue="vision"),
            _job("sweep", 9, "1", "alan", queue="vision"),
            _job("holds", 3, "6", "ada"),
            _job("waits", 2, "4", "grace"),
            _job("huge", 2, "9", "alan", queue="default"),
        )
        found.opened(web.line("http://127.0.0.1:"))  # which has started meanwhile
        wait_until(lambda: len(found.explained("-A")["waiting"]) == 2)
        yield found


def _job(name: str, size: int, cpu: str, user: str, queue: str = "team") -> dict[str, Any]:
    raw = job(name, [task(replicas=size, cpu=cpu, memory="4Gi")], queue=queue, minAvailable=size)
    raw["metadata"]["labels"] = {"user": user}
    return raw


@contextmanager
def page_of(browser: Browser, cluster: Cluster, **options: Any) -> Iterator[Page]:
    """The view of what waits."""
    with page_at(browser, cluster.address, **options) as page:
        expect(page).to_have_url(f"{cluster.base}/waiting")
        yield page


def picture(page: Page, name: str) -> None:
    """Take a picture of a page, for the documentation if it is asked for."""
    folder = os.environ.get("PUMICE_SCREENSHOTS")
    taken = page.screenshot(path=Path(folder, f"{name}.png") if folder else None)
    assert len(taken) > 5_000, "something is on it"


def test_a_gang_waits_runs_and_is_gone_and_the_page_follows(
    browser: Browser, cluster: Cluster
) -> None:
    with page_of(browser, cluster) as page:
        page.evaluate("window.loadedOnce = true")
        expect(page.locator("h1")).to_have_text("2 gangs wait", timeout=SECONDS)
        told = {each["owner"]: each for each in cluster.explained("-A")["waiting"]}
        for name in ("waits", "huge"):
            row = page.locator("tr", has=page.get_by_role("link", name=f"default/{name}"))
            expect(row.locator("summary").first).to_have_text(told[f"Job/{name}"]["summary"])
        row = page.locator("tr", has=page.get_by_role("link", name="default/huge"))
        row.locator("summary").click()
        expect(row.locator("details > p").first).to_have_text(told["Job/huge"]["message"])
        picture(page, "web-waiting")

        cluster.create(JOB, _job("late", 1, "3", "ada"))
        late = page.get_by_role("link", name="default/late", exact=True)
        expect(late).to_be_visible(timeout=SECONDS)
        expect(page.locator("#said")).to_have_text("3 gangs wait")
        expect(row.locator("details")).to_have_attribute("open", "")  # as the reader has left it
        cluster.delete(JOB, "holds")
        expect(page.locator("h1")).to_have_text("1 gang waits", timeout=SECONDS)
        expect(late).to_have_count(0)
        assert page.evaluate("window.loadedOnce") is True

        page.get_by_role("link", name="Jobs").click()
        phase = page.locator("tr", has=page.get_by_role("link", name="default/late")).locator(
            ".phase"
        )
        expect(phase).to_have_text("Running", timeout=SECONDS)
        page.evaluate("window.loadedOnce = true")
        cluster.delete(JOB, "late")
        expect(phase).to_have_count(0, timeout=SECONDS)
        assert page.evaluate("window.loadedOnce") is True
        cluster.create(JOB, _job("holds", 3, "7", "ada"))


def test_the_page_of_a_gang_says_what_explain_says(browser: Browser, cluster: Cluster) -> None:
    with page_of(browser, cluster) as page:
        page.goto(f"{cluster.base}/gangs/default/huge")
        found = cluster.explained("job", "huge")
        expect(page.locator("h1")).to_have_text(found["message"], timeout=SECONDS)
        enough = page.get_by_role("region", name="What would be enough").get_by_role("listitem")
        expect(enough).to_have_text([each["text"] for each in found["enough"]], timeout=SECONDS)
        pods = page.get_by_role("region", name="Table of pods").get_by_role("rowheader")
        expect(pods).to_have_text([each["name"] for each in found["pods"]])
        for path in ("/queues", "/nodes"):
            page.goto(cluster.base + path)
            expect(page.locator("h1")).to_have_text(re.compile(r"^\d"))
            picture(page, f"web-{path[1:]}")


def test_axe_finds_nothing_and_nothing_is_wider_than_a_telephone(
    browser: Browser, cluster: Cluster
) -> None:
    axe = Axe()
    contrast = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
    with page_of(browser, cluster) as page:
        for path in VIEWS:
            page.goto(cluster.base + path)
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            page.emulate_media(color_scheme="light")
            found = axe.run(page)
            assert not found.violations_count, f"{path}: {found.generate_report()}"
            page.emulate_media(color_scheme="dark")
            dark = page.evaluate("options => axe.run(options)", contrast)  # it is loaded by now
            assert not dark["violations"], f"{path} (dark): {dark['violations']}"
            for width in (360, 3840):
                page.set_viewport_size({"width": width, "height": 560})
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{path}: {wide} of {width}"


def test_everything_is_reached_by_keyboard(browser: Browser, cluster: Cluster) -> None:
    with page_of(browser, cluster) as page:
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        summary = page.locator("summary").first
        for _ in range(20):
            page.keyboard.press("Tab")
            if summary.evaluate("each => each === document.activeElement"):
                break
        page.keyboard.press("Enter")
        expect(page.locator("details").first).to_have_attribute("open", "")
        page.goto(f"{cluster.base}/nodes")
        cells = page.get_by_role("region", name="zone a").locator(".cells a")
        expect(cells).to_have_count(26)
        cells.first.focus()
        page.keyboard.press("ArrowRight")
        expect(cells.nth(1)).to_be_focused()
        said = cells.nth(1).locator("span")
        assert said.evaluate("each => each.getBoundingClientRect().width") > 300
        expect(said).to_contain_text("node2: ")
        page.keyboard.press("End")
        expect(cells.last).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/nodes.node=small"))
        expect(page.get_by_role("heading", name="small")).to_be_visible()


def test_tables_and_filters_work_without_scripts(browser: Browser, cluster: Cluster) -> None:
    with page_of(browser, cluster, java_script_enabled=False) as page:
        expect(page.get_by_role("link", name="default/huge")).to_be_visible()
        page.get_by_label("user").select_option("alan")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.locator("summary").click()
        expect(
            page.get_by_text("What would be enough, pods, events and logs of huge")
        ).to_be_visible()
        for path in VIEWS:
            page.goto(cluster.base + path)
            expect(page.locator("h1")).to_be_visible()


def test_without_events_the_page_reads_itself_every_few_seconds(
    browser: Browser, cluster: Cluster
) -> None:
    with page_of(browser, cluster) as page:
        page.route("**/events", lambda route: route.fulfill(status=204))
        page.clock.install()
        page.goto(f"{cluster.base}/queues")
        cluster.create(QUEUE, queue("polled"))
        polled = page.get_by_role("rowheader", name="polled")
        for _ in range(20):
            page.clock.run_for(6_000)
            if polled.count():
                break
            page.wait_for_timeout(200)
        expect(polled).to_be_visible()


def test_a_tab_that_is_not_shown_holds_no_connection(browser: Browser, cluster: Cluster) -> None:
    """A browser has six for a host; here one page has all of them."""
    others = """() => {
        window.others = [1, 2, 3, 4, 5].map(() => new EventSource("/events"));
        return Promise.all(others.map((each) => new Promise((done) => { each.onopen = done; })));
    }"""
    show = """(hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with page_of(browser, cluster) as page:
        with page.expect_response("**/events"):
            page.goto(f"{cluster.base}/queues")
        page.evaluate(others)
        page.evaluate(show, True)
        cluster.create(QUEUE, queue("unseen"))
        asked = (
            'fetch("/queues", { signal: AbortSignal.timeout(20000) }).then((each) => each.status)'
        )
        assert page.evaluate(asked) == 200
        page.evaluate("others.forEach((each) => each.close())")
        with page.expect_response("**/events"):
            page.evaluate(show, False)
        expect(page.get_by_role("rowheader", name="unseen")).to_be_visible(timeout=SECONDS)


def test_what_others_write_stays_text(browser: Browser, cluster: Cluster) -> None:
    raw = pod_group("hostile", 1, queue="team", phase="Inqueue", annotations={"user": HOSTILE})
    raw["status"]["conditions"] = [{"type": "Unschedulable", "status": "True", "message": HOSTILE}]
    cluster.create(POD_GROUP, raw)
    with page_of(browser, cluster) as page:
        row = page.locator("tr", has=page.get_by_role("link", name="default/hostile"))
        expect(row).to_contain_text(HOSTILE, timeout=SECONDS)
        page.goto(f"{cluster.base}/gangs/default/hostile")
        expect(page.locator("main")).to_contain_text("hostile")
        assert page.locator("main img, main script").count() == 0
    cluster.delete(POD_GROUP, "hostile")


def test_a_lost_api_server_is_a_banner_and_what_was_there_stays(
    browser: Browser, cluster: Cluster
) -> None:
    """The last test: the cluster is gone after it."""
    with page_of(browser, cluster) as page:
        expect(page.locator("h1")).to_have_text(re.compile("gangs? wait"))
        rows = page.locator("tbody tr").count()
        cluster.process.stop(signal.SIGKILL)
        banner = page.get_by_role("alert")
        expect(banner).to_contain_text("The API server does not answer.", timeout=SECONDS)
        expect(banner).to_contain_text(re.compile(r"\d+ s ago"))
        assert page.locator("tbody tr").count() == rows > 0
