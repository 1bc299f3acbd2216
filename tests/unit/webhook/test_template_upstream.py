"""Pod templates with `strict-upstream`: what Volcano refuses stays refused, what it takes only warns."""

from typing import Any

import pytest

from tests.unit.webhook.template_rows import BASE, judged

Raw = dict[str, Any]

MAIN: Raw = {"name": "main", "image": "busybox"}
RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]


def with_spec(**fields: Any) -> Raw:
    return {**BASE, "spec": {**BASE["spec"], **fields}}


def projected(source: Raw) -> Raw:
    return with_spec(volumes=[{"name": "a", "projected": {"sources": [source]}}])


def spread(**fields: Any) -> Raw:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return with_spec(topologySpreadConstraints=[constraint | fields])


@pytest.mark.parametrize(
    ("template", "code"),
    [
        (projected({"clusterTrustBundle": {"path": "ca.crt"}}), "TPL-CERTIFICATES"),
        (with_spec(schedulingGroup={}), "TPL-SCHEDULING-GROUP"),
        (
            spread(labelSelector={"matchLabels": {"app": "t"}}, matchLabelKeys=["app"]),
            "TPL-LABEL-KEYS",
        ),
        (
            with_spec(
                initContainers=[{"name": "init", "image": "busybox", "restartPolicyRules": RULES}]
            ),
            "TPL-RESTART",
        ),
        (with_spec(overhead={"gpu": 1}), "TPL-RESOURCE"),
    ],
)
def test_what_volcano_refuses_is_refused(template: Raw, code: str) -> None:
    assert code in [each.code for each in judged(template, ["strict-upstream=true"]).errors]


@pytest.mark.parametrize(
    ("template", "code"),
    [
        (with_spec(containers=[{**MAIN, "restartPolicyRules": RULES}]), "TPL-RESTART-RULES"),
        (
            with_spec(containers=[{**MAIN, "restartPolicyRules": [{"action": "Explode"}]}]),
            "TPL-RESTART-RULES",
        ),
        (spread(labelSelector={}, matchLabelKeys=["app", "app"]), "TPL-LABEL-KEYS-TWICE"),
        (with_spec(overhead={"cpu": 1}), "TPL-OVERHEAD"),
    ],
)
def test_what_volcano_takes_only_warns(template: Raw, code: str) -> None:
    case = judged(template, ["strict-upstream=true"])
    assert case.errors == []
    assert {each.code for each in case.warnings} == {code}
    assert {each.code for each in judged(template).errors} == {code}
