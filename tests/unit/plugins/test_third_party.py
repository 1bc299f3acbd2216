"""The example plugin, found as an installed package would be."""

from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import pytest
import yaml

from pumice.api.jobs import Job
from pumice.plugins import ENTRY_POINT_GROUP, Registry, Wiring, builtin, dependencies, problems
from tests.support.installed import install
from tests.unit.plugins.support import containers, env, job, pod_of, task

EXAMPLE = Path(__file__).parents[3] / "examples" / "job-plugin"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry in an interpreter that has the example installed."""
    install(EXAMPLE, tmp_path, monkeypatch)
    assert "jax" in entry_points(group=ENTRY_POINT_GROUP).names
    return builtin().with_entry_points()


def manifest() -> Job:
    return msgspec.convert(yaml.safe_load((EXAMPLE / "job.yaml").read_text(encoding="utf-8")), Job)


def test_it_is_listed_with_its_origin(registry: Registry) -> None:
    assert registry.names == (*builtin().names, "jax")
    assert registry.origin("jax") == "pumice-jax (pumice_jax:Jax)"


def test_admission_knows_it(registry: Registry) -> None:
    assert dependencies(manifest().spec.plugins, registry) == {"svc": []}
    assert problems(manifest(), registry) == ((), ())
    assert [error.code for error in problems(manifest(), builtin()).errors] == ["JOB-PLUGIN"]


def test_it_wires_the_processes(registry: Registry) -> None:
    train = manifest()
    wiring = Wiring(train, registry)

    first = containers(wiring.pod(train.tasks[0], 0, pod_of("mnist-worker-0")))["c0"]
    last = containers(wiring.pod(train.tasks[0], 3, pod_of("mnist-worker-3")))["c0"]

    assert env(last) == [
        ("JAX_COORDINATOR_ADDRESS", "mnist-worker-0.mnist:8476"),
        ("JAX_NUM_PROCESSES", "4"),
        ("JAX_PROCESS_ID", "3"),
    ]
    assert first["ports"] == [{"name": "jax", "containerPort": 8476}]
    assert "ports" not in last


def test_it_leaves_other_tasks_alone(registry: Registry) -> None:
    train = job("j", task("worker"), task("other"), plugins={"jax": []})
    pod = pod_of("j-other-0")

    assert Wiring(train, registry).pod(train.tasks[1], 0, pod)["spec"] is pod["spec"]


def test_it_refuses_a_job_without_its_task(registry: Registry) -> None:
    (error,) = problems(job("j", task("workers"), plugins={"jax": []}), registry).errors

    assert str(error) == (
        'spec.plugins.jax: no task is named "worker" (did you mean "workers"?); '
        "say which it is with --task=<name> [JAX-TASK]"
    )
