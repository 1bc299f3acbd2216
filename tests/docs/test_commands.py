"""Every command that the documentation shows does what the documentation shows.

Pages about a cluster that they do not start themselves are in `test_commands_controlplane.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, commands, inline_commands, pages_on
from tests.docs.running import RECIPES, run_page
from tests.support.controlplane.builder import Builder

NEEDS = ("nothing", "pumice dev", "control plane")

NOT_RUN = {
    "kubectl logs deployment/pumice-webhook": "needs a kubelet",
    "make manifests": "tests/chart/test_plain_manifest.py runs what it runs",
    "helm upgrade": "stands for any",
    "make kill": "tests/e2e/test_killed.py runs five of its rounds",
    "pumice certs": "names the component",
    "pumice controller": "names the component",
    "pumice scheduler": "names the component",
    "kubectl apply": "stands for any",
}
"""Commands within sentences that no block of their page has, each with why."""


@pytest.mark.parametrize("page", pages_on("nothing"), ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.binaries
@pytest.mark.parametrize("page", pages_on("pumice dev"), ids=lambda page: page.name)
def test_the_commands_of_a_page_do_it_on_a_cluster_of_its_own(page: Path, tmp_path: Path) -> None:
    tools = str(Builder().ensure()["kubectl"].parent)
    run_page(page, tmp_path, {"PATH": tools, "HOME": str(tmp_path), "KUBECONFIG": "/nonexistent"})


def test_every_command_about_a_cluster_is_run_or_it_is_said_why_not() -> None:
    for name in ("operations.md", "policies.md"):
        page = ROOT / "docs" / name
        found = [each for each in blocks(page) if each.language in {"console", "sh", "bash"}]
        assert [each.line for each in found if not each.is_run] == []
        run = {" ".join(one.text.split()) for block in found for one in commands(block)}
        left = [each for each in inline_commands(page) if each not in run]
        assert [each for each in left if each not in NOT_RUN] == [], name


def test_each_page_is_run_once_on_what_it_needs() -> None:
    names = {where: {page.name for page in pages_on(where)} for where in NEEDS}
    assert "writing-plugins.md" in names["nothing"]
    assert "README.md" in names["pumice dev"]
    assert "operations.md" in names["control plane"]
    assert sum(map(len, names.values())) == len(set.union(*names.values()))


def test_the_recipes_of_make_are_what_is_run_for_them() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command, recipe in RECIPES.items():
        target = command.removeprefix("make ")
        _, _, rest = makefile.partition(f"\n{target}:")
        assert recipe.replace("python", "@$(PY)") in rest.splitlines()[1]
