"""Pages that follow from the code are up to date, and complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from pumice.cli.app import app
from pumice.plugins import builtin
from pumice.scheduler.registry import builtin_registry
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.settings import LEVELS_BY, AdmissionSettings
from tests.docs.pages import ROOT
from tools import dashboard, metrics_page, phrases_page, rules_page, scheduler_config, settings_page
from tools.generate import GENERATORS

SETTINGS = ROOT / "docs/settings.md"
PAGES = [
    (settings_page, SETTINGS),
    (rules_page, ROOT / "docs/rules.md"),
    (phrases_page, ROOT / "docs/phrases.md"),
    (metrics_page, ROOT / "docs/metrics.md"),
    (dashboard, ROOT / "charts/pumice/files/dashboard.json"),
    (scheduler_config, ROOT / "charts/pumice/files/volcano-scheduler.conf"),
]


@pytest.mark.parametrize(("generator", "page"), PAGES, ids=[page.name for _, page in PAGES])
def test_a_generated_page_is_up_to_date(
    generator: Any, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main(["--check", str(page)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("generator", "page"), PAGES, ids=[page.name for _, page in PAGES])
def test_a_stale_page_is_named_and_left_alone_when_only_checked(
    generator: Any, page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / page.name
    stale.write_text("old\n")
    assert generator.main(["--check", str(stale)]) == 1
    assert str(stale) in capsys.readouterr().err
    assert stale.read_text() == "old\n"
    assert generator.main([str(stale)]) == 0
    assert stale.read_text() == page.read_text()


def test_make_generate_writes_each_of_them() -> None:
    written = {argument for generator in GENERATORS for argument in generator[1:]}
    assert {str(page.relative_to(ROOT)) for _, page in PAGES} <= written


def test_every_setting_of_admission_is_documented() -> None:
    text = SETTINGS.read_text()
    for name in AdmissionSettings.declared():
        option = name.replace("_", "-").removesuffix("s" if name == "scheduler_names" else "\0")
        assert f"`{LEVELS_BY.get(name, option)}`" in text, option


def test_every_option_of_a_component_is_documented() -> None:
    sections = re.split(r"^### ", SETTINGS.read_text(), flags=re.MULTILINE)
    commands: Any = typer.main.get_command(app)
    (several,) = (each for each in sections if each.startswith("Several components\n"))
    for component in settings_page.COMPONENTS:
        (section,) = (each for each in sections if each.startswith(f"pumice {component}\n"))
        shared = [row for row in several.splitlines() if f"`{component}`" in row]
        section = "\n".join([section, *shared])
        for option in commands.commands[component].params:
            for spelling in (*option.opts, *option.secondary_opts):
                assert re.search(rf"`{re.escape(spelling)}[ `]", section), spelling


def test_every_option_says_what_it_does() -> None:
    commands: Any = typer.main.get_command(app)
    for name, command in commands.commands.items():
        for option in command.params:
            assert getattr(option, "help", None), f"pumice {name}: {option.name}"


def test_every_plugin_and_argument_is_documented() -> None:
    text = SETTINGS.read_text()
    for plugin in builtin().plugins:
        assert f"[`{plugin.name}`](plugins/{plugin.name}.md)" in text
        own = (ROOT / f"docs/plugins/{plugin.name}.md").read_text()
        for argument in plugin.arguments:
            assert f"`--{argument.name}" in own
    registry = builtin_registry()
    for action in registry.actions.values():
        assert f"`{action.name}`" in text
        for declared in action.arguments:
            assert declared.is_absent or f"`{declared.name}" in text
    for name in registry.plugins:
        assert f"[`{name}`](scheduler/plugins/{name}.md)" in text


def test_every_rule_is_documented_once() -> None:
    text = (ROOT / "docs/rules.md").read_text()
    for rule in ALL:
        assert text.count(f"\n### {rule.code}\n") == 1


def test_the_changelog_has_a_place_for_what_comes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert text.partition("## Unreleased")[2].partition("\n## ")[0].strip()
