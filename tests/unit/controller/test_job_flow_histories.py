"""JobFlows of any shape, in any order of events, with controllers that die at any write and look at old pictures.

Each Job is created once and not before its targets have completed, a retry not before the attempt before it has failed, and in
the end all have run, or one has failed as often as it may. Then Jobs that run are terminated where the JobFlow says so, and only then.
"""

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pumice.api.kinds import COMMAND
from pumice.controller.jobflows import awaits_end, plan_job_flow
from pumice.controller.plan import CreateObject, DeleteObject, PatchStatus
from tests.kit.examples import examples

Raw = dict[str, Any]

NEXT = {"": "Pending", "Pending": "Running", "Running": "Completing", "Completing": "Completed"}
SIZE = 4
EDGES = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).filter(lambda e: e[0] < e[1]),
    max_size=8,
)


class History(RuleBasedStateMachine):
    """A JobFlow and everything that may happen to it."""

    @initialize(
        edges=EDGES,
        policy=st.sampled_from(["retain", "delete"]),
        missing=st.booleans(),
        retries=st.integers(0, 2),
        stop=st.booleans(),
    )
    def submit(
        self, edges: list[tuple[int, int]], policy: str, missing: bool, retries: int, stop: bool
    ) -> None:
        self.retries, self.stop = retries, stop
        self.targets = {
            f"f-{n}": sorted({f"f-{low}" for low, high in edges if high == n}) for n in range(SIZE)
        }
        flows = [
            {"name": name[2:], "dependsOn": {"targets": [each[2:] for each in targets]}}
            for name, targets in self.targets.items()
        ]
        self.flow: Raw = {
            "metadata": {
                "name": "f",
                "namespace": "d",
                "uid": "own",
                "resourceVersion": "1",
                "annotations": {
                    "pumice.dev/flow-retries": str(retries),
                    "pumice.dev/on-failure": "stop" if stop else "continue",
                },
            },
            "spec": {"flows": flows, "jobRetainPolicy": policy},
        }
        self.templates: dict[str, Raw] = {
            str(n): {"spec": {}} for n in range(1 if missing else 0, SIZE)
        }
        self.jobs: dict[str, Raw] = {}
        self.created: list[str] = []
        self.completed: set[str] = set()
        self.failed: set[str] = set()
        self.commanded: set[str] = set()
        self.see_flow()
        self.see_jobs()

    def see_flow(self) -> None:
        """The cache of JobFlows catches up; the other may be older, or newer."""
        self.seen_flow = copy.deepcopy(self.flow)

    def see_jobs(self) -> None:
        self.seen_jobs = copy.deepcopy(self.jobs)

    @rule(
        sees=st.sampled_from(["both", "both", "both", "job flow", "jobs", "nothing"]),
        writes=st.none() | st.integers(0, 3),
    )
    def look(self, sees: str, writes: int | None) -> None:
        """A pass of a controller, which dies after so many writes if that is a number."""
        if sees in ("both", "job flow"):
            self.see_flow()
        if sees in ("both", "jobs"):
            self.see_jobs()
        left = SIZE * 3 if writes is None else writes
        plan = plan_job_flow(
            self.seen_flow, self.seen_jobs.values(), self.templates, 1.8e9, self.commanded
        )
        seen = self.seen_flow["metadata"]["resourceVersion"]
        for step in plan.steps:
            if not isinstance(step, PatchStatus | CreateObject | DeleteObject):
                continue
            if seen != self.flow["metadata"]["resourceVersion"] or left == 0:
                return  # a conflict, or not confirmed, or dead
            left -= 1
            match step:
                case PatchStatus(status):
                    seen = str(int(seen) + 1)
                    self.flow["metadata"]["resourceVersion"] = seen
                    self.flow["status"] = copy.deepcopy(status)
                case CreateObject() if step.kind == COMMAND:
                    assert self.stop
                    assert self._has_failed()
                    self.commanded.add(step.manifest["target"]["name"])
                case CreateObject() if step.name not in self.jobs:
                    self._create(step)
                case DeleteObject(name=name):
                    assert {_flow(each) for each in self.completed} == set(self.targets)
                    self.jobs.pop(name, None)

    def _has_failed(self) -> bool:
        """Whether all attempts at a flow have failed."""
        return any({*_attempts(each, self.retries)} <= self.failed for each in self.targets)

    def _create(self, step: CreateObject) -> None:
        flow = _flow(step.name)
        attempts = _attempts(flow, self.retries)
        assert {*attempts[: attempts.index(step.name)]} <= self.failed, step.name
        assert {*self.targets[flow]} <= {_flow(each) for each in self.completed}, step.name
        meta = step.manifest["metadata"] | {"uid": f"uid of {step.name}"}
        self.jobs[step.name] = step.manifest | {"metadata": meta, "status": {}}
        self.created.append(step.name)

    @precondition(lambda self: self.jobs)
    @rule(
        data=st.data(),
        steps=st.integers(1, len(NEXT)),
        end=st.sampled_from(["", "", "Failed", "Terminated"]),
    )
    def go_on(self, data: st.DataObject, steps: int, end: str) -> None:
        """A Job enters its next phases, or fails."""
        name = data.draw(st.sampled_from(sorted(self.jobs)))
        if end and name not in self.completed:
            self.failed.add(name)
            self.jobs[name]["status"] = {"state": {"phase": end}}
        for _ in range(0 if end else steps):
            self._go_on(name)

    @rule()
    def obey(self) -> None:
        """The controller of Jobs carries out the Commands."""
        for name in self.commanded & self.jobs.keys() - self.completed - self.failed:
            self.failed.add(name)
            self.jobs[name]["status"] = {"state": {"phase": "Terminated"}}
        self.commanded.clear()

    def _go_on(self, name: str) -> None:
        job = self.jobs[name]
        phase = (job["status"].get("state") or {}).get("phase", "")
        if phase in ("Failed", "Terminated"):
            return
        job["status"] = {"state": {"phase": NEXT.get(phase, phase)}}
        if NEXT.get(phase) == "Completed":
            self.completed.add(name)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """The time to live of a Job that has ended is over."""
        name = data.draw(st.sampled_from(sorted(self.jobs)))
        if name in self.completed | self.failed and not awaits_end(self.flow, name):
            del self.jobs[name]

    @rule()
    def bring_template(self) -> None:
        self.templates["0"] = {"spec": {}}

    @invariant()
    def each_ran_once(self) -> None:
        created = getattr(self, "created", [])
        assert len(created) == len(set(created)), created

    def teardown(self) -> None:
        """Undisturbed from now on, all Jobs run, unless one has failed for good."""
        if not hasattr(self, "flow"):
            return
        self.bring_template()
        for _ in range(6 * SIZE):
            self.look("both", None)
            self.obey()
            for name in self.jobs:
                self._go_on(name)
        self.each_ran_once()
        status = self.flow["status"]
        assert sorted(status.get("completedJobs", [])) == sorted(self.completed)
        ended = status.get("failedJobs", []) + status.get("terminatedJobs", [])
        assert sorted(ended) == sorted(self.failed)
        if self._has_failed():
            assert status["state"] == {"phase": "Failed"}
            return
        assert status["state"] == {"phase": "Succeed"}
        assert sorted(map(_flow, self.completed)) == sorted(self.targets)
        assert not self.jobs or self.flow["spec"]["jobRetainPolicy"] == "retain"


def _flow(job: str) -> str:
    """The first Job of the flow that a Job is an attempt at."""
    return job.partition("-retry-")[0]


def _attempts(flow: str, retries: int) -> list[str]:
    return [flow, *(f"{flow}-retry-{number}" for number in range(1, retries + 1))]


def test_any_history() -> None:
    many = settings(examples(60, always_the_same=False), stateful_step_count=40)
    run_state_machine_as_test(History, settings=many)
