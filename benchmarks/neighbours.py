"""How long a Job of two pods takes while another namespace has thousands of pods created, bound and removed.

    python -m benchmarks.neighbours [--jobs N] [--size N] [--rounds N] [--json FILE]

Each round has a control plane of its own, with the components as the chart installs them. Jobs of two pods are submitted one
after the other: first alone, then from a second after the large Jobs of the other namespace were submitted until these run, then
while a Command aborts the large Jobs. The time runs from the submission until the status says that both pods run. Besides, it is
counted how many writes the API server carried out for anybody meanwhile, which is what a Job waits for, however fast the machine is.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.hand_over import AMOUNTS, add_nodes
from benchmarks.huge_job import abort
from benchmarks.manifests import job
from benchmarks.report import MACHINE, spread, write
from benchmarks.runs import LIMIT_SECONDS, first_job, together
from pumice.api.kinds import COMMAND, JOB
from pumice.cluster.client import Client
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.start import started
from tests.support.installation import installed
from tests.support.tenants import Tenant, Wait

ALONE, CREATED, REMOVED = "alone", "while pods are created and bound", "while pods are removed"
KINDS = (ALONE, CREATED, REMOVED)

TIMES = 5
"""Jobs that are measured alone, and while pods are removed; while pods are created there are as many as fit."""

SPARE_NODES = 60
"""Nodes for the Jobs of two pods, which run until the end of the round."""

POLL_SECONDS = 0.5


async def measure(
    plane: ControlPlane, client: Client, jobs: int, size: int
) -> dict[str, list[Wait]]:
    """One round."""
    await add_nodes(client, jobs * size // int(AMOUNTS["cpu"]) + SPARE_NODES)
    await first_job(client, "default")
    found: dict[str, list[Wait]] = {}
    for name in ("large", "small"):
        await asyncio.to_thread(plane.add_namespace, name)
    async with Tenant.of(client, "small") as tenant:

        async def one(by: str) -> None:
            waits = found.setdefault(by, [])
            waits.append(await tenant.run(job(f"{KINDS.index(by)}-{len(waits)}", 2)))
            print(f"{by}: {waits[-1].seconds:.2f} s, {waits[-1].writes} writes", file=sys.stderr)

        for _ in range(TIMES):
            await one(ALONE)
        names = [f"large-{number}" for number in range(jobs)]
        made = [await client.create(JOB, job(name, size), "large") for name in names]
        await asyncio.sleep(1.0)
        running = asyncio.create_task(all_run(client, size))
        while not running.done():
            await one(CREATED)
        await running
        commands = [abort(each) | {"metadata": {"name": each["metadata"]["name"]}} for each in made]
        await together(client.create(COMMAND, each, "large") for each in commands)
        for _ in range(TIMES):
            await one(REMOVED)
    return found


async def all_run(client: Client, size: int) -> None:
    """Wait until all pods of the large Jobs run."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            found = (await client.list(JOB, "large"))["items"]
            if all((each.get("status") or {}).get("running") == size for each in found):
                return
            await asyncio.sleep(POLL_SECONDS)


def one_round(jobs: int, size: int) -> dict[str, list[Wait]]:
    """Measure on a new control plane."""

    async def connected(plane: ControlPlane) -> dict[str, list[Wait]]:
        async with Client.connect(plane.kubeconfig) as client:
            return await measure(plane, client, jobs, size)

    with started(Builder().ensure()) as plane, tempfile.TemporaryDirectory() as folder:
        plane.establish()
        with installed(plane, Path(folder)):
            return asyncio.run(connected(plane))


def table(rounds: Sequence[Mapping[str, Sequence[Wait]]]) -> list[tuple[str, str, str]]:
    """Lines of the table: what, seconds, writes."""
    lines = []
    for by in KINDS:
        waits = [each for found in rounds for each in found[by]]
        seconds = spread([each.seconds for each in waits], 2)
        lines.append((by, seconds, spread([each.writes for each in waits], 0)))
    return lines


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=8, help="large Jobs")
    parser.add_argument("--size", type=int, default=400, help="pods of each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = [one_round(options.jobs, options.size) for _ in range(options.rounds)]
    print(f"a Job of two pods beside {options.jobs} Jobs of {options.size} pods")
    print(f"{'':<36} {'seconds until it runs':>24} {'writes meanwhile':>24}")
    for what, seconds, writes in table(rounds):
        print(f"{what:<36} {seconds:>24} {writes:>24}")
    print(MACHINE)
    rows = [
        asdict(each) | {"round": number, "by": by}
        for number, found in enumerate(rounds)
        for by, waits in found.items()
        for each in waits
    ]
    write(options.json, rows, jobs=options.jobs, size=options.size)


if __name__ == "__main__":
    main()
