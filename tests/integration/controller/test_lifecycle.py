"""Jobs from creation to their ends, on an API server."""

import base64
from typing import Any

from cryptography.hazmat.primitives import serialization

from pumice.api import keys
from pumice.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    JOB,
    NETWORK_POLICY,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
)
from tests.integration.controller.stage import LEFT_BEHIND, ControllerStage
from tests.kit.builders import job, task

Raw = dict[str, Any]


def _job(*tasks: Raw, **fields: Any) -> Raw:
    plugins: dict[str, list[str]] = {"svc": [], "env": []}
    return job(
        "train", list(tasks) or [task("worker", 3, cpu="1")], **({"plugins": plugins} | fields)
    )


async def _running(stage: ControllerStage, manifest: Raw) -> None:
    await stage.submit(manifest)
    await stage.until(lambda: stage.phase() == "Running", "Running")


async def test_a_job_is_taken_from_creation_to_completion(stage: ControllerStage) -> None:
    await stage.submit(_job())
    await stage.until(lambda: bool(stage.all(POD_GROUP)))
    await stage.calm()
    assert stage.phase() == "Pending"
    assert stage.names(POD) == []
    assert stage.names(SERVICE) == ["train"]
    assert stage.names(CONFIG_MAP) == ["train-svc"]
    assert stage.names(NETWORK_POLICY) == ["train"]
    (group,) = stage.all(POD_GROUP)
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minResources"]["cpu"] == "3"

    stage.admit(group)
    await stage.until(lambda: len(stage.all(POD)) == 3)
    assert stage.names(POD) == [f"train-worker-{index}" for index in range(3)]
    await stage.until(lambda: stage.reason()[0] == "PodsPending")
    for name in stage.names(POD):
        await stage.client.bind("default", name, "node1")
    await stage.until(lambda: stage.phase() == "Running")
    await stage.until(lambda: stage.job()["status"].get("running") == 3)

    for name in stage.names(POD):
        stage.finish(name)
    await stage.until(lambda: stage.phase() == "Completed")
    await stage.until(lambda: not stage.all(POD_GROUP) and not stage.all(SERVICE))
    await stage.calm()
    status = stage.job()["status"]
    assert status["succeeded"] == 3
    assert [each["status"] for each in status["conditions"]] == ["Pending", "Running", "Completed"]
    assert stage.names(POD) == [f"train-worker-{index}" for index in range(3)]
    assert stage.names(CONFIG_MAP) == []
    await stage.until(lambda: ("Normal", "Completed") in stage.events())


async def test_pods_carry_what_the_plugins_add(played: ControllerStage) -> None:
    await _running(played, _job())
    pod = played.all(POD)[2]
    env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    assert env["VC_TASK_INDEX"] == "2"
    assert pod["metadata"]["annotations"][keys.WIRED] == "svc,env"
    assert pod["spec"]["subdomain"] == "train"


async def test_pods_share_a_key_pair_that_outlives_each_of_them(played: ControllerStage) -> None:
    plugins: dict[str, list[str]] = {"svc": [], "ssh": []}
    await _running(played, _job(plugins=plugins))
    (secret,) = played.all(SECRET)
    private, public = (
        base64.b64decode(secret["data"][key]) for key in ("id_rsa", "authorized_keys")
    )
    key = serialization.load_pem_private_key(private, None)
    line = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert public == line + b"\n"

    await played.client.delete(POD, "train-worker-1", "default", grace=0)
    await played.until(lambda: len(played.all(POD)) == 3)
    assert played.all(SECRET)[0]["metadata"]["uid"] == secret["metadata"]["uid"]


async def test_a_job_whose_pods_fail_is_failed(played: ControllerStage) -> None:
    ends = {keys.RUN_DURATION: "10ms", keys.EXIT_CODE: "2"}
    await played.submit(_job(task("worker", 2, annotations=ends)))
    await played.until(lambda: played.phase() == "Failed")
    await played.calm()
    word, message = played.reason()
    assert word == "TooFewSucceeded"
    assert message.endswith("2 pods (train-worker-0, train-worker-1) failed with exit code 2")
    assert set(played.pod_phases().values()) == {"Failed"}
    await played.until(lambda: ("Warning", "Failed") in played.events())


async def test_a_restart_policy_restarts_until_the_retries_are_used_up(
    played: ControllerStage,
) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    await _running(played, _job(policies=policies, maxRetry=2))
    first = {pod["metadata"]["uid"] for pod in played.all(POD)}
    played.finish("train-worker-1", exit_code=1)
    await played.until(lambda: played.job()["status"].get("retryCount") == 1)
    await played.until(lambda: played.phase() == "Running")
    await played.calm()
    assert not first & {pod["metadata"]["uid"] for pod in played.all(POD)}
    played.finish("train-worker-2", exit_code=1)
    await played.until(lambda: played.phase() == "Failed")
    await played.until(lambda: played.names(POD) == ["train-worker-2"], "the others to go")
    assert played.reason() == (
        "RetriesExhausted",
        "task worker: pod train-worker-2 failed with exit code 1 (spec.policies[0]); attempts used: 2 of 2 (maxRetry)",
    )
    assert played.pod_phases() == {"train-worker-2": "Failed"}


async def test_abort_and_resume_by_command(played: ControllerStage) -> None:
    await _running(played, _job())
    await played.command("AbortJob")
    await played.until(lambda: played.phase() == "Aborted")
    await played.calm()
    assert [played.names(kind) for kind in (POD, POD_GROUP, SERVICE, COMMAND)] == [[], [], [], []]
    await played.command("ResumeJob")
    await played.until(lambda: played.phase() == "Running")
    await played.calm()
    assert len(played.all(POD)) == 3
    assert played.names(COMMAND) == []


async def test_a_job_grows_and_shrinks(played: ControllerStage) -> None:
    await _running(played, _job(policies=[{"event": "PodEvicted", "action": "TerminateJob"}]))
    for replicas in (5, 2):
        wanted = played.job()
        wanted["spec"]["tasks"][0] |= {"replicas": replicas}
        wanted["spec"]["minAvailable"] = 1
        played.store.update(wanted)
        expected = [f"train-worker-{index}" for index in range(replicas)]
        await played.until(lambda: played.names(POD) == expected)  # noqa: B023
        hosts = ",".join(f"{name}.train" for name in expected)
        await played.until(
            lambda: played.all(CONFIG_MAP)[0]["data"]["VC_WORKER_HOSTS"] == hosts  # noqa: B023
        )
    await played.calm()
    assert played.phase() == "Running"


async def test_a_pod_that_a_user_deletes_is_replaced(played: ControllerStage) -> None:
    await _running(played, _job())
    before = played.store.get(POD, "train-worker-1", "default")
    assert before is not None
    await played.client.delete(POD, "train-worker-1", "default")

    def replaced() -> bool:
        found = played.store.get(POD, "train-worker-1", "default")
        return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

    await played.until(replaced)
    await played.until(lambda: played.phase() == "Running")


async def test_an_eviction_policy_sees_a_pod_that_a_user_deletes(played: ControllerStage) -> None:
    await _running(played, _job(policies=[{"event": "PodEvicted", "action": "TerminateJob"}]))
    await played.client.delete(POD, "train-worker-1", "default", grace=0)
    await played.until(lambda: played.phase() == "Terminated")


async def test_a_task_waits_for_another(stage: ControllerStage) -> None:
    worker = task("worker", 2, dependsOn={"name": ["master"]})
    await stage.submit(_job(task("master", 1), worker))
    await stage.until(lambda: bool(stage.all(POD_GROUP)))
    (group,) = stage.all(POD_GROUP)
    assert group["spec"]["minMember"] == 1
    stage.admit(group)
    await stage.until(lambda: stage.names(POD) == ["train-master-0"])
    await stage.until(lambda: stage.reason()[0] == "DependsOn")
    await stage.client.bind("default", "train-master-0", "node1")
    await stage.until(lambda: len(stage.all(POD)) == 3)
    await stage.until(lambda: stage.all(POD_GROUP)[0]["spec"]["minMember"] == 3)


async def test_the_schedulers_reason_reaches_the_job(stage: ControllerStage) -> None:
    await stage.submit(_job())
    await stage.until(lambda: bool(stage.all(POD_GROUP)))
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "3/3 tasks in gang unschedulable",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stage.admit(stage.all(POD_GROUP)[0], "Pending", conditions=[condition])
    expected = ("NotEnoughResources", "3/3 tasks in gang unschedulable")
    await stage.until(lambda: stage.reason() == expected)
    await stage.until(lambda: ("Warning", "PodGroupPending") in stage.events())


async def test_a_service_of_another_owner_is_reported_and_not_touched(
    stage: ControllerStage,
) -> None:
    mine = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    before = await stage.client.create(SERVICE, mine)
    await stage.submit(_job())
    await stage.until(lambda: stage.reason()[0] == "NameConflict")
    await stage.calm()
    assert "Service train exists and does not belong to this Job" in stage.reason()[1]
    assert stage.names(POD_GROUP) == []
    assert await stage.client.get(SERVICE, "train", "default") == before
    await stage.until(lambda: ("Warning", "NameConflict") in stage.events())
    await stage.client.delete(JOB, "train", "default")
    await stage.until(lambda: not stage.all(JOB))
    await stage.calm()
    assert await stage.client.get(SERVICE, "train", "default") == before


async def test_a_pod_of_another_owner_is_reported_and_not_touched(played: ControllerStage) -> None:
    """It carries no label of ours, so that only the refused creation shows it."""
    containers = [{"name": "main", "image": "x"}]
    mine = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-worker-1", "namespace": "default"},
        "spec": {"containers": containers, "nodeName": "elsewhere"},
    }
    before = await played.client.create(POD, mine)
    await played.submit(_job())
    await played.until(lambda: played.reason()[0] == "NameConflict")
    await played.until(lambda: len(played.all(POD)) == 3)
    assert "Pod train-worker-1" in played.reason()[1]
    assert await played.client.get(POD, "train-worker-1", "default") == before


async def test_deletion_leaves_nothing_behind(played: ControllerStage) -> None:
    await _running(played, _job())
    await played.client.delete(JOB, "train", "default", propagation="Background")
    await played.until(lambda: not any(played.all(kind) for kind in LEFT_BEHIND), "an empty stage")
    await played.calm()
    assert not any(played.all(kind) for kind in LEFT_BEHIND)


async def test_a_job_that_follows_one_of_the_same_name_starts_afresh(
    played: ControllerStage,
) -> None:
    await _running(played, _job())
    old = {pod["metadata"]["uid"] for pod in played.all(POD)}
    await played.client.delete(JOB, "train", "default", propagation="Background")
    await played.until(lambda: not played.all(JOB))
    await _running(played, _job())
    await played.calm()
    assert not old & {pod["metadata"]["uid"] for pod in played.all(POD)}
    assert len(played.all(POD)) == 3


async def test_a_finished_job_goes_when_its_time_is_over(played: ControllerStage) -> None:
    ends = {keys.RUN_DURATION: "10ms"}
    await played.submit(_job(task("worker", 1, annotations=ends), ttlSecondsAfterFinished=1))
    await played.until(lambda: played.phase() == "Completed")
    await played.until(lambda: not any(played.all(kind) for kind in LEFT_BEHIND), "the deletion")


async def test_what_the_server_refuses_is_reported_and_tried_again(stage: ControllerStage) -> None:
    """A container name that is no DNS label: no pod of it can ever be created."""
    bad = task("worker", 2, spec={"containers": [{"name": "Not A Label", "image": "x"}]})
    await stage.submit(_job(bad))
    await stage.until(lambda: bool(stage.all(POD_GROUP)))
    stage.admit(stage.all(POD_GROUP)[0])
    await stage.until(lambda: stage.reason()[0] == "FailedCreate", "FailedCreate")
    assert "cannot create Pod" in stage.reason()[1]
    assert stage.phase() == "Pending"
    await stage.until(lambda: ("Warning", "FailedCreate") in stage.events())
