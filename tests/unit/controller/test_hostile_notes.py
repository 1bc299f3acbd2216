"""Notes that a user wrote into a Job's status neither stop the controller nor keep it busy."""

from itertools import islice

from pumice.controller import podsets
from tests.kit.builders import task
from tests.unit.controller.scenes import policy, running


def test_a_streak_without_end_waits_as_long_as_the_longest() -> None:
    world = running(task("worker", 2), policies=[policy("PodFailed", "RestartPod")])
    world.status["controlledResources"]["pumice.dev/retries"] = "pod/worker/0=1/9999999999999999"
    world.fail("train-worker-0")
    world.look()
    assert world.requeues[-1] == 300.0


def test_ranges_that_repeat_are_read_once() -> None:
    text = ",".join(["0-199"] * 1000)
    assert list(islice(podsets.read_indexes(text, 200), 1000)) == list(range(200))


def test_a_moment_that_cannot_be_written_is_left_out() -> None:
    world = running(task("worker", 2), policies=[policy("PodEvicted", "RestartPod", timeout="1h")])
    world.vanish("train-worker-0")
    world.look()
    world.status["controlledResources"]["pumice.dev/evicted"] = "worker/0@9999-12-31T23:59:59-23:59"
    world.vanish("train-worker-1")
    world.look()
    assert world.phase == "Pending"
