"""Killed at any write, a controller is followed by one that brings the Job to the same end.

Every scenario is told once undisturbed, and then once for each write: before that write the controller
dies, with everything it remembers, and another one starts.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from pumice.controller.plan import Plan
from tests.kit.builders import job, task
from tests.unit.controller.fake_cluster import FakeCluster, StoppedError, copied

Raw = dict[str, Any]


Plans = dict[bytes, Plan]


class StoppedWorld(FakeCluster):
    """A cluster whose controller dies before a given write, if any, and is replaced.

    Args:
        job: Its Job.
        plans: Plans by the state in which they were made. A plan follows from that alone, and until a controller dies all states
            are those of the undisturbed telling.
    """

    stopped = False

    def __init__(self, job: Raw, plans: Plans) -> None:
        super().__init__(job)
        self._plans = plans

    def plan(self, found: Iterable[Raw] = ()) -> Plan:
        assert not found
        around = (
            self.now,
            self.trouble,
            sorted(self.absent),
            self.ended,
            self.priorities,
            self.queue,
        )
        state = msgspec.json.encode((around, [*self.objects.values()]))
        plan = self._plans.get(state)
        if plan is None:
            plan = self._plans[state] = super().plan()
        return plan

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


def _staged(**fields: Any) -> Raw:
    """Three tasks of which each depends on the one before."""
    return _job(
        task("a", 1),
        task("b", 2, dependsOn={"name": ["a"]}),
        task("c", 3, dependsOn={"name": ["b"]}),
        **fields,
    )


def _start(cluster: FakeCluster) -> None:
    cluster.settle()
    cluster.admit()
    cluster.settle()
    cluster.run()
    cluster.settle()


def _completes(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.succeed()
    cluster.settle()


def _fails(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.fail("train-worker-2")
    cluster.succeed("train-ps-0", "train-worker-0", "train-worker-1")
    cluster.settle()


def _aborts_and_resumes(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.succeed("train-ps-0")
    cluster.command("AbortJob")
    cluster.settle()
    cluster.command("ResumeJob")
    _start(cluster)


def _restarts(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.fail("train-worker-1")
    _start(cluster)


def _restarts_by_command(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.command("RestartJob")
    _start(cluster)


def _shrinks_and_grows(cluster: FakeCluster) -> None:
    _start(cluster)
    replicas = cluster.job["spec"]["tasks"][1]
    replicas["replicas"] = 1
    cluster.settle()
    replicas["replicas"] = 4
    _start(cluster)


def _grows_and_shrinks(cluster: FakeCluster) -> None:
    _start(cluster)
    replicas = cluster.job["spec"]["tasks"][1]
    replicas["replicas"] = 6
    _start(cluster)
    assert len(cluster.pods) == 7
    replicas["replicas"] = 2
    _start(cluster)
    assert cluster.phase == "Running"
    assert list(cluster.pods) == ["train-ps-0", "train-worker-0", "train-worker-1"]


def _is_evicted(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.evict("train-worker-1")
    _start(cluster)


def _is_removed(cluster: FakeCluster) -> None:
    """A pod goes at once, which only the note of the Job's pods tells a successor."""
    _start(cluster)
    cluster.vanish("train-worker-1")
    _start(cluster)
    assert len(cluster.pods) == 4
    fired = (cluster.status.get("retryCount", 0), cluster.noted("pumice.dev/retries"))
    assert fired in ((1, ""), (0, "pod/worker/1=1/0"))


def _is_removed_while_it_restarts(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.fail("train-worker-0")
    cluster.look()
    cluster.vanish("train-worker-2")
    _start(cluster)
    assert len(cluster.pods) == 4


def _fails_in_two_partitions(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.fail("train-worker-0", "train-worker-3")
    _start(cluster)
    cluster.fail("train-worker-1")
    cluster.now += 10
    _start(cluster)
    assert len(cluster.pods) == 5
    assert cluster.noted("pumice.dev/retries") == "partition/worker/0=2/2 partition/worker/1=1/1"


def _fails_again(cluster: FakeCluster) -> None:
    """The second restart of a pod waits for ten seconds, which a successor must not forget."""
    _start(cluster)
    cluster.fail("train-worker-1")
    _start(cluster)
    cluster.fail("train-worker-1")
    cluster.settle()
    assert cluster.pods["train-worker-1"]["status"]["phase"] == "Failed"
    cluster.now += 10
    _start(cluster)
    assert cluster.phase == "Running"


def _fails_at_last(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.fail("train-worker-0")
    cluster.settle()


def _waits_for_a_task(cluster: FakeCluster) -> None:
    _start(cluster)
    cluster.run()
    cluster.settle()


def _starts_in_stages(cluster: FakeCluster) -> None:
    cluster.settle()
    cluster.admit()
    stages = (["a"], ["a", "b"], ["a", "b", "c"])
    for tasks in stages:
        cluster.settle()
        assert sorted({name.split("-")[1] for name in cluster.pods}) == tasks
        cluster.run()
    cluster.settle()
    assert (cluster.phase, len(cluster.pods)) == ("Running", 6)


def _restarts_a_stage(cluster: FakeCluster) -> None:
    _starts_in_stages(cluster)
    cluster.fail("train-b-0")
    _start(cluster)
    assert (cluster.phase, len(cluster.pods)) == ("Running", 6)


SCENARIOS: dict[str, tuple[Raw, Callable[[FakeCluster], None]]] = {
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


def _end(cluster: FakeCluster) -> dict[str, Raw]:
    """Everything that there is, without what differs from one telling to the next."""
    end: dict[str, Raw] = {}
    for (kind, name), stored in cluster.objects.items():
        obj = copied(stored)
        for key in ("uid", "resourceVersion", "creationTimestamp"):
            obj["metadata"].pop(key)
        if kind.kind == "Job":
            obj["status"].get("controlledResources", {}).pop("pumice.dev/command", None)
        end[f"{kind.kind} {name}"] = obj
    return end


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_end_is_the_same_wherever_the_controller_is_stopped(name: str) -> None:
    manifest, tell = SCENARIOS[name]
    plans: Plans = {}
    undisturbed = StoppedWorld(manifest, plans)
    tell(undisturbed)
    expected = _end(undisturbed)
    assert undisturbed.writes > 5
    for write in range(undisturbed.writes):
        cluster = StoppedWorld(manifest, plans)
        cluster.stop_before = write
        tell(cluster)
        assert cluster.stopped, f"write {write} was never reached"
        assert _end(cluster) == expected, f"stopped before write {write}"
