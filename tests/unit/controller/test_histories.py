"""Whatever happens to a Job, in any order, with controllers that are killed at any write.

The first machine does everything to a Job of any kind and looks at each pass. The second lets pods fail and be
evicted and counts: each failure and each eviction leads to one restart, none to two and none to none.
"""

import re
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pumice.api import keys
from pumice.api.jobs import ACTIONS, PHASES
from pumice.api.kinds import POD
from pumice.api.pods import Pod
from pumice.controller.jobs import job_pods, podsets
from pumice.controller.jobs.phases import FINISHED
from pumice.controller.jobs.podsets import PodNames
from pumice.controller.jobs.subject import read
from pumice.controller.objects import controls
from pumice.controller.plan import CreateObject, PatchStatus, Plan
from tests.kit.builders import job, task
from tests.unit.controller.fake_cluster import FakeCluster

Raw = dict[str, Any]

NUMBERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted", "PodPending", "Unknown", "*")

POLICIES = st.lists(
    st.builds(
        lambda event, action, timeout: (
            {"event": event, "action": action} | ({"timeout": timeout} if timeout else {})
        ),
        st.sampled_from(EVENTS),
        st.sampled_from([each for each in ACTIONS if each != "ResumeJob"]),
        st.sampled_from(["", "", "15s"]),
    ),
    max_size=3,
)
JOBS = st.fixed_dictionaries(
    {},
    optional={
        "minAvailable": st.integers(1, 3),
        "minSuccess": st.integers(1, 3),
        "maxRetry": st.integers(0, 3),
        "policies": POLICIES,
    },
)
TASKS = st.lists(st.integers(0, 4), min_size=1, max_size=2)


class History(RuleBasedStateMachine):
    """A Job and everything that may happen to it."""

    cluster: FakeCluster

    @initialize(
        sizes=TASKS, spec=JOBS, strict=st.booleans(), chained=st.booleans(), runs=st.booleans()
    )
    def begin(self, sizes: list[int], spec: Raw, strict: bool, chained: bool, runs: bool) -> None:
        tasks = [task(f"t{at}", size) for at, size in enumerate(sizes)]
        if chained and len(tasks) > 1:
            tasks[1]["dependsOn"] = {"name": ["t0"]}
        self.cluster = FakeCluster(job("train", tasks, uid="u1", **spec), strict=strict)
        self.killed: set[str] = set()
        if runs:  # what happens to a Job that runs is rarely reached from its beginning
            for _ in range(3):
                self.cluster.look()
                self.admit()
            self.cluster.run()
            self.cluster.look()

    # Passes

    @rule(writes=st.none() | st.integers(0, 4))
    def look(self, writes: int | None) -> None:
        """A pass, after some of whose writes the controller may be killed."""
        self.judge(self.cluster.plan())
        self.cluster.look_until(writes)

    @rule(seen=st.booleans())
    def work(self, seen: bool) -> None:
        """The controller and the scheduler do their part, and nodes run pods."""
        for _ in range(3):
            self.look(None)
            self.admit()
        if seen:
            self.cluster.run()
            self.look(None)

    def judge(self, plan: Plan) -> None:
        cluster = self.cluster
        made = [step for step in plan.steps if isinstance(step, CreateObject) and step.kind == POD]
        assert not (made and cluster.phase in FINISHED), "a finished Job makes a pod"
        for step in plan.steps:
            if isinstance(step, PatchStatus):
                phase = step.status["state"]["phase"]
                assert not (made and phase in FINISHED), "a Job that finishes makes a pod"
                self.adds_up(step.status)

    def adds_up(self, status: Raw) -> None:
        """Every pod that exists, and each that succeeded and is gone, is counted once."""
        cluster = self.cluster
        subject = read(cluster.job)
        names = PodNames(subject)
        own = [
            pod
            for pod in (msgspec.convert(each, Pod) for each in cluster.pods.values())
            if controls(subject.metadata, pod.metadata)
        ]
        noted = status.get("controlledResources", {})
        done = podsets.read(noted.get(job_pods.SUCCEEDED, ""), names)
        lost = done - {pod.metadata.name for pod in own}
        killed = {pod.metadata.name for pod in own if pod.metadata.uid in self.killed}
        assert not killed & done, "a pod that was being removed counts as succeeded"
        counted = {name: status.get(name, 0) for name in NUMBERS}
        assert sum(counted.values()) == len(own) + len(lost), counted
        tasks = status.get("taskStatusCount", {}).values()
        by_task = sum(sum(each["phase"].values()) for each in tasks)
        assert by_task == sum(counted.values()) - counted["terminating"]
        assert min(counted.values()) >= 0

    # Around the controller

    @rule()
    def admit(self) -> None:
        if self.cluster.group is not None:
            self.cluster.admit()

    @rule()
    def tear(self) -> None:
        if self.cluster.group is not None:
            self.cluster.admit("Unknown")

    def pick(self, number: int, *phases: str) -> str | None:
        found = [
            name
            for name, pod in self.cluster.pods.items()
            if not pod["metadata"].get("deletionTimestamp")
            and (pod.get("status") or {}).get("phase", "Pending") in phases
        ]
        return found[number % len(found)] if found else None

    @rule(number=st.integers(0, 7))
    def start(self, number: int) -> None:
        if name := self.pick(number, "Pending", ""):
            self.cluster.run(name)

    @rule(numbers=st.lists(st.integers(0, 7), min_size=1, max_size=3), lost=st.booleans())
    def succeed(self, numbers: list[int], lost: bool) -> None:
        """Pods succeed, and perhaps another one is removed at the same time."""
        for number in numbers:
            if name := self.pick(number, "Running"):
                self.cluster.succeed(name)
        if lost and (name := self.pick(numbers[0], "Running")):
            self.cluster.vanish(name)

    @rule(number=st.integers(0, 7))
    def fail(self, number: int) -> None:
        if name := self.pick(number, "Pending", "Running"):
            self.cluster.fail(name)

    @rule(number=st.integers(0, 7))
    def evict(self, number: int) -> None:
        if name := self.pick(number, "Pending", "Running", "Failed", "Succeeded"):
            self.cluster.evict(name)

    @rule(number=st.integers(0, 7))
    def vanish(self, number: int) -> None:
        if name := self.pick(number, "Pending", "Running", "Failed", "Succeeded"):
            self.cluster.vanish(name)

    @rule()
    def exit(self) -> None:
        """Pods that are being removed exit 0 on SIGTERM."""
        for name, pod in self.cluster.pods.items():
            runs = (pod.get("status") or {}).get("phase") == "Running"
            if runs and pod["metadata"].get("deletionTimestamp"):
                self.killed.add(pod["metadata"]["uid"])
                self.cluster.succeed(name)

    @rule()
    def reap(self) -> None:
        self.cluster.reap()

    @rule(action=st.sampled_from(ACTIONS))
    def command(self, action: str) -> None:
        self.cluster.command(action)

    @rule(size=st.integers(0, 4))
    def scale(self, size: int) -> None:
        self.cluster.job["spec"]["tasks"][0]["replicas"] = size

    @rule(seconds=st.sampled_from([1.0, 20.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.cluster.now += seconds

    @invariant()
    def knows_its_phase(self) -> None:
        if hasattr(self, "cluster"):
            assert self.cluster.phase in ("", *PHASES)

    def teardown(self) -> None:
        """Left alone, the controller comes to rest."""
        if hasattr(self, "cluster"):
            for _ in range(40):
                plan = self.cluster.plan()
                leaving = [
                    p for p in self.cluster.pods.values() if p["metadata"].get("deletionTimestamp")
                ]
                if not plan and not leaving:
                    return
                self.judge(plan)
                self.cluster.look()
                self.cluster.reap()
            assert not self.cluster.plan()


class Incidents(RuleBasedStateMachine):
    """A Job whose pods fail and are evicted, each of which is answered by one restart of a pod."""

    cluster: FakeCluster

    @initialize(size=st.integers(2, 4), enough=st.integers(1, 2))
    def begin(self, size: int, enough: int) -> None:
        policies = [{"events": ["PodFailed", "PodEvicted"], "action": "RestartPod"}]
        manifest = job(
            "train",
            [task("worker", size)],
            uid="u1",
            policies=policies,
            maxRetry=1000,
            minAvailable=enough,
        )
        self.cluster = FakeCluster(manifest)
        self.cluster.settle()
        self.cluster.admit()
        self.cluster.settle()
        self.incidents: set[str] = set()

    def pick(self, number: int, *phases: str) -> str | None:
        """A pod that the controller has seen and is not about to remove."""
        cluster = self.cluster
        noted = cluster.status.get("controlledResources", {}).get(job_pods.PODS, "")
        names = PodNames(read(cluster.job))
        known = podsets.read(noted, names)
        found = [
            name
            for name, pod in cluster.pods.items()
            if name in known
            and not pod["metadata"].get("deletionTimestamp")
            and keys.OUT_OF_SYNC not in pod["metadata"]["annotations"]
            and (pod.get("status") or {}).get("phase", "Pending") in phases
        ]
        return found[number % len(found)] if found else None

    @rule(writes=st.none() | st.integers(0, 3))
    def look(self, writes: int | None) -> None:
        self.cluster.look_until(writes)

    @rule(number=st.integers(0, 3))
    def start(self, number: int) -> None:
        if name := self.pick(number, "Pending", ""):
            self.cluster.run(name)

    @rule(number=st.integers(0, 3))
    def fail(self, number: int) -> None:
        if name := self.pick(number, "Pending", "Running"):
            self.incidents.add(self.cluster.pods[name]["metadata"]["uid"])
            self.cluster.fail(name)

    @rule(number=st.integers(0, 3), slowly=st.booleans())
    def evict(self, number: int, slowly: bool) -> None:
        if name := self.pick(number, "Pending", "Running", "Failed"):
            self.incidents.add(self.cluster.pods[name]["metadata"]["uid"])
            (self.cluster.evict if slowly else self.cluster.vanish)(name)

    @rule(size=st.integers(2, 5))
    def scale(self, size: int) -> None:
        """What the controller removes because the Job shrinks was not evicted."""
        if self.restarts() == len(self.incidents) and self.cluster.phase != "Restarting":
            self.cluster.job["spec"]["tasks"][0]["replicas"] = size

    @rule()
    def reap(self) -> None:
        self.cluster.reap()

    @rule()
    def settle(self) -> None:
        self.cluster.settle(60)

    @rule(seconds=st.sampled_from([1.0, 60.0, 700.0]))
    def wait(self, seconds: float) -> None:
        self.cluster.now += seconds

    @precondition(lambda self: hasattr(self, "cluster"))
    @invariant()
    def never_ends(self) -> None:
        assert self.cluster.phase in ("Pending", "Running", "Restarting")
        assert self.restarts() <= len(self.incidents), "one was answered twice"

    def restarts(self) -> int:
        """Failures and evictions that restarts were made for, by the events that tell of them."""
        found = 0
        for event in self.cluster.events:
            if event.reason == "ExecuteAction":
                found += sum(map(int, re.findall(r": (\d+) pods \(", event.message)))
                found += len(re.findall(r"(?:^|: |; )pod \S+ (?:failed|was)", event.message))
                found += sum(map(int, re.findall(r"; and (\d+) more", event.message)))
        return found

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for _ in range(3):
            self.cluster.settle(60)
            self.cluster.now += 301
        self.cluster.settle(60)
        assert self.restarts() == len(self.incidents)
        assert len(self.cluster.pods) == self.cluster.job["spec"]["tasks"][0]["replicas"]


HISTORIES = settings(
    max_examples=2 * settings().max_examples,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_every_history_keeps_the_rules() -> None:
    run_state_machine_as_test(History, settings=HISTORIES)


def test_each_failure_and_each_eviction_is_answered_once() -> None:
    run_state_machine_as_test(Incidents, settings=HISTORIES)
