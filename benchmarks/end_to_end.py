"""Jobs from submission until their pods run, on a real control plane, beside a bare loop of creates and binds.

    python -m benchmarks.end_to_end [--jobs N] [--size N] [--nodes N] [--rounds N] [--json FILE]

Each round has a control plane of its own (kube-apiserver, etcd, controller manager, nodes that kwok simulates), with the
components as the chart installs them. First the loop creates and binds as many pods without Pumice; then all
Jobs are submitted at once. The loop and the components share the machine with the control plane. Writes are counted
by the API server; those of kwok, one pod status for each start and each end, are left out, and so are Leases and nodes.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.hand_over import add_nodes
from benchmarks.report import MACHINE, spread, write
from benchmarks.runs import ONE_JOB, Round, Runs
from pumice.cluster.client import Client
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.start import started
from tests.support.installation import Installation, installed


def measure(options: argparse.Namespace) -> Round:
    """One round."""
    with started(Builder().ensure()) as plane, tempfile.TemporaryDirectory() as folder:
        plane.establish()
        asyncio.run(without_pumice(plane, options, found := Round()))
        with installed(plane, Path(folder)) as installation:
            asyncio.run(with_pumice(plane, options, found, installation))
    return found


async def without_pumice(plane: ControlPlane, options: argparse.Namespace, found: Round) -> None:
    """The nodes, and the bare loop."""
    async with Client.connect(plane.kubeconfig) as client:
        await add_nodes(client, options.nodes)
        runs = Runs(plane, client, found, None, jobs=options.jobs, size=options.size)
        await runs.bare(options.nodes)


async def with_pumice(
    plane: ControlPlane, options: argparse.Namespace, found: Round, installation: Installation
) -> None:
    """What the components do."""
    async with Client.connect(plane.kubeconfig) as client:
        runs = Runs(plane, client, found, installation, jobs=options.jobs, size=options.size)
        await runs.gangs()
        await runs.one_job()


def table(rounds: Sequence[Round]) -> list[tuple[str, str, str]]:
    """Lines of the table: what, figures, aim."""
    cpu = [(name, [each.cpu[name] for each in rounds]) for name in rounds[0].cpu]
    return [
        ("pods/s, bare loop", spread([each.bare for each in rounds], 0), ""),
        ("pods/s, Jobs", spread([each.ours for each in rounds], 0), ""),
        ("  by the bare loop's", spread([each.ratio for each in rounds], 2), ">= 0.4"),
        ("CPU s per 1,000 pods, bare loop", "", ""),
        ("  kube-apiserver", spread([each.bare_cpu for each in rounds], 2), ""),
        ("CPU s per 1,000 pods, Jobs", "", ""),
        *(
            (f"  {name}", spread(values, 2), "<= 7.5" if name == "kube-apiserver" else "")
            for name, values in cpu
        ),
        ("  our processes", spread([each.our_cpu for each in rounds], 2), "<= 3.5"),
        ("writes a pod beside create, bind", spread([each.beside for each in rounds], 2), "<= 0.6"),
        ("pod statuses by the scheduler", spread([each.pod_statuses for each in rounds], 0), "0"),
        (f"writes for {ONE_JOB} pods", spread([each.one_job for each in rounds], 0), "<= 30"),
    ]


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--size", type=int, default=20, help="pods of a Job")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = [measure(options) for _ in range(options.rounds)]
    print(f"{options.jobs} Jobs of {options.size} pods, {options.nodes} nodes")
    for what, figures, aim in table(rounds):
        print(f"{what:<70} {figures:>24} {aim:>8}")
    last = rounds[-1]
    print("last round, writes a pod:")
    for sort, number in Counter(last.writes).most_common():
        print(f"  {sort:<40} {number:.3f}")
    print("last round, writes of one Job beside creations and bindings:")
    for sort, writes in Counter(last.one_job_writes).most_common():
        print(f"  {sort:<40} {writes}")
    print(MACHINE)
    write(
        options.json,
        [asdict(each) for each in rounds],
        jobs=options.jobs,
        size=options.size,
        nodes=options.nodes,
    )


if __name__ == "__main__":
    main()
