"""What the controller writes about a queue, as the case tables have it."""

from typing import Any

import msgspec
import pytest

from pumice.api import keys
from pumice.api.commands import Command
from pumice.api.kinds import COMMAND, QUEUE
from pumice.api.queues import Queue
from pumice.controller.plan import (
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
    UpdateObject,
)
from pumice.controller.queues import GroupCounts, ObservedQueue, climb, plan_queue
from tests.kit.builders import pod_group, queue
from tests.kit.tables import table

Raw = dict[str, Any]


def a_queue(
    name: str, state: str = "Open", by_parent: str = "", *, deleted: bool = False, **spec: Any
) -> Queue:
    """A queue as it is stored, with its parent and, where it is closed, why."""
    marks = {keys.CLOSED_BY_PARENT: by_parent} if by_parent else None
    parent = {} if name == keys.ROOT_QUEUE else {"parent": keys.ROOT_QUEUE}
    found = queue(name, state=state, annotations=marks, **parent | spec)
    found["metadata"] |= {"uid": "u1", "resourceVersion": "5"}
    found["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if deleted:
        found["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    return msgspec.convert(found, Queue)


def a_command(action: str, target: str = "q", *, name: str = "c1", uid: str = "") -> Command:
    about = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": target, "uid": uid}
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "9"}
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert({"metadata": meta, "action": action, "target": about}, Command)


def state_of(plan: Plan) -> str | None:
    """The state that a plan writes; None when it writes no status."""
    return next(
        (step.status["state"] for step in plan.steps if isinstance(step, PatchStatus)), None
    )


@pytest.mark.parametrize("case", table("controller/queue-states"), ids=lambda case: case["id"])
def test_states(case: Raw) -> None:
    name = case.get("name", "q")
    number = case.get("groups", 0)
    plan = plan_queue(
        ObservedQueue(
            queue=a_queue(
                name, case["state"], case.get("marked", ""), deleted=case.get("deleted", False)
            ),
            above=[a_queue("up", case["above"])] if "above" in case else [],
            groups=None if number is None else {"Running": number} if number else {},
            commands=[a_command(case["action"], name)] if "action" in case else [],
        )
    )
    found = state_of(plan)
    assert (case["state"] if found is None else found) == case.get("then", case["state"])


@pytest.mark.parametrize("case", table("controller/queue-trees"), ids=lambda case: case["id"])
def test_trees_and_commands(case: Raw) -> None:
    name = case.get("name", "q")
    above = [a_queue(f"up{at + 1}", *each) for at, each in enumerate(case.get("above", ()))]
    stored = a_queue(
        name, case["state"], case.get("by_parent", ""), deleted=case.get("deleted", False)
    )
    plan = plan_queue(
        ObservedQueue(
            queue=stored,
            above=above,
            missing=case.get("missing", ""),
            groups={"Running": case["groups"]} if "groups" in case else {},
            commands=[a_command(case["order"], name, uid=case.get("uid", ""))]
            if "order" in case
            else [],
        )
    )
    notes = [step.patch for step in plan.steps if isinstance(step, UpdateObject)]
    guard = {"uid": "u1", "resourceVersion": "5"}
    wanted = {"metadata": guard | {"annotations": {keys.CLOSED_BY_PARENT: case.get("note")}}}
    assert notes == ([wanted] if "note" in case else [])
    state = state_of(plan)
    assert (state if state != case["state"] else None) == case.get("then")
    events = [
        [step.type, step.reason, step.message]
        for step in plan.steps
        if isinstance(step, RecordEvent)
    ]
    if "event" in case:
        ((kind, reason, message),) = events
        assert [kind, reason] == case["event"][:2]
        assert case["event"][2] in message
    else:
        assert events == []
    deletes = [step for step in plan.steps if isinstance(step, DeleteObject)]
    removed = [DeleteObject(COMMAND, "default", "c1", "uid-c1")]
    assert deletes == (removed if case.get("answered") else [])
    if deletes:
        assert list(plan.steps)[-1] == deletes[0], "a Command is removed once it is carried out"


@pytest.mark.parametrize("case", table("controller/queue-counts"), ids=lambda case: case["id"])
def test_counts(case: Raw) -> None:
    counts, groups = GroupCounts(), dict[str, Raw]()
    changed: tuple[str, ...] = ()
    for name, *rest in case["steps"]:
        new = None
        if rest:
            new = pod_group(name)
            new["spec"]["queue"] = rest[0]
            new["status"] = {"phase": rest[1]} if rest[1] else {}
        changed = counts.change(groups.pop(name, None), new)
        if new is not None:
            groups[name] = new
    assert list(changed) == case["changed"]
    assert {each: dict(counts.of(each)) for each in case["then"]} == case["then"]


def test_counts_alone_wait_and_a_state_takes_them_along() -> None:
    def plan(state: str, wait: float) -> Plan:
        groups = {"Running": 2, "Completed": 1}
        return plan_queue(ObservedQueue(queue=a_queue("q", state), groups=groups, wait=wait))

    assert list(plan("Open", 0.4).steps) == [RequeueAfter(0.4)]
    (written,) = plan("Open", 0.0).steps
    assert isinstance(written, PatchStatus)
    counts = {"pending": 0, "running": 2, "unknown": 0, "inqueue": 0, "completed": 1}
    assert written.status == {"state": "Open"} | counts
    first = next(iter(plan("Closed", 0.4).steps))
    assert isinstance(first, PatchStatus)
    assert first.status == {"state": "Closing", "message": "closed by its user"} | counts


def test_a_queue_without_a_parent_is_below_root() -> None:
    stored = a_queue("q", parent="")
    (step,) = plan_queue(ObservedQueue(queue=stored)).steps
    assert isinstance(step, UpdateObject)
    assert step.patch == {
        "metadata": {"uid": "u1", "resourceVersion": "5"},
        "spec": {"parent": "root"},
    }
    assert not plan_queue(ObservedQueue(queue=a_queue("root")))


def test_commands_are_taken_one_by_one_the_oldest_first() -> None:
    commands = [
        a_command("OpenQueue", name="c2"),
        a_command("CloseQueue", name="c1"),
        a_command("CloseQueue", "other", name="c0"),
    ]
    plan = plan_queue(ObservedQueue(queue=a_queue("q"), commands=commands))
    assert state_of(plan) == "Closed"
    assert [step.name for step in plan.steps if isinstance(step, DeleteObject)] == ["c1"]


@pytest.mark.parametrize(
    ("parents", "above", "missing"),
    [
        ({"q": "a", "a": "b", "b": "root"}, ["a", "b", "root"], ""),
        ({"q": "a", "a": "gone"}, ["a"], "gone"),
        ({"q": ""}, ["root"], ""),
        ({"q": "a", "a": "q"}, ["a"], ""),
        ({"q": "a", "a": "b", "b": "a"}, ["a", "b"], ""),
        ({"q": "q"}, [], ""),
    ],
    ids=[
        "a way to root",
        "one is missing",
        "no parent",
        "a cycle through it",
        "a cycle above it",
        "its own parent",
    ],
)
def test_the_way_up(parents: dict[str, str], above: list[str], missing: str) -> None:
    queues = {name: a_queue(name, parent=parent) for name, parent in parents.items()}
    queues["root"] = a_queue("root", parent="nonsense")
    found, lost = climb(queues["q"], queues.get)
    assert ([each.metadata.name for each in found], lost) == (above, missing)
