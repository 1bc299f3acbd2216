"""What is admitted and not acted on: each row of the table is shown by a case, and limits are those of the scheduler."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.api.not_here_yet import (
    HARMS,
    LONG_RULES,
    LONGEST_ABOUT_NODES,
    LONGEST_ABOUT_PODS,
    TABLE,
    named,
    sentences,
    uses_in_job,
    uses_in_pod,
)
from pumice.api.pods import Pod
from tests.kit import tables
from tests.kit.builders import job, task
from tests.unit.scheduler.scenarios import Scenario, config_text

CASES = [
    case
    for name in ("not-here-yet-of-jobs", "pod-checks")
    for case in tables.table(f"webhook/{name}")["cases"]
]
FIELDS = [each for each in TABLE if each.where == "field"]


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.name)
def test_each_row_about_fields_is_shown_by_a_case(row: Any) -> None:
    told = [text for case in CASES for text in case.get("message", ()) if "yet: " in text]
    outcomes = [text.partition("yet: ")[2].partition(";")[0] for text in told]
    assert row is LONG_RULES or any(map(row.outcome.startswith, outcomes))


def test_rows_are_in_the_order_of_harm_by_what_they_are_about() -> None:
    ranks = [HARMS.index(each.harm) for each in FIELDS]
    assert ranks == sorted(ranks)
    assert len({(each.where, each.name) for each in TABLE}) == len(TABLE)
    assert all(each.outcome and each.remedy for each in TABLE)


def test_rows_are_found_by_name() -> None:
    assert [named(each.where, each.name) for each in TABLE] == list(TABLE)
    assert named("plugin", "gang") is None


def _spec(field: str, size: int) -> dict[str, Any]:
    """A pod's rules of about so many bytes, in one of its fields."""
    values = ["v" * 60] * (size // 63)
    expression = {"key": "k", "operator": "In", "values": values}
    near = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": "rack"}
    spread = near | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    on_nodes = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found: dict[str, dict[str, Any]] = {
        "affinity": {"affinity": {"podAntiAffinity": {required: [near]}}},
        "topologySpreadConstraints": {"topologySpreadConstraints": [spread]},
        "affinity.nodeAffinity": {"affinity": {"nodeAffinity": {required: on_nodes}}},
        "nodeSelector": {"nodeSelector": {f"k{n}": "v" * 60 for n in range(size // 68)}},
        "tolerations": {"tolerations": [{"key": "v" * 60}] * (size // 71)},
    }
    return found[field]


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("affinity", LONGEST_ABOUT_PODS),
        ("topologySpreadConstraints", LONGEST_ABOUT_PODS),
        ("affinity.nodeAffinity", LONGEST_ABOUT_NODES),
        ("nodeSelector", LONGEST_ABOUT_NODES),
        ("tolerations", LONGEST_ABOUT_NODES),
    ],
)
@pytest.mark.parametrize("part", [0.9, 1.1])
def test_rules_are_too_long_for_admission_where_they_are_for_the_scheduler(
    field: str, limit: int, part: float
) -> None:
    spec = _spec(field, int(limit * part))
    uses = uses_in_job(msgspec.convert(job(tasks=[task(spec=spec)]), Job))
    scenario = Scenario(
        {
            "nodes": [["n1", 4, "8Gi"]],
            "podgroups": [["ns", "pg", "default", 1, "Inqueue"]],
            "pods": [["ns", "p", "", "Pending", 1, "1Gi", "pg", {"spec": spec}]],
        },
        config_text([["gang", "predicates"]]),
    )
    waiting = scenario.cycle().pending.get("ns/pg")
    is_refused = waiting is not None and "cannot be honoured" in waiting.message

    assert [each.path for each in uses] == (
        [f"spec.tasks[0].template.spec.{field}"] if is_refused else []
    )
    assert is_refused == (part > 1)


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": [], "spec": "text"},
        {"metadata": {"annotations": ["volcano.sh/numa-topology-policy"]}, "spec": None},
        {"spec": {"containers": {"resources": 1}, "initContainers": [None, 1, {"resources": []}]}},
        {"spec": {"containers": [{"resources": {"limits": ["volcano.sh/vgpu-number"]}}]}},
        {"spec": {"affinity": [], "tolerations": None, "nodeSelector": 1, "resourceClaims": []}},
    ],
)
def test_templates_may_be_of_any_form(template: dict[str, Any]) -> None:
    assert uses_in_job(msgspec.convert(job(tasks=[{"template": template}]), Job)) == []


def test_a_sentence_a_row_tells_the_first_field_and_how_many_more_there_are() -> None:
    claims = {"resourceClaims": [{"name": "gpu"}]}
    tasks = [task(f"t{n}", spec=claims) for n in range(3)]
    tasks[1]["topologyPolicy"] = "restricted"
    found = sentences(uses_in_job(msgspec.convert(job(tasks=tasks), Job)))
    assert [each.partition(":")[0] for each in found] == [
        "spec.tasks[0].template.spec.resourceClaims (and 2 more) is not acted on yet",
        "spec.tasks[1].topologyPolicy is not acted on yet",
    ]


def test_a_pod_of_a_claim() -> None:
    pod = msgspec.convert({"spec": {"resourceClaims": [{"name": "gpu"}]}}, Pod)
    assert [each.path for each in uses_in_pod(pod)] == ["spec.resourceClaims"]
