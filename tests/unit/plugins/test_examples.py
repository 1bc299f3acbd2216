"""The example manifests, as far as plugins are concerned."""

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from pumice.api.jobs import Job
from pumice.api.quantities import parse_milli
from pumice.plugins import Wiring, builtin, dependencies, job_annotations, problems
from tests.unit.plugins.support import containers, env, pod_of

EXAMPLES = Path(__file__).parents[3] / "examples"


def example(name: str) -> Job:
    """An example with the plugins that admission adds."""
    manifest = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    plugins = manifest["spec"].get("plugins", {})
    plugins.update(dependencies(plugins, builtin()))
    return msgspec.convert(manifest, Job)


def test_the_tensorflow_job_is_wired() -> None:
    train = example("tensorflow.yaml")
    worker = train.task("worker")
    assert worker is not None

    pod = Wiring(train, builtin()).pod(worker, 3, pod_of("train-worker-3", "worker"))

    variables = dict(env(containers(pod)["c0"]))
    assert json.loads(variables["TF_CONFIG"]) == {
        "cluster": {
            "ps": ["train-ps-0.train:2222", "train-ps-1.train:2222"],
            "worker": [f"train-worker-{index}.train:2222" for index in range(4)],
        },
        "task": {"type": "worker", "index": 3},
    }
    assert variables["VC_TASK_INDEX"] == "3"
    assert pod["spec"]["subdomain"] == "train"


def test_the_tensorflow_job_says_who_belongs_together() -> None:
    train = example("tensorflow.yaml")

    annotations = job_annotations(train, builtin())

    assert annotations["volcano.sh/task-topology-affinity"] == "ps,worker"
    assert annotations["volcano.sh/task-topology-anti-affinity"] == "ps"
    assert problems(train, builtin()) == ((), ())
    assert train.spec.min_available == train.replicas == 6


@pytest.mark.parametrize(
    ("name", "task", "expected"),
    [
        (
            "pytorch",
            "worker",
            ["RANK=3", "WORLD_SIZE=4", "PET_NODE_RANK=3", "PET_NNODES=4", "PET_NPROC_PER_NODE=4"],
        ),
        (
            "mpi",
            "master",
            [
                "MPI_HOST=pi-worker-0.pi,pi-worker-1.pi,pi-worker-2.pi",
                "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
            ],
        ),
        (
            "mxnet",
            "server",
            ["DMLC_ROLE=server", "DMLC_PS_ROOT_URI=mnist-scheduler-0.mnist", "DMLC_NUM_WORKER=2"],
        ),
        ("ray", "head", []),
        ("hcclrank", "worker", ["RANK=2", "PET_NPROC_PER_NODE=8"]),
        (
            "roles",
            "worker",
            ["JAX_COORDINATOR_ADDRESS=jax-worker-0.jax:1234", "JAX_PROCESS_ID=3"],
        ),
    ],
)
def test_the_frameworks_examples_are_wired(name: str, task: str, expected: list[str]) -> None:
    """The last pod of a task; the whole output stands in the plugin's page."""
    train = example(f"{name}.yaml")
    found = train.task(task)
    assert found is not None
    index = found.size - 1

    pod = Wiring(train, builtin()).pod(
        found, index, pod_of(f"{train.metadata.name}-{task}-{index}", task)
    )

    variables = [f"{name}={value}" for name, value in env(containers(pod)["c0"])]
    assert set(expected) <= set(variables)
    assert problems(train, builtin()) == ((), ())
    assert train.spec.min_available == train.replicas


def test_the_mpi_job_has_as_many_processes_as_slots() -> None:
    train = example("mpi.yaml")
    data = next(
        each["data"]
        for each in Wiring(train, builtin()).objects()
        if "hostfile" in each.get("data", {})
    )
    master = train.task("master")
    assert master is not None
    command = master.pod_spec()["containers"][0]["command"]

    slots = sum(int(line.partition("slots=")[2]) for line in data["hostfile"].splitlines())

    assert command[command.index("-np") + 1] == str(slots) == "6"


def test_the_ray_job_starts_ray_by_itself() -> None:
    train = example("ray.yaml")
    wiring = Wiring(train, builtin())

    commands = [
        wiring.pod(task, 0, {"metadata": {"name": "p"}, "spec": task.pod_spec()})["spec"][
            "containers"
        ][0]["command"][2]
        for task in train.tasks
    ]

    assert [each.split(" --")[0:2] for each in commands] == [
        ["ray start", "head"],
        ["ray start", "block"],
    ]


def test_the_job_that_does_not_fit_has_a_place_for_one_pod_in_the_demo() -> None:
    job = example("does-not-fit.yaml")
    (task,) = job.tasks
    (container,) = task.pod_spec()["containers"]
    asked = parse_milli(container["resources"]["requests"]["cpu"])

    assert task.size == 2
    assert sum(1000 * cpus // asked for cpus in (2, 1, 4)) == 1


def test_the_bad_job_has_its_plugin_mistakes_named() -> None:
    found = problems(example("bad-job.yaml"), builtin())

    assert [error.path for error in found.errors] == ["spec.plugins.tensorbaord"]
    assert [warning.path for warning in found.warnings] == [
        "spec.plugins.svc[0]",
        "spec.plugins.tensorflow[0]",
        "spec.plugins.task-topology",
    ]
