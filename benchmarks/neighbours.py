"""How long a Job of two pods takes while another namespace has thousands of pods created, bound and removed.

    python -m benchmarks.neighbours [--jobs N] [--size N] [--rounds N] [--json FILE]

Each round has a control plane of its own, with the components as the chart installs them. Jobs of two pods are submitted:
first one after the other alone, then one a second from a second after the large Jobs of the other namespace were submitted until
these run, then one a second while a Command aborts the large Jobs. The time runs from the submission until the status says that both pods run. Besides, it is
counted how many writes the API server carried out meanwhile, which is what a Job waits for, however fast the machine is.
"""

import argparse
import asyncio
import itertools
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.hand_over import AMOUNTS, add_nodes
from benchmarks.huge_job import abort
from benchmarks.manifests import job
from benchmarks.report import MACHINE, spread, write
from benchmarks.runs import LIMIT_SECONDS, first_job, together
from pumice.api.kinds import COMMAND, JOB
from pumice.cluster.client import Client, Object
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.start import started
from tests.support.installation import installed
from tests.support.tenants import Tenant, Wait

ALONE, CREATED, REMOVED = "alone", "while pods are created and bound", "while pods are removed"
KINDS = (ALONE, CREATED, REMOVED)

TIMES = 5
"""Jobs that are measured alone."""

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
    numbers = itertools.count()
    for name in ("large", "small"):
        await asyncio.to_thread(plane.add_namespace, name)
    async with Tenant.of(client, "small") as tenant:

        async def one(by: str) -> None:
            wait = await tenant.run(job(f"small-{next(numbers)}", 2))
            found.setdefault(by, []).append(wait)
            print(f"{by}: {wait.seconds:.2f} s, {wait.writes} writes", file=sys.stderr)

        async def some(by: str, until: asyncio.Task[None]) -> None:
            """One a second, also while earlier ones wait: otherwise most would be submitted when it is calm."""
            async with asyncio.TaskGroup() as group:
                while not until.done():
                    group.create_task(one(by))
                    await asyncio.sleep(1.0)

        for _ in range(TIMES):
            await one(ALONE)
        names = [f"large-{number}" for number in range(jobs)]
        made = [await client.create(JOB, job(name, size), "large") for name in names]
        await asyncio.sleep(1.0)
        await some(
            CREATED,
            asyncio.create_task(until(client, lambda status: status.get("running") == size)),
        )
        commands = [abort(each) | {"metadata": {"name": each["metadata"]["name"]}} for each in made]
        await together(client.create(COMMAND, each, "large") for each in commands)
        await some(
            REMOVED,
            asyncio.create_task(
                until(client, lambda status: status["state"]["phase"] == "Aborted")
            ),
        )
    return found


async def until(client: Client, fulfilled: Callable[[Object], bool]) -> None:
    """Wait for a status of all large Jobs."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            found = (await client.list(JOB, "large"))["items"]
            if all(
                "state" in (each.get("status") or {}) and fulfilled(each["status"])
                for each in found
            ):
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
