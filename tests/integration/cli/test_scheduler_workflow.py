"""The example workflow for a scheduler's configuration: its commands run as GitHub runs them, on a pull request that makes jobs wait."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

EXAMPLE = Path(__file__).parents[3] / "examples" / "scheduler-ci"
ELSEWHERE = "pip install "
"""What a test cannot do."""


def ran(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub runs it, on Linux."""
    environment = {
        **os.environ,
        "GITHUB_BASE_REF": "main",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{
            f"GIT_{who}_{what}": "ci@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_pull_request_that_makes_jobs_wait_fails(tmp_path: Path) -> None:
    workflow = yaml.safe_load((EXAMPLE / "workflow.yml").read_text())
    (job,) = workflow["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command for command in commands if command.startswith(ELSEWHERE)] == commands[:1]
    for name in workflow[True]["pull_request"]["paths"]:  # `on` is true in YAML 1.1
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    begin = "git init -q && git add . && git commit -qm base && git update-ref refs/remotes/origin/main HEAD"
    assert ran(begin, tmp_path).returncode == 0
    changed = tmp_path / "volcano-scheduler.conf"
    changed.write_text(changed.read_text().replace("binpack", "nodeorder"))

    steps = [ran(command, tmp_path) for command in commands[1:]]
    assert [step.returncode for step in steps] == [0, 1], [step.stderr for step in steps]
    assert steps[-1].stderr.startswith("--fail-if wait.p95 > +10%: wait.p95 is ")
    assert "train-1" in steps[-1].stdout  # it is shown what lost
    report = (tmp_path / "report.html").read_text()
    assert "volcano-scheduler.conf on the right" in report
