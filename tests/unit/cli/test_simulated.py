"""The page's simulation, which takes in changes, says what a new one says: after any sequence of changes, and although gangs that fit were placed in it."""

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import TRIES, Change, Figures, Follower, simulated
from pumice.scheduler import load_config
from pumice.scheduler.advice import advise
from pumice.scheduler.simulate import ClusterObjects, Subject
from tests.kit.builders import node, pod, pod_group, queue
from tests.kit.examples import examples
from tests.kit.faulty import Fault, faulty_config

_NOW = 1_800_000_000.0


class _Cluster:
    """Objects that change at random, as an API server would show them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._version = 0
        self.objects: dict[tuple[str, str], Subject] = {}
        self.changes: list[Change] = []
        for name in ("a", "b"):
            self._put(Queue, queue(name, capability={"cpu": "8"}))
        for number in range(3):
            self._put(Node, node(f"n{number}", "4"))

    def _put(self, of: type[Any], raw: dict[str, Any]) -> None:
        self._version += 1
        raw["metadata"] |= {"resourceVersion": str(self._version)}
        raw["metadata"].setdefault("uid", f"{of.__name__}-{raw['metadata']['name']}")
        raw["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        new = msgspec.convert(raw, of)
        key = of.__name__, raw["metadata"]["name"]
        self.changes.append((self.objects.get(key), new))
        self.objects[key] = new

    def _drop(self, of: type[Any], name: str) -> None:
        if (old := self.objects.pop((of.__name__, name), None)) is not None:
            self.changes.append((old, None))

    def step(self) -> None:
        """Change something."""
        draw = self._random
        name = f"g{draw.randrange(5)}"
        what = draw.randrange(8)
        if what < 3:
            size, phase = draw.randint(1, 3), draw.choice(("Pending", "Inqueue", "Running"))
            self._put(PodGroup, pod_group(name, size, queue=draw.choice("ab"), phase=phase))
            cpu = str(draw.randint(1, 5))
            for number in range(size if draw.random() < 0.8 else 0):
                self._put(Pod, pod(f"{name}-{number}", group=name, cpu=cpu))
        elif what < 5:
            pods = [key for of, key in self.objects if of == "Pod"]
            if pods:
                chosen = draw.choice(pods)
                group, on = chosen.partition("-")[0], f"n{draw.randrange(3)}"
                self._put(Pod, pod(chosen, group=group, cpu="1", node=on, phase="Running"))
        elif what == 5:
            self._drop(PodGroup, name)
            for number in range(3):
                self._drop(Pod, f"{name}-{number}")
        elif what == 6:
            self._put(Node, node(f"n{draw.randrange(4)}", str(draw.randint(1, 9))))
        else:
            self._put(Queue, queue(draw.choice("ab"), capability={"cpu": str(draw.randint(2, 20))}))

    def seen(self) -> ReadableCluster:
        kinds: dict[str, list[Any]] = {}
        for (of, _), each in sorted(self.objects.items()):
            kinds.setdefault(of, []).append(each)
        objects = ClusterObjects(
            nodes=kinds["Node"],
            queues=kinds["Queue"],
            pod_groups=kinds.get("PodGroup", []),
            pods=kinds.get("Pod", []),
        )
        return ReadableCluster(None, objects)

    def taken(self) -> list[Change]:
        found, self.changes = self.changes, []
        return found


def _shown(figures: Figures) -> Mapping[str, Any]:
    pending = {
        key: (each.summary, each.message, each.numbers) for key, each in figures.pending.items()
    }
    return {
        "pending": dict(sorted(pending.items())),
        "lines": dict(sorted(figures.lines.items())),
        "queues": dict(sorted(figures.queues.items())),
    }


@pytest.mark.parametrize(
    "actions", ["enqueue, allocate", "enqueue, allocate, preempt, reclaim, elect, reserve"]
)
@examples(12)
@given(seed=st.integers(0, 1 << 30))
def test_a_simulation_that_follows_says_what_a_new_one_says(actions: str, seed: int) -> None:
    tiers = "[{plugins: [{name: priority}, {name: gang}, {name: drf}, {name: predicates}, {name: proportion}]}]"
    config = load_config(f'{{actions: "{actions}", tiers: {tiers}}}')
    cluster = _Cluster(seed)
    follower, adviser = Follower(config), Follower(config)
    for moment in range(10):
        now, seen, changes = _NOW + moment, cluster.seen(), cluster.taken()
        found = follower.look(seen, now, changes)
        assert _shown(found) == _shown(simulated(seen, config, now)), moment
        adviser.note(changes)
        for group in seen.objects.pod_groups[:1]:
            kept, new = adviser.follow(seen), Follower(config).follow(seen)
            assert advise(kept, seen.objects, group, now) == advise(new, seen.objects, group, now)
        cluster.step()


def test_numbers_that_change_without_helping_a_gang_are_renewed_for_some_gangs_at_a_time() -> None:
    config = load_config(None)
    groups = [pod_group(f"g{each}", 1, phase="Inqueue") for each in range(2 * TRIES + 10)]
    pods = [pod(f"g{each}-0", group=f"g{each}", cpu="10") for each in range(len(groups))]

    def seen(cpu: str) -> ReadableCluster:
        nodes = msgspec.convert([node("n", cpu)], list[Node])
        objects = ClusterObjects(
            nodes=nodes,
            pod_groups=msgspec.convert(groups, list[PodGroup]),
            pods=msgspec.convert(pods, list[Pod]),
        )
        return ReadableCluster(None, objects)

    follower = Follower(config)
    follower.look(seen("8"), _NOW)
    assert not follower.is_behind()
    after = _shown(simulated(seen("6"), config, _NOW))["pending"]
    changes: list[Change] = [(seen("8").objects.nodes[0], seen("6").objects.nodes[0])]
    current = []
    for moment in range(3):
        found = _shown(follower.look(seen("6"), _NOW + moment, changes))["pending"]
        current.append(sum(found[key] == after[key] for key in after))
        changes = []
    assert TRIES <= current[0] < current[1] < len(groups)
    assert (current[2], follower.is_behind()) == (len(groups), False)


def test_a_gang_at_which_a_plugin_raises_waits_for_that_and_the_others_have_their_reasons() -> None:
    groups = [pod_group(name, 1, phase="Inqueue") for name in ("bad", "good")]
    pods = [pod(f"{name}-0", group=name, cpu="9") for name in ("bad", "good")]
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "4")], list[Node]),
        pod_groups=msgspec.convert(groups, list[PodGroup]),
        pods=msgspec.convert(pods, list[Pod]),
    )
    follower = Follower(faulty_config(Fault("allocatable", "bad")))
    found = follower.look(ReadableCluster(None, objects), _NOW).pending
    assert "ZeroDivisionError: fault at allocatable" in found["default/bad"].message
    assert "needs 9 cpu on one node" in found["default/good"].message
    follower = Follower(faulty_config(Fault("overused", "any")))
    whole = follower.look(ReadableCluster(None, objects), _NOW)
    assert "a cycle of the scheduler failed: ZeroDivisionError: fault at overused" in str(
        whole.error
    )
