"""The order of queues in trees: exact at each moment, at a cost that does not depend on how many queues wait."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.meta import ObjectMeta
from pumice.api.queues import Queue
from pumice.scheduler.options import open_session
from pumice.scheduler.session.answers import PluginAnswers
from pumice.scheduler.waiting.queue_tournament import QueueTournament
from tests.kit.examples import examples
from tests.unit.scheduler.scenarios import NOW, Scenario

Raw = dict[str, Any]

ABOVE = {
    "a": "",
    "b": "",
    "a1": "a",
    "a2": "a",
    "b1": "b",
    "a1x": "a1",
    "a1y": "a1",
    "b1x": "b1",
    "c": "",
}
"""Queues, each with the one above it."""  # fmt: skip

NAMES = sorted(ABOVE)


def path(name: str) -> list[str]:
    return [*path(ABOVE[name]), name] if name else []


def named(name: str) -> Queue:
    return Queue(metadata=ObjectMeta(name=name))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "pop", "decide", "decide", "rise"]),
        st.sampled_from(NAMES),
        st.integers(-3, 3),
    ),
    min_size=20,
    max_size=60,
)


@pytest.mark.parametrize("in_tree", [True, False])
@given(begun=st.sets(st.sampled_from(NAMES), min_size=5), steps=STEPS)
def test_the_first_is_the_smallest_of_all_whatever_is_decided(
    begun: set[str], steps: list[tuple[str, str, int]], *, in_tree: bool
) -> None:
    """A decision changes the share of a queue and of those above it, up or down, also of one that does not wait."""
    shares = dict.fromkeys(NAMES, 0)
    decided: list[str] = []
    epoch = [0]

    def key(queue: Queue) -> Any:
        name = queue.metadata.name
        return tuple(shares[each] for each in (path(name) if in_tree else [name])), name

    line = QueueTournament(key, decided, path if in_tree else None, [lambda: epoch[0]])
    waiting: dict[str, Queue] = {}
    for step, name, amount in [*(("push", name, 0) for name in sorted(begun)), *steps]:
        if step == "push" and name not in waiting:
            waiting[name] = named(name)
            line.push(waiting[name])
        elif step == "decide":
            for each in path(name) if in_tree else [name]:
                shares[each] += amount
            decided.append(name)
        elif step == "rise":
            shares[name] += amount
            epoch[0] += 1
        elif step == "pop" and waiting:
            first = min(waiting.values(), key=key)
            assert line.first() is line.pop() is first
            del waiting[first.metadata.name]
        assert len(line) == len(waiting)
    assert [line.pop() for _ in waiting] == sorted(waiting.values(), key=key)
    with pytest.raises(IndexError):
        line.pop()


def test_a_queue_that_waits_alone_is_not_asked_for_its_key() -> None:
    def key(queue: Queue) -> str:
        raise AssertionError(queue)

    line = QueueTournament(key, [])
    for _ in range(3):
        line.push(named("a"))
        assert line.pop().metadata.name == "a"


PLUGINS = {
    "capacity": "- name: capacity\n    enableHierarchy: true",
    "drf": "- name: drf\n    enableHierarchy: true",
    "proportion": "- name: proportion",
    "capacity and drf": "- name: capacity\n    enableHierarchy: true\n  - name: drf\n    enableHierarchy: true",
}


def config(plugins: str, actions: str = "enqueue, allocate, backfill, preempt, reclaim") -> str:
    return (
        f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
        f"  {PLUGINS[plugins]}\n  - name: predicates\n  - name: nodeorder\n"
    )


@st.composite
def trees(draw: st.DrawFn) -> Raw:
    """Queues in a tree, some with paths of their own, with gangs that run and gangs that wait."""
    queues, gangs, pods = [["root", {}]], [], []
    for name in NAMES:
        spec: Raw = {"parent": draw(st.sampled_from([ABOVE[name] or "root"] * 9 + ["gone"]))}
        spec["deserved"] = {"cpu": draw(st.integers(0, 6))}
        spec["priority"] = draw(st.sampled_from([0, 0, 0, 5]))
        spec["weight"] = draw(st.integers(1, 3))
        if draw(st.integers(0, 7)) == 0:
            spec["annotations"] = {
                "volcano.sh/hierarchy": "root/" + draw(st.sampled_from(["x", "x/y", "z"])),
                "volcano.sh/hierarchy-weights": "1/2/3",
            }
        queues.append([name, spec])
        for number in range(draw(st.integers(0, 3))):
            gang, runs = f"{name}-{number}", draw(st.booleans())
            size, least = draw(st.integers(1, 4)), draw(st.integers(1, 3))
            gangs.append(["ns", gang, name, min(size, least), "Running" if runs else "Inqueue"])
            for index in range(size):
                node = f"n{draw(st.integers(1, 3))}" if runs and draw(st.booleans()) else ""
                state, cpu = "Running" if node else "Pending", draw(st.integers(1, 2))
                pods.append(["ns", f"{gang}-{index}", node, state, cpu, "1Gi", gang])
    nodes = [[f"n{number}", draw(st.integers(2, 12)), "64Gi"] for number in (1, 2, 3)]
    return {"nodes": nodes, "queues": queues, "podgroups": gangs, "pods": pods}


@pytest.mark.parametrize("plugins", PLUGINS)
@examples(30)
@given(cluster=trees())
def test_cycles_decide_as_if_all_keys_were_taken_again(cluster: Raw, plugins: str) -> None:
    """The reference is a list that is searched for the smallest key each time."""
    found = Scenario(cluster, config(plugins)).cycle()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            PluginAnswers,
            "ordered_queues",
            lambda answers, queues: Searched(answers.queue_key, queues),
        )
        wanted = Scenario(cluster, config(plugins)).cycle()
    assert (found.binds, found.pipelined, found.evicted) == (
        wanted.binds,
        wanted.pipelined,
        wanted.evicted,
    )
    assert found.all_pod_groups == wanted.all_pod_groups
    assert found.pending == wanted.pending


class Searched:
    """Queues that wait, searched for the smallest key at each turn."""

    def __init__(self, key: Callable[[Queue], Any], queues: Iterable[Queue]) -> None:
        self.key = key
        self.waiting = {queue.metadata.name: queue for queue in queues}

    def __len__(self) -> int:
        return len(self.waiting)

    def first(self) -> Queue:
        return min(self.waiting.values(), key=self.key)

    def pop(self) -> Queue:
        return self.waiting.pop(self.first().metadata.name)


def leaves(count: int, shape: str) -> Raw:
    """Leaves below queues that deserve something, each with an elastic gang of three pods."""
    branches = {"tree": 8, "wide": 1, "flat": 0}[shape]
    upper = [
        [f"d{number}", {"parent": "root", "deserved": {"cpu": 400}}] for number in range(branches)
    ]
    below = [
        [f"l{n}", {"parent": f"d{n % branches}" if branches else "root", "deserved": {"cpu": 2}}]
        for n in range(count)
    ]
    return {
        "nodes": [[f"n{number}", 64, "640Gi"] for number in range(20)],
        "queues": [["root", {}], *upper, *below],
        "podgroups": [["ns", f"g{n}", f"l{n}", 1, "Inqueue"] for n in range(count)],
        "pods": [["ns", f"g{n}-{i}", "", "Pending", 1, "1Gi", f"g{n}"] for n in range(count) for i in range(3)],
    }  # fmt: skip


@pytest.mark.parametrize("shape", ["tree", "wide", "flat"])
@pytest.mark.parametrize("plugins", PLUGINS)
def test_the_keys_that_a_cycle_takes_grow_with_the_number_of_turns(
    shape: str, plugins: str
) -> None:
    """A turn takes a key for each doubling of the number of queues, and one more; not one for each queue beside it."""

    def taken(count: int) -> int:
        scenario = Scenario(leaves(count, shape), config(plugins, "allocate"))
        scenario.state.settle(NOW)
        session = open_session(scenario.state, scenario.config, NOW)
        for spec, arguments in scenario.config.actions:
            spec.run(session, arguments)
        assert len(session.committed.binds) == 3 * count
        return session.touched.keys_taken

    assert taken(128) < 2.6 * taken(64)
