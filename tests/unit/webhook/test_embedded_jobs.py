"""Jobs inside other objects: where their problems are told, and what is said of a part of a Job."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, JobSpec, Task
from pumice.api.meta import ObjectMeta
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.flows import job_templates
from pumice.webhook.rules.flows.job_templates import TemplatePlace, judge_job
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import queue
from tests.kit.counting import calls
from tests.unit.webhook.reviewing import answer, operations, request, reraise
from tests.unit.webhook.shapes import COUNTS, JOBS, JSON, NAMES, fields

Raw = dict[str, Any]

STATE = Snapshot.of([queue("default"), queue("closed", state="Closed")])
ADMISSION = Admission(AdmissionSettings(), STATE, builtin(), on_crash=reraise)
PLACE = TemplatePlace("spec.there.spec", "spec.there.metadata")


def case(*assignments: str) -> Case:
    return Case(AdmissionSettings.from_assignments(assignments), STATE, builtin())


def told(found: list[FieldError]) -> dict[str, str]:
    return {each.path: each.code for each in found}


@pytest.mark.parametrize(
    ("path", "rooted"),
    [
        ("spec", "spec.there.spec"),
        ("spec.tasks[0].name", "spec.there.spec.tasks[0].name"),
        ("metadata.annotations.a", "spec.there.metadata.annotations.a"),
        ("metadata.name", "metadata.name"),
        ("", ""),
        ("specification", "specification"),
    ],
)
def test_paths_are_those_of_the_object(path: str, rooted: str) -> None:
    assert PLACE.path(path) == rooted


def test_paths_in_messages_are_those_of_the_object() -> None:
    found = FieldError("spec.tasks[1]", "as spec.tasks[0] of spec.queue", "X")
    assert PLACE.of(found).message == "as spec.there.spec.tasks[0] of spec.queue"
    assert TemplatePlace().of(found) == found


def test_excesses_are_reported_where_the_problems_are() -> None:
    judging = case()
    judge_job(judging, Job(metadata=ObjectMeta(name="j"), spec=JobSpec(min_available=3)), PLACE)
    assert told(judging.errors) == {"spec.there.spec.tasks": "JOB-NO-TASKS"}

    judging = case()
    tasks = [Task(name="a", replicas=1, template={"spec": {"containers": [MAIN]}})]
    spec = JobSpec(min_available=3, tasks=tasks)
    judge_job(judging, Job(metadata=ObjectMeta(name="j"), spec=spec), PLACE)
    path = "spec.there.spec.minAvailable"
    assert told(judging.errors) == {path: "JOB-MINAVAIL-TOTAL"}
    assert judging.excesses["JOB-MINAVAIL-TOTAL", path] == 2


MAIN = {"name": "main", "image": "busybox"}


def test_queues_that_were_not_found_are_passed_on() -> None:
    judging = case()
    judge_job(judging, Job(spec=JobSpec(queue="later")), PLACE, partial=True)
    assert judging.missing_queues == ["later"]
    assert told(judging.warnings) == {"spec.there.spec.queue": "JOB-QUEUE-LATER"}


def test_a_rule_that_fails_refuses_whatever_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Case, job: Job) -> None:
        raise ZeroDivisionError

    rule, _ = job_checks.CHECKS[0]
    monkeypatch.setattr(job_checks, "CHECKS", ((rule, broken),))
    judging = case("strict-upstream=true")
    judge_job(judging, Job(spec=JobSpec(queue="default")), PLACE, partial=True)
    assert [each.code for each in judging.errors] == [rule.code]
    assert [code for code, _ in judging.crashes] == [rule.code]


@pytest.mark.parametrize(
    ("path", "stands"),
    [
        (".a", True),
        (".a.b", True),
        (".a.b[1]", True),
        (".a.b[2]", False),
        (".a.b[x]", False),
        (".a.c", False),
        (".n", False),
        (".limits.nvidia.com/gpu", True),
        (".limits.nvidia.com/gpu.x", False),
        (".aa", False),
        ("[0]", False),
        ("", True),
    ],
)
def test_whether_something_stands_at_a_path(path: str, stands: bool) -> None:
    value = {"a": {"b": [1, 2]}, "limits": {"nvidia.com/gpu": 1}, "n": None}
    assert job_templates._stands(value, path) is stands


SCHEDULES = st.one_of(st.text(max_size=9), st.sampled_from(["* * * * *", "@daily", "@every 1s"]))
ZONES = st.one_of(st.none(), st.text(max_size=9), st.just("UTC"))
SPECS = JOBS.map(lambda job: job.get("spec") or {})
METAS = fields({}, {"name": NAMES, "labels": st.sampled_from([{}, {"a": "b c"}, None])})
CRON_JOBS = fields(
    {"metadata": METAS},
    {
        "spec": fields(
            {},
            {
                "schedule": SCHEDULES,
                "timeZone": ZONES,
                "suspend": st.booleans(),
                "jobTemplate": fields({}, {"metadata": METAS, "spec": SPECS}),
            },
        )
    },
)
TARGETS = fields({}, {"targets": st.one_of(st.none(), st.lists(NAMES, max_size=3))})
PATCHES = fields({}, {"jobSpec": st.one_of(st.none(), SPECS)})
FLOWS = fields({}, {"name": NAMES, "dependsOn": TARGETS, "patch": PATCHES})
JOB_FLOWS = fields(
    {"metadata": METAS}, {"spec": fields({}, {"flows": st.lists(FLOWS, max_size=4)})}
)
JOB_TEMPLATES = fields({"metadata": METAS}, {"spec": SPECS})
SELECTORS = fields(
    {},
    {
        "exactMatch": st.one_of(st.none(), fields({}, {"name": NAMES})),
        "regexMatch": st.one_of(st.none(), fields({}, {"pattern": st.text(max_size=9)})),
        "labelMatch": st.one_of(
            st.none(),
            fields(
                {},
                {
                    "matchLabels": st.dictionaries(NAMES, NAMES, max_size=2),
                    "matchExpressions": st.lists(
                        fields({}, {"key": NAMES, "operator": st.sampled_from(["In", "in", ""])}),
                        max_size=2,
                    ),
                },
            ),
        ),
    },
)
MEMBERS = fields(
    {}, {"type": st.sampled_from(["Node", "HyperNode", ""]), "selector": st.none() | SELECTORS}
)
HYPER_NODES = fields(
    {"metadata": METAS},
    {"spec": fields({}, {"tier": COUNTS, "members": st.lists(MEMBERS, max_size=3)})},
)
SHAPES = {
    "/cronjobs/validate": CRON_JOBS,
    "/jobflows/validate": JOB_FLOWS,
    "/jobtemplates/validate": JOB_TEMPLATES,
    "/hypernodes/validate": HYPER_NODES,
}
ASKED = st.sampled_from(sorted(SHAPES)).flatmap(
    lambda path: st.tuples(st.just(path), SHAPES[path], st.none() | SHAPES[path])
)


@settings(deadline=None)
@given(ASKED)
def test_no_rule_raises_on_any_of_them(asked: tuple[str, Raw, Raw | None]) -> None:
    path, new, old = asked
    response = answer(
        ADMISSION, path, request(path, new, "CREATE" if old is None else "UPDATE", old)
    )
    assert operations(response) == []


@settings(deadline=None)
@given(ASKED)
def test_an_update_that_touches_nothing_passes(asked: tuple[str, Raw, Raw | None]) -> None:
    path, new, old = asked
    changed = copy.deepcopy(new) | {"metadata": (old or new)["metadata"]}
    assert answer(ADMISSION, path, request(path, changed, "UPDATE", new))["allowed"]


@settings(deadline=None)
@given(ASKED)
def test_volcano_users_are_not_refused_for_jobs_that_are_not_made_yet(
    asked: tuple[str, Raw, Raw | None],
) -> None:
    path, new, _ = asked
    lenient = Admission(AdmissionSettings(strict_upstream=True), STATE, builtin(), on_crash=reraise)
    response = answer(lenient, path, request(path, new))
    if not response["allowed"] and response["status"]["code"] == 422:
        causes = response["status"]["details"]["causes"]
        schema = [each for each in causes if "[SCHEMA-" in each["message"]]
        own = [each for each in causes if any(f"[{p}-" in each["message"] for p in OWN)]
        assert schema or len(own) == len(causes)


OWN = ("CRON", "FLOW", "HN")


@settings(deadline=None)
@given(st.sampled_from(sorted(SHAPES)), JSON, JSON)
def test_no_rule_raises_on_any_json(path: str, new: Any, old: Any) -> None:
    for operation in ("CREATE", "UPDATE"):
        asked = request(path, None, operation) | {"object": new, "oldObject": old}
        response = answer(ADMISSION, path, asked)
        assert response["allowed"] or response["status"]["message"]


def flow(name: str, *targets: str) -> Raw:
    return {"name": name, "dependsOn": {"targets": list(targets)}}


@pytest.mark.parametrize("closed", [False, True])
def test_many_flows_that_wait_for_all_before_them_take_no_time(closed: bool) -> None:
    """A search that follows every path through these would not end."""
    names = [f"f{number}" for number in range(300)]
    flows = [flow(name, *names[:number]) for number, name in enumerate(names)]
    if closed:
        flows[0]["dependsOn"]["targets"].append(names[-1])
    job_flow = {"metadata": {"name": "dense"}, "spec": {"flows": flows}}
    asked = request("/jobflows/validate", job_flow)
    response = answer(ADMISSION, "/jobflows/validate", asked)
    assert response["allowed"] is not closed
    edges = sum(len(each["dependsOn"]["targets"]) for each in flows)
    assert calls(lambda: answer(ADMISSION, "/jobflows/validate", asked)) < 10 * edges
