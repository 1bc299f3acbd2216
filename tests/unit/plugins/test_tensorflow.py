"""Plugin `tensorflow`."""

import json
from typing import Any

import pytest

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.plugins import Findings, PluginError, Wiring, builtin, dependencies, problems
from pumice.plugins.variables import VARIABLE_LIMIT
from tests.unit.plugins.support import containers, env, job, job_of, pod_of, rows, task, wired

OURS = ["PUMICE_TF_CLUSTER_FILE", "PUMICE_TF_TASK_TYPE", "PUMICE_TF_TASK_INDEX"]


def config(cluster: str, own: str) -> str:
    return f'{{"cluster":{cluster.strip()},"task":{own}}}'


def ours(own: str) -> list[tuple[str, Any]]:
    """The variables beside `TF_CONFIG`, by what it says of the pod's own task."""
    task = json.loads(own)
    values = ("/etc/tensorflow/cluster.json", task["type"], str(task["index"]))
    return list(zip(OURS, values, strict=True))


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
    of_init = [] if strict_upstream else wanted + ours(expected["task"])
    wanted += [] if strict_upstream else ours(expected["task"])
    assert [env(edited["c0"]), env(edited["c1"]), env(edited["i0"])] == [wanted, wanted, of_init]
    assert "ports" not in edited["c0"]
    assert cluster_of(job, strict_upstream=strict_upstream) == (
        [] if strict_upstream else [expected["cluster"].strip()]
    )


def cluster_of(train: Job, *, strict_upstream: bool = False) -> list[str]:
    """What the Job's file says, wherever pods find it."""
    wiring = Wiring(train, builtin(), strict_upstream=strict_upstream)
    return [
        each["data"]["cluster.json"]
        for each in wiring.objects()
        if each["metadata"]["name"] == f"{train.metadata.name}-tf"
    ]


@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
def test_a_sidecar_gets_it_too(strict_upstream: bool) -> None:
    pod = pod_of("tj-w-0", "w")
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"

    train = job("tj", task("w", 2), plugins={"tensorflow": []})

    edited = wired(train, pod, strict_upstream=strict_upstream)

    names = ["TF_CONFIG", *([] if strict_upstream else OURS)]
    assert [name for name, _ in env(containers(edited)["i0"])] == names


def test_the_file_is_in_every_container() -> None:
    train = job("tj", task("worker", 2), plugins={"tensorflow": []})

    pod = wired(train, pod_of("tj-worker-1", "worker"))

    assert pod["spec"]["volumes"] == [{"name": "tj-tf", "configMap": {"name": "tj-tf"}}]
    for container in containers(pod).values():
        assert container["volumeMounts"] == [{"name": "tj-tf", "mountPath": "/etc/tensorflow"}]


def test_a_job_of_one_pod_has_no_file() -> None:
    assert cluster_of(job("tj", task("worker"), plugins={"tensorflow": []})) == []


def users_own() -> tuple[Any, Any]:
    own = {"name": "main", "env": [{"name": "TF_CONFIG", "value": "mine"}]}
    train = job("tj", task("worker", 2, containers=[own]), plugins={"tensorflow": []})
    return train, {"metadata": {"name": "tj-worker-0"}, "spec": {"containers": [own]}}


def test_a_users_own_configuration_is_kept_and_said_to_be() -> None:
    """XTF-10, where Volcano appends a second entry of the same name."""
    train, pod = users_own()

    assert ("TF_CONFIG", "mine") in env(containers(wired(train, pod))["main"])
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
        ([], ["a", "b"], "no task plays a role, so TF_CONFIG lists no pod"),
        (["--worker=ps"], ["ps", "a"], '--worker and --ps both name task "ps"'),
    ],
)
def test_roles_without_tasks_are_warned_about(
    arguments: list[str], tasks: list[str], fragment: str
) -> None:
    train = job("tj", *(task(name) for name in tasks), plugins={"tensorflow": arguments})

    (warning,) = problems(train, builtin()).warnings

    assert (warning.path, warning.code) == ("spec.plugins.tensorflow", "JOB-PLUGIN-ROLE")
    assert fragment in warning.message


def found(replicas: int, name: str = "tj", **spec: Any) -> Findings:
    """What admission says of so many workers."""
    train = job(name, task("worker", replicas, **spec), plugins={"tensorflow": []})
    return problems(train, builtin())


def test_a_cluster_too_large_for_a_variable_is_a_file_alone() -> None:
    assert found(1000) == ((), ())
    large = job("tj", task("worker", 10_000), plugins={"tensorflow": []})

    pod = wired(large, pod_of("tj-worker-9999", "worker"))

    assert env(containers(pod)["c0"]) == ours('{"type":"worker","index":9999}')
    (text,) = cluster_of(large)
    workers = json.loads(text)["worker"]
    assert len(workers) == 10_000
    assert workers[9999] == "tj-worker-9999.tj:2222"
    assert problems(large, builtin()).errors == ()
    (warning,) = problems(large, builtin()).warnings
    assert warning.code == "JOB-PLUGIN-SIZE"
    assert "it is not set" in warning.message
    assert all(word in warning.message for word in ("/etc/tensorflow/cluster.json", *OURS[1:]))


def test_what_is_set_fits_and_what_is_not_is_warned_about() -> None:
    """At the very border admission and the pods agree."""
    border = next(n for n in range(4_000, 6_000) if found(n).warnings)
    for replicas, fits in ((border - 1, True), (border, False)):
        train = job("tj", task("worker", replicas), plugins={"tensorflow": []})
        variables = dict(env(containers(wired(train, pod_of("tj-worker-0", "worker")))["c0"]))
        assert ("TF_CONFIG" in variables) is fits
        if fits:
            assert VARIABLE_LIMIT - 1024 < len(variables["TF_CONFIG"]) + 11 < VARIABLE_LIMIT


def test_a_cluster_that_no_config_map_holds_is_refused() -> None:
    def of(replicas: int) -> tuple[FieldError, ...]:
        return found(replicas, "j" * 50).errors

    assert of(7_000) == ()
    (error,) = of(12_000)
    assert (error.path, error.code) == ("spec.tasks", "JOB-PLUGIN-SIZE")
    fitting = int(error.message.partition("about ")[2].split()[0])
    assert of(fitting) == ()
    assert of(fitting + fitting // 10) != ()


def test_where_the_variable_is_not_what_counts_its_size_only_warns() -> None:
    own = [{"name": "c", "env": [{"name": "TF_CONFIG", "value": "{}"}]}]
    kept = found(12_000, "j" * 50, containers=own)

    assert kept.errors == ()
    assert "JOB-PLUGIN-SIZE" in [each.code for each in kept.warnings]


def test_strict_upstream_says_how_many_fit() -> None:
    def told(replicas: int) -> tuple[FieldError, ...]:
        train = job("tj", task("worker", replicas), plugins={"tensorflow": []})
        judged = problems(train, builtin(), strict_upstream=True)
        assert judged.errors == ()
        return judged.warnings

    (warning,) = told(6_000)
    fitting = int(warning.message.partition("about ")[2].split()[0])
    assert told(fitting) == ()
    assert told(fitting + fitting // 10) != ()


def test_a_cluster_lists_no_name_twice() -> None:
    """A program would find one of its peers at any of several pods."""

    def judged(**spec: Any) -> Findings:
        train = job("tj", task("worker", 2, "same", **spec), plugins={"tensorflow": []})
        return problems(train, builtin())

    (error,) = judged().errors
    assert (error.path, error.code) == (
        "spec.tasks[0].template.spec.hostname",
        "JOB-PLUGIN-HOSTNAME",
    )
    assert "plugin tensorflow needs the address of a single pod" in error.message
    own = [{"name": "c", "env": [{"name": "TF_CONFIG", "value": "{}"}]}]
    assert judged(containers=own).errors == ()


def test_what_stands_in_the_place_of_the_file_is_said_to_stay() -> None:
    own = [{"name": "c", "volumeMounts": [{"name": "x", "mountPath": "/etc/tensorflow"}]}]
    train = job("tj", task("worker", 2, containers=own), plugins={"tensorflow": []})

    (warning,) = problems(train, builtin()).warnings

    assert warning.code == "JOB-PLUGIN-KEPT"
    where = "spec.tasks[0].template.spec.containers[0].volumeMounts[0].mountPath"
    assert warning.path == where
    assert problems(train, builtin(), strict_upstream=True).warnings == ()
