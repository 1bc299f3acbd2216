"""Files of running pods follow a Job that is scaled, on an API server; and pods start again where it asks."""

import json
from typing import Any

from pumice.api import keys
from pumice.api.kinds import CONFIG_MAP, JOB, POD
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

Raw = dict[str, Any]


async def _running(stage: ControllerStage, manifest: Raw) -> None:
    await stage.submit(manifest)
    await stage.until(lambda: stage.phase() == "Running", "Running")
    await stage.calm()


async def _scale(stage: ControllerStage, **sizes: int) -> None:
    """What `kubectl edit` does to the replicas of tasks."""
    tasks = stage.job()["spec"]["tasks"]
    for each in tasks:
        each["replicas"] = each["minAvailable"] = sizes.get(each["name"], each["replicas"])
    spec = {"tasks": tasks, "minAvailable": sum(each["replicas"] for each in tasks)}
    await stage.client.patch(JOB, "train", "default", {"spec": spec})
    await stage.until(lambda: len(stage.all(POD)) == spec["minAvailable"])
    await stage.calm()


def _mounted(stage: ControllerStage, pod_name: str, path: str) -> dict[str, str]:
    """Files that a pod finds in a directory, as the kubelet takes them from the ConfigMaps that it names."""
    pod = next(each for each in stage.all(POD) if each["metadata"]["name"] == pod_name)
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    (volume,) = (each["name"] for each in mounts if each["mountPath"] == path)
    (source,) = (each for each in pod["spec"]["volumes"] if each["name"] == volume)
    maps = {each["metadata"]["name"]: each["data"] for each in stage.all(CONFIG_MAP)}
    found: dict[str, str] = maps[source["configMap"]["name"]]
    return found


def _uids(stage: ControllerStage) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in stage.all(POD)}


async def test_the_masters_host_files_follow_the_workers(played: ControllerStage) -> None:
    tasks = [task("master", 1, cpu="1"), task("worker", 2, cpu="2")]
    plugins: dict[str, list[str]] = {"svc": [], "ssh": [], "mpi": []}
    await _running(played, job("train", tasks, plugins=plugins))
    before = _uids(played)
    for workers in (2, 4, 1):
        await _scale(played, worker=workers)
        hosts = [f"train-worker-{index}.train" for index in range(workers)]
        assert _mounted(played, "train-master-0", "/etc/mpi") == {
            "hostfile": "".join(f"{host} slots=2\n" for host in hosts),
            "machinefile": "".join(f"{host}:2\n" for host in hosts),
        }
    assert _uids(played).items() <= before.items(), "no pod was restarted for it"


async def test_the_cluster_of_tensorflow_follows_its_tasks(played: ControllerStage) -> None:
    tasks = [task("ps", 1), task("worker", 2)]
    await _running(played, job("train", tasks, plugins={"svc": [], "tensorflow": []}))
    before = _uids(played)
    for workers in (2, 3, 1):
        await _scale(played, worker=workers)
        files = _mounted(played, "train-worker-0", "/etc/tensorflow")
        assert json.loads(files["cluster.json"]) == {
            "ps": ["train-ps-0.train:2222"],
            "worker": [f"train-worker-{index}.train:2222" for index in range(workers)],
        }
    assert _uids(played).items() <= before.items()


async def test_variables_follow_where_the_job_asks_for_restarts(played: ControllerStage) -> None:
    tasks = [task("master", 1), task("worker", 1)]
    asks = {keys.RESTART_ON_SCALING: "true"}
    plugins: dict[str, list[str]] = {"svc": [], "pytorch": []}
    await _running(played, job("train", tasks, plugins=plugins, annotations=asks))
    await _scale(played, worker=2)

    def sizes() -> set[str]:
        return {
            each["value"]
            for pod in played.all(POD)
            for each in pod["spec"]["containers"][0]["env"]
            if each["name"] == "WORLD_SIZE"
        }

    await played.until(lambda: sizes() == {"3"} and played.phase() == "Running")
    await played.calm()
    assert len(played.all(POD)) == 3
    await played.until(lambda: ("Normal", "RestartOnScaling") in played.events())
