"""Killed at any write, a controller is followed by one that brings the Job to the same end.

Every scenario is told once undisturbed, and then once for each write: before that write the controller
dies, with everything it remembers, and another one starts.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from pumice.controller.plan import Plan
from tests.kit.builders import job, task
from tests.unit.controller.world import StoppedError, World

Raw = dict[str, Any]


class StoppedWorld(World):
    """A world whose controller dies before a given write and is replaced."""

    stopped = False

    def look(self) -> Plan:
        try:
            return super().look()
        except StoppedError:
            self.stop_before = None
            self.stopped = True
            return super().look()


def _job(*tasks: Raw, **fields: Any) -> Raw:
    tasks = tasks or (task("ps", 1), task("worker", 3, cpu="1"))
    plugins: dict[str, list[str]] = {"svc": [], "ssh": [], "tensorflow": []}
    return job("train", list(tasks), uid="u1", plugins=plugins, **fields)


def _noted(world: World, key: str) -> str:
    return str(world.status.get("controlledResources", {}).get(key, ""))


def _staged(**fields: Any) -> Raw:
    """Three tasks of which each depends on the one before."""
    return _job(
        task("a", 1),
        task("b", 2, dependsOn={"name": ["a"]}),
        task("c", 3, dependsOn={"name": ["b"]}),
        **fields,
    )


def _start(world: World) -> None:
    world.settle()
    world.admit()
    world.settle()
    world.run()
    world.settle()


def _completes(world: World) -> None:
    _start(world)
    world.succeed()
    world.settle()


def _fails(world: World) -> None:
    _start(world)
    world.fail("train-worker-2")
    world.succeed("train-ps-0", "train-worker-0", "train-worker-1")
    world.settle()


def _aborts_and_resumes(world: World) -> None:
    _start(world)
    world.succeed("train-ps-0")
    world.command("AbortJob")
    world.settle()
    world.command("ResumeJob")
    _start(world)


def _restarts(world: World) -> None:
    _start(world)
    world.fail("train-worker-1")
    _start(world)


def _restarts_by_command(world: World) -> None:
    _start(world)
    world.command("RestartJob")
    _start(world)


def _shrinks_and_grows(world: World) -> None:
    _start(world)
    replicas = world.job["spec"]["tasks"][1]
    replicas["replicas"] = 1
    world.settle()
    replicas["replicas"] = 4
    _start(world)


def _grows_and_shrinks(world: World) -> None:
    _start(world)
    replicas = world.job["spec"]["tasks"][1]
    replicas["replicas"] = 6
    _start(world)
    assert len(world.pods) == 7
    replicas["replicas"] = 2
    _start(world)
    assert world.phase == "Running"
    assert list(world.pods) == ["train-ps-0", "train-worker-0", "train-worker-1"]


def _is_evicted(world: World) -> None:
    _start(world)
    world.evict("train-worker-1")
    _start(world)


def _is_removed(world: World) -> None:
    """A pod goes at once, which only the note of the Job's pods tells a successor."""
    _start(world)
    world.vanish("train-worker-1")
    _start(world)
    assert len(world.pods) == 4
    fired = (world.status.get("retryCount", 0), _noted(world, "pumice.dev/retries"))
    assert fired in ((1, ""), (0, "pod/worker/1=1/0"))


def _is_removed_while_it_restarts(world: World) -> None:
    _start(world)
    world.fail("train-worker-0")
    world.look()
    world.vanish("train-worker-2")
    _start(world)
    assert len(world.pods) == 4


def _fails_in_two_partitions(world: World) -> None:
    _start(world)
    world.fail("train-worker-0", "train-worker-3")
    _start(world)
    world.fail("train-worker-1")
    world.now += 10
    _start(world)
    assert len(world.pods) == 5
    assert _noted(world, "pumice.dev/retries") == "partition/worker/0=2/2 partition/worker/1=1/1"


def _fails_again(world: World) -> None:
    """The second restart of a pod waits for ten seconds, which a successor must not forget."""
    _start(world)
    world.fail("train-worker-1")
    _start(world)
    world.fail("train-worker-1")
    world.settle()
    assert world.pods["train-worker-1"]["status"]["phase"] == "Failed"
    world.now += 10
    _start(world)
    assert world.phase == "Running"


def _fails_at_last(world: World) -> None:
    _start(world)
    world.fail("train-worker-0")
    world.settle()


def _waits_for_a_task(world: World) -> None:
    _start(world)
    world.run()
    world.settle()


def _starts_in_stages(world: World) -> None:
    world.settle()
    world.admit()
    stages = (["a"], ["a", "b"], ["a", "b", "c"])
    for tasks in stages:
        world.settle()
        assert sorted({name.split("-")[1] for name in world.pods}) == tasks
        world.run()
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 6)


def _restarts_a_stage(world: World) -> None:
    _starts_in_stages(world)
    world.fail("train-b-0")
    _start(world)
    assert (world.phase, len(world.pods)) == ("Running", 6)


SCENARIOS: dict[str, tuple[Raw, Callable[[World], None]]] = {
    "completes": (_job(), _completes),
    "fails": (_job(), _fails),
    "aborts and resumes": (_job(), _aborts_and_resumes),
    "restarts whole": (_job(policies=[{"event": "PodFailed", "action": "RestartJob"}]), _restarts),
    "restarts a task": (
        _job(policies=[{"event": "PodFailed", "action": "RestartTask"}]),
        _restarts,
    ),
    "restarts a pod": (_job(policies=[{"event": "PodFailed", "action": "RestartPod"}]), _restarts),
    "fails at last": (
        _job(policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=1),
        _fails_at_last,
    ),
    "restarts by command": (_job(), _restarts_by_command),
    "shrinks and grows": (
        _job(policies=[{"event": "PodEvicted", "action": "TerminateJob"}]),
        _shrinks_and_grows,
    ),
    "restarts partitions": (
        _job(
            task("ps", 1),
            task("worker", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
            policies=[{"event": "PodFailed", "action": "RestartPartition"}],
        ),
        _fails_in_two_partitions,
    ),
    "restarts a pod twice": (
        _job(policies=[{"event": "PodFailed", "action": "RestartPod"}]),
        _fails_again,
    ),
    "grows and shrinks": (
        _job(policies=[{"event": "PodEvicted", "action": "TerminateJob"}]),
        _grows_and_shrinks,
    ),
    "loses a pod, which restarts the Job": (
        _job(policies=[{"event": "PodEvicted", "action": "RestartJob"}]),
        _is_removed,
    ),
    "loses a pod, which is restarted": (
        _job(policies=[{"event": "PodEvicted", "action": "RestartPod"}]),
        _is_removed,
    ),
    "loses a pod while another is restarted": (
        _job(
            policies=[
                {"event": "PodFailed", "action": "RestartPod"},
                {"event": "PodEvicted", "action": "RestartTask"},
            ]
        ),
        _is_removed_while_it_restarts,
    ),
    "is evicted": (_job(policies=[{"event": "PodEvicted", "action": "RestartTask"}]), _is_evicted),
    "waits for a task": (
        _job(task("ps", 1), task("worker", 2, dependsOn={"name": ["ps"]})),
        _waits_for_a_task,
    ),
    "starts in stages": (_staged(), _starts_in_stages),
    "restarts a stage": (
        _staged(policies=[{"event": "PodFailed", "action": "RestartTask"}]),
        _restarts_a_stage,
    ),
    "brings a claim": (
        _job(volumes=[{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteMany"]}}]),
        _completes,
    ),
}


def _end(world: World) -> dict[str, Raw]:
    """Everything that there is, without what differs from one telling to the next."""
    end: dict[str, Raw] = {}
    for (kind, name), stored in world.objects.items():
        obj = copy.deepcopy(stored)
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            obj["metadata"].pop(key)
        if kind.kind == "Job":
            obj["status"].get("controlledResources", {}).pop("pumice.dev/command", None)
        end[f"{kind.kind} {name}"] = obj
    return end


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_end_is_the_same_wherever_the_controller_is_stopped(name: str) -> None:
    manifest, tell = SCENARIOS[name]
    undisturbed = World(manifest)
    tell(undisturbed)
    expected = _end(undisturbed)
    assert undisturbed.writes > 5
    for write in range(undisturbed.writes):
        world = StoppedWorld(manifest)
        world.stop_before = write
        tell(world)
        assert world.stopped, f"write {write} was never reached"
        assert _end(world) == expected, f"stopped before write {write}"
