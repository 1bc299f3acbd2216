"""The hook for pre-commit, called as pre-commit calls it: the entry, then the arguments, then the staged files."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.kit.builders import job, queue, task
from tests.unit.cli.conftest import Pumice, texts
from tools import pre_commit

ROOT = Path(__file__).parents[3]
[HOOK] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
PATCH = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "good"}}
STAGED = {
    "jobs/good.yaml": texts(job("good", queue="research")),
    "queues/research.yaml": texts(queue("research")),
    "values.yml": "replicas: 3\n",
    ".github/workflows/ci.yaml": "on: [push]\n",
    "kustomization.yaml": "resources: [jobs/good.yaml]\npatches: [{path: patch.yaml}]\n",
    "patch.yaml": texts(PATCH),
    "deployment.yaml": texts(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    ),
    "chart/Chart.yaml": "name: chart\n",
    "chart/templates/job.yaml": "metadata: {{ .Values.x }}\n",
    "README.md": "no YAML",
}


def test_only_mistakes_stop_a_commit(pumice: Pumice, tmp_path: Path) -> None:
    arguments = pre_commit.LINT
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


LINTING = """
import sys
before = {*sys.modules, *sys.stdlib_module_names}
from pumice.cli import main
main(["lint", "--quiet", "--skip-others", "--strict", "--set", "strict-upstream=true", "examples", "deploy", *sys.argv[1:]])
print(sorted({name.partition(".")[0] for name in sys.modules} - before))
"""


def test_lint_imports_nothing_but_what_the_hook_installs(tmp_path: Path) -> None:
    """A pattern is enough to need the library of regular expressions, and a resource group to need pydantic."""
    groups, pattern = tmp_path / "groups.conf", tmp_path / "node.yaml"
    groups.write_text("resourceGroups: [{resourceGroup: gpu}]")
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "^node-[0-9]+$"}}}
    head = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
    spec = {"tier": 1, "members": [member]}
    pattern.write_text(texts({**head, "metadata": {"name": "rack"}, "spec": spec}))
    ran = subprocess.run(
        [sys.executable, "-c", LINTING, pattern, "--admission-conf", groups],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    imported = set(ast.literal_eval(ran.stdout.splitlines()[-1])) - {"pumice"}
    installed = set(map(normal, pre_commit.NEEDED))
    for name in list(installed):
        installed |= closure(name)
    of = importlib.metadata.packages_distributions()
    assert {"msgspec", "pydantic", "typer", "yaml", "re2"} <= imported
    assert {
        name for name in imported if name in of and not installed & set(map(normal, of[name]))
    } == set()


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def closure(name: str) -> set[str]:
    """A distribution and those that it requires, without extras and what other platforms need."""
    try:
        required = importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        return set()
    found = {name}
    for each in required:
        if "extra ==" not in each:
            found |= closure(normal(re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0]))
    return found


UV = """#!/bin/sh
echo "$@" >> "$LOG"
if [ "$1" = venv ]; then
  for last; do :; done
  mkdir -p "$last/bin"
  printf '#!/bin/sh\\necho "$PYTHONPATH: $@"\\n' > "$last/bin/python"
  chmod +x "$last/bin/python"
fi
exit ${FAILS:-0}
"""


def test_the_environment_is_made_once_of_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for uv notes what it is asked for; the hook is called as pre-commit calls a script."""
    assert (HOOK["id"], HOOK["language"], HOOK["types"]) == ("pumice-lint", "script", ["yaml"])
    for name in (HOOK["entry"], "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    script, uv, log = tmp_path / HOOK["entry"], tmp_path / "bin/uv", tmp_path / "log"
    assert os.access(ROOT / HOOK["entry"], os.X_OK)
    script.chmod(0o755)
    uv.parent.mkdir()
    uv.write_text(UV)
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{uv.parent}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def hook(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([script, *arguments], capture_output=True, text=True, check=False)

    monkeypatch.setenv("FAILS", "3")
    failed = hook("a.yaml")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith(f"pumice-lint: {uv} venv ")
    monkeypatch.delenv("FAILS")
    log.unlink()
    expected = f"{tmp_path}: -m pumice lint --quiet --skip-others --strict a.yaml\n"
    assert [hook("--strict", "a.yaml").stdout for _ in range(2)] == [expected, expected]
    venv, install = log.read_text().splitlines()
    assert venv.startswith("venv --quiet --python ")
    assert "--only-binary :all: google-re2>=" in install
    assert "kubernetes" not in install

    assert hook("--with", "our-plugin==2", "a.yaml").stdout.endswith(" --skip-others a.yaml\n")
    assert log.read_text().splitlines()[-1].endswith(" our-plugin==2")
    assert "--with: expected a package" in hook("--with").stderr
