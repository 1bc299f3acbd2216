"""Host files of plugin `mpi` at the limit of what a ConfigMap holds."""

from pumice.plugins import Wiring, builtin, problems
from tests.unit.plugins.support import containers, job, pod_of, task


def test_host_files_that_one_configmap_cannot_hold_are_in_two_and_in_one_directory() -> None:
    long = "a" * 50
    train = job(long, task("master"), task("worker", 7_000), plugins={"mpi": [], "svc": []})
    wiring = Wiring(train, builtin())

    maps = [each for each in wiring.objects() if each["metadata"]["name"].startswith(f"{long}-mpi")]
    pod = wiring.pod(train.tasks[0], 0, pod_of(f"{long}-master-0", "master"))

    assert [list(each["data"]) for each in maps] == [["hostfile"], ["machinefile"]]
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == f"{long}-mpi")
    names = [each["configMap"]["name"] for each in volume["projected"]["sources"]]
    assert names == [each["metadata"]["name"] for each in maps]
    assert problems(train, builtin()).errors == ()


def test_a_host_file_that_no_configmap_can_hold_is_refused() -> None:
    train = job(
        "a" * 50, task("master"), task("worker", 9_000), plugins={"mpi": ["--port=9"], "svc": []}
    )

    (error,) = problems(train, builtin()).errors

    assert (error.path, error.code) == ("spec.tasks[1].replicas", "JOB-PLUGIN-SIZE")
    assert "holds 1000000" in error.message


def test_any_number_of_workers_can_be_waited_for() -> None:
    """Linux takes no argument of 128 KiB, so the script does not name them."""
    train = job(
        "j", task("master"), task("worker", 10_000), plugins={"mpi": ["--wait-workers-enabled"]}
    )

    pod = Wiring(train, builtin()).pod(train.tasks[0], 0, pod_of("j-master-0", "master"))

    step = containers(pod)["wait-for-workers"]
    assert max(len(each) for each in step["command"]) < 2_000
    assert {"name": "j-mpi", "mountPath": "/etc/mpi"} in step["volumeMounts"]
