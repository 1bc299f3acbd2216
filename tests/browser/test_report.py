"""The report of simulated runs in a real browser: without scripts, its figures equal the JSON, and axe finds nothing."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from pumice.traces.comparison import differences
from pumice.traces.measures import measure
from pumice.traces.report import MeasuredRun, report
from tests.browser.driving import page_at
from tests.kit.pasts import drawn

FIGURES = """() => [...document.querySelectorAll("tr[data-path]")].map(row => [row.dataset.path,
    [...row.querySelectorAll("td")].map(cell => cell.querySelector("data")?.value ?? null)])"""


def run(name: str, seed: int) -> MeasuredRun:
    past = drawn(seed, 60)
    return MeasuredRun(name, past, measure(past))


@pytest.fixture(scope="module")
def runs() -> list[MeasuredRun]:
    return [run("a.conf", 1), run("b.conf", 2)]


@pytest.fixture(scope="module")
def addresses(runs: list[MeasuredRun], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reports")
    one, two = runs
    large = drawn(3, 2000, nodes=100, moments=1000, queues=12)
    pages = {
        "two": report("two", runs, differences(one.measures, two.measures)),
        "large": report("large", [MeasuredRun("large", large, measure(large))]),
    }
    return {name: _written(folder / f"{name}.html", text) for name, text in pages.items()}


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return path.as_uri()


def figures(page: Page) -> dict[str, list[float | None]]:
    found = page.evaluate(FIGURES)
    assert len(found) > 50
    return {
        path: [None if value is None else float(value) for value in values]
        for path, values in found
    }


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The numbers of what is printed as JSON, by their path."""
    if not isinstance(value, dict):
        return {path: value}
    parts = [flat(part, f"{path}.{name}" if path else name) for name, part in value.items()]
    return {name: number for part in parts for name, number in part.items()}


def printed(value: Any) -> dict[str, Any]:
    return flat(msgspec.json.decode(msgspec.json.encode(value)))


def test_figures_equal_the_json(
    browser: Browser, addresses: dict[str, str], runs: list[MeasuredRun]
) -> None:
    summaries = [printed(each.measures.summary) for each in runs]
    changed = printed(differences(runs[0].measures, runs[1].measures).summary)
    with page_at(browser, addresses["two"]) as page:
        for path, values in figures(page).items():
            if path.startswith("wait_by."):
                numbers = ("count", "mean", "p50", "p95", "max")
                shown = [each.get(f"{path}.{number}") for each in summaries for number in numbers]
            else:
                shown = [each.get(path) for each in [*summaries, changed]]
            assert values == shown, path


def test_it_is_whole_without_scripts_and_asks_for_nothing(
    browser: Browser, addresses: dict[str, str]
) -> None:
    with page_at(browser, addresses["large"], java_script_enabled=False) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        assert asked == [addresses["large"]]
        assert page.locator("svg[role=img]").count() == 6
        assert page.get_by_role("img", name="Utilization").is_visible()
        for path in page.locator("svg[role=img] .area").all()[:3]:
            assert path.bounding_box()


def test_axe_finds_nothing_and_nothing_is_wider_than_a_telephone(
    browser: Browser, addresses: dict[str, str]
) -> None:
    axe = Axe()
    with page_at(browser, addresses["two"]) as page:
        page.emulate_media(color_scheme="light")
        found = axe.run(page)
        assert not found.violations_count, found.generate_report()
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate(
            "options => axe.run(options)",
            {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
        )
        assert not dark["violations"], dark["violations"]
        page.set_viewport_size({"width": 360, "height": 560})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
