"""`pumice run --dry-run`: where pods would run, and what would not and why."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.runners import Runner, simple


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_dry_run_places_and_starts_nothing(runner: Runner) -> None:
    (runner.folder / "data").mkdir()
    path = str(runner.folder / "data" / "part")
    volume = {"name": "d", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
    file = runner.write(simple("pair", "touch ran", 2, volumes=[volume]))
    named = f"data/../../{runner.folder.name}/data"
    ran = runner.run(file, "--dry-run", "--allow-host-path", named)
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[:3] for line in ran.stdout.splitlines()] == [
        ["POD", "NODE", "IMAGE"],
        ["pair-worker-0", "node1", "any"],
        ["pair-worker-1", "node1", "any"],
    ]
    assert not list(runner.state.glob("**"))
    assert not list((runner.folder / "data").iterdir())


def test_a_dry_run_says_what_does_not_fit_and_why(runner: Runner) -> None:
    def asking(name: str, cpu: str, replicas: int, **metadata: str) -> dict[str, Any]:
        manifest = simple(name, "true", replicas)
        manifest["metadata"] |= metadata
        (container,) = manifest["spec"]["tasks"][0]["template"]["spec"]["containers"]
        container["resources"] = {"requests": {"cpu": cpu}}
        return manifest

    part = asking("same", "1", 3)
    part["spec"]["minAvailable"] = part["spec"]["tasks"][0]["minAvailable"] = 1
    big = asking("same", "1000", 1, namespace="other")
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "metadata": {"name": "flow"}}
    template = flow | {"kind": "JobTemplate", "spec": simple("", "true")["spec"]}
    second = {"name": "second", "dependsOn": {"targets": ["flow"]}}
    flow |= {"kind": "JobFlow", "spec": {"flows": [{"name": "flow"}, second]}}
    second_template = template | {"metadata": {"name": "second"}}
    objects = (part, big, template, second_template, flow)
    ran = runner.run(runner.write(*objects), "--dry-run", "--nodes", "2cpu")
    assert ran.returncode == 1
    assert [line.split()[:2] for line in ran.stdout.splitlines()] == [
        ["POD", "NODE"],
        ["flow-flow-worker-0", "node1"],
        ["same-worker-0", "node1"],
        ["same-worker-1", "node1"],
        ["same-worker-2", "-"],
    ]
    first, _, *others = ran.stderr.splitlines()
    assert first.startswith("Job other/same would not run: not enough room in the cluster: ")
    assert first.endswith("needs 1000 cpu on one node; the largest has 2")
    assert others == [
        "Job default/same would start with 2 of 3 pods; the others would wait",
        "JobFlow default/flow would start these when others have completed: second",
    ]

    alone = runner.run(runner.write(big), "--dry-run", "--nodes", "2cpu")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert alone.stderr.startswith(first.partition(": ")[0])
