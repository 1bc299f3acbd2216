"""The real PyTorch in pods that plugin `pytorch` has wired: torchrun, elastic torchrun. `test_page.py` has pods without torchrun."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.frameworks.conftest import Run
from tests.frameworks.jobs import torch_job
from tests.frameworks.programs import ALL_REDUCE_TORCH, TOLD_BY_TORCHRUN, Said, file_and, said
from tests.frameworks.running import Live
from tests.kit.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "indexed-job-pytorch.yaml"
PATIENCE = 150.0
"""Seconds; importing PyTorch takes two of CPU, and torchrun and every process that adds up ranks do it."""


def group(hosts: list[str]) -> list[Said]:
    """What processes on these hosts say, in the order of ranks, if they all are one group."""
    size = len(hosts)
    return [Said(rank, host, size, size * (size - 1) // 2) for rank, host in enumerate(hosts)]


def test_torchrun_needs_no_options(run: Run) -> None:
    command = "exec python3 -m torch.distributed.run /tmp/program.py"
    job = torch_job(
        command, "--wait-master-enabled", program=TOLD_BY_TORCHRUN, workers=1, processes=2
    )
    ran = run(job)
    hosts = ["train-master-0", "train-worker-0"]
    assert said(ran.text) == group([host for host in hosts for _ in range(2)])


async def test_an_elastic_group_starts_with_the_least_and_takes_more_in(live: Live) -> None:
    # torchrun waits for latecomers, 30 s unless told otherwise.
    command = 'exec torchrun --rdzv_conf="$PET_RDZV_CONF,last_call_timeout=2" /tmp/program.py'
    names = ("train-master-0", "train-worker-0")
    job = torch_job(command, "--elastic=2:3", program=TOLD_BY_TORCHRUN, workers=1, STAY_BELOW="3")
    await live.create(job)

    async def first() -> list[Said]:
        found = said("\n".join([line for name in names for line in await live.log(name)]))
        return found if len(found) == 2 else []

    await live.started(*names)
    found = await until(first, "a group of two", PATIENCE)
    assert {each.size for each in found} == {2}
    assert sorted(each.rank for each in found) == [0, 1]
    await live.scale("train", 1, 2)
    everyone = (*names, "train-worker-1")
    written = await live.completed(3, seconds=PATIENCE)
    later = [each for each in said("\n".join(written)) if each.size == 3]
    assert [each.rank for each in later] == [0, 1, 2]
    assert {each.host for each in later} == set(everyone)


async def test_the_indexed_job_of_the_examples(live: Live) -> None:
    manifest = yaml.safe_load(EXAMPLE.read_text())
    template = manifest["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["command"] == ["torchrun", "/workspace/train.py"]
    # Importing PyTorch takes seconds. More pods show nothing more.
    manifest["spec"] |= {"completions": 2, "parallelism": 2}
    container |= {
        "image": "base",
        "command": ["sh", "-c", file_and(ALL_REDUCE_TORCH, "exec torchrun /tmp/program.py")],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    await live.create(manifest)
    written = await live.completed(2, seconds=PATIENCE)
    assert said("\n".join(written)) == group(["resnet-0", "resnet-1"])
