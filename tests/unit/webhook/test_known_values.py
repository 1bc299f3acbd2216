"""Volumes and mounts that were in order are not checked again; all others are, wherever they are."""

from typing import Any

import pytest

from pumice.api.fields import Suggestions
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Level
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.table import MOST_KNOWN, KnownValues, Site
from pumice.webhook.rules.templates.volumes import TPL_VOLUME_DUP
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import Raw, job, task
from tests.unit.webhook.reviewing import answer, request

PATH = "/jobs/validate"
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
MOUNT = {"name": "data", "mountPath": "/data"}


def case(suggestions: Suggestions | None = None, **rules: Level) -> Case:
    levels = {code.replace("_", "-"): level for code, level in rules.items()}
    settings = AdmissionSettings(rules=levels)
    own = suggestions or Suggestions()
    return Case(settings, Snapshot.of([]), builtin(), suggestions=own)


def spec(mount: Raw, *volumes: Raw, **container: Any) -> Raw:
    main = {"name": "main", "image": "busybox", "volumeMounts": [mount], **container}
    return {"containers": [main], "volumes": [*volumes]}


def codes(found: Raw, **rules: Level) -> list[str]:
    judged = case(None, **rules)
    pod_template(Site(judged, "template"), {"spec": found})
    return [each.code for each in judged.errors]


@pytest.fixture
def seen() -> list[object]:
    """Values that were checked, and not merely known."""
    return []


@pytest.fixture
def known(seen: list[object]) -> KnownValues:
    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        seen.append(found)
        if found == "bad":
            site.report(TPL_VOLUME_DUP, "is bad", field)
        if found == "charged":
            site.case.suggestions.charge(1)

    return KnownValues(check)


def test_a_value_in_order_is_checked_once_whatever_the_place_and_the_settings(
    known: KnownValues, seen: list[object]
) -> None:
    known.check(Site(case(), "a"), ["good"], "x", {})
    known.check(Site(case(TPL_VOLUME_DUP="warn"), "b"), ["good"], "y", {"other": 1})
    assert seen == [["good"]]


@pytest.mark.parametrize("level", ["off", "warn", "enforce"])
def test_a_value_with_a_problem_is_checked_each_time(known: KnownValues, level: Level) -> None:
    known.check(Site(case(TPL_VOLUME_DUP=level), "a"), "bad", "x", {})
    judged = case()
    known.check(Site(judged, "b"), "bad", "y", {})
    assert [each.path for each in judged.errors] == ["b.y"]


def test_a_value_is_not_known_if_suggestions_were_searched_or_could_not_be(
    known: KnownValues, seen: list[object]
) -> None:
    known.check(Site(case(Suggestions(0)), "a"), "good", "x", {})
    known.check(Site(case(), "a"), "good", "x", {})
    known.check(Site(case(), "a"), "charged", "x", {})
    known.check(Site(case(), "a"), "charged", "x", {})
    assert seen == ["good", "good", "charged", "charged"]


def test_what_only_looks_alike_is_checked(known: KnownValues, seen: list[object]) -> None:
    for found in (1, True, 1.0, "1", [1], {"a": 1, "b": 2}, {"b": 2, "a": 1}):
        known.check(Site(case(), "a"), found, "x", {})
    assert len(seen) == 7


def test_a_bounded_number_of_bytes_is_known(known: KnownValues, seen: list[object]) -> None:
    site = Site(case(), "a")
    for number in range(2 * MOST_KNOWN + 1):
        known.check(site, f"{number:04000}", "x", {})
    seen.clear()
    for number in range(2 * MOST_KNOWN + 1):
        known.check(site, f"{number:04000}", "x", {})
    assert len(seen) >= MOST_KNOWN  # those were forgotten
    for found in ("x" * 5000, "\ud800", 2**70):  # too long, or cannot be encoded
        seen.clear()
        known.check(site, found, "x", {})
        known.check(site, found, "x", {})
        assert len(seen) == 2


def test_equal_templates_with_problems_have_paths_of_their_own() -> None:
    judge = Admission(AdmissionSettings(), Snapshot.of([]), builtin())
    twice = spec(MOUNT, CLAIM, CLAIM, resources={"limits": {"cpu": "1x"}})
    found = job(tasks=[task("a", spec=twice), task("b", spec=twice)])
    first = answer(judge, PATH, request(PATH, found))
    for index in range(2):
        for place in ("volumes[1].name", "containers[0].resources.limits.cpu"):
            assert f"spec.tasks[{index}].template.spec.{place}" in str(first)
    assert answer(judge, PATH, request(PATH, found)) == first


def test_known_mounts_are_checked_against_other_volumes_and_in_other_containers() -> None:
    assert codes(spec(MOUNT, CLAIM)) == []
    assert codes(spec(MOUNT)) == ["TPL-MOUNT-VOLUME"]
    both_ways = {**MOUNT, "mountPropagation": "Bidirectional"}
    assert codes(spec(both_ways, CLAIM, securityContext={"privileged": True})) == []
    assert codes(spec(both_ways, CLAIM)) == ["TPL-MOUNT-MODE"]


def test_levels_decide_about_each_review_alone() -> None:
    twice = spec(MOUNT, CLAIM, CLAIM)
    assert codes(twice, TPL_VOLUME_DUP="off") == []
    assert codes(twice) == ["TPL-VOLUME-DUP"]
