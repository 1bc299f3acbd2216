"""How strict each rule is: what settings may say, and what becomes of it."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pumice.api.fields import FieldError
from pumice.api.setting_errors import SettingError
from pumice.plugins import builtin
from pumice.settings import read
from pumice.webhook.admission import Admission, RuleFailure
from pumice.webhook.offline import judge
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules import catalogue
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.catalogue import SECTIONS, section_of, sections
from pumice.webhook.rules.jobs import plugins as job_plugins
from pumice.webhook.rules.rule import Level, Rule
from pumice.webhook.settings import AdmissionSettings, read_level
from pumice.webhook.view import Snapshot
from tests.kit import tables
from tests.kit.builders import job, queue
from tests.unit.webhook.reviewing import Row, answer, request, reraise, rows


def settings(*assignments: str) -> AdmissionSettings:
    return AdmissionSettings.from_assignments(assignments)


def test_levels_are_set_one_by_one() -> None:
    found = settings(
        "rule.JOB-ZERO=off",
        "namespace.dev.rule.JOB-PODNAME=warn",
        "namespace.dev.rule.JOB-ZERO=enforce",
        "namespace.prod.rule.JOB-ZERO=Off",
    )
    assert found.rules == {"JOB-ZERO": "off"}
    assert found.namespaces == {
        "dev": {"JOB-PODNAME": "warn", "JOB-ZERO": "enforce"},
        "prod": {"JOB-ZERO": "off"},
    }


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("rule.JOB-ZER=off", 'there is no rule "JOB-ZER" (did you mean "JOB-ZERO"?)'),
        ("rule.job-zero=off", 'there is no rule "job-zero" (did you mean "JOB-ZERO"?)'),
        ("rule.XYZ=off", 'rules.XYZ: there is no rule "XYZ"; `pumice rules` lists them'),
        ("rule.=off", 'there is no rule ""; `pumice rules` lists them'),
        (
            "rule.JOB-ZERO=deny",
            'rules.JOB-ZERO: must be enforce, warn or off, found "deny"',
        ),
        ("rule.JOB-ZERO=", 'rules.JOB-ZERO: must be enforce, warn or off, found ""'),
        ("rule.JOB-ZERO=true", 'found "true" (YAML reads on and yes as true)'),
        ("rule.SCHEMA-TYPE=off", 'rule "SCHEMA-TYPE" cannot be set: the object does not decode'),
        ("rule.JOBS-VALIDATE=off", '"JOBS-VALIDATE" cannot be set: it reports a defect'),
        ("namespace.dev.JOB-ZERO=off", "is no setting, expected namespace.NAME.rule.CODE"),
        (
            "namespace.dev.rule.JOB-ZER=off",
            'namespaces.dev.JOB-ZER: there is no rule "JOB-ZER" (did you mean',
        ),
        (
            "namespace.Dev.rule.JOB-ZERO=off",
            "namespaces.Dev: the name of a namespace: a lowercase RFC 1123 label must consist of",
        ),
        (
            "namespace.dev.rule.Q-NEG=off",
            'rule "Q-NEG" judges objects that are in no namespace; set it',
        ),
        ("rules=off", "rules are set one by one, as rule.CODE=LEVEL"),
        ("namespaces=dev", "namespaces are set one by one, as namespace.NAME.rule.CODE=LEVEL"),
        ("rule=off", "rule are set one by one, as rule.CODE=LEVEL"),
        ("ruels=off", 'ruels: unknown key (did you mean "rules"?)'),
    ],
)
def test_a_mistake_is_one_clear_line(assignment: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        settings(assignment)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_are_checked_wherever_they_come_from() -> None:
    assert AdmissionSettings(rules={"JOB-ZERO": False}).rules == {"JOB-ZERO": "off"}  # type: ignore[dict-item]
    for wrong in (
        {"rules": {"JOB-ZER": "off"}},
        {"rules": {"JOB-ZERO": True}},
        {"rules": ["JOB-ZERO"]},
        {"namespaces": {"dev": "off"}},
        {"namespaces": ["dev"]},
    ):
        with pytest.raises(ValueError, match="validation error"):
            AdmissionSettings(**wrong)
        with pytest.raises(SettingError):
            read(AdmissionSettings, wrong)


@pytest.mark.parametrize(
    ("word", "level"), [("enforce", "enforce"), ("WARN", "warn"), ("off", "off"), (False, "off")]
)
def test_levels_are_read_as_people_and_yaml_write_them(word: Any, level: Level) -> None:
    assert read_level(word) == level


@pytest.mark.parametrize("namespace", [None, "enforce", "warn", "off"])
@pytest.mark.parametrize("cluster", [None, "enforce", "warn", "off"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("own", "stricter"), [("enforce", False), ("enforce", True), ("warn", False)]
)
def test_the_nearest_word_counts(
    own: Level, stricter: bool, strict: bool, cluster: Level | None, namespace: Level | None
) -> None:
    rule = next(
        each
        for each in catalogue.ALL
        if (each.level, each.stricter) == (own, stricter) and section_of(each.code).namespaced
    )
    case = Case(
        settings(
            f"strict-upstream={strict}",
            *([f"rule.{rule.code}={cluster}"] if cluster else []),
            *([f"namespace.dev.rule.{rule.code}={namespace}"] if namespace else []),
        ),
        Snapshot(),
        builtin(),
        namespace="dev",
    )
    expected = namespace or cluster or ("warn" if strict and stricter else own)
    assert case.report(rule, "spec", "is wrong") is (expected == "enforce")
    assert [bool(case.errors), bool(case.warnings)] == [expected == "enforce", expected == "warn"]
    sibling = case.sibling()
    sibling.report(rule, "spec", "is wrong")
    assert (sibling.errors, sibling.warnings) == (case.errors, case.warnings)


@pytest.mark.parametrize("namespace", [None, "enforce", "off"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("code", ["JOB-ZERO", "JOB-PLUGIN-SIZE"])
@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_rule_may_be_stricter_in_part(
    code: str, strict: bool, namespace: Level | None, all_of_it: bool
) -> None:
    rule = catalogue.by_code(code)
    assert rule is not None
    assert not rule.stricter
    levels = [f"namespace.dev.rule.{code}={namespace}"] if namespace else []
    terms = settings(f"strict-upstream={strict}", *levels)
    case = Case(terms, Snapshot(), builtin(), namespace="dev", stricter=all_of_it).sibling()
    in_part = not all_of_it
    expected = [namespace or ("warn" if strict else own) for own in (rule.level, "enforce")]
    assert case.report(rule, "spec", "is wrong", stricter=in_part) is (expected[0] == "enforce")
    found = FieldError("spec", "is wrong by far", code)
    assert case.add(found, "enforce", stricter=in_part) is (expected[1] == "enforce")
    assert len(case.errors) == expected.count("enforce")
    assert len(case.warnings) == expected.count("warn")


def test_strict_upstream_is_about_the_rules_that_are_stricter() -> None:
    for rule in catalogue.ALL:
        case = Case(settings("strict-upstream=true"), Snapshot(), builtin())
        case.report(rule, "spec", "is wrong")
        assert bool(case.errors) is (rule.level == "enforce" and not rule.stricter), rule.code


def test_strict_upstream_is_about_errors_that_plugins_find_too() -> None:
    rules = [each for each in vars(job_plugins).values() if isinstance(each, Rule)]
    stricter = {rule.code for rule in rules if rule.stricter}
    assert "JOB-PLUGIN-NAME" in stricter
    assert stricter <= job_plugins._STRICTER


@pytest.mark.parametrize("plugin", ["svc", "tensorflow", "mpi"])
def test_what_a_warning_refuses_beyond_all_bounds_is_stricter_than_volcano(plugin: str) -> None:
    manifest = job(plugins={plugin: [], "svc": []})
    (task,) = manifest["spec"]["tasks"]
    task["replicas"] = 900_000
    manifest["spec"]["tasks"].append({**task, "name": "master", "replicas": 1})

    def response(*assignments: str) -> dict[str, Any]:
        state = Snapshot.of([queue("default")])
        allowed = "max-pods-per-job=1000000"
        judging = Admission(settings(allowed, *assignments), state, builtin(), on_crash=reraise)
        return answer(judging, "/jobs/validate", request("/jobs/validate", manifest))

    assert response()["auditAnnotations"]["rules"] == "JOB-PLUGIN-SIZE"
    assert response("strict-upstream=true")["allowed"]
    strict = response("strict-upstream=true", "rule.JOB-PLUGIN-SIZE=enforce")
    assert not strict["allowed"]


def test_codes_stay() -> None:
    """Settings, audit logs and dashboards know rules by their codes."""
    assert set(tables.table("rule-codes")) <= {rule.code for rule in catalogue.ALL}


def test_nothing_is_resolved_while_reviewing() -> None:
    found = settings("rule.JOB-ZERO=off", "namespace.dev.rule.JOB-NAME=warn")
    assert found.levels("dev") is found.levels("dev")
    assert found.levels("prod") is found.levels("") is found.levels("other")
    assert AdmissionSettings().levels("dev") == {}


def test_an_endpoint_fails_under_a_code_that_cannot_be_set() -> None:
    for each in REGISTRATIONS:
        code = each.path.strip("/").replace("/", "-").upper()
        with pytest.raises(SettingError, match="defect of Pumice"):
            settings(f"rule.{code}=off")


class Failing(Snapshot):
    """A view in which a look for a queue fails."""

    def queue(self, name: str) -> None:
        raise ZeroDivisionError(name)


def test_a_rule_that_fails_refuses_even_where_it_is_off() -> None:
    crashes: list[RuleFailure] = []
    levels = settings("rule.JOB-QUEUE-MISSING=off", "namespace.default.rule.JOB-NAME=off")
    judging = Admission(levels, Failing(), builtin(), on_crash=crashes.append)
    response = answer(judging, "/jobs/validate", request("/jobs/validate", job()))
    assert not response["allowed"]
    assert "which is a defect of Pumice" in response["status"]["message"]
    assert len(crashes) == 1


def test_files_are_judged_by_the_same_levels() -> None:
    levels = settings("rule.Q-NEG=warn", "namespace.dev.rule.JOB-QUEUE-MISSING=warn")
    desk = Admission(levels, Snapshot.of([queue("default")]), builtin())
    found = judge(desk, job(namespace="dev", queue="gone"))
    assert found.allowed
    assert [each.code for each in found.warnings] == ["JOB-QUEUE-MISSING"]
    assert not judge(desk, job(namespace="prod", queue="gone")).allowed
    # What stands in a file by mistake puts a queue into no namespace.
    odd = queue("q", capability={"cpu": "-1"})
    odd["metadata"]["namespace"] = "dev"
    assert judge(desk, odd).allowed
    strict = settings("rule.Q-NEG=enforce", "namespace.dev.rule.JOB-QUEUE-MISSING=warn")
    assert not judge(Admission(strict, Snapshot(), builtin()), odd).allowed


def test_every_rule_has_a_section_of_its_own_kind() -> None:
    titles = {section.title for section in SECTIONS}
    assert {section_of(rule.code).title for rule in catalogue.ALL} <= titles
    listed = [rule.code for _, rules in sections(catalogue.ALL) for rule in rules]
    assert sorted(listed) == sorted(rule.code for rule in catalogue.ALL)


@pytest.mark.parametrize(
    ("code", "title"),
    [
        ("JOB-NAME", "Jobs"),
        ("JOB-PLUGIN", "Plugins of Jobs"),
        ("JOB-PLUGIN-NAME", "Plugins of Jobs"),
        ("JOB-QUEUE-MISSING", "Queues of Jobs"),
        ("Q-NEG", "Queues"),
        ("NEW-THING", "NEW"),
    ],
)
def test_the_longest_prefix_decides_the_section(code: str, title: str) -> None:
    assert section_of(code).title == title


def test_a_section_without_a_name_comes_last() -> None:
    rules = [Rule("NEW-THING", "a", "b.", "c"), Rule("Q-NEG", "a", "b.", "c")]
    assert [section.title for section, _ in sections(rules)] == ["Queues", "NEW"]


ROWS = [row for row in rows() if "errored" not in row.expected]


def answered_at(row: Row, level: Level) -> dict[str, Any]:
    """The answer to a row with every rule at one level."""
    everything = {rule.code: level for rule in catalogue.ALL}
    at = replace(row.settings, rules=everything, namespaces={})
    judging = Admission(
        at, row.admission().view, builtin(), groups=row.admission().groups, on_crash=reraise
    )
    return answer(judging, row.path, row.request)


def codes_in(response: dict[str, Any]) -> set[str]:
    texts = [*response.get("warnings", []), response.get("status", {}).get("message", "")]
    return {code for text in texts for code in re.findall(r"\[([A-Z-]+)\]$", text, re.MULTILINE)}


@pytest.mark.parametrize("path", sorted({row.path for row in ROWS}))
def test_no_rule_goes_past_its_level(path: str) -> None:
    for row in (each for each in ROWS if each.path == path):
        refused = {each for each in row.expected.get("codes", ()) if each.startswith("SCHEMA-")}
        silent = answered_at(row, "off")
        assert codes_in(silent) == refused, row.name
        assert silent["allowed"] is not bool(refused), row.name
        told = answered_at(row, "warn")
        assert told["allowed"] is not bool(refused), row.name
        strict = answered_at(row, "enforce")
        assert codes_in(strict) >= refused, row.name
        assert strict["allowed"] is not bool(codes_in(strict)), row.name
        assert "warnings" not in strict, row.name
        # What is told does not depend on how strictly it is meant, but for what hides behind a refusal.
        assert codes_in(strict) <= codes_in(told), row.name
