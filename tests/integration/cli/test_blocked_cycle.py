"""`pumice scheduler` whose cycle does not end, for as long as a file exists that a plugin of the test looks at."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from pumice.api.kinds import LEASE
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.cli.running import Running, running
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.builders import queue
from tests.kit.stage import quick_cluster
from tests.kit.waiting import until
from tests.support.ports import free_port

TIMES = (
    "--leader-elect-lease-duration=1s",
    "--leader-elect-renew-deadline=700ms",
    "--leader-elect-retry-period=100ms",
)
RENEWALS = 12
"""More than fit into a lease."""

PLUGIN = """
from pathlib import Path
from pumice.scheduler.specs import PluginSpec

HOLD = Path({hold!r})
HELD = Path({hold!r} + "-seen")

class Held:
    def __init__(self, arguments):
        pass

    def open(self, session, register):
        while HOLD.exists():
            HELD.touch()

SPEC = PluginSpec(name="held", summary="Waits for a file to go.", build=Held)
"""
CONFIG = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: held}]}]\n"


class Blocked:
    """An API server, and a scheduler whose cycle can be held up."""

    def __init__(self, cluster: EmbeddedCluster, client: Client, folder: Path) -> None:
        self.stage = SchedulerStage(cluster, client)
        self.hold, self.held = folder / "hold", folder / "hold-seen"
        self.port = free_port()
        self.renewals = 0
        cluster.store.storage.listen(self._note)
        (folder / "kubeconfig").write_text(cluster.kubeconfig())
        (folder / "scheduler.conf").write_text(CONFIG)
        (folder / "held.py").write_text(PLUGIN.format(hold=str(self.hold)))
        metadata = folder / "held-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: held\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text("[pumice.scheduler_plugins]\nheld = held:SPEC\n")
        self.folder = folder

    def _note(self, change: object) -> None:
        self.renewals += getattr(change, "resource", ("", ""))[1] == "leases"

    def command(self, *options: str) -> tuple[str, ...]:
        return ("scheduler", f"--kubeconfig={self.folder / 'kubeconfig'}", *TIMES, *options)

    def leads(self, process: Running) -> bool:
        lease = self.stage.store.get(LEASE, "pumice-scheduler", "default") or {}
        holder = str((lease.get("spec") or {}).get("holderIdentity", ""))
        return holder.endswith(f"_{process.process.pid}")

    async def blocks(self, process: Running) -> None:
        """Wait until the scheduler leads, and hold its cycle up."""
        await until(lambda: self.leads(process), "the scheduler to lead")
        self.hold.touch()
        self.stage.gang("train", 2)
        await until(self.held.exists, "a cycle to be held up")

    async def asked(self, path: str) -> int:
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{self.port}") as client,
            client.get(path) as answer,
        ):
            return answer.status

    def scheduler(self, *options: str) -> "tuple[str, ...]":
        config = f"--config={self.folder / 'scheduler.conf'}"
        return self.command(config, f"--metrics-port={self.port}", *options)


@pytest.fixture
async def blocked(client: Client, cluster: EmbeddedCluster, tmp_path: Path) -> Blocked:
    cluster.store.create(queue())
    cluster.add_node("node1", cpu="8")
    return Blocked(cluster, client, tmp_path)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with quick_cluster() as found:
        yield found


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with Client.connect(server=cluster.url) as found:
        yield found


async def test_a_long_cycle_keeps_the_lease_and_answers_probes(blocked: Blocked) -> None:
    with running(*blocked.scheduler(), PYTHONPATH=str(blocked.folder)) as process:
        await blocked.blocks(process)
        goal = blocked.renewals + RENEWALS
        await until(lambda: blocked.renewals >= goal, "renewals")
        assert await blocked.asked("/healthz") == 200
        assert await blocked.asked("/readyz") == 200
        assert blocked.stage.nodes_of("train") == ["", ""]
        blocked.hold.unlink()
        await until(lambda: blocked.stage.nodes_of("train") == ["node1", "node1"])
        assert blocked.leads(process)
        lease = blocked.stage.store.get(LEASE, "pumice-scheduler", "default") or {}
        assert lease["spec"]["leaseTransitions"] == 0
        assert await blocked.asked("/metrics") == 200


async def test_a_scheduler_that_hangs_is_not_alive_and_another_one_leads(
    blocked: Blocked,
) -> None:
    options = blocked.scheduler("--cycle-budget=200ms", "--stall-timeout=1s")
    with running(*options, PYTHONPATH=str(blocked.folder)) as process:
        await blocked.blocks(process)

        async def hangs() -> bool:
            return await blocked.asked("/healthz") == 500

        await until(hangs, "it counts as hung")
        with running(*blocked.command()) as heir:
            await until(lambda: blocked.stage.nodes_of("train") == ["node1", "node1"])
            assert blocked.leads(heir)
            revision = blocked.stage.find(LEASE, "pumice-scheduler")["spec"]["leaseTransitions"]
            blocked.hold.unlink()

            async def lives() -> bool:
                return await blocked.asked("/healthz") == 200

            await until(lives, "it turns again")
            lease = blocked.stage.find(LEASE, "pumice-scheduler")
            assert blocked.leads(heir)
            assert lease["spec"]["leaseTransitions"] == revision
            assert process.process.poll() is None, "it is a candidate again"
