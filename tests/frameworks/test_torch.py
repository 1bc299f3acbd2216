"""The real PyTorch in pods that plugin `pytorch` has wired: process groups, torchrun, elastic torchrun."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import torch_job
from tests.frameworks.programs import ALL_REDUCE_TORCH, Said, file_and, said
from tests.kit.waiting import wait_until
from tests.support.pods.cluster import Running
from tests.support.pods.wired import wired

EXAMPLE = Path(__file__).parents[2] / "examples" / "indexed-job-pytorch.yaml"
PATIENCE = 150.0
"""Seconds; importing PyTorch takes two of CPU, and every process does it."""


def results(running: Running) -> list[Said]:
    """What all processes have said, once all pods have ended well."""
    text = "".join(pod.wait(PATIENCE) for pod in running.pods.values())
    print(text)  # pytest shows it when the results are not as they should be
    return said(text)


def group(hosts: list[str]) -> list[Said]:
    """What processes on these hosts say, in the order of ranks, if they all are one group."""
    size = len(hosts)
    return [Said(rank, host, size, size * (size - 1) // 2) for rank, host in enumerate(hosts)]


async def test_pods_make_one_process_group(run: Run) -> None:
    running = run(await wired(torch_job("exec python3 /tmp/program.py")))
    running.start()
    assert results(running) == group(["train-master-0", "train-worker-0", "train-worker-1"])


async def test_torchrun_needs_no_options(run: Run) -> None:
    command = "exec python3 -m torch.distributed.run /tmp/program.py"
    running = run(await wired(torch_job(command, "--wait-master-enabled", workers=1, processes=2)))
    running.start()
    hosts = ["train-master-0", "train-worker-0"]
    assert results(running) == group([host for host in hosts for _ in range(2)])


async def test_an_elastic_group_starts_with_the_least_and_takes_more_in(run: Run) -> None:
    # torchrun waits for latecomers, 30 s unless told otherwise.
    command = 'exec torchrun --rdzv_conf="$PET_RDZV_CONF,last_call_timeout=2" /tmp/program.py'
    running = run(await wired(torch_job(command, "--elastic=2:3", STAY_BELOW="3")))
    running.start("train-master-0", "train-worker-0")
    first = [running["train-master-0"], running["train-worker-0"]]

    def told() -> list[Said]:
        return said("".join(pod.log() for pod in first))

    wait_until(lambda: len(told()) == 2, "a group of two", PATIENCE)
    assert {(each.size, each.total) for each in told()} == {(2, 1)}
    assert sorted(each.rank for each in told()) == [0, 1]
    running.start("train-worker-1")
    later = [each for each in results(running) if each.size == 3]
    assert [each.rank for each in later] == [0, 1, 2]
    assert {each.total for each in later} == {3}
    assert {each.host for each in later} == set(running.pods)


async def test_the_indexed_job_of_the_examples(run: Run) -> None:
    manifest = yaml.safe_load(EXAMPLE.read_text())
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["torchrun", "/workspace/train.py"]
    # A process takes seconds to import PyTorch, and torchrun another. More of them show nothing more.
    manifest["spec"] |= {"completions": 3, "parallelism": 3}
    container |= {
        "image": "base",
        "command": ["sh", "-c", file_and(ALL_REDUCE_TORCH, "exec torchrun /tmp/program.py")],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    running = run(await wired(manifest))
    running.start()
    assert results(running) == group([f"resnet-{index}" for index in range(3)])
