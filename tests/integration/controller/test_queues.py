"""Queues that open and close, with all below them, and what is counted of them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import COMMAND, EVENT, POD_GROUP, QUEUE
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError, Forbidden
from pumice.controller.worker import ControllerWorker
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.mortal import MortalClient, mortal_client
from tests.integration.controller.stage import ControllerStage
from tests.kit.builders import job, pod_group, queue
from tests.kit.requests import Request, recorded
from tests.kit.stage import quick_cluster

Raw = dict[str, Any]


class QueueStage(ControllerStage):
    """A stage for queues."""

    def queue(self, name: str) -> Raw:
        found = self.store.get(QUEUE, name)
        assert found is not None, name
        return found

    def state(self, name: str) -> str:
        return str((self.queue(name).get("status") or {}).get("state", ""))

    def marked(self, name: str) -> str | None:
        found = self.queue(name)["metadata"].get("annotations") or {}
        return found.get(keys.CLOSED_BY_PARENT)

    async def make(self, name: str, parent: str = "") -> None:
        spec: Raw = {"parent": parent} if parent else {}
        await self.client.create(QUEUE, queue(name, state="", **spec))

    async def order(self, action: str, name: str, **target: str) -> None:
        """Create a Command, as vcctl does."""
        about = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": name} | target
        meta = {"generateName": f"{name}-{action.lower()}-", "namespace": "default"}
        head = {"apiVersion": COMMAND.api_version, "kind": COMMAND.kind}
        await self.client.create(
            COMMAND, head | {"metadata": meta, "action": action, "target": about}
        )

    async def write_state(self, name: str, state: str) -> None:
        await self.client.patch(
            QUEUE, name, None, {"status": {"state": state}}, subresource="status"
        )

    async def group(self, name: str, queue: str, phase: str = "Running") -> None:
        manifest = pod_group(name, queue=queue, phase=phase)
        del manifest["metadata"]["uid"]
        await self.client.create(POD_GROUP, manifest)

    async def become(self, **states: str) -> None:
        """Wait for states, and then until nothing is written any more."""
        await self.until(lambda: {name: self.state(name) for name in states} == states, str(states))
        await self.calm()
        assert {name: self.state(name) for name in states} == states

    def told(self, name: str) -> list[tuple[str, str, str]]:
        """Events about a queue or about Commands for it: type, reason, message."""
        return [
            (event["type"], event["reason"], event["message"])
            for event in self.store.list(EVENT)
            if event["involvedObject"]["name"].startswith(name)
        ]

    async def hear(self, name: str, kind: str, reason: str, text: str) -> None:
        """Wait for an event."""
        await self.until(
            lambda: any(each[:2] == (kind, reason) and text in each[2] for each in self.told(name)),
            f"{reason} about {name}: {text}",
        )

    def summary(self) -> str:
        queues = (
            f"{each['metadata']['name']} {each.get('status')}" for each in self.store.list(QUEUE)
        )
        return f"queues: {', '.join(queues)}; Commands: {self.names(COMMAND)}"


@pytest.fixture
async def empty(cluster: EmbeddedCluster, client: Client) -> QueueStage:
    """A stage without a controller."""
    return QueueStage(cluster, client)


@pytest.fixture
async def worker(empty: QueueStage) -> AsyncIterator[ControllerWorker]:
    async with empty.controller(namespace=None) as found:
        yield found


@pytest.fixture
def stage(empty: QueueStage, worker: ControllerWorker) -> QueueStage:
    """A stage on which a controller of all namespaces runs."""
    del worker
    return empty


async def _family(stage: QueueStage) -> None:
    for name, parent in (("root", ""), ("dept", "root"), ("team", "dept"), ("lab", "team")):
        await stage.make(name, parent)
    await stage.become(root="Open", dept="Open", team="Open", lab="Open")


async def test_a_new_queue_is_opened_and_gets_its_parent(stage: QueueStage) -> None:
    await stage.become(default="Open")
    await stage.until(lambda: stage.queue("default")["spec"].get("parent") == "root")
    assert stage.told("default") == []


async def test_a_controller_of_one_namespace_opens_queues_and_counts_nothing(
    empty: QueueStage,
) -> None:
    async with empty.controller():
        await empty.group("a", "default")
        await empty.become(default="Open")
        await empty.order("CloseQueue", "default")
        await empty.become(default="Closing")
        status = empty.queue("default")["status"]
        assert status == {"state": "Closing", "message": "closed by its user"}


async def test_a_tree_closes_and_opens_with_the_queue_above(stage: QueueStage) -> None:
    await _family(stage)
    await stage.group("runs", "lab")
    await stage.order("CloseQueue", "dept")
    await stage.become(root="Open", dept="Closed", team="Closed", lab="Closing")
    assert [stage.marked(name) for name in ("dept", "team", "lab")] == [None, "true", "true"]
    assert stage.queue("lab")["status"]["message"] == "queue dept above it is closed"
    assert stage.names(COMMAND) == []
    await stage.hear("lab", "Normal", "CloseQueue", "1 PodGroup is in it and goes on")

    await stage.order("OpenQueue", "dept")
    await stage.become(dept="Open", team="Open", lab="Open")
    assert [stage.marked(name) for name in ("dept", "team", "lab")] == [None, "false", "false"]
    await stage.hear("team", "Normal", "OpenQueue", "takes PodGroups")


async def test_what_its_user_closed_stays_closed(stage: QueueStage) -> None:
    """Closed before the queue above it, and closed while that one is closed."""
    await _family(stage)
    await stage.order("CloseQueue", "lab")
    await stage.order("CloseQueue", "dept")
    await stage.become(dept="Closed", team="Closed", lab="Closed")
    await stage.order("CloseQueue", "team")
    await stage.until(lambda: stage.marked("team") == "false")
    await stage.order("OpenQueue", "dept")
    await stage.become(dept="Open", team="Closed", lab="Closed")
    await stage.order("OpenQueue", "lab")
    await stage.until(lambda: stage.marked("lab") == "true")
    text = "queue team above it is Closed; it opens with that queue"
    await stage.hear("lab", "Warning", "OpenQueue", text)
    await stage.order("OpenQueue", "team")
    await stage.become(dept="Open", team="Open", lab="Open")


async def test_a_state_that_is_written_by_hand_counts_like_a_command(stage: QueueStage) -> None:
    await _family(stage)
    await stage.write_state("dept", "Closed")
    await stage.become(dept="Closed", team="Closed", lab="Closed")
    await stage.write_state("lab", "Open")
    await stage.become(dept="Closed", team="Closed", lab="Closed")
    await stage.write_state("dept", "Open")
    await stage.become(dept="Open", team="Open", lab="Open")
    await stage.write_state("dept", "Unknown")
    await stage.become(dept="Open", team="Open", lab="Open")


async def test_a_queue_that_moves_follows_the_queues_above_it(stage: QueueStage) -> None:
    await _family(stage)
    await stage.make("shut")
    await stage.order("CloseQueue", "shut")
    await stage.become(shut="Closed")
    await stage.client.patch(QUEUE, "team", None, {"spec": {"parent": "shut"}})
    await stage.become(team="Closed", lab="Closed", dept="Open")
    await stage.client.patch(QUEUE, "team", None, {"spec": {"parent": "dept"}})
    await stage.become(team="Open", lab="Open", shut="Closed")


async def test_a_parent_that_does_not_exist_is_reported_until_it_does(stage: QueueStage) -> None:
    await stage.make("orphan", "later")
    await stage.become(orphan="Open")
    expected = "queue later above it does not exist; create it, or change spec.parent"
    assert stage.queue("orphan")["status"]["message"] == expected
    await stage.hear("orphan", "Warning", "SyncQueue", expected)
    assert len(stage.told("orphan")) == 1
    await stage.make("later")
    await stage.until(lambda: not stage.queue("orphan")["status"].get("message"))


async def test_a_closing_queue_is_closed_when_its_last_pod_group_goes(stage: QueueStage) -> None:
    """Also one that was made again meanwhile: what is in it is listed, not remembered."""
    await stage.make("q")
    await stage.group("a", "q")
    await stage.group("b", "q", "Completed")
    await stage.become(q="Open")
    await stage.client.delete(QUEUE, "q")
    await stage.make("q")
    await stage.become(q="Open")
    await stage.order("CloseQueue", "q")
    await stage.become(q="Closing")
    await stage.client.delete(POD_GROUP, "a", "default")
    await stage.become(q="Closing")
    await stage.client.delete(POD_GROUP, "b", "default")
    await stage.become(q="Closed")
    await stage.hear("q", "Normal", "CloseQueue", "the last PodGroup is gone")


async def test_a_command_for_no_queue_is_refused(stage: QueueStage) -> None:
    await stage.become(default="Open")
    await stage.order("CloseQueue", "nobodys")
    await stage.order("CloseQueue", "default", uid="of-another-one")
    await stage.until(lambda: not stage.names(COMMAND))
    await stage.hear(
        "nobodys", "Warning", "CommandRefused", "is refused: there is no Queue nobodys"
    )
    await stage.hear("default", "Warning", "CommandRefused", "is for an earlier Queue default")
    await stage.become(default="Open")


async def test_counts_follow_and_are_written_once_a_second(
    stage: QueueStage, worker: ControllerWorker
) -> None:
    """What the scheduler writes into the same status stays."""
    await stage.become(default="Open")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number in range(60):
        await stage.group(f"g{number}", "default", "Inqueue")
        await asyncio.sleep(0.05)
    allocated = {"status": {"allocated": {"cpu": "4", "pods": "60"}}}
    await stage.client.patch(QUEUE, "default", None, allocated, subresource="status")
    for number in range(30):
        group = stage.find(POD_GROUP, f"g{number}")
        stage.admit(group, "Running")
        await asyncio.sleep(0.05)
    await stage.until(lambda: stage.queue("default")["status"].get("running") == 30, "30 that run")
    took = loop.time() - begun
    written = worker.metrics.writes.labels("status", "Queue", "done")._value.get()
    assert written <= took + 2, "the first write opens the queue"
    assert took > 4
    await stage.calm()
    status = stage.queue("default")["status"]
    assert (
        status
        == {
            "state": "Open",
            "running": 30,
            "inqueue": 30,
            "pending": 0,
            "unknown": 0,
            "completed": 0,
        }
        | allocated["status"]
    )


async def test_a_podgroup_of_a_few_seconds_leaves_the_status_of_its_queue_as_it_is(
    stage: QueueStage, worker: ControllerWorker
) -> None:
    """That it came and went is shown by the metrics alone."""
    await stage.become(default="Open")
    await stage.calm()
    written = worker.metrics.writes.labels("status", "Queue", "done")._value
    before = written.get()
    await stage.group("short", "default", "Inqueue")
    await asyncio.sleep(1.5)
    stage.admit(stage.find(POD_GROUP, "short"), "Running")
    await asyncio.sleep(1.5)
    await stage.client.delete(POD_GROUP, "short", "default")
    await asyncio.sleep(10)
    assert written.get() == before


async def test_metrics_are_those_of_the_queues_that_exist(
    stage: QueueStage, worker: ControllerWorker
) -> None:
    def metric(phase: str, name: str) -> float | None:
        return worker.metrics.registry.get_sample_value(
            f"volcano_queue_pod_group_{phase}_count", {"queue_name": name}
        )

    await stage.make("q")
    await stage.group("a", "q", "Inqueue")
    await stage.until(lambda: metric("inqueue", "q") == 1)
    assert [metric(phase, "q") for phase in ("pending", "running", "unknown", "completed")] == [
        0,
        0,
        0,
        0,
    ]
    await stage.client.delete(QUEUE, "q")
    await stage.until(lambda: metric("inqueue", "q") is None)


async def test_a_job_whose_pod_group_was_refused_goes_on_when_its_queue_opens(
    empty: QueueStage,
) -> None:
    """The queue closed after the Job was admitted; how long that lasts does not count."""
    loop = asyncio.get_running_loop()

    def refuse(request: Request) -> ApiError | None:
        is_group = request.resource == "podgroups" and request.method == "POST"
        is_open = empty.state("default") == "Open"
        return None if is_open or not is_group else Forbidden(403, "Forbidden", "it is closed")

    async with recorded(empty.cluster.url) as (client, requests):
        requests.refuse = refuse
        async with empty.controller(client, namespace=None):
            await empty.become(default="Open")
            await empty.write_state("default", "Closed")
            await empty.submit(job("train"))
            await empty.until(lambda: len(requests.of("POST", "podgroups")) >= 8)
            await empty.write_state("default", "Open")
            begun = loop.time()
            await empty.until(lambda: empty.names(POD_GROUP))
            assert loop.time() - begun < 5, "the next attempt without that is after 12 s"


async def _story(stage: QueueStage) -> None:
    """A tree is closed, one of its queues by its user, too, and opened; PodGroups go on meanwhile."""

    async def until(wanted: str) -> None:
        names = ("dept", "team", "lab")
        await stage.until(lambda: " ".join(map(stage.state, names)) == wanted, wanted)

    for name, parent in (("dept", ""), ("team", "dept"), ("lab", "team")):
        await stage.make(name, parent)
    await stage.group("a", "lab")
    await until("Open Open Open")
    await stage.order("CloseQueue", "dept")
    await until("Closed Closed Closing")
    await stage.order("CloseQueue", "lab")
    await stage.until(lambda: stage.marked("lab") == "false")
    await stage.order("OpenQueue", "dept")
    await until("Open Open Closing")
    await stage.client.delete(POD_GROUP, "a", "default")
    await until("Open Open Closed")
    await stage.order("OpenQueue", "lab")
    await until("Open Open Open")
    await stage.group("b", "lab")
    await stage.until(lambda: stage.queue("lab")["status"].get("running") == 1)
    await stage.until(lambda: not stage.names(COMMAND))
    await stage.until(lambda: stage.marked("team") == "false")


async def _told(last: int | None, *, after: bool) -> tuple[Raw, MortalClient]:
    """How the summary ends, and the client of the controller that is killed at a write."""
    async with (
        quick_cluster() as cluster,
        Client.connect(server=cluster.url) as client,
        mortal_client(cluster, MortalClient, last, after=after) as mortal,
    ):
        stage = QueueStage(cluster, client)
        settings: Raw = {"namespace": None, "controllers": frozenset(("queue-controller",))}
        telling = asyncio.create_task(_story(stage))
        try:
            async with stage.controller(mortal, **settings):
                await mortal.until_dead_or(telling)
            async with stage.controller(**settings):
                await telling
        finally:
            telling.cancel()
        end = {
            each["metadata"]["name"]: (
                each["metadata"].get("annotations"),
                each["spec"],
                each["status"],
            )
            for each in cluster.store.list(QUEUE)
        }
        return end, mortal


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_the_end_is_the_same_wherever_a_controller_dies(after: bool) -> None:
    expected, calm = await _told(None, after=after)
    assert calm.writes >= 20
    told = await asyncio.gather(*(_told(number, after=after) for number in range(calm.writes)))
    for number, (end, _) in enumerate(told):
        assert end == expected, f"killed at write {number}"
