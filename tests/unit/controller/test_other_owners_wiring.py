"""Plans for objects of other controllers whose pods plugins wire: what `tests/integration/controller` cannot count."""

import base64

import pytest

from pumice.api.meta import Raw
from pumice.controller.other_owners.wiring import plan_wiring
from pumice.controller.plan import CreateObject, Plan, RecordEvent
from pumice.plugins import builtin
from pumice.plugins.other_owners import OwnerWirings
from tests.kit.counting import calls
from tests.unit.plugins.test_other_owners import owner_of


def groups(count: int, plugins: str = "mpi", size: int = 3) -> Raw:
    return {
        "kind": "LeaderWorkerSet",
        "name": "t",
        "groups": count,
        "size": size,
        "plugins": plugins,
    }


def planned(shape: Raw, present: list[Raw]) -> Plan:
    return plan_wiring(owner_of(shape), OwnerWirings(builtin()), present)


def created(plan: Plan) -> list[Raw]:
    """What a plan creates, with a key in each Secret."""
    found = []
    for each in (step for stage in plan.stages for step in stage if isinstance(step, CreateObject)):
        manifest = each.manifest
        if each.keys is not None:
            key = base64.b64encode(b"key").decode()
            names = (each.keys.private_key, *each.keys.public_keys)
            manifest = {**manifest, "data": {**manifest["data"], **dict.fromkeys(names, key)}}
        found.append(manifest)
    return found


def events(plan: Plan) -> list[RecordEvent]:
    return [step for stage in plan.stages for step in stage if isinstance(step, RecordEvent)]


@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "Job", "name": "t", "completions": 2**31 - 1, "plugins": "svc"},
        {"kind": "JobSet", "name": "t", "jobs": [["a", 2**31 - 1, 2**31 - 1, "svc"]]},
        groups(2**31 - 1, "svc", 2**31 - 1),
        groups(2**31 - 1, "svc", 0),
    ],
    ids=["Job", "JobSet", "LeaderWorkerSet", "LeaderWorkerSet of empty groups"],
)
def test_an_owner_of_any_size_gets_an_event_and_nothing_is_listed(shape: Raw) -> None:
    plans: list[Plan] = []
    assert calls(lambda: plans.append(planned(shape, []))) < 2_000
    [event] = events(plans[0])
    assert "expected at most" in event.message
    assert not created(plans[0])


def test_twice_the_groups_take_twice_the_calls() -> None:
    """Also where everything is there: a pass over a thousand groups compares four thousand objects."""
    few, twice = groups(40), groups(80)
    there = [created(planned(each, [])) for each in (few, twice)]
    assert [len(each) for each in there] == [160, 320]
    costs = []
    for shape, present in zip((few, twice), there, strict=True):
        owner, wirings = owner_of(shape), OwnerWirings(builtin())
        assert not created(plan_wiring(owner, wirings, present))
        costs.append(calls(lambda o=owner, w=wirings, p=present: plan_wiring(o, w, p)))  # type: ignore[misc]
    assert costs[1] <= 2.3 * costs[0]


def test_of_many_events_of_one_sort_the_first_are_sent() -> None:
    there = [{**each, "metadata": {**each["metadata"], "ownerReferences": []}} for each in created(planned(groups(100), []))]  # fmt: skip
    found = events(planned(groups(100), there))
    assert len(found) == 10
    assert {each.reason for each in found} == {"NameConflict"}
