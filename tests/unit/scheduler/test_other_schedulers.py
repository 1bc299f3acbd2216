"""Gangs that wait for pods with the name of another scheduler."""

import pytest

from pumice.scheduler import Reason
from tests.unit.scheduler.scenarios import NOW, Scenario

OTHER = {"scheduler": "other"}


def scenario(minimum: int, *options: dict[str, str]) -> Scenario:
    """A gang in its queue with a pod for each of the options."""
    return Scenario(
        {
            "nodes": [["n1", 8, "8Gi"]],
            "podgroups": [["ns", "g", "default", minimum, "Inqueue"]],
            "pods": [
                ["ns", f"g-{index}", "", "Pending", 1, 0, "g", each]
                for index, each in enumerate(options)
            ],
        }
    )


@pytest.mark.parametrize(
    ("minimum", "options", "valid", "cause"),
    [
        (2, [OTHER, OTHER], 0, "2 pods name schedulerName other"),
        (2, [{}, OTHER], 1, "1 pod names schedulerName other"),
        (3, [{}, OTHER, {"scheduler": "b"}], 1, "2 pods name schedulerName b, other"),
    ],
)
def test_the_schedulers_are_the_reason(
    minimum: int, options: list[dict[str, str]], valid: int, cause: str
) -> None:
    result = scenario(minimum, *options).cycle()
    reason = result.pending["ns/g"]
    why = f"{cause}; this scheduler places pods of volcano"
    assert (result.binds, reason.reason) == ({}, "OtherScheduler")
    assert reason.message == (
        f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}; {why}"
    )
    assert reason.summary == f"needs {minimum} pods and has {valid}; {why}"
    assert sum(reason.details["otherSchedulers"].values()) == minimum - valid
    [condition] = result.pod_groups["ns/g"].conditions or []
    assert (condition.type, condition.reason) == ("Unschedulable", "OtherScheduler")


def test_a_gang_with_enough_pods_of_its_own_runs() -> None:
    assert scenario(1, {}, OTHER).cycle().binds == {"ns/g-0": "n1"}


def test_other_pods_without_a_gang_are_no_reason() -> None:
    found = scenario(1)
    found.add_pod(["ns", "alone", "", "Pending", 1, 0, "", OTHER])
    assert found.state.gangs.strangers == {}
    assert found.cycle().pending["ns/g"].reason == "NotEnoughTasks"


def test_the_reason_follows_the_pods() -> None:
    found = scenario(1, OTHER)

    def reason(moment: float) -> Reason | None:
        return found.cycle(NOW + moment).pending.get("ns/g")

    first = reason(0)
    assert first is not None
    assert first.reason == "OtherScheduler"
    assert found.state.remove_pod("ns", "g-0")
    second = reason(1)
    assert second is not None
    assert second.reason == "NotEnoughTasks"
    assert found.state.gangs.strangers == {}
    found.add_pod(["ns", "g-0", "", "Pending", 1, 0, "elsewhere", OTHER | {"uid": "2"}])
    found.add_pod(["ns", "g-0", "", "Pending", 1, 0, "g", OTHER | {"uid": "2"}])
    assert found.state.gangs.strangers == {"ns/g": {"ns/g-0": "other"}}
    third = reason(2)
    assert third is not None
    assert third.reason == "OtherScheduler"
    found.add_pod(["ns", "g-0", "", "Pending", 1, 0, "g", {"uid": "3"}])
    assert reason(3) is None
