"""Time from SIGTERM to the leading scheduler until the standby binds a pod.

    python -m benchmarks.hand_over [--controlplane] [--nodes N] [--pods N] [--rounds N] [--json FILE]

Two `pumice scheduler` processes, as a rollout has them. When the leader has ended, a gang of one pod is created. The time
runs from the signal until that pod has a node. The API server is the embedded one, in this process, or a real control plane.

With `--pods`, that many pods run, and the server is the one of `benchmarks/restart.py`: it shows a gang that waits even
after it was bound, so the time runs until the standby binds it again. Also printed: the memory of the standby while it waits.
"""

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import urlopen

from benchmarks import restart
from benchmarks.report import MACHINE, write
from pumice.api.crds import all_crds
from pumice.api.kinds import LEASE, NODE, POD, POD_GROUP
from pumice.cluster.client import Client, Object
from pumice.cluster.errors import NotFound
from pumice.embedded import EmbeddedCluster

NAMESPACE = "default"
AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}


@contextlib.asynccontextmanager
async def served(real: bool, folder: Path) -> AsyncIterator[Path]:
    """Run an API server with Pumice's kinds; yields its kubeconfig."""
    if not real:
        async with EmbeddedCluster(all_crds()) as cluster:
            file = folder / "kubeconfig"
            file.write_text(cluster.kubeconfig())
            yield file
        return
    from tests.support.controlplane.builder import Builder
    from tests.support.controlplane.start import started

    with contextlib.ExitStack() as stack:
        plane = await asyncio.to_thread(stack.enter_context, started(Builder().ensure()))
        await asyncio.to_thread(plane.establish)
        yield plane.kubeconfig


async def add_nodes(client: Client, count: int) -> None:
    """Create nodes, several at once."""
    gate = asyncio.Semaphore(32)

    async def add(number: int) -> None:
        conditions = [{"type": "Ready", "status": "True"}]
        status = {"allocatable": AMOUNTS, "capacity": AMOUNTS, "conditions": conditions}
        name = f"node-{number:05}"
        async with gate:
            await client.create(NODE, _object(NODE.api_version, NODE.kind, name, status=status))

    await asyncio.gather(*(add(number) for number in range(count)))


def _object(api_version: str, kind: str, name: str, **fields: object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


async def submit(client: Client, name: str) -> None:
    """Create a gang of one pod."""
    group = _object(POD_GROUP.api_version, POD_GROUP.kind, name, spec={"minMember": 1})
    await client.create(POD_GROUP, group, NAMESPACE)
    pod = _object(
        POD.api_version,
        POD.kind,
        name,
        spec={
            "schedulerName": "volcano",
            "containers": [
                {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "10m"}}}
            ],
        },
    )
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
    await client.create(POD, pod, NAMESPACE)


async def bound(client: Client, name: str) -> None:
    """Wait until a pod has a node."""
    while not (await client.get(POD, name, NAMESPACE))["spec"].get("nodeName"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


class Scheduler:
    """A scheduler process."""

    def __init__(self, process: asyncio.subprocess.Process, client: Client) -> None:
        self.process = process
        self._client = client

    @classmethod
    async def start(cls, kubeconfig: Path, client: Client) -> "Scheduler":
        """Start one."""
        command = [sys.executable, "-m", "pumice", "scheduler", "--kubeconfig", str(kubeconfig)]
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
        return cls(process, client)

    async def leads(self) -> None:
        """Wait until it holds the Lease."""
        while True:
            with contextlib.suppress(NotFound):
                lease = await self._client.get(LEASE, "pumice-scheduler", NAMESPACE)
                if str(lease["spec"].get("holderIdentity", "")).endswith(f"_{self.process.pid}"):
                    return
            await asyncio.sleep(0.05)


async def measure(kubeconfig: Path, nodes: int, rounds: int) -> list[float]:
    """Seconds from SIGTERM to the first binding by the standby, for each round."""
    times = []
    async with Client.connect(kubeconfig) as client:
        await add_nodes(client, nodes)
        leader = await Scheduler.start(kubeconfig, client)
        await leader.leads()
        for number in range(rounds):
            standby = await Scheduler.start(kubeconfig, client)
            await asyncio.sleep(
                5 + 0.1 * number
            )  # it runs, and is between two attempts to take the Lease
            start = time.monotonic()
            leader.process.terminate()
            await leader.process.wait()
            name = f"gang-{number}"
            await submit(client, name)
            await bound(client, name)
            times.append(time.monotonic() - start)
            leader = standby
        leader.process.terminate()
        await leader.process.wait()
    return times


def measure_large(nodes: int, pods: int, rounds: int) -> tuple[list[float], list[int]]:
    """Seconds as of `measure` in a large cluster, and the memory of each standby while it waits, in MiB."""
    times, memory = [], []
    with tempfile.TemporaryDirectory() as folder, restart.served(nodes, pods) as port:

        def start(number: int) -> subprocess.Popen[bytes]:
            """Start a scheduler, and wait until it is ready."""
            health = restart.free_port()
            options = [f"--master=http://127.0.0.1:{port}", f"--metrics-port={health}"]
            command = [sys.executable, "-m", "pumice", "scheduler", *options]
            with (Path(folder) / f"{number}.log").open("wb") as log:
                process = subprocess.Popen(command, stderr=log)
            while True:
                with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{health}/readyz"):
                    return process
                time.sleep(0.1)

        leader = start(0)
        while not restart.report(port)["first_bind"]:
            time.sleep(0.1)
        for number in range(1, rounds + 1):
            standby = start(number)
            time.sleep(5 + 0.1 * number)
            status = Path(f"/proc/{standby.pid}/status").read_text()
            memory.append(int(status.partition("VmRSS:")[2].split()[0]) // 1024)
            begun = time.monotonic()
            leader.terminate()
            leader.wait()
            while (bound := restart.report(port)["last_bind"]) < begun:
                time.sleep(0.02)
            times.append(bound - begun)
            leader = standby
        leader.terminate()
        leader.wait()
    return times, memory


async def run(options: argparse.Namespace) -> list[float]:
    """Measure with the chosen API server."""
    with tempfile.TemporaryDirectory() as folder:
        async with served(options.controlplane, Path(folder)) as kubeconfig:
            return await measure(kubeconfig, options.nodes, options.rounds)


def main() -> None:
    """Measure, print one line, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--controlplane", action="store_true", help="a real control plane")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument(
        "--pods", type=int, default=0, help="pods that run, on the server of `restart`"
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.pods:
        times, memory = measure_large(options.nodes, options.pods, options.rounds)
        print(f"memory of a standby: {max(memory)} MiB")
    else:
        times = asyncio.run(run(options))
    median, low, high = statistics.median(times), min(times), max(times)
    server = "kube-apiserver" if options.controlplane else "embedded"
    if options.pods:
        server = f"{options.pods} pods"
    print(f"hand-over, {server}, {options.nodes} nodes: {median:.2f} s ({low:.2f}-{high:.2f})")
    print(MACHINE)
    row = {"server": server, "nodes": options.nodes, "seconds": times}
    write(options.json, [row], median=median, low=low, high=high)


if __name__ == "__main__":
    main()
