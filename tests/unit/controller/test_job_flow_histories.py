"""JobFlows of any shape, in any order of events, with controllers that die at any write and look at old pictures.

Each Job is created once and not before its targets have completed, and in the end all have run.
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

    @initialize(edges=EDGES, policy=st.sampled_from(["retain", "delete"]), missing=st.booleans())
    def submit(self, edges: list[tuple[int, int]], policy: str, missing: bool) -> None:
        self.targets = {
            f"f-{n}": sorted({f"f-{low}" for low, high in edges if high == n}) for n in range(SIZE)
        }
        flows = [
            {"name": name[2:], "dependsOn": {"targets": [each[2:] for each in targets]}}
            for name, targets in self.targets.items()
        ]
        self.flow: Raw = {
            "metadata": {"name": "f", "namespace": "d", "uid": "own", "resourceVersion": "1"},
            "spec": {"flows": flows, "jobRetainPolicy": policy},
        }
        self.templates: dict[str, Raw] = {
            str(n): {"spec": {}} for n in range(1 if missing else 0, SIZE)
        }
        self.jobs: dict[str, Raw] = {}
        self.created: list[str] = []
        self.completed: set[str] = set()
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
        plan = plan_job_flow(self.seen_flow, self.seen_jobs.values(), self.templates, 1.8e9)
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
                case CreateObject() if step.name not in self.jobs:
                    self._create(step)
                case DeleteObject(name=name):
                    assert self.completed == set(self.targets)
                    self.jobs.pop(name, None)

    def _create(self, step: CreateObject) -> None:
        assert set(self.targets[step.name]) <= self.completed, step.name
        meta = step.manifest["metadata"] | {"uid": f"uid of {step.name}"}
        self.jobs[step.name] = step.manifest | {"metadata": meta, "status": {}}
        self.created.append(step.name)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), steps=st.integers(1, len(NEXT)))
    def go_on(self, data: st.DataObject, steps: int) -> None:
        """A Job enters its next phases."""
        name = data.draw(st.sampled_from(sorted(self.jobs)))
        for _ in range(steps):
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        job = self.jobs[name]
        phase = (job["status"].get("state") or {}).get("phase", "")
        job["status"] = {"state": {"phase": NEXT.get(phase, phase)}}
        if NEXT.get(phase) == "Completed":
            self.completed.add(name)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """The time to live of a completed Job is over."""
        name = data.draw(st.sampled_from(sorted(self.jobs)))
        if name in self.completed and not awaits_end(self.flow, name):
            del self.jobs[name]

    @rule()
    def bring_template(self) -> None:
        self.templates["0"] = {"spec": {}}

    @invariant()
    def each_ran_once(self) -> None:
        created = getattr(self, "created", [])
        assert len(created) == len(set(created)), created

    def teardown(self) -> None:
        """Undisturbed from now on, all Jobs run."""
        if not hasattr(self, "flow"):
            return
        self.bring_template()
        for _ in range(6 * SIZE):
            self.look("both", None)
            for name in self.jobs:
                self._go_on(name)
        self.each_ran_once()
        assert sorted(self.created) == sorted(self.targets)
        assert self.flow["status"]["state"] == {"phase": "Succeed"}
        assert self.flow["status"]["completedJobs"] == sorted(self.targets)
        assert not self.jobs or self.flow["spec"]["jobRetainPolicy"] == "retain"


def test_any_history() -> None:
    many = settings(examples(60, always_the_same=False), stateful_step_count=40)
    run_state_machine_as_test(History, settings=many)
