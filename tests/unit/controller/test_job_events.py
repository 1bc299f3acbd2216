"""Which events follow from what exists."""

import math
from typing import Any

import pytest

from pumice.api import keys
from pumice.api.meta import parse_time
from pumice.controller.jobs.job_events import job_events
from pumice.controller.jobs.lifetimes import ended_by_itself
from pumice.controller.jobs.situation import Observed, situation_of
from pumice.plugins import builtin
from pumice.plugins.settings import DEFAULT
from tests.kit.tables import table
from tests.unit.controller.rows import a_job, pods

Raw = dict[str, Any]

CASES: list[Raw] = table("controller/events")


def _group(given: Raw) -> Raw:
    annotations = {keys.JOB_VERSION: given["version"]} if "version" in given else {}
    return {"metadata": {"annotations": annotations}, "status": {"phase": given["phase"]}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_events(case: Raw) -> None:
    job = a_job(case)
    if "noted" in case:
        job["status"] = (job.get("status") or {}) | {"controlledResources": case["noted"]}
    known_pods = pods(case)
    requested = {
        f"uid-{name}": parse_time(given["requested"]) or math.inf
        for name, given in case.get("pods", {}).items()
        if "requested" in given
    }
    observed = Observed(
        job=job,
        pods=known_pods,
        ended=tuple(
            pod for pod in known_pods if ended_by_itself(pod, requested.get(pod.metadata.uid))
        ),
        group=_group(case["group"]) if "group" in case else None,
    )
    known = situation_of(observed, builtin(), 0.0, DEFAULT)
    found = list(job_events(known.job, known.pods, known.job_pods, observed.group))
    wanted = case["events"]
    assert [each.event for each in found] == [each["event"] for each in wanted]
    for request, fields in zip(found, wanted, strict=True):
        said = {key: getattr(request, key) for key in fields}
        assert said == {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
