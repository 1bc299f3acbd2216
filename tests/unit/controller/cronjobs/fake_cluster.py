"""A CronJob and its Jobs, to which plans are applied."""

import copy
import dataclasses
from datetime import UTC, datetime
from typing import Any

from pumice.api import keys
from pumice.api.kinds import CRON_JOB, JOB
from pumice.api.meta import ObjectMeta, format_time, parse_time
from pumice.api.schedules import time_zone
from pumice.controller.cronjobs import plan_cron_job
from pumice.controller.objects import controller_reference, controls_raw
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
    UpdateObject,
)

Raw = dict[str, Any]

OWNER = ObjectMeta(name="c", uid="U")
PASSES = 6
"""After so many passes at the latest there is nothing left to do."""


def moment(text: str) -> float:
    """UNIX seconds of a time, of 2026-03-02 when it has no date."""
    found = parse_time(text if "-" in text else f"2026-03-02T{text}Z")
    assert found is not None, text
    return found


def name_of(alias: str) -> str:
    """The name of a Job: `J10:05` is that of the instant."""
    return f"c-{int(moment(alias[1:])) // 60}" if alias.startswith("J") else alias


def instant_of(alias: str) -> float:
    number = int(name_of(alias).rpartition("-")[2])
    return float(number if number > 10**9 else number * 60)


@dataclasses.dataclass
class Happened:
    """What came of the passes at one moment."""

    creates: list[str] = dataclasses.field(default_factory=list)
    deletes: list[str] = dataclasses.field(default_factory=list)
    events: list[str] = dataclasses.field(default_factory=list)
    wake: float | None = None
    writes: int = 0


class FakeCluster:
    """What is stored."""

    def __init__(self, case: Raw) -> None:
        template = {
            "metadata": {"name": "ignored", "labels": {"x": "y"}, "annotations": {"p": "q"}},
            "spec": {"schedulerName": "volcano"},
        }
        spec = {
            "schedule": "*/5 * * * *",
            "concurrencyPolicy": "Allow",
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": template,
        }
        meta: Raw = {"name": "c", "namespace": "d", "uid": "U", "resourceVersion": "1"}
        meta["creationTimestamp"] = format_time(moment(case.get("created", "08:00:30")))
        meta["annotations"] = dict(case.get("annotations") or {})
        if case.get("leaving"):
            meta["deletionTimestamp"] = meta["creationTimestamp"]
        self.cron_job: Raw = {
            "apiVersion": CRON_JOB.api_version,
            "kind": CRON_JOB.kind,
            "metadata": meta,
            "spec": spec | (case.get("spec") or {}),
            "status": dict(case.get("status") or {}),
        }
        self.jobs: dict[str, Raw] = {}
        self.set_phases(case.get("jobs") or {})
        for alias in case.get("foreign") or ():
            self.add(alias, "Running", owned=False)
        for alias, text in (case.get("edited") or {}).items():
            self.jobs[name_of(alias)]["metadata"]["annotations"][keys.CRON_JOB_SCHEDULED] = text
        status = self.cron_job["status"]
        if "last" in case:
            status["lastScheduleTime"] = format_time(moment(case["last"]))
        if case.get("active"):
            status["active"] = [
                {"name": name_of(each), "uid": f"uid of {name_of(each)}"} for each in case["active"]
            ]
        zone = case.get("local")
        self.local = UTC if zone is None else time_zone(zone)
        self.handled = moment(case["handled"]) if "handled" in case else None
        self.version = 1
        self.recorded: set[RecordEvent] = set()
        self.settle(min(moment(each["now"]) for each in case["steps"]) - 0.001, only_note=True)

    def add(self, alias: str, phase: str, *, owned: bool = True) -> None:
        name, instant = name_of(alias), instant_of(alias)
        words = phase.split()
        meta: Raw = {
            "name": name,
            "namespace": "d",
            "uid": f"uid of {name}",
            "resourceVersion": "1",
            "creationTimestamp": format_time(instant),
            "annotations": {keys.CRON_JOB_SCHEDULED: format_time(instant)},
        }
        if "bare" in words:
            del meta["annotations"]
        if "leaving" in words:
            meta["deletionTimestamp"] = format_time(instant)
        if owned:
            meta["ownerReferences"] = [controller_reference(OWNER, CRON_JOB)]
        state = {"phase": words[0], "lastTransitionTime": format_time(instant)}
        self.jobs[name] = {"metadata": meta, "status": {"state": state}}

    def set_phases(self, phases: Raw) -> None:
        for alias, phase in phases.items():
            if phase is None:
                del self.jobs[name_of(alias)]
            else:
                self.add(alias, phase)

    def plan(self, now: float) -> Plan:
        before = copy.deepcopy((self.cron_job, self.jobs))
        owned = [job for job in self.jobs.values() if controls_raw(OWNER, job)]
        plan = plan_cron_job(
            self.cron_job, owned, now, self.jobs.get, local=self.local, handled=self.handled
        )
        assert (self.cron_job, self.jobs) == before, "a plan must change nothing"
        return plan

    def settle(self, now: float, *, only_note: bool = False) -> Happened:
        """Carry plans out until nothing is left to do."""
        found = Happened()
        for _ in range(PASSES):
            plan = self.plan(now)
            if only_note:
                plan = Plan.of([each for each in plan.steps if isinstance(each, UpdateObject)])
            if not self.carry_out(plan, now, found):
                return found
        raise AssertionError(f"there is always something left to do: {list(plan.steps)}")

    def carry_out(self, plan: Plan, now: float, found: Happened, limit: int = 100) -> int:
        """Carry a plan out, up to a number of writes; how many there were."""
        writes = 0
        found.wake = None
        recorded = set()
        for step in plan.steps:
            if isinstance(step, RequeueAfter):
                found.wake = step.seconds
                continue
            if isinstance(step, RecordEvent):
                recorded.add(step)
                if step not in self.recorded:
                    found.events.append(f"{step.type} {step.reason}")
                continue
            if writes == limit:
                return writes
            writes += 1
            match step:
                case CreateObject():
                    self._create(step, now)
                    found.creates.append(step.name)
                case DeleteObject():
                    assert step.kind == JOB
                    assert self.jobs[step.name]["metadata"]["uid"] == step.uid
                    if step.propagation == "Foreground":  # its pods go first
                        self.jobs[step.name]["metadata"]["deletionTimestamp"] = format_time(now)
                    else:
                        del self.jobs[step.name]
                    found.deletes.append(step.name)
                case PatchStatus(status):
                    assert status != self.cron_job["status"]
                    self.cron_job["status"] = status
                case UpdateObject():
                    self._note(step)
        found.writes += writes
        self.recorded = recorded
        return writes

    def _create(self, step: CreateObject, now: float) -> None:
        made = copy.deepcopy(step.manifest)
        assert step.kind == JOB
        assert step.name not in self.jobs
        made["metadata"] |= {
            "uid": f"uid of {step.name}",
            "resourceVersion": "1",
            "creationTimestamp": format_time(now),
        }
        self.jobs[step.name] = made

    def _note(self, step: UpdateObject) -> None:
        meta = dict(step.patch["metadata"])
        self.cron_job["metadata"]["annotations"].update(meta.pop("annotations"))
        assert meta == {"uid": "U", "resourceVersion": "1"}

    @property
    def active(self) -> list[str]:
        return [each["name"] for each in self.cron_job["status"].get("active") or ()]

    def time(self, key: str) -> float | None:
        return parse_time(self.cron_job["status"].get(key))


def utc(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")
