"""Whatever happens to a tree of queues, in any order, with controllers that are killed after any write.

The user's wishes are kept beside the queues in the plainest way: a set of queues that their users closed. When the controller has
nothing more to do, a queue is closed exactly if it or a queue above it is in that set.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from pumice.api import keys
from pumice.api.commands import Command
from pumice.api.podgroups import PHASES
from pumice.api.queues import STATES, Queue
from pumice.controller.plan import (
    DeleteObject,
    PatchStatus,
    Plan,
    RequeueAfter,
    UpdateObject,
    changes,
)
from pumice.controller.queues import GroupCounts, ObservedQueue, climb, own_status, plan_queue
from tests.kit.builders import pod_group, queue
from tests.kit.examples import examples
from tests.unit.controller.test_queues import a_command

Raw = dict[str, Any]

NAMES = ("a", "b", "c", "d")
ROUNDS = 12
"""Passes over every queue after which nothing may be left to do; it takes two for each level and each Command."""


def merged(stored: Raw, patch: Raw) -> Raw:
    """JSON merge patch."""
    found = dict(stored)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict):
            found[key] = merged(found.get(key) or {}, value)
        else:
            found[key] = value
    return found


class Tree:
    """Queues, PodGroups and Commands as an API server has them, and a controller of queues."""

    def __init__(self) -> None:
        self.queues: dict[str, Raw] = {}
        self.commands: dict[str, Command] = {}
        self.groups: dict[str, Raw] = {}
        self.counts = GroupCounts()
        self.version = 0
        for name in (keys.ROOT_QUEUE, *NAMES):
            self.put(queue(name, state=""))

    def put(self, obj: Raw) -> None:
        self.version += 1
        meta = {"uid": "u1"} | obj["metadata"] | {"resourceVersion": str(self.version)}
        self.queues[meta["name"]] = obj | {"metadata": meta}

    def get(self, name: str) -> Queue | None:
        found = self.queues.get(name)
        return msgspec.convert(found, Queue) if found else None

    def order(self, action: str, name: str) -> None:
        self.version += 1
        command = a_command(action, name, name=f"c{self.version}")
        meta = msgspec.structs.replace(command.metadata, resource_version=str(self.version))
        self.commands[meta.name] = msgspec.structs.replace(command, metadata=meta)

    def group(self, name: str, new: Raw | None) -> None:
        self.counts.change(self.groups.pop(name, None), new)
        if new is not None:
            self.groups[name] = new

    def plan(self, name: str) -> Plan:
        found = self.get(name)
        assert found is not None
        above, missing = climb(found, self.get)
        return plan_queue(
            ObservedQueue(
                queue=found,
                above=above,
                missing=missing,
                groups=self.counts.of(name),
                commands=list(self.commands.values()),
            )
        )

    def carry_out(self, name: str, writes: int | None = None) -> bool:
        """Carry out a plan, or its first writes; whether there was anything to write."""
        plan = self.plan(name)
        assert not any(isinstance(step, RequeueAfter) for step in plan.steps)
        steps = [s for s in plan.steps if isinstance(s, UpdateObject | PatchStatus | DeleteObject)]
        for step in steps[:writes]:
            match step:
                case UpdateObject():
                    assert step.patch["metadata"]["resourceVersion"] == str(self.version_of(name))
                    self.put(merged(self.queues[name], step.patch))
                case PatchStatus():
                    found = self.get(name)
                    assert found is not None
                    patch = changes(own_status(found), step.status)
                    assert patch, "a status is written only where it differs"
                    self.put(merged(self.queues[name], {"status": patch}))
                case DeleteObject():
                    del self.commands[step.name]
        return bool(steps)

    def version_of(self, name: str) -> str:
        return str(self.queues[name]["metadata"]["resourceVersion"])

    def settle(self) -> None:
        for _ in range(ROUNDS + 2 * len(self.commands)):
            wrote = [self.carry_out(name) for name in sorted(self.queues)]
            if not any(wrote):
                return
        raise AssertionError("the controller goes on writing")


class History(RuleBasedStateMachine):
    """A tree, what its users do, and a controller that works or is killed at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.closed: set[str] = set()
        self.tree.settle()

    @rule(name=st.sampled_from(NAMES), action=st.sampled_from(["CloseQueue", "OpenQueue"]))
    def order(self, name: str, action: str) -> None:
        """A Command, after which the controller dies wherever it likes before it comes to the next."""
        self.tree.order(action, name)
        self.closed.discard(name)
        self.closed |= {name} if action == "CloseQueue" else set()

    @rule(name=st.sampled_from(NAMES), action=st.sampled_from(["AbortJob", "", "OpenQueues"]))
    def nonsense(self, name: str, action: str) -> None:
        self.tree.order(action, name)

    @rule(
        name=st.sampled_from((keys.ROOT_QUEUE, *NAMES)), state=st.sampled_from(["Open", "Closed"])
    )
    def by_hand(self, name: str, state: str) -> None:
        """Only once all is settled: before that it depends on who comes first."""
        self.tree.settle()
        now = self.tree.queues[name]
        was_closed = now["status"]["state"] != "Open"
        if was_closed == (state == "Closed"):
            return
        self.tree.put(merged(now, {"status": {"state": state}}))
        self.closed.discard(name)
        self.closed |= {name} if state == "Closed" else set()

    @rule(name=st.sampled_from(NAMES), parent=st.sampled_from((*NAMES, "", "root", "gone")))
    def move(self, name: str, parent: str) -> None:
        """Also in a circle, which admission refuses."""
        self.tree.put(merged(self.tree.queues[name], {"spec": {"parent": parent}}))

    @rule(
        group=st.sampled_from("xyz"),
        queue=st.sampled_from(NAMES),
        phase=st.sampled_from([*PHASES, "", None]),
    )
    def group(self, group: str, queue: str, phase: str | None) -> None:
        new = None if phase is None else pod_group(group, queue=queue, phase=phase)
        self.tree.group(group, new)

    @rule(name=st.sampled_from(NAMES), writes=st.integers(0, 2))
    def killed(self, name: str, writes: int) -> None:
        self.tree.carry_out(name, writes)

    @rule()
    def settle(self) -> None:
        self.tree.settle()
        self.check()

    def teardown(self) -> None:
        self.settle()

    def check(self) -> None:
        assert self.tree.commands == {}
        for name in self.tree.queues:
            found = self.tree.get(name)
            assert found is not None
            above, _ = climb(found, self.tree.get)
            closes = [each.metadata.name for each in above if each.metadata.name in self.closed]
            counts = self.tree.counts.of(name)
            closed = name in self.closed or bool(closes)
            wanted = ("Closing" if counts else "Closed") if closed else "Open"
            assert found.status.state == wanted, (name, self.closed)
            by_parent = found.metadata.annotation(keys.CLOSED_BY_PARENT) == "true"
            assert by_parent == (closed and name not in self.closed), name
            shown = {phase: getattr(found.status, phase.lower()) for phase in PHASES}
            assert {phase: number for phase, number in shown.items() if number} == counts

    @invariant()
    def counts_are_right(self) -> None:
        listed = GroupCounts()
        for each in self.tree.groups.values():
            listed.change(None, each)
        assert all(listed.of(name) == self.tree.counts.of(name) for name in NAMES)


def test_any_history() -> None:
    many = settings(examples(150, always_the_same=False), stateful_step_count=25)
    run_state_machine_as_test(History, settings=many)


@pytest.mark.parametrize("state", ["", *STATES, "Frozen"])
@pytest.mark.parametrize("by_parent", ["", "true", "false", "nonsense"])
def test_every_state_settles(state: str, by_parent: str) -> None:
    """Whatever is stored, it is Open or Closed after a few passes, and stays so."""
    tree = Tree()
    marks = {keys.CLOSED_BY_PARENT: by_parent} if by_parent else None
    tree.put(queue("a", state=state, annotations=marks))
    tree.settle()
    is_closed = state in ("Closed", "Closing") and by_parent != "true"
    found = tree.get("a")
    assert found is not None
    assert found.status.state == ("Closed" if is_closed else "Open")
    assert found.metadata.annotation(keys.CLOSED_BY_PARENT) != "true"
