"""The chart as Helm renders it. Needs the helm binary and, but for the install tests, nothing else."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

from tests.chart.manifests import CHART, NAMESPACE, RELEASE, VALUES, Manifest, Render, Run
from tests.kit.tables import documents
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ONE_SHOT


@pytest.fixture(scope="session")
def helm() -> Run:
    """Run helm without a cluster; what it says and its exit code are for the test to judge."""
    binary = str(Builder().ensure()["helm"])

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [binary, *arguments],
            stdin=subprocess.DEVNULL,
            env={"PATH": "", "HOME": "/nonexistent", "KUBECONFIG": "/nonexistent", **ONE_SHOT},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def render(helm: Run) -> Render:
    """Render the chart with a values file and further values, each as `--set` takes it."""

    @functools.cache
    def rendered(values: Path | None = None, *settings: str) -> str:
        files = ["--values", str(values)] if values else []
        sets = [word for each in settings for word in ("--set", each)]
        answer = helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, *files, *sets)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def render(values: Path | None = None, *settings: str) -> list[Manifest]:
        return documents(rendered(values, *settings))

    return render


@pytest.fixture(params=VALUES, ids=lambda path: path.stem.removesuffix("-values"))
def manifests(request: pytest.FixtureRequest, render: Render) -> list[Manifest]:
    """What the chart renders, with each of the values files in `charts/pumice/ci`."""
    return render(request.param)
