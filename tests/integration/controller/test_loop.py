"""The process around `reconcile`: starting, leading, stumbling, being refused."""

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, cast

from prometheus_client import generate_latest

from pumice.api import keys
from pumice.api.jobs import Job, Task
from pumice.api.kinds import (
    CONFIG_MAP,
    JOB,
    LEASE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    SERVICE,
    Kind,
)
from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.controller.worker import ControllerWorker
from pumice.embedded import EmbeddedCluster
from pumice.embedded.storage import StoredWrite
from pumice.plugins import JobPlugin, PodEdits, Registry, Values, builtin
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, task

Raw = dict[str, Any]


async def test_starting_again_on_settled_jobs_writes_nothing(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    playing = asyncio.create_task(stage.schedule())
    async with stage.controller():
        await stage.submit(job("runs", plugins={"svc": []}))
        ends = {keys.RUN_DURATION: "1ms"}
        await stage.submit(job("ends", [task(annotations=ends)]))
        await stage.until(
            lambda: (stage.phase("runs"), stage.phase("ends")) == ("Running", "Completed")
        )
        await stage.calm()
    before = cluster.store.storage.revision
    async with stage.controller() as worker:
        await stage.until(lambda: worker.metrics.passes.labels("idle")._value.get() >= 2)
        await stage.calm()
    playing.cancel()
    assert cluster.store.storage.revision == before


class SlowClient(Client):
    """Takes a while to create a pod."""

    created = 0
    answered = 0

    async def create(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        if kind == POD:
            self.created += 1
            await asyncio.sleep(0.2)
        made = await super().create(kind, *args, **named)
        self.answered += kind == POD
        return made


async def test_what_was_sent_is_answered_before_the_controller_ends(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with SlowClient.connect(server=cluster.url) as slow:
        assert isinstance(slow, SlowClient)
        async with stage.controller(slow) as worker:
            await stage.submit(job("train", [task("worker", 8)]))
            await stage.until(lambda: bool(stage.all(POD_GROUP)))
            stage.admit(stage.all(POD_GROUP)[0])
            await stage.until(lambda: slow.created > slow.answered > 0)
        assert slow.answered == slow.created == len(stage.all(POD))
        counted = worker.metrics.writes.labels("create", "Pod", "done")._value.get()
        assert counted == slow.created


async def test_a_job_of_20_pods_is_noted_by_no_write_of_its_own(
    cluster: EmbeddedCluster, client: Client
) -> None:
    """The notes change with the counts: no status differs from the one before in its notes only."""
    stage = ControllerStage(cluster, client)
    statuses: list[Raw] = []

    def listen(change: StoredWrite) -> None:
        if change.new.obj["kind"] == JOB.kind and change.new.obj.get("status"):
            statuses.append(change.new.obj["status"])

    cluster.store.storage.listen(listen)
    playing = asyncio.create_task(stage.schedule())
    async with stage.controller():
        ends = {keys.RUN_DURATION: "50ms"}
        await stage.submit(job("train", [task("worker", 20, annotations=ends)]))
        await stage.until(lambda: stage.phase() == "Completed")
        await stage.calm()
    playing.cancel()
    without = [{**each, "controlledResources": None} for each in statuses]
    for before, after in itertools.pairwise(without):
        assert before != after
    assert stage.job()["status"]["controlledResources"]["pumice.dev/succeeded"] == "worker/0-19"


async def test_one_of_two_leads_and_the_other_takes_over(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)

    def leader() -> str:
        lease = cluster.store.get(LEASE, "pumice-controller", "default") or {"spec": {}}
        return str(lease["spec"].get("holderIdentity", ""))

    async with stage.controller(leader_elect=True, identity="second") as second:
        await stage.until(lambda: leader() == "second")
        async with stage.controller(leader_elect=True, identity="first") as first:
            await stage.submit(job("train"))
            await stage.until(lambda: bool(stage.all(POD_GROUP)))
            assert first.ready
            assert first.metrics.leading._value.get() == 0
            assert second.metrics.leading._value.get() == 1


async def test_a_successor_goes_on_where_a_leader_left(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller(leader_elect=True, identity="a"):
        await stage.submit(job("train"))
        await stage.until(lambda: bool(stage.all(POD_GROUP)))
    async with stage.controller(leader_elect=True, identity="b"):
        stage.admit(stage.all(POD_GROUP)[0])
        await stage.until(lambda: bool(stage.all(POD)))


async def test_it_is_ready_when_the_caches_are_and_counts_what_it_does(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller() as worker:
        assert not worker.ready
        await stage.until(lambda: worker.ready)
        await stage.submit(job("train"))
        await stage.until(lambda: bool(stage.all(POD_GROUP)))
        await stage.calm()
        text = generate_latest(worker.metrics.registry).decode()
    assert 'pumice_controller_writes_total{kind="PodGroup",result="done",verb="create"} 1.0' in text
    assert 'pumice_controller_job_phases_total{phase="Pending"} 1.0' in text
    assert "pumice_controller_jobs 1.0" in text


async def test_it_stops_when_told(cluster: EmbeddedCluster, client: Client) -> None:
    stop = asyncio.Event()
    tasks = ControllerWorker(client, builtin()).tasks()
    running = asyncio.create_task(run_until_stopped(tasks, stop=stop, signals=()))
    await client.create(JOB, job("train"))
    await ControllerStage(cluster, client).until(lambda: bool(cluster.store.list(POD_GROUP)))
    stop.set()
    async with asyncio.timeout(60):
        await running


class _Stumbling(JobPlugin):
    """A plugin with a mistake in it."""

    name = "stumbling"
    summary = "Divides by zero."

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        return PodEdits(labels={"share": str(1 // 0)})


class _Eager(JobPlugin):
    """A plugin that wants something strange."""

    name = "eager"
    summary = "Wants a kind that nobody knows."

    def objects(self, job: Job, values: Values) -> Iterable[Raw]:
        return [{"apiVersion": "x/v1", "kind": "Strange", "metadata": {"name": "s"}}]


async def test_a_plugin_that_stumbles_stops_its_own_job_only(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    registry = builtin().with_plugin(_Stumbling(), "here").with_plugin(_Eager(), "here")
    async with stage.controller(registry=registry):
        await stage.submit(job("bad", plugins={"stumbling": []}))
        await stage.submit(job("odd", plugins={"eager": []}))
        await stage.submit(job("good"))
        await stage.until(lambda: len(stage.all(POD_GROUP)) == 2)
        for group in stage.all(POD_GROUP):
            stage.admit(group)
        await stage.until(lambda: stage.reason("bad")[0] == "PluginError")
        assert stage.reason("bad")[1].startswith(
            'plugin "stumbling" of here failed with ZeroDivisionError'
        )
        await stage.until(lambda: stage.names(POD) == ["good-worker-0"])
        await stage.until(lambda: stage.reason("odd")[0] == "PluginError")
        assert "Strange" in stage.reason("odd")[1]


async def test_a_pass_that_fails_is_reported_and_tried_again(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    async with stage.controller(registry=cast("Registry", object())) as worker:
        await stage.submit(job("train", plugins={"svc": []}))
        await stage.until(lambda: ("Warning", "ReconcileError") in stage.events())
        await stage.until(lambda: worker.metrics.passes.labels("failed")._value.get() >= 2)


async def test_what_is_refused_for_one_pod_is_not_tried_for_all(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    bad = task("worker", 100, spec={"containers": [{"name": "Not A Label", "image": "x"}]})
    async with stage.controller() as worker:
        await stage.submit(job("train", [bad]))
        await stage.until(lambda: bool(stage.all(POD_GROUP)))
        stage.admit(stage.all(POD_GROUP)[0])
        await stage.until(lambda: stage.reason()[0] == "FailedCreate")
        refused = worker.metrics.writes.labels("create", "Pod", "refused")._value.get()
    assert 1 <= refused < 10


async def test_a_large_job_gets_all_its_pods(played: ControllerStage) -> None:
    await played.submit(job("train", [task("worker", 100)]))
    await played.until(lambda: played.phase() == "Running")
    await played.until(lambda: played.job()["status"].get("running") == 100)
    assert played.job()["status"]["taskStatusCount"] == {"worker": {"phase": {"Running": 100}}}


async def test_a_claim_is_made_once_and_outlives_the_end_of_the_job(
    played: ControllerStage,
) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}]
    ends = {keys.RUN_DURATION: "1ms"}
    await played.submit(job("train", [task(annotations=ends)], volumes=volumes))
    await played.until(lambda: played.phase() == "Completed")
    await played.calm()
    (made,) = played.all(PERSISTENT_VOLUME_CLAIM)
    (pod,) = played.all(POD)
    (volume,) = pod["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == made["metadata"]["name"]
    noted = played.job()["status"]["controlledResources"]
    marks = {key: text for key, text in noted.items() if not key.startswith("pumice.dev/")}
    assert marks == {f"volume-pvc-{made['metadata']['name']}": made["metadata"]["name"]}


async def test_what_volcano_made_for_the_job_is_taken_over(stage: ControllerStage) -> None:
    """It carries no label, so that only the refused creation shows it; the owner is the Job."""
    made = await stage.submit(job("train", plugins={"svc": []}, schedulerName="other"))
    await stage.until(lambda: bool(stage.all(POD_GROUP)))
    await stage.calm()
    for kind in (SERVICE, CONFIG_MAP):
        (obj,) = stage.all(kind)
        stage.store.delete(kind, obj["metadata"]["name"], "default")
        bare = {key: obj["metadata"][key] for key in ("name", "namespace", "ownerReferences")}
        stage.store.create(obj | {"metadata": bare})
    assert made["metadata"]["uid"] == stage.all(SERVICE)[0]["metadata"]["ownerReferences"][0]["uid"]
    await stage.calm()

    def labelled() -> bool:
        found = [*stage.all(SERVICE), *stage.all(CONFIG_MAP)]
        return len(found) == 2 and all(
            keys.JOB_NAME in (obj["metadata"].get("labels") or {}) for obj in found
        )

    await stage.until(labelled)
    assert stage.reason()[0] == "PodGroupPending"


async def test_priority_classes_decide_whose_resources_count(
    cluster: EmbeddedCluster, client: Client
) -> None:
    head = {"apiVersion": PRIORITY_CLASS.api_version, "kind": "PriorityClass"}
    await client.create(PRIORITY_CLASS, head | {"metadata": {"name": "high"}, "value": 10})

    def of(name: str, cpu: str, **spec: Any) -> Raw:
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        return task(name, 2, spec={"containers": [container], **spec})

    tasks: Sequence[Raw] = [of("a", "1"), of("b", "2", priorityClassName="high")]
    stage = ControllerStage(cluster, client)
    async with stage.controller():
        await stage.submit(job("train", list(tasks), minAvailable=1))
        await stage.until(lambda: bool(stage.all(POD_GROUP)))
    assert stage.all(POD_GROUP)[0]["spec"]["minResources"]["cpu"] == "2"


async def test_it_counts_under_volcanos_names_as_long_as_a_job_exists(
    cluster: EmbeddedCluster, client: Client
) -> None:
    stage = ControllerStage(cluster, client)
    playing = asyncio.create_task(stage.schedule())
    async with stage.controller() as worker:

        def metrics() -> str:
            return generate_latest(worker.metrics.registry).decode()

        ends = {keys.RUN_DURATION: "1ms"}
        fails = ends | {keys.EXIT_CODE: "1"}
        await stage.submit(job("good", [task(annotations=ends)]))
        await stage.submit(job("bad", [task(annotations=fails)]))
        await stage.until(
            lambda: (stage.phase("good"), stage.phase("bad")) == ("Completed", "Failed")
        )
        done = 'volcano_job_completed_phase_count{job_name="default/good",queue_name="default"} 1.0'
        failed = 'volcano_job_failed_phase_count{job_name="default/bad",queue_name="default"} 1.0'
        await stage.until(lambda: done in metrics() and failed in metrics())
        latency = "volcano_controller_job_to_pod_creation_latency_milliseconds_count 2.0"
        assert latency in metrics()
        await client.delete(JOB, "good", "default")
        await stage.until(lambda: done not in metrics())
        assert failed in metrics()
    playing.cancel()
