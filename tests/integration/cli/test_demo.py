"""The demo does what the README promises, with kubectl and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.running import kubectl_path

DEMO = Path(__file__).parents[3] / "examples" / "demo.py"


def run(**environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, DEMO],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.parametrize("with_kubectl", [True, False])
def test_the_demo(with_kubectl: bool, tmp_path: Path) -> None:
    environment = {"COLUMNS": "120"}
    path = kubectl_path()
    if with_kubectl and path is not None:
        environment["PATH"] = f"{Path(path).parent}:{os.environ['PATH']}"
    else:
        environment |= {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    ran = run(**environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    through = "$ kubectl apply -f examples/tensorflow.yaml" in ran.stdout
    assert through is (with_kubectl and path is not None)
    assert "spec.plugins.svc: [] added" in ran.stdout
    assert ran.stdout.count('"task":{"type":"worker","index":3}') == 1
    assert "    minAvailable: 4\n" in ran.stdout
    assert "Completed" in ran.stdout
    assert "Job default/too-big waits: " in ran.stdout
    assert "Insufficient cpu" in ran.stdout
    assert ran.stderr == ""
