"""What one Job of 10,000 pods does to the controller: stalls of its event loop, and pods that come after the deletion of the Job.

    python -m benchmarks.huge_job [--pods N] [--nodes N] [--rounds N] [--json FILE]

Each round has a control plane of its own, on which all components run as the chart installs them; the controller has a
probe in its event loop (`benchmarks/probe.py`). The Job's pods are created and run, then a Command aborts the Job, so that the controller
removes all of them. A second Job is deleted while its pods are being created: a pod whose resourceVersion is greater than that
of the Job's deletion was created after it.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from benchmarks import probe
from benchmarks.hand_over import add_nodes
from benchmarks.manifests import job
from benchmarks.report import MACHINE, spread, write
from benchmarks.runs import CALM_SECONDS, LIMIT_SECONDS, first_job, namespace
from pumice.api.kinds import COMMAND, JOB, POD
from pumice.api.meta import version_number
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client, Object
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.start import started
from tests.support.installation import NAMESPACE, RELEASE, Installation, installed

POLL_SECONDS = 0.1


@dataclass
class Round:
    """Figures of one round.

    Attributes:
        running: Seconds from the submission of the first Job until all of its pods run.
        aborted: Seconds from the Command until the Job is `Aborted`, when all pods are gone.
        created: Pods of the second Job that existed when it was deleted.
        late: Pods of the second Job that were created after its deletion.
        controller: Measurements of the probe in the controller.
    """

    running: float = 0.0
    aborted: float = 0.0
    created: int = 0
    late: int = 0
    controller: dict[str, float] | None = None


async def measure(client: Client, pods: int, nodes: int, installation: Installation) -> Round:
    """Submit the Jobs."""
    plane, found = installation.plane, Round()
    await add_nodes(client, nodes)
    await first_job(client, "default")
    async with namespace(plane, client, "huge"):
        start = time.monotonic()
        made = await client.create(JOB, job("huge", pods), "huge")
        await until(client, "huge", lambda status: status.get("running") == pods)
        found.running = time.monotonic() - start
        report(f"all pods run after {found.running:.0f} s")
        start = time.monotonic()
        await client.create(COMMAND, abort(made), "huge")
        await until(client, "huge", lambda status: status["state"]["phase"] == "Aborted")
        found.aborted = time.monotonic() - start
        report(f"aborted after {found.aborted:.0f} s")
    async with namespace(plane, client, "deleted"):
        found.created, found.late = await delete_meanwhile(client, pods)
        report(f"deleted; {found.late} pods were created afterwards")
    return found


def report(text: str) -> None:
    """Report progress."""
    print(text, file=sys.stderr)


async def delete_meanwhile(client: Client, pods: int) -> tuple[int, int]:
    """Delete a Job once a quarter of its pods exists; returns how many pods came before the deletion, and after it."""
    created: list[int] = []
    enough = asyncio.Event()

    def note(old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None:
            created.append(version_number(new.metadata.resource_version))
            if len(created) >= pods / 4:
                enough.set()

    cache = WatchCache(client, POD, Pod, namespace="deleted")
    cache.subscribe(note)
    watching = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            await cache.synced.wait()
            made = await client.create(JOB, job("huge", pods, fits=False), "deleted")
            await enough.wait()
            await client.delete(JOB, "huge", "deleted", propagation="Background")
            deletion = await _deletion(client, made)
            seen = -1
            while len(created) > seen:
                seen = len(created)
                await asyncio.sleep(CALM_SECONDS)
    finally:
        watching.cancel()
    late = sum(version > deletion for version in created)
    return len(created) - late, late


async def _deletion(client: Client, made: Object) -> int:
    """The resourceVersion at which a Job was deleted."""
    meta = made["metadata"]
    watch = client.collection(JOB, meta["namespace"]).watch(meta["resourceVersion"])
    async for event, raw in watch:
        if event == "DELETED":
            return version_number(msgspec.json.decode(raw)["metadata"]["resourceVersion"])
    raise RuntimeError("the watch ended without the deletion of the Job")


async def until(client: Client, namespace: str, fulfilled: Callable[[Object], bool]) -> None:
    """Wait for a status of the Job."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            found = await client.get(JOB, "huge", namespace)
            if "state" in (status := found.get("status") or {}) and fulfilled(status):
                return
            await asyncio.sleep(POLL_SECONDS)


def abort(made: Object) -> Object:
    """A Command that aborts a Job."""
    meta = made["metadata"]
    target = {"apiVersion": JOB.api_version, "kind": JOB.kind}
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {"name": "abort"},
        "action": "AbortJob",
        "target": target | {"name": meta["name"], "uid": meta["uid"]},
    }


@contextmanager
def probed(installation: Installation, file: Path) -> Iterator[None]:
    """Run the controller with a probe, in place of the one that runs."""
    plane = installation.plane
    arguments = installation.arguments("controller")
    account = plane.token(f"{RELEASE}-controller", NAMESPACE)
    kubeconfig = f"--kubeconfig={plane.kubeconfig_for_token(account)}"
    installation.stop_leader("controller")
    command = [*probe.command(file, "controller"), *arguments, kubeconfig, "--metrics-port=0"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def one_round(pods: int, nodes: int) -> Round:
    """Measure on a new control plane."""

    async def connected(kubeconfig: Path, installation: Installation) -> Round:
        async with Client.connect(kubeconfig) as client:
            return await measure(client, pods, nodes, installation)

    with started(Builder().ensure()) as plane, tempfile.TemporaryDirectory() as folder:
        plane.establish()
        figures = Path(folder) / "figures.json"
        with installed(plane, Path(folder)) as installation:
            with probed(installation, figures):
                found = asyncio.run(connected(plane.kubeconfig, installation))
            found.controller = json.loads(figures.read_text())
    return found


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pods", type=int, default=10_000, help="of each Job")
    parser.add_argument("--nodes", type=int, default=1300, help="one at least for 8 pods")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = [one_round(options.pods, options.nodes) for _ in range(options.rounds)]

    def line(what: str, values: list[float], digits: int, aim: str = "") -> None:
        print(f"{what:<52} {spread(values, digits):>22} {aim:>8}")

    def controller(figure: str, scale: float = 1.0) -> list[float]:
        return [each.controller[figure] * scale for each in rounds if each.controller is not None]

    print(f"Jobs of {options.pods} pods, {options.nodes} nodes")
    line("longest stall, ms", controller("stall_wall", 1000), 0)
    line("longest stall, ms of CPU time", controller("stall_cpu", 1000), 0, "<= 100")
    line("longest garbage collection, ms of CPU time", controller("longest_collection", 1000), 0)
    line("CPU time of the controller, s", controller("cpu_seconds"), 1)
    line("peak memory of the controller, MiB", controller("memory_mib"), 0)
    line("submitted until all pods run, s", [each.running for each in rounds], 1)
    line("Command until Aborted, s", [each.aborted for each in rounds], 1)
    line("pods created before the deletion", [each.created for each in rounds], 0)
    line("pods created after the deletion", [each.late for each in rounds], 0, "<= 500")
    print(MACHINE)
    rows = [asdict(each) for each in rounds]
    write(options.json, rows, pods=options.pods, nodes=options.nodes)


if __name__ == "__main__":
    main()
