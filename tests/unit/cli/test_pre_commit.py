"""The hook for pre-commit, called as pre-commit calls it: the entry, then the arguments, then the staged files."""

import shlex
import tomllib
from pathlib import Path

import yaml

from tests.kit.builders import job, queue, task
from tests.unit.cli.conftest import Pumice, texts

ROOT = Path(__file__).parents[3]
[HOOK] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
STAGED = {
    "jobs/good.yaml": texts(job("good", queue="research")),
    "queues/research.yaml": texts(queue("research")),
    "values.yml": "replicas: 3\n",
    ".github/workflows/ci.yaml": "on: [push]\n",
    "kustomization.yaml": "resources: [jobs/good.yaml]\npatches: [{path: patch.yaml}]\n",
    "patch.yaml": texts(
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "good"}}
    ),
    "deployment.yaml": texts(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    ),
    "chart/Chart.yaml": "name: chart\n",
    "chart/templates/job.yaml": "metadata: {{ .Values.x }}\n",
    "README.md": "no YAML",
}


def test_only_mistakes_stop_a_commit(pumice: Pumice, tmp_path: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    program, *arguments = shlex.split(HOOK["entry"])
    assert program in scripts
    assert (HOOK["id"], HOOK["language"], HOOK["types"]) == ("pumice-lint", "python", ["yaml"])
    for name, text in STAGED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    staged = [tmp_path / name for name in STAGED if name.endswith((".yaml", ".yml"))]
    ran = pumice(*arguments, *staged)
    assert (ran.code, ran.out, ran.err) == (0, "", "")

    bad = tmp_path / "jobs" / "bad.yaml"
    bad.write_text(texts(job("bad", [task("w")], queue="reserach")))
    ran = pumice(*arguments, *staged, bad)
    assert ran.code == 1
    assert ran.out.startswith(f'error    {bad}:1: spec.queue: unable to find job queue "reserach"')

    # Further arguments of the configuration (`args`) come before the files.
    state = ["--state", tmp_path / "queues" / "research.yaml"]
    assert pumice(*arguments, "--strict", *state, tmp_path / "jobs" / "good.yaml").code == 0
