"""A leader that is stopped (SIGSTOP) in the middle of its writes for longer than its lease, and then goes on.

Processes of `pumice scheduler` and `pumice controller` on the embedded API server, which stops the leader at the very
write. A standby leads, and decides otherwise than the old leader has. What the old one had not sent must not follow.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import JOB, LEASE, POD, POD_GROUP, PRIORITY_CLASS
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from pumice.embedded.storage import StoredWrite
from pumice.scheduler.worker import WorkerSettings
from tests.integration.cli.running import Running, running
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import job, pod_group, queue, task
from tests.kit.stage import quick_cluster
from tests.kit.waiting import until

Raw = dict[str, Any]

TIMES = (
    "--leader-elect-lease-duration=1s",
    "--leader-elect-renew-deadline=700ms",
    "--leader-elect-retry-period=200ms",
)


class Candidates:
    """Two processes of a component, of which the first leads."""

    def __init__(self, cluster: EmbeddedCluster, component: str, kubeconfig: Path) -> None:
        self.lease = f"pumice-{component}"
        self._cluster = cluster
        self._command = (component, f"--kubeconfig={kubeconfig}", *TIMES)
        self.stopped = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with running(*self._command) as self.first:
            await until(lambda: self.leads(self.first), "the first process to lead")
            with running(*self._command) as self.second:
                yield

    def leads(self, process: Running) -> bool:
        lease = self._cluster.store.get(LEASE, self.lease, "default") or {}
        holder = str((lease.get("spec") or {}).get("holderIdentity", ""))
        return holder.endswith(f"_{process.process.pid}")

    def stop_at(self, write: Callable[[StoredWrite], bool]) -> None:
        """Stop the leader as soon as the API server has taken a write of it."""

        def note(change: StoredWrite) -> None:
            if not self.stopped and write(change):
                os.kill(self.first.process.pid, signal.SIGSTOP)
                self.stopped = True

        self._cluster.store.storage.listen(note)

    async def standby_leads(self) -> None:
        await until(lambda: self.leads(self.second), "the standby to lead")

    async def go_on(self) -> None:
        """Let the old leader go on, for as long as it needs to send what it still has."""
        os.kill(self.first.process.pid, signal.SIGCONT)
        await asyncio.sleep(2)
        assert self.leads(self.second)
        assert self.first.process.poll() is None, "it is a candidate again"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with quick_cluster() as found:
        found.store.create(queue())
        yield found


@pytest.fixture
def kubeconfig(cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(cluster.kubeconfig())
    return file


async def test_a_scheduler_binds_nothing_after_its_lease(
    cluster: EmbeddedCluster, kubeconfig: Path
) -> None:
    """The pods that it was about to bind would overcommit the node, on which others have been placed since.

    Requests that the event loop has already taken cannot be held back: as many as are under way at once.
    """
    room, under_way = 300, WorkerSettings().concurrent_binds
    urgent = {"metadata": {"name": "urgent"}, "value": 1000}
    head = {"apiVersion": PRIORITY_CLASS.api_version, "kind": PRIORITY_CLASS.kind}
    cluster.store.create(head | urgent)
    cluster.add_node("node1", cpu=room, memory="1Ti", pods=1000)
    candidates = Candidates(cluster, "scheduler", kubeconfig)
    async with Client.connect(server=cluster.url) as client, candidates.running():
        stage = SchedulerStage(cluster, client)

        def bound(name: str) -> int:
            return sum(map(bool, stage.nodes_of(name)))

        candidates.stop_at(_is_bound)
        stage.gang("usual", room)
        await until(lambda: candidates.stopped, "the first binding")
        await asyncio.sleep(0.2)  # what it had sent is carried out
        assert bound("usual") <= 2 * under_way
        wanted = room - 2 * under_way
        cluster.store.create(pod_group("urgent", wanted, priorityClassName="urgent"))
        for number in range(wanted):
            pod = stage.pod(f"urgent-{number}", group="urgent", cpu="1", priorityClassName="urgent")
            cluster.store.create(pod)
        await candidates.standby_leads()
        await until(lambda: bound("urgent") == wanted, "the urgent pods to be bound")
        await candidates.go_on()
        assert bound("usual") <= 2 * under_way, "the node is overcommitted"


def _is_bound(change: StoredWrite) -> bool:
    return change.resource[1] == "pods" and bool(change.new.obj["spec"].get("nodeName"))


async def test_a_controller_creates_nothing_after_its_lease(
    cluster: EmbeddedCluster, kubeconfig: Path
) -> None:
    """The Job has been scaled down since."""
    candidates = Candidates(cluster, "controller", kubeconfig)
    async with Client.connect(server=cluster.url) as client, candidates.running():
        stage = SchedulerStage(cluster, client)
        candidates.stop_at(lambda change: change.resource[1] == "pods")
        made = cluster.store.create(
            job("train", [task("worker", 200)], minAvailable=1, queue="default")
        )
        await until(lambda: stage.all(POD_GROUP), "the PodGroup")
        for group in stage.all(POD_GROUP):
            cluster.store.update(group | {"status": {"phase": "Inqueue"}})
        await until(lambda: candidates.stopped, "the first pod")
        await asyncio.sleep(0.2)
        assert len(stage.all(POD)) < 200
        current = cluster.store.get(JOB, "train", "default") or made
        current["spec"]["tasks"][0]["replicas"] = 2
        cluster.store.update(current)
        await candidates.standby_leads()
        await until(lambda: sorted(stage.names(POD)) == ["train-worker-0", "train-worker-1"])
        created: list[str] = []
        cluster.store.storage.listen(
            lambda change: (
                created.append(change.new.obj["metadata"]["name"])
                if change.resource[1] == "pods"
                else None
            )
        )
        await candidates.go_on()
        assert [name for name in created if name not in ("train-worker-0", "train-worker-1")] == []
        assert sorted(stage.names(POD)) == ["train-worker-0", "train-worker-1"]
