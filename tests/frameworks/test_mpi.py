"""The real launchers of Open MPI 4 and 5 and of MPICH in a master that plugin `mpi` has wired."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import USERS_SSHD, mpi_job
from tests.frameworks.programs import said
from tests.frameworks.running import Live

EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi.yaml"
MASTER = "pi-master-0"
LAUNCHER = f"{MASTER}/main"
"""How its output is named, beside that of the init container that waits."""
OPEN = "mpirun --allow-run-as-root"
LAUNCHERS = {"openmpi-4": OPEN, "openmpi-5": OPEN, "mpich-5": "mpiexec"}
"""As users start them: no option says where the workers are."""

ENDED = "timeout 30 {} || test $? = 124"
"""Open MPI 5 does not always end when its processes have (openpmix/prrte#1839); what these printed counts."""


def slots(workers: int) -> Counter[str]:
    """Two processes a worker."""
    return Counter({f"pi-worker-{index}": 2 for index in range(workers)})


def started(written: Sequence[str]) -> Counter[str]:
    """Processes by host, of lines that are the hosts' names; ssh and Open MPI write others."""
    return Counter(line for line in written if re.fullmatch(r"pi-worker-\d+", line))


@pytest.mark.parametrize("image", LAUNCHERS)
def test_each_worker_runs_as_many_processes_as_it_has_slots(run: Run, image: str) -> None:
    launcher = LAUNCHERS[image]
    named = "-f /etc/mpi/machinefile" if image == "mpich-5" else "--hostfile /etc/mpi/hostfile"
    # The wheel of Open MPI 4 is there for its launcher: its library, once moved, finds no part of itself.
    program = "hostname" if image == "openmpi-4" else "python3 /tmp/program.py"
    script = [
        ENDED.format(f"{launcher} hostname"),
        "echo named",
        ENDED.format(f"{launcher} {named} {program}"),
    ]
    ran = run(mpi_job(image, launch="\n".join(script)))
    written = ran.output[LAUNCHER]
    hosts, by_file = written[: written.index("named")], written[written.index("named") + 1 :]
    assert started(hosts) == slots(3)
    found = said(ran.text)
    if image == "openmpi-4":
        assert started(by_file) == slots(3)
    else:
        assert [each.rank for each in found] == list(range(6))
        assert {(each.size, each.total) for each in found} == {(6, 15)}
        assert Counter(each.host for each in found) == slots(3)


@pytest.mark.parametrize("image", ["openmpi-4", "mpich-5"])
async def test_a_running_master_follows_the_number_of_workers(live: Live, image: str) -> None:
    manifest = mpi_job(image, 1)
    manifest["spec"]["minAvailable"] = manifest["spec"]["tasks"][1]["minAvailable"] = 1
    await live.create(manifest)

    async def launched() -> Counter[str]:
        """Processes by host. The master's files follow the Job in a moment."""
        answer = await live.execute(MASTER, *LAUNCHERS[image].split(), "hostname")
        assert answer.code in (0, None), answer.stderr
        return started(answer.lines)

    for workers in (1, 2, 1):
        await live.scale("pi", 1, workers)
        names = [f"pi-worker-{index}" for index in range(workers)]
        await live.started(MASTER, *names)
        await live.reads(MASTER, "/etc/mpi/hostfile", workers)
        for name in names:
            await live.listens(name, 22)
        assert await launched() == slots(workers)


def test_a_user_who_is_not_root_at_a_port_of_ones_own(run: Run) -> None:
    manifest = mpi_job(
        "openmpi-4",
        2,
        launch=ENDED.format("mpirun hostname"),
        server=USERS_SSHD,
        port=2222,
        ssh=("--ssh-key-file-path=/home/user/.ssh",),
        securityContext={"runAsUser": 1000, "fsGroup": 1000},
    )
    assert started(run(manifest).output[LAUNCHER]) == slots(2)


def test_the_example_runs_to_its_end(run: Run) -> None:
    manifest = yaml.safe_load(EXAMPLE.read_text())
    for task in manifest["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["image"] = "openmpi-4"
    (master, _) = manifest["spec"]["tasks"]
    container = master["template"]["spec"]["containers"][0]
    assert container["command"].pop() == "mpi_hello_world"
    container["command"].append("hostname")
    ran = run(manifest)
    assert started(ran.output[f"{MASTER}/mpi"]) == slots(3)
    waited = ran.output[f"{MASTER}/wait-for-workers"]
    assert all(f"pi-worker-{index}.pi answers on port 22" in waited for index in range(3))
