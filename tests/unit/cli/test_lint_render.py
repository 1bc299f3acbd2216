"""`pumice lint` and what must be rendered first: patches, Kustomizations, charts, and `--render`."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pumice.cli.files import contents, kustomizations
from tests.kit.builders import job
from tests.support.controlplane.builder import Builder
from tests.unit.cli.conftest import Pumice, texts

PATCH = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: good}\nspec: {queue: other}\n"


@pytest.fixture
def overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An overlay of a base, with a patch; the current folder is above both."""
    monkeypatch.chdir(tmp_path)
    write("base/kustomization.yaml", "resources: [job.yaml]\n")
    write("base/job.yaml", texts(job("good")))
    write(
        "over/kustomization.yaml", "resources: [../base]\npatches: [{path: ./parts/patch.yaml}]\n"
    )
    write("over/parts/patch.yaml", PATCH)
    return tmp_path / "over"


def write(name: str, text: str, mode: int = 0o644) -> None:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def program(name: str, script: str) -> None:
    """A program of the folder `bin`, which is all of PATH in these tests."""
    write(f"bin/{name}", f"#!/bin/sh\n{script}\n", 0o755)


@pytest.fixture
def only_bin(overlay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(overlay.parent / "bin"))


def test_a_patch_that_a_kustomization_lists_is_no_job(pumice: Pumice, overlay: Path) -> None:
    told = (
        "over/parts/patch.yaml: is a patch that over/kustomization.yaml lists; "
        "build it first: kubectl kustomize over | pumice lint -\n"
    )
    ran = pumice("lint", "over/parts/patch.yaml")
    assert (ran.code, ran.out, ran.err) == (2, "", f"pumice lint: {told}")
    ran = pumice("lint", ".")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 object: 1 admitted, 0 refused")
    assert f"skipped {told}" in ran.err
    ran = pumice("lint", "--quiet", "--skip-others", "over/parts/patch.yaml", "base/job.yaml")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    ran = pumice("lint", overlay / "parts")
    assert f"{overlay}/kustomization.yaml lists; " in ran.err


def test_a_kustomization_is_read_up_to_the_limit_of_an_input(
    overlay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = str(overlay / "parts/patch.yaml")
    assert kustomizations.Kustomizations().of_patch(patch) == f"{overlay}/kustomization.yaml"
    monkeypatch.setattr(contents, "MOST_BYTES", 40)
    assert kustomizations.Kustomizations().of_patch(patch) == ""


@pytest.mark.parametrize(
    "listed",
    [
        "patchesStrategicMerge: [parts/patch.yaml]",
        "patchesJson6902: [{path: parts/patch.yaml, target: {kind: Job, name: good}}]",
        "replacements: [{path: parts/patch.yaml}]",
        "configurations: [parts/patch.yaml]",
        "kind: Component\npatches: [{path: parts/patch.yaml}]",
    ],
)
def test_all_lists_of_a_kustomization_count(pumice: Pumice, overlay: Path, listed: str) -> None:
    write("over/kustomization.yaml", listed)
    ran = pumice("lint", "over/parts/patch.yaml")
    assert "is a patch that over/kustomization.yaml lists" in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "patches: [{path: other.yaml}, {path: 3}, 4, {patch: x}]\npatchesStrategicMerge: [3]",
        "patches: parts/patch.yaml",
        "patchesStrategicMerge: ['a: 1\\nb: 2', 'parts/patch.yaml\\0']",
        "[]",
        "{",
        "",
    ],
)
def test_a_job_that_no_kustomization_lists_is_one(pumice: Pumice, overlay: Path, text: str) -> None:
    write("over/kustomization.yaml", text)
    ran = pumice("lint", "over/parts/patch.yaml")
    assert (ran.code, ran.out.startswith("Job/default/good: refused")) == (1, True)


@pytest.mark.parametrize("name", kustomizations.NAMES)
def test_a_kustomization_need_not_say_what_it_is(pumice: Pumice, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("resources: [../base]\n")
    ran = pumice("lint", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    told = f"pumice lint: no object was validated: {tmp_path}/{name}: a Kustomization; build it first: "
    assert ran.err.splitlines()[-1] == f"{told}kubectl kustomize {tmp_path} | pumice lint -"


@pytest.mark.usefixtures("only_bin")
def test_a_kustomization_is_built_by_what_is_installed(pumice: Pumice) -> None:
    ran = pumice("lint", "--render", "over")
    assert ran.code == 2
    assert (
        "--render over: a Kustomization is rendered by kustomize or kubectl, which is not on PATH"
        in ran.err
    )

    write("built.yaml", texts(job("built", queue="research")))
    program("kubectl", 'test "$1 $2" = "kustomize ./over" && exec /bin/cat built.yaml')
    ran = pumice("lint", "--render", "over")
    assert ran.code == 0
    assert "Job/default/built: admitted  (over (kubectl kustomize): document 1, line 1)" in ran.out
    assert "over (kubectl kustomize):1: spec.queue: queue" in ran.out

    program("kustomize", 'test "$1 $2" = "build ./over" && echo oh >&2 && echo no >&2; exit 3')
    ran = pumice("lint", "--render", "over")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "pumice lint: --render: `kustomize build over` failed: oh no\n"


@pytest.mark.usefixtures("only_bin")
def test_a_chart_is_rendered_beside_other_files(pumice: Pumice) -> None:
    write("chart/Chart.yaml", "name: chart\n")
    ran = pumice("lint", "--render", "chart")
    assert "--render chart: a Helm chart is rendered by helm, which is not on PATH" in ran.err
    program("helm", 'test "$1 $2" = "template ./chart" && exec /bin/cat base/job.yaml')
    write("more.yaml", texts(job("more")))
    ran = pumice("lint", "--render", "chart", "more.yaml", "-o", "json")
    found: list[dict[str, Any]] = ran.json
    assert [(each["object"], each["file"]) for each in found] == [
        ("Job/default/good", "chart (helm template)"),
        ("Job/default/more", "more.yaml"),
    ]
    program("helm", "exit 0")
    ran = pumice("lint", "--render", "chart")
    assert (ran.code, ran.err) == (
        2,
        "pumice lint: chart (helm template): is empty, expected manifests\n",
    )


@pytest.mark.usefixtures("only_bin")
def test_what_cannot_be_rendered_says_why(
    pumice: Pumice, overlay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = pumice("lint", "--render", "base/job.yaml")
    assert ran.err == "pumice lint: --render: expected a directory, found base/job.yaml\n"
    ran = pumice("lint", "--render", overlay / "parts")
    assert (
        f"--render {overlay}/parts: expected a folder with one of kustomization.yaml, " in ran.err
    )
    write("bin/kubectl", "\x7fELF", 0o755)
    ran = pumice("lint", "--render", "over")
    assert ran.err.startswith("pumice lint: --render: `kubectl kustomize over` cannot be run: ")
    program("kubectl", "exec /bin/sleep 60")
    monkeypatch.setattr(kustomizations, "_LIMIT", 0.1)
    ran = pumice("lint", "--render", "over")
    assert ran.err == "pumice lint: --render: `kubectl kustomize over` did not end within 0.1 s\n"
    assert ran.code == 2


@pytest.mark.binaries
def test_the_real_kubectl_builds_the_patched_job(
    pumice: Pumice, overlay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = Builder().ensure()["kubectl"]
    monkeypatch.setenv("PATH", f"{kubectl.parent}:/usr/bin:/bin")
    assert shutil.which("kustomize") is None
    ran = pumice("lint", "--render", "over")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 object: 1 admitted, 0 refused")
    assert 'spec.queue: queue "other" is not in the given files' in ran.out
