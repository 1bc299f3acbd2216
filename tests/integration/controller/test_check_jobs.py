"""New Jobs that no webhook has checked: the controller refuses what admission would have refused."""

from pumice.api.kinds import POD, POD_GROUP
from pumice.cli.files.checking import job_check
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

NO_IMAGE = {"containers": [{"name": "main"}]}


async def test_a_job_that_breaks_rules_waits_until_it_is_changed(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller(check=job_check()):
        await stage.submit(job("train", [task("worker", 2, spec=NO_IMAGE)], minAvailable=3))
        await stage.until(lambda: stage.phase() == "Pending")
        reason, message = stage.reason()
        assert reason == "InvalidJob"
        assert (
            "spec.minAvailable: job 'minAvailable' should not be greater than total replicas (2)"
            in message
        )
        assert "[JOB-MINAVAIL-TOTAL]" in message
        assert "spec.tasks[0].template.spec.containers[0].image" in message
        await stage.calm()
        assert stage.names(POD_GROUP) == []
        assert stage.names(POD) == []
        assert stage.events().count(("Warning", "InvalidJob")) == 1

        stored = stage.job()
        stored["spec"]["minAvailable"] = 2
        (worker,) = stored["spec"]["tasks"]
        worker["template"]["spec"]["containers"][0]["image"] = "busybox"
        stage.store.update(stored)
        await stage.until(lambda: len(stage.all(POD_GROUP)) == 1)


async def test_a_job_that_runs_is_not_checked_again(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller():
        await stage.submit(job("train", [task("worker", 2)], minAvailable=3))
        await stage.until(lambda: len(stage.all(POD_GROUP)) == 1)
    async with stage.controller(check=job_check()):
        stage.admit(stage.all(POD_GROUP)[0])
        await stage.until(lambda: len(stage.all(POD)) == 2)
        assert stage.reason()[0] != "InvalidJob"


def test_a_message_names_five_problems_and_counts_the_rest() -> None:
    broken = job("train", [task(f"w{each}", 1, spec=NO_IMAGE) for each in range(9)])
    message = job_check()(broken)
    assert message.count("[TPL-IMAGE]") == 5
    assert message.endswith("; and 4 more")
    assert job_check()(job("train", [task("worker", 2)], queue="not-there-yet")) == ""
