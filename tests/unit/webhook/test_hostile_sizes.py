"""Whatever the size of a manifest, judging it costs in proportion, and its answer stays small.

Nothing here is timed: calls and comparisons are counted.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

import msgspec
import pytest

from pumice.api import fields
from pumice.api.reviews import MOST_CAUSES
from pumice.webhook.admission import Admission
from pumice.webhook.questions import Envelope, bare
from pumice.webhook.rules import resource_names
from pumice.webhook.rules.templates import types
from tests.fuzz.hostile import HOSTILE, hostile_admission, hostile_review
from tests.fuzz.hostile_shapes import job, task
from tests.kit.counting import calls
from tests.unit.webhook.reviewing import answer, request, review

FEW = 150
GROWTH = 2.5
"""Times the calls for twice the items; a rule that compares each with each makes four times as many."""

SMALL_BUDGET = 20_000
LARGEST_ANSWER = 400 * 1024


class Counting(SequenceMatcher[str]):
    """Counts comparisons."""

    compared = 0

    def quick_ratio(self) -> float:
        """Compare two names, roughly."""
        type(self).compared += 1
        return super().quick_ratio()


@pytest.fixture(scope="module")
def admission() -> Admission:
    return hostile_admission()


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Counting]]:
    monkeypatch.setattr(fields, "SequenceMatcher", Counting)
    Counting.compared = 0
    yield Counting
    Counting.compared = 0


def asked(admission: Admission, path: str, body: bytes) -> int:
    """Functions called to answer a review."""
    return calls(lambda: admission.answer(path, body))


@pytest.mark.parametrize("change", [False, True], ids=["create", "update"])
@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_items_take_twice_the_calls(
    admission: Admission, name: str, change: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suggestions apart, whose cost has a bound of its own."""
    monkeypatch.setattr(fields, "BUDGET", 0)
    path, warm = hostile_review(name, 2 * FEW, change=change)
    admission.answer(path, warm)  # what is remembered is remembered before either is counted
    some, twice = (
        asked(admission, *hostile_review(name, items, change=change)) for items in (FEW, 2 * FEW)
    )
    assert twice <= GROWTH * some, f"{some} calls for {FEW} items, {twice} for twice as many"


SUGGESTING = {
    "tasks after nobody": 40,
    "flows after nobody": 600,
    "mounts of other volumes": 600,
    "devices of other volumes": 600,
    "variables of files": 600,
    "claims of nothing": 600,
    "misspelt events": 600,
    "misspelt plugins": 600,
    "roles of nobody": 600,
    "topology of nobody": 600,
    "cron job of tasks": 600,
    "flows with misspelt patches": 600,
}
"""Where names are compared, each with a size at which the small budget does not last."""


@pytest.mark.parametrize("change", [False, True], ids=["create", "update"])
@pytest.mark.parametrize("name", SUGGESTING)
def test_names_are_compared_within_a_budget(
    admission: Admission,
    name: str,
    change: bool,
    monkeypatch: pytest.MonkeyPatch,
    counting: type[Counting],
) -> None:
    monkeypatch.setattr(fields, "BUDGET", SMALL_BUDGET)
    admission.answer(*hostile_review(name, SUGGESTING[name], change=change))
    # Of the object as it would be and as it is, and of each plugin by itself.
    assert counting.compared <= 4 * SMALL_BUDGET / 50


def test_what_is_remembered_of_names_is_charged_for(
    admission: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "BUDGET", SMALL_BUDGET)
    looked_up: list[str] = []

    def close(field: str, _type: str) -> str:
        looked_up.append(field)
        return ""

    def near(name: str) -> bool:
        looked_up.append(name)
        return False

    monkeypatch.setattr(types, "_close", close)
    monkeypatch.setattr(resource_names, "_is_near_extended", near)
    limits = {f"nvidja.com/gpu{i}": "1" for i in range(300)}  # which no other test has
    of_resources = task(container={"resources": {"limits": limits}})
    of_fields = task(1, pod={f"hostNetwrk{i}": True for i in range(300)})
    for each in (of_resources, of_fields):
        admission.answer("/jobs/validate", review(request("/jobs/validate", job(each))))
        assert 0 < len(looked_up) <= 8
        looked_up.clear()


def test_what_can_be_suggested_depends_on_no_earlier_review() -> None:
    path, body = hostile_review("misspelt devices", 3000)
    used, fresh = hostile_admission(), hostile_admission()
    first = used.answer(path, body).body
    assert used.answer(path, body).body == first == fresh.answer(path, body).body


def test_standing_problems_stay_so_where_there_are_too_many_for_suggestions(
    monkeypatch: pytest.MonkeyPatch, admission: Admission
) -> None:
    """One problem less leaves more of the budget for the others, which must not read as new ones."""
    monkeypatch.setattr(fields, "BUDGET", SMALL_BUDGET)
    flows = [{"name": f"f{i}", "dependsOn": {"targets": [f"ff{i}"]}} for i in range(300)]
    old: dict[str, Any] = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "flow", "namespace": "default"},
        "spec": {"flows": flows},
    }
    new = old | {"spec": {"flows": [{"name": "f0"}, *flows[1:]]}}
    response = answer(
        admission, "/jobflows/validate", request("/jobflows/validate", new, "UPDATE", old)
    )
    assert response["allowed"], response


@pytest.mark.parametrize(
    "name", ["a long name", "a long variable", "tasks with bad names", "labels"]
)
def test_an_answer_is_small_however_large_the_object(admission: Admission, name: str) -> None:
    path, body = hostile_review(name, 20_000 if "long" not in name else 500_000)
    found = admission.answer(path, body)
    assert len(found.body) <= LARGEST_ANSWER
    status = msgspec.json.decode(found.body)["response"].get("status")
    if status is not None:
        assert len(status["details"]["causes"]) <= MOST_CAUSES + 1
        assert len(status["message"]) < 50_000


def test_causes_that_do_not_fit_are_counted(admission: Admission) -> None:
    policies = [{"event": f"{i}{'x' * 1500}", "action": "AbortJob"} for i in range(500)]
    body = review(request("/jobs/validate", job(policies=policies)))
    found = admission.answer("/jobs/validate", body).body
    assert len(found) <= LARGEST_ANSWER
    *causes, last = msgspec.json.decode(found)["response"]["status"]["details"]["causes"]
    assert last["message"] == f"and {500 - len(causes)} more problems, which `pumice lint` shows"


def test_an_object_is_judged_no_further_when_enough_is_wrong(admission: Admission) -> None:
    path, body = hostile_review("tasks with bad names", 3 * MOST_CAUSES)
    status = msgspec.json.decode(admission.answer(path, body).body)["response"]["status"]
    assert f"has at least {MOST_CAUSES} problems" in status["message"].splitlines()[0]
    assert status["message"].endswith("and at least 980 more, which `pumice lint` shows")
    # Enough is no fault of a rule.
    assert {cause["message"].rpartition("[")[2] for cause in status["details"]["causes"]} == {
        "JOB-TASK-NAME]"
    }


def test_offline_validation_finds_all(admission: Admission) -> None:
    path, body = hostile_review("tasks with bad names", 3 * MOST_CAUSES)
    asked = msgspec.json.decode(body)["request"]
    whole = msgspec.json.decode(review(asked), type=Envelope[msgspec.Raw]).request
    assert whole is not None
    codes = [each.code for each in admission.judge(path, bare(whole)).errors]
    assert codes.count("JOB-TASK-NAME") == 3 * MOST_CAUSES


def test_fields_of_wrong_types_are_all_told_and_the_rest_is_judged_up_to_a_bound(
    admission: Admission,
) -> None:
    few, many = (
        msgspec.json.decode(admission.answer(*hostile_review("queue of texts", items)).body)
        for items in (MOST_CAUSES - 1, MOST_CAUSES)
    )
    for found, codes in ((few, "SCHEMA-TYPE,Q-CLUSTER-NAME"), (many, "SCHEMA-TYPE")):
        assert found["response"]["auditAnnotations"]["rules"].startswith(codes)
    assert many["response"]["auditAnnotations"]["rules"] == "SCHEMA-TYPE"
