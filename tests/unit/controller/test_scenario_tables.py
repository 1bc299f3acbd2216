"""Scenarios of one Job, told by the case tables: what happens around it, step by step, and how it stands then.

A scenario is about Job train with task worker of two pods, unless `tasks` says otherwise; fields of its spec stand beside (`strict` is not one: Jobs are then counted as Volcano does). It starts
when its pods run; `from: admitted` starts when they are there and do not run, `from: nothing` before the group may enqueue.

Steps are what `FakeCluster` can do (`run`, `fail`, `vanish`, …) with the names that it takes; after each of them the controller looks
until nothing is left to do. `wait` lets seconds pass. `linger` does too, and pods that are being removed stay meanwhile.
"""

from typing import Any

import pytest

from pumice.api import keys
from pumice.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, POD_GROUP, Kind
from pumice.api.meta import format_time
from pumice.controller.jobs.subject import read
from pumice.controller.objects import controller_reference
from tests.kit.builders import job, task
from tests.kit.tables import table
from tests.unit.controller.fake_cluster import START, FakeCluster

Raw = dict[str, Any]

RESERVED_KEYS = {"id", "from", "tasks", "put", "strict", "steps", "expect"}
SCENARIOS: list[Raw] = [
    scenario
    for name in ("delays", "endings", "retries", "syncing")
    for scenario in table(f"controller/{name}")
]
WAITING: list[Raw] = table("controller/waiting")


class ScenarioCluster(FakeCluster):
    """A cluster with the further steps of the tables."""

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def linger(self, seconds: float) -> None:
        self.now += seconds
        self.look()

    def replicas(self, number: int) -> None:
        self.job["spec"]["tasks"][0]["replicas"] = number

    def evict(self, name: str, grace: float = 0.0) -> None:
        super().evict(name)
        self.pods[name]["metadata"]["deletionTimestamp"] = format_time(self.now + grace)

    def claim(self, name: str) -> None:
        """Somebody makes a claim."""
        head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        self.put(head | {"metadata": {"name": name, "namespace": "default"}, "spec": {}})

    def lose(self, name: str) -> None:
        """Somebody removes it."""
        del self.objects[PERSISTENT_VOLUME_CLAIM, name]

    def exit(self, name: str, code: int) -> None:
        """A pod fails with an exit code."""
        self.fail(name, exit_code=code)

    def spec(self, fields: Raw) -> None:
        self.job["spec"].update(fields)

    def mark(self, name: str) -> None:
        """A controller was killed between marking a pod and removing it."""
        self.pods[name]["metadata"]["annotations"][keys.OUT_OF_SYNC] = "true"

    def half_marked(self, name: str) -> None:
        """The same, and the next one looks once only."""
        self.mark(name)
        counted = {key: self.status[key] for key in ("state", "running", "taskStatusCount")}
        self.look()
        assert {key: self.status.get(key) for key in counted} == counted
        assert self.pods[name]["metadata"]["deletionTimestamp"]
        self.settle()
        self.run()

    def is_(self, phase: str) -> None:
        assert self.phase == phase

    def uids(self) -> dict[tuple[Kind, str], str]:
        return {key: obj["metadata"]["uid"] for key, obj in self.objects.items()}


def _cluster(scenario: Raw) -> ScenarioCluster:
    tasks = [
        task(name, **({"replicas": given} if isinstance(given, int) else given))
        for name, given in scenario.get("tasks", {"worker": 2}).items()
    ]
    spec = {key: value for key, value in scenario.items() if key not in RESERVED_KEYS}
    cluster = ScenarioCluster(
        job("train", tasks, uid="u1", **spec), strict=scenario.get("strict", False)
    )
    for kind, given in scenario.get("put", {}).items():
        if kind == POD_GROUP.kind:
            _put(cluster, kind, given)
        else:
            cluster.claim(given["name"])
    cluster.settle()
    if scenario.get("from") != "nothing":
        cluster.objects[POD_GROUP, "train-u1"]["status"] = {"phase": "Inqueue"}
        cluster.settle()
    if "from" not in scenario:
        cluster.run()
        cluster.settle()
    return cluster


def _put(cluster: FakeCluster, kind: str, given: Raw) -> None:
    owner = controller_reference(read(cluster.job).metadata)
    meta = {"name": given["name"], "namespace": "default", "ownerReferences": [owner]}
    head = {"apiVersion": POD_GROUP.api_version, "kind": kind, "metadata": meta}
    cluster.put(head | {key: value for key, value in given.items() if key != "name"})


def _step(cluster: ScenarioCluster, step: Raw) -> None:
    ((verb, given),) = step.items()
    arguments = given if isinstance(given, list) else [given]
    if verb == "vanish":
        for name in arguments:
            cluster.vanish(name)
    elif verb == "failed":
        cluster.fail(*arguments)  # and the controller has not looked yet
        return
    else:
        getattr(cluster, f"{verb}_" if verb == "is" else verb)(*arguments)
    if verb == "evict":
        cluster.look()
    elif verb != "linger":
        cluster.settle()


def _left(cluster: ScenarioCluster, kind: str) -> list[str]:
    return [
        obj["metadata"]["name"]
        for obj in cluster.objects.values()
        if obj["kind"] == kind and not obj["metadata"].get("deletionTimestamp")
    ]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_scenario(scenario: Raw) -> None:
    cluster = _cluster(scenario)
    before = cluster.uids()
    for step in scenario.get("steps", ()):
        _step(cluster, step)
    now = cluster.uids()
    expect = dict(scenario["expect"])
    assert cluster.phase == expect.pop("phase", cluster.phase)
    assert cluster.reason[0] == expect.pop("reason", cluster.reason[0])
    assert expect.pop("message", "") in cluster.reason[1]
    assert cluster.status.get("retryCount", 0) == expect.pop(
        "retries", cluster.status.get("retryCount", 0)
    )
    for kind, names in expect.pop("left", {}).items():
        assert sorted(_left(cluster, kind)) == names, kind
    for kind, name in expect.pop("kept", {}).items():
        (key,) = [key for key in before if (key[0].kind, key[1]) == (kind, name)]
        assert now[key] == before[key], kind
    replaced = [
        key[1] for key in before if key[0] == POD and now.get(key, before[key]) != before[key]
    ]
    assert replaced == expect.pop("replaced", replaced)
    for field, number in expect.pop("counts", {}).items():
        assert cluster.status.get(field, 0) == number, field
    for field, value in expect.pop("group", {}).items():
        assert cluster.group is not None
        assert cluster.group["spec"][field] == value
    if (marks := expect.pop("marks", None)) is not None:
        stored = cluster.status.get("controlledResources", {})
        assert {k: v for k, v in stored.items() if not k.startswith("pumice.dev/")} == marks
    if (messages := expect.pop("executed", None)) is not None:
        executed = [each.message for each in cluster.events if each.reason == "ExecuteAction"]
        assert executed == messages
    for note, text in expect.pop("noted", {}).items():
        assert cluster.status.get("controlledResources", {}).get(f"pumice.dev/{note}") == text, note
    if (claims := expect.pop("claims", None)) is not None:
        for pod in cluster.of(POD):
            sources = [each["persistentVolumeClaim"] for each in pod["spec"]["volumes"]]
            assert [each["claimName"] for each in sources] == claims
    if (seconds := expect.pop("asks_again", None)) is not None:
        cluster.requeues.clear()
        cluster.look()
        assert min(cluster.requeues) == seconds
    assert expect == {}, "all that is expected is looked at"


@pytest.mark.parametrize("case", WAITING, ids=lambda case: case["id"])
def test_what_the_scheduler_says_reaches_the_user(case: Raw) -> None:
    cluster = FakeCluster(job("train", [task("worker", 2)], uid="u1"))
    cluster.settle()
    assert cluster.group is not None
    cluster.group["status"] = {
        "phase": "Pending",
        "conditions": [_condition(*each) for each in case["conditions"]],
    }
    cluster.touch(cluster.group)
    cluster.settle()
    assert [f"{each.type} {each.reason}: {each.message}" for each in cluster.events] == case["told"]
    assert cluster.reason[0] == case["reason"]
    assert case.get("message", "") in cluster.reason[1]


def _condition(type_: str, second: int, message: str, status: str = "True") -> Raw:
    return {
        "type": type_,
        "status": status,
        "reason": "NotEnoughResources" if type_ == "Unschedulable" else "",
        "message": message,
        "lastTransitionTime": format_time(START + second),
    }
