"""Plugin `tensorflow`."""

import json
from typing import Any

import pytest

from pumice.plugins import Findings, PluginError, builtin, dependencies, problems
from tests.unit.plugins.support import containers, env, job, job_of, pod_of, rows, task, wired


def config(cluster: str, own: str) -> str:
    return f'{{"cluster":{cluster.strip()},"task":{own}}}'


@pytest.mark.parametrize("row", rows("tensorflow"))
@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
def test_containers_know_their_place_in_the_cluster(
    row: dict[str, Any], strict_upstream: bool
) -> None:
    job = job_of(row["job"], {"tensorflow": row.get("arguments", [])})
    pod = pod_of(*row["pod"])

    if "refused" in row:
        with pytest.raises(PluginError, match=row["refused"]):
            wired(job, pod)
        return

    edited = containers(wired(job, pod, strict_upstream=strict_upstream))

    if "unchanged" in row:
        assert list(edited.values()) == [{"name": "c0"}, {"name": "c1"}, {"name": "i0"}]
        return
    expected = row.get("upstream", row) if strict_upstream else row
    wanted = [("TF_CONFIG", config(expected["cluster"], expected["task"]))]
    of_init = [] if strict_upstream else wanted
    assert [env(edited["c0"]), env(edited["c1"]), env(edited["i0"])] == [wanted, wanted, of_init]
    assert "ports" not in edited["c0"]


@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
def test_a_sidecar_is_told_too(strict_upstream: bool) -> None:
    pod = pod_of("tj-w-0", "w")
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"

    train = job("tj", task("w", 2), plugins={"tensorflow": []})

    edited = wired(train, pod, strict_upstream=strict_upstream)

    assert [name for name, _ in env(containers(edited)["i0"])] == ["TF_CONFIG"]


def users_own() -> tuple[Any, Any]:
    own = {"name": "main", "env": [{"name": "TF_CONFIG", "value": "mine"}]}
    train = job("tj", task("worker", 2, containers=[own]), plugins={"tensorflow": []})
    return train, {"metadata": {"name": "tj-worker-0"}, "spec": {"containers": [own]}}


def test_a_users_own_configuration_is_kept_and_said_to_be() -> None:
    """XTF-10, where Volcano appends a second entry of the same name."""
    train, pod = users_own()

    assert env(containers(wired(train, pod))["main"]) == [("TF_CONFIG", "mine")]
    (warning,) = problems(train, builtin()).warnings
    assert warning.path == "spec.tasks[0].template.spec.containers[0].env[0]"
    assert warning.code == "JOB-PLUGIN-KEPT"


def test_an_init_containers_own_is_kept_too() -> None:
    own = {"name": "prepare", "env": [{"name": "TF_CONFIG", "value": "mine"}]}
    train = job("tj", task("worker", 2, initContainers=[own]), plugins={"tensorflow": []})

    (warning,) = problems(train, builtin()).warnings

    assert warning.path == "spec.tasks[0].template.spec.initContainers[0].env[0]"


def test_strict_upstream_gives_the_generated_one_in_its_place() -> None:
    train, pod = users_own()

    ((name, value),) = env(containers(wired(train, pod, strict_upstream=True))["main"])

    assert name == "TF_CONFIG"
    assert json.loads(value)["task"] == {"type": "default", "index": 0}
    assert problems(train, builtin(), strict_upstream=True).warnings == ()


def test_the_headless_service_is_required() -> None:
    assert dependencies({"tensorflow": []}, builtin()) == {"svc": []}


@pytest.mark.parametrize(
    ("arguments", "tasks", "fragment"),
    [
        (["--ps=pz"], ["ps", "worker"], '--ps names task "pz", which the Job does not have'),
        (["--worker=traner"], ["ps", "trainer"], '(did you mean "trainer"?)'),
        ([], ["a", "b"], "no task plays a role, so TF_CONFIG lists nobody"),
        (["--worker=ps"], ["ps", "a"], '--worker and --ps both name task "ps"'),
    ],
)
def test_roles_that_nobody_plays_are_warned_about(
    arguments: list[str], tasks: list[str], fragment: str
) -> None:
    train = job("tj", *(task(name) for name in tasks), plugins={"tensorflow": arguments})

    (warning,) = problems(train, builtin()).warnings

    assert (warning.path, warning.code) == ("spec.plugins.tensorflow", "JOB-PLUGIN-ROLE")
    assert fragment in warning.message


def test_a_cluster_too_large_for_a_variable_is_refused() -> None:
    def found(replicas: int) -> Findings:
        train = job("tj", task("worker", replicas), plugins={"tensorflow": []})
        return problems(train, builtin())

    assert found(1000) == ((), ())
    (error,) = found(6000).errors
    assert error.code == "JOB-PLUGIN-SIZE"
    fitting = int(error.message.partition("about ")[2].split()[0])
    assert found(fitting).errors == ()
    assert found(fitting + fitting // 10).errors != ()


def test_where_the_variable_is_not_what_counts_its_size_only_warns() -> None:
    own = [{"name": "c", "env": [{"name": "TF_CONFIG", "value": "{}"}]}]
    plain = job("tj", task("worker", 6000), plugins={"tensorflow": []})
    kept = job("tj", task("worker", 6000, containers=own), plugins={"tensorflow": []})

    for found in (
        problems(plain, builtin(), strict_upstream=True),
        problems(kept, builtin()),
    ):
        assert found.errors == ()
        assert "JOB-PLUGIN-SIZE" in [each.code for each in found.warnings]
