"""What plugins write into a pod or a Secret, against what an API server can store."""

from typing import Any

import pytest

from pumice.api.fields import FieldError
from pumice.plugins import Raw, Wiring, builtin, problems
from pumice.plugins.shared_checks import POD_LIMIT
from tests.unit.plugins.support import job, task

LONG = "j" * 40


def containers_of(count: int) -> list[Raw]:
    return [{"name": f"c{number}", "image": "i"} for number in range(count)]


def errors_of(plugins: dict[str, list[str]], *tasks: Raw) -> list[FieldError]:
    found = problems(job(LONG, *tasks, plugins=plugins), builtin()).errors
    assert {each.code for each in found} <= {"JOB-PLUGIN-SIZE"}
    return list(found)


def roles(count: int) -> tuple[dict[str, list[str]], list[Raw]]:
    texts = ";".join(f"V{number}={'x' * 100_000}" for number in range(3))
    return {"svc": [], "roles": [f"--env={texts}"]}, [task("w", containers=containers_of(count))]


def mpi(count: int) -> tuple[dict[str, list[str]], list[Raw]]:
    master = task("master", containers=containers_of(count))
    return {"svc": [], "ssh": [], "mpi": []}, [master, task("worker", 900)]


def tensorflow(count: int) -> tuple[dict[str, list[str]], list[Raw]]:
    chief = task("chief", containers=containers_of(count))
    return {"svc": [], "tensorflow": []}, [chief, task("worker", 900)]


def svc(count: int) -> tuple[dict[str, list[str]], list[Raw]]:
    many = [task(f"task-number-{number}") for number in range(1000)]
    return {"svc": []}, [task("w", containers=containers_of(count)), *many]


@pytest.mark.parametrize(
    ("make", "fits"),
    [
        pytest.param(roles, 4, id="roles"),
        pytest.param(mpi, 14, id="mpi"),
        pytest.param(tensorflow, 14, id="tensorflow"),
        pytest.param(svc, 5, id="svc"),
    ],
)
def test_variables_count_once_for_each_container(make: Any, fits: int) -> None:
    plugins, tasks = make(fits)
    assert errors_of(plugins, *tasks) == []

    plugins, tasks = make(fits * 2)
    (error,) = errors_of(plugins, *tasks)
    assert error.path == "spec.tasks[0].template.spec.containers"
    assert f"into each of {fits * 2} containers" in error.message
    assert str(POD_LIMIT) in error.message


def test_keys_and_configuration_fit_into_one_secret() -> None:
    half = "k" * 525_000
    keys = [f"--ssh-private-key={half}", f"--ssh-public-key={half[:200_000]}"]
    assert errors_of({"svc": [], "ssh": keys}, task("w")) == []

    keys = [f"--ssh-private-key={half}", f"--ssh-public-key={half[:270_000]}"]
    (error,) = errors_of({"svc": [], "ssh": keys}, task("w"))
    assert error.path == "spec.plugins.ssh"

    (secret,) = [
        each
        for each in Wiring(job(LONG, task("w"), plugins={"ssh": keys}), builtin()).objects()
        if each["kind"] == "Secret"
    ]
    size = sum(len(text) for text in secret["stringData"].values())
    assert f"a Secret of {size} bytes, and Kubernetes takes 1048576" in error.message
