"""Each plugin of the scheduler has a page, and the generated parts of the pages say what the code does."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pumice.scheduler import load_config, run_cycle
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.plugins import gang
from pumice.scheduler.points import Extensions, Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.registry import builtin_registry
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from tests.docs.pages import ROOT, blocks
from tests.unit.scheduler.scenarios import NOW, Scenario
from tools import scheduler_pages
from tools.generate import GENERATORS

FOLDER = ROOT / "docs/scheduler"
PLUGINS = builtin_registry().plugins
PAGES = sorted((FOLDER / "plugins").glob("*.md"))
OTHERS = {"is_on", "alike_queues", "ignore_network"}
"""Methods of a registrar that register no function."""


def configurations(page: Path) -> Iterator[str]:
    """Configuration files that a page shows."""
    for block in blocks(page):
        if block.language == "yaml" and block.text.startswith("actions:"):
            yield block.text


def test_each_plugin_has_a_page_and_each_page_a_plugin() -> None:
    assert {page.stem for page in PAGES} == set(PLUGINS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_both_generated_parts_and_an_example(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# Plugin {page.stem}\n")
    for part in ("functions", "arguments"):
        assert text.count(f"<!-- generated: {part} {page.stem} -->\n") == 1
    shown = list(configurations(page))
    assert shown
    for each in shown:
        config = load_config(each)
        assert config.warnings == ()
        assert config.missing == ()
        assert page.stem in {option.spec.name for option in config.plugins}


def test_the_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduler_pages.main(["--check", str(FOLDER)]) == 0, capsys.readouterr().err
    assert ("tools.scheduler_pages", "docs/scheduler", "docs/compatibility.md") in GENERATORS


@pytest.mark.parametrize("name", ["index.md", "plugins/binpack.md", "plugins/gang.md"])
def test_a_stale_part_is_noticed_and_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(FOLDER, tmp_path / "scheduler")
    page = tmp_path / "scheduler" / name
    good = page.read_text()
    stale = good.replace("<!-- end generated -->", "old\n<!-- end generated -->", 1)
    page.write_text(stale)
    assert scheduler_pages.main(["--check", str(tmp_path / "scheduler")]) == 1
    assert str(page) in capsys.readouterr().err
    assert page.read_text() == stale
    assert scheduler_pages.main([str(tmp_path / "scheduler")]) == 0
    assert page.read_text() == good


def test_a_part_about_something_unknown_is_named_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page of a plugin that is not listed, and a word that means nothing; other pages are written."""
    shutil.copytree(FOLDER, tmp_path / "scheduler")
    plugins = tmp_path / "scheduler/plugins"
    for name, what in (("new", "arguments new"), ("odd", "nothing")):
        (plugins / f"{name}.md").write_text(f"<!-- generated: {what} -->\n<!-- end generated -->\n")
    assert scheduler_pages.main([str(tmp_path / "scheduler")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{plugins}/new.md: there is no scheduler plugin 'new'; list a new one in pumice/scheduler/registry.py",
        f"{plugins}/odd.md: nothing is generated for 'nothing'",
    ]


def test_every_function_that_a_plugin_can_register_is_explained() -> None:
    names = {name for name in vars(Registrar) if not name.startswith("_")}
    assert set(Extensions.points()) == names - OTHERS
    for spec in PLUGINS.values():
        assert scheduler_pages.registered(spec), spec.name


def test_a_plugin_that_hands_its_registrar_on_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "class Plugin:\n    def open(self, session, register):\n        help(register)\n"
    (tmp_path / "handing_on.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    build = importlib.import_module("handing_on").Plugin
    with pytest.raises(ValueError, match="plugin handing-on: call functions of `register`"):
        scheduler_pages.registered(PluginSpec("handing-on", "Hands it on.", build))


# -- which actions ask a function ----------------------------------------------------------------

NEAR = {"topology": {"highestTierAllowed": 1}}
CLUSTER = {
    "nodes": [["n1", 4, "16Gi"]],
    "queues": [["default"], ["other"]],
    "podgroups": [
        ["ns", "mine", "default", 1, "Running"],
        ["ns", "theirs", "other", 1, "Running"],
        ["ns", "new", "default", 1, "Pending", {"minRes": {"cpu": "1"}}],
        ["ns", "large", "default", 2, "Inqueue"],
        ["ns", "small", "default", 1, "Inqueue", NEAR],
        ["ns", "slots", "default", 1, "Pending", NEAR],
        ["ns", "slots-too", "default", 1, "Pending"],
        ["ns", "other-new", "other", 1, "Pending", {"minRes": {"cpu": "1"}}],
        ["ns", "other-large", "other", 2, "Inqueue"],
        ["ns", "other-near", "other", 1, "Inqueue", NEAR],
        ["ns", "other-slots", "other", 2, "Pending"],
    ],
    "pods": [
        ["ns", "mine-0", "n1", "Running", 1, "1Gi", "mine"],
        ["ns", "theirs-0", "n1", "Running", 1, "1Gi", "theirs"],
        ["ns", "theirs-1", "n1", "Running", 1, "1Gi", "theirs"],
        ["ns", "new-0", "", "Pending", 1, "1Gi", "new"],
        ["ns", "small-0", "", "Pending", 1, "1Gi", "small"],
        ["ns", "large-0", "", "Pending", 1, "1Gi", "large"],
        ["ns", "large-1", "", "Pending", 2, "1Gi", "large"],
        ["ns", "slots-0", "", "Pending", 0, 0, "slots"],
        ["ns", "slots-too-0", "", "Pending", 0, 0, "slots-too"],
        ["ns", "other-large-0", "", "Pending", 1, "1Gi", "other-large"],
        ["ns", "other-large-1", "", "Pending", 2, "1Gi", "other-large"],
        ["ns", "other-near-0", "", "Pending", 1, "1Gi", "other-near"],
        ["ns", "other-slots-0", "", "Pending", 0, 0, "other-slots"],
        ["ns", "other-slots-1", "", "Pending", 0, 0, "other-slots", {"gates": ["hold"]}],
    ],
}
"""A node with room for one pod, and in two queues gangs that enter, fit, do not fit, and have pods without requests."""

RUNS = (
    "enqueue, reclaim",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "gangpreempt",
    "gangreclaim",
    "shuffle",
    "elect, reserve",
)


class Everything:
    """A plugin that registers every function, and notes during which action each is asked."""

    def __init__(self) -> None:
        self.action = ""
        self.asked: dict[str, set[str]] = {}

    @contextmanager
    def measure(self, step: str, name: str) -> Iterator[None]:
        """Note which action runs."""
        self.action = name if step == "action" else ""
        yield
        self.action = ""

    def noting(self, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which notes that it is asked."""

        def ask(*arguments: Any) -> Any:
            if self.action:
                self.asked.setdefault(name, set()).add(self.action)
            return answer(*arguments)

        return ask

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register answers that let everything happen."""
        answers: dict[str, Callable[..., Any]] = {
            "job_enqueueable": lambda job: Vote(session.may_take_back(job)),
            "job_entitled": lambda _: True,
            "preemptable": lambda _, candidates: np.ones(len(candidates), dtype=np.bool_),
            "reclaimable": lambda _, candidates: np.ones(len(candidates), dtype=np.bool_),
            "job_ready": gang.is_ready,
            "job_pipelined": gang.vote,
            "job_starving": gang.is_starving,
            "overused": lambda _: False,
            "victim_tasks": lambda: [
                task
                for job in session.jobs.values()
                for task in job.tasks.values()
                if task.status in VICTIMS
            ],
            "evictable": lambda _: True,
            "domain_search": lambda _: True,
            "target_job": lambda jobs: jobs[0],
            "reserved_nodes": lambda *_: session.node_names[0],
        }
        answers |= dict.fromkeys(
            ("queue_order", "job_order", "task_order", "victim_queue_order"), lambda *_: 0
        )
        for name in Extensions.points():
            noting = self.noting(name, answers.get(name, lambda *_: None))
            scope = {"scope": "row"} if name in ("node_filter", "node_score") else {}
            getattr(register, name)(noting, **scope)
            if (
                name == "node_filter"
            ):  # actions that look at nodes as if they were empty ask these alone
                register.node_filter(noting)


def test_the_pages_name_the_actions_that_ask_a_function() -> None:
    plugin = Everything()
    spec = PluginSpec("everything", "Registers every function.", lambda _: plugin)
    registry = builtin_registry().extended(plugins=[spec])
    for actions in RUNS:
        tiers = [{"plugins": [{"name": "everything"}]}]
        config = load_config(yaml.safe_dump({"actions": actions, "tiers": tiers}), registry)
        scenario = Scenario(CLUSTER, config)
        result = run_cycle(scenario.state, config, NOW, plugin.measure)
        assert result.error is None
        assert not result.errors
    named = {name: set(each.asked_by) for name, each in Extensions.points().items()}
    # These two compute everything together, and use the filters of nodes alone whose answers no placement changes.
    for name in ("node_score", "domain_filter", "domain_score"):
        plugin.asked[name] -= {"elect", "reserve"}
    assert plugin.asked == named
