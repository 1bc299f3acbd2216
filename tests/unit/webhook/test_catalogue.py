"""The catalogue is whole: no code without a rule, no rule without words."""

import re
from pathlib import Path

import pumice.plugins
import pumice.webhook.rules
from pumice.webhook.rules import catalogue, hyper_nodes, pod_groups, pods
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.queues import checks as queue_checks

CODE = re.compile(r'"((?:JOB|POL|PART|VOL|TPL|Q|PG|POD|CRON|FLOW|HN)-[A-Z-]+)"')


def codes_in(package: str) -> set[str]:
    """Codes in the files of a package; the catalogue itself has their prefixes, too."""
    files = [file for file in Path(package).parent.rglob("*.py") if file.stem != "catalogue"]
    return {code for file in files for code in CODE.findall(file.read_text())}


def test_codes_are_unique() -> None:
    codes = [rule.code for rule in catalogue.ALL]
    assert len(codes) == len(set(codes))


def test_every_code_that_is_reported_has_a_rule() -> None:
    listed = {rule.code for rule in catalogue.ALL}
    assert codes_in(str(pumice.webhook.rules.__file__)) <= listed
    assert codes_in(str(pumice.plugins.__file__)) <= listed


def test_every_rule_says_what_why_and_shows_how() -> None:
    for rule in catalogue.ALL:
        assert rule.title, rule.code
        assert rule.why.endswith("."), rule.code
        assert rule.example, rule.code
        assert re.fullmatch(r"\d+\.\d+", rule.since), rule.code


def test_a_warning_is_never_stricter_than_volcano() -> None:
    assert not [rule.code for rule in catalogue.ALL if rule.level == "warn" and rule.stricter]


def test_every_check_fails_under_a_code_of_the_catalogue() -> None:
    kinds = (
        cron_jobs,
        hyper_nodes,
        job_flows,
        job_templates,
        job_checks,
        pod_groups,
        pods,
        queue_checks,
    )
    for kind in kinds:
        for rule, _ in kind.CHECKS:
            assert catalogue.by_code(rule.code) is rule


def test_a_code_of_the_schema_is_none_of_pumice() -> None:
    assert catalogue.by_code("SCHEMA-TYPE") is None
