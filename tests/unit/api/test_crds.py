"""The generated CRDs: compatible with Volcano's, structural, up to date."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api import kinds
from pumice.api.crds import all_crds, crd, schema_of
from pumice.api.crds.__main__ import main

CHART = Path(__file__).parents[3] / "charts/pumice/crds"


def at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """Follow `spec.tasks[].name` through a schema."""
    for part in path.split("."):
        schema = schema["properties"][part.removesuffix("[]")]
        if part.endswith("[]"):
            schema = schema["items"]
    return schema


@pytest.mark.parametrize(
    ("kind", "name", "scope", "short_names", "status"),
    [
        (kinds.JOB, "jobs.batch.volcano.sh", "Namespaced", ["vcjob", "vj"], True),
        (kinds.QUEUE, "queues.scheduling.volcano.sh", "Cluster", ["q", "queue-v1beta1"], True),
        (
            kinds.POD_GROUP,
            "podgroups.scheduling.volcano.sh",
            "Namespaced",
            ["pg", "podgroup-v1beta1"],
            False,
        ),
        (kinds.COMMAND, "commands.bus.volcano.sh", "Namespaced", None, False),
        (kinds.CRON_JOB, "cronjobs.batch.volcano.sh", "Namespaced", ["cronvcjob", "cronvj"], True),
        (kinds.JOB_FLOW, "jobflows.flow.volcano.sh", "Namespaced", ["jf"], True),
        (kinds.JOB_TEMPLATE, "jobtemplates.flow.volcano.sh", "Namespaced", ["jt"], True),
        (kinds.HYPER_NODE, "hypernodes.topology.volcano.sh", "Cluster", ["hn"], True),
    ],
)
def test_names_scopes_and_subresources_are_volcanos(
    kind: kinds.Kind, name: str, scope: str, short_names: list[str] | None, status: bool
) -> None:
    manifest = crd(kind)
    assert manifest["metadata"]["name"] == name
    assert manifest["spec"]["scope"] == scope
    assert manifest["spec"]["names"].get("shortNames") == short_names
    assert ("subresources" in manifest["spec"]["versions"][0]) is status


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        (kinds.JOB, "spec.queue", {"default": "default", "maxLength": 253}),
        (kinds.JOB, "spec.maxRetry", {"default": 3, "minimum": 0, "format": "int32"}),
        (kinds.JOB, "spec.tasks", {"minItems": 1}),
        (kinds.JOB, "spec.tasks[].name", {"maxLength": 63}),
        (
            kinds.JOB,
            "spec.tasks[].partitionPolicy",
            {"required": ["partitionSize", "totalPartitions"]},
        ),
        (kinds.JOB, "spec.networkTopology.mode", {"enum": ["hard", "soft"], "default": "hard"}),
        (kinds.JOB, "spec.minSuccess", {"minimum": 1, "nullable": True}),
        (kinds.JOB, "spec.tasks[].template.spec", {"x-kubernetes-preserve-unknown-fields": True}),
        (kinds.QUEUE, "spec.weight", {"default": 1, "minimum": 1, "maximum": 65535}),
        (
            kinds.QUEUE,
            "spec.dequeueStrategy",
            {"enum": ["fifo", "traverse"], "default": "traverse"},
        ),
        (kinds.QUEUE, "status.state", {"enum": ["Open", "Closed", "Closing", "Unknown"]}),
        (kinds.POD_GROUP, "spec.queue", {"default": "default"}),
        (kinds.POD_GROUP, "spec.subGroupPolicy[].subGroupSize", {"default": 1, "minimum": 1}),
        (kinds.POD_GROUP, "status.conditions[].transitionID", {"type": "string"}),
        (kinds.CRON_JOB, "spec", {"required": ["jobTemplate", "schedule"]}),
        (kinds.CRON_JOB, "spec.timeZone", {"type": "string", "nullable": True}),
        (kinds.CRON_JOB, "spec.suspend", {"default": False}),
        (kinds.CRON_JOB, "spec.startingDeadlineSeconds", {"minimum": 0, "format": "int64"}),
        (
            kinds.CRON_JOB,
            "spec.concurrencyPolicy",
            {"enum": ["Allow", "Forbid", "Replace"], "default": "Allow"},
        ),
        (kinds.CRON_JOB, "spec.successfulJobsHistoryLimit", {"default": 3, "minimum": 0}),
        (kinds.CRON_JOB, "spec.failedJobsHistoryLimit", {"default": 1, "minimum": 0}),
        (kinds.CRON_JOB, "spec.jobTemplate.spec.queue", {"default": "default"}),
        (kinds.CRON_JOB, "spec.jobTemplate.metadata.labels", {"type": "object"}),
        (kinds.CRON_JOB, "status.lastScheduleTime", {"format": "date-time"}),
        (kinds.CRON_JOB, "status.active[].uid", {"type": "string"}),
        (kinds.JOB_FLOW, "spec.flows[]", {"required": ["name"]}),
        (kinds.JOB_FLOW, "spec.flows[].name", {"minLength": 1}),
        (kinds.JOB_FLOW, "spec.jobRetainPolicy", {"enum": ["retain", "delete"]}),
        (
            kinds.JOB_FLOW,
            "spec.flows[].dependsOn.probe.httpGetList[].port",
            {"minimum": 0, "maximum": 65535},
        ),
        (
            kinds.JOB_FLOW,
            "spec.flows[].dependsOn.probe.tcpSocketList[]",
            {"required": ["port"]},
        ),
        (
            kinds.JOB_FLOW,
            "status.state.phase",
            {"enum": ["Succeed", "Terminating", "Failed", "Running", "Pending"]},
        ),
        (kinds.JOB_FLOW, "status.unKnowJobs", {"type": "array"}),
        (kinds.JOB_TEMPLATE, "spec.queue", {"default": "default"}),
        (kinds.JOB_TEMPLATE, "status.jobDependsOnList", {"type": "array"}),
        (kinds.HYPER_NODE, "spec", {"required": ["tier"]}),
        (kinds.HYPER_NODE, "spec.tier", {"minimum": 0, "default": None}),
        (kinds.HYPER_NODE, "spec.tierName", {"maxLength": 253}),
        (kinds.HYPER_NODE, "spec.members", {"minItems": 1}),
        (kinds.HYPER_NODE, "spec.members[].type", {"enum": ["Node", "HyperNode"]}),
        (
            kinds.HYPER_NODE,
            "spec.members[].selector.exactMatch.name",
            {"minLength": 1, "maxLength": 253},
        ),
        (kinds.HYPER_NODE, "spec.members[].selector.regexMatch.pattern", {"minLength": 1}),
        (kinds.HYPER_NODE, "status.nodeCount", {"minimum": 0}),
    ],
)
def test_bounds_defaults_and_enums_are_volcanos(
    kind: kinds.Kind, path: str, expected: dict[str, Any]
) -> None:
    schema = at(schema_of(kind), path)
    assert {key: schema.get(key) for key in expected} == expected


def test_quantities_may_be_numbers_or_text() -> None:
    values = at(schema_of(kinds.QUEUE), "spec.capability")["additionalProperties"]
    assert values["x-kubernetes-int-or-string"] is True


def test_a_selector_of_members_carries_its_rules() -> None:
    selector = at(schema_of(kinds.HYPER_NODE), "spec.members[].selector")
    rules = selector["x-kubernetes-validations"]
    assert [each["message"] for each in rules] == [
        (
            "member selector must have one of exactMatch, regexMatch, or labelMatch: "
            "Either ExactMatch or RegexMatch or LabelMatch must be specified"
        ),
        (
            "cannot specify more than one selector type: "
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
        ),
    ]
    assert all("self.labelMatch" in each["rule"] for each in rules)


def test_what_only_overrides_a_template_is_not_defaulted() -> None:
    """A default would override what the template says."""

    def defaults(schema: Any) -> list[Any]:
        below = schema.values() if isinstance(schema, dict) else schema
        here = [schema["default"]] if isinstance(schema, dict) and "default" in schema else []
        return here + [
            each for value in below if isinstance(value, dict | list) for each in defaults(value)
        ]

    patch = at(schema_of(kinds.JOB_FLOW), "spec.flows[].patch.jobSpec")
    template = at(schema_of(kinds.JOB_TEMPLATE), "spec")
    assert defaults(patch) == []
    assert sorted(map(str, defaults(template))) == ["0", "3", "default", "hard", "hard"]
    assert sorted(patch["properties"]) == sorted(template["properties"])


def test_no_definition_is_too_large_to_be_applied() -> None:
    """`kubectl apply` writes the whole of it into an annotation, of which 256 KiB is the limit."""
    for manifest in all_crds():
        size = len(json.dumps(manifest))
        assert size < 128 * 1024, f"{manifest['metadata']['name']}: {size}"


def test_every_field_is_described() -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        found = []
        for name, each in schema.get("properties", {}).items():
            if path and "description" not in each:
                found.append(f"{path}.{name}")
            below = each.get("items", each)
            if not below.get("x-kubernetes-preserve-unknown-fields") and name != "template":
                found += undescribed(below, f"{path}.{name}" if path else name)
        return found

    ignored = ("labelSelector", "labelMatch", "target")
    assert [
        path
        for manifest in all_crds()
        for path in undescribed(manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "")
        if not any(name in path for name in ignored)
    ] == []


def test_the_chart_holds_what_the_code_says(tmp_path: Path) -> None:
    assert main(["--check", str(CHART)]) == 0
    assert main(["--check", str(tmp_path)]) == 1
    assert main([str(tmp_path)]) == 0
    written = sorted(
        yaml.safe_load(path.read_text())["metadata"]["name"] for path in tmp_path.iterdir()
    )
    assert written == sorted(manifest["metadata"]["name"] for manifest in all_crds())
