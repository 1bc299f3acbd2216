"""The file of resource groups: what it means."""

import json
from typing import Any

import pytest

from pumice.webhook.resource_group_file import parse
from pumice.webhook.rules.resource_groups import ResourceGroup

VOLCANO = b"""
# As Volcano's documentation has it: keys of tolerations in lower case, affinity as JSON in a text.
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value:
    - mng-ns-1
    - mng-ns-2
  schedulerName: default-scheduler
  tolerations:
  - effect: NoExecute
    key: mng-taint-1
    operator: Exists
    tolerationseconds: 60
  affinity: |
    {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
      {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]}}}
  labels:
    volcano.sh/nodetype: management
- resourceGroup: cpu
  object:
    key: annotation
    value:
    - "volcano.sh/resource-group: cpu"
  schedulerName: volcano
- resourceGroup: gpu
"""


def only(text: str) -> ResourceGroup:
    groups, said = parse(text.encode())
    assert said == ()
    (group,) = groups.groups
    return group


def test_a_file_of_volcanos_is_understood() -> None:
    groups, said = parse(VOLCANO)
    assert said == ()
    management, cpu, gpu = groups.groups
    assert management == ResourceGroup(
        name="management",
        namespaces=("mng-ns-1", "mng-ns-2"),
        scheduler_name="default-scheduler",
        tolerations=(
            {
                "key": "mng-taint-1",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 60,
            },
        ),
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
                            ]
                        }
                    ]
                }
            }
        },
        labels={"volcano.sh/nodetype": "management"},
    )
    assert cpu.annotations == (("volcano.sh/resource-group", "cpu"),)
    assert gpu.annotations == (("volcano.sh/resource-group", "gpu"),)
    assert groups.namespaces == ("mng-ns-1", "mng-ns-2")
    assert groups.annotation_keys == ("volcano.sh/resource-group",)


@pytest.mark.parametrize(
    "text",
    ["", "# all of it is a comment\n", "---\n", "resourceGroups:\n", '{"resourceGroups": []}'],
)
def test_a_file_may_hold_no_groups(text: str) -> None:
    groups, said = parse(text.encode())
    assert (len(groups), said) == (0, ())


@pytest.mark.parametrize(
    ("text", "toleration"),
    [
        ("{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}", 5),
        ("{key: a, operator: Exists, effect: NoExecute, tolerationseconds: 5}", 5),
        ("{key: a, operator: Exists, effect: NoExecute}", None),
    ],
)
def test_both_spellings_of_toleration_seconds(text: str, toleration: int | None) -> None:
    group = only(f"resourceGroups: [{{resourceGroup: g, tolerations: [{text}]}}]")
    assert [each.get("tolerationSeconds") for each in group.tolerations] == [toleration]


@pytest.mark.parametrize(
    "text",
    [
        '{"podAntiAffinity": {}}',
        "podAntiAffinity: {}",
        "# by hand\npodAntiAffinity:\n  {}\n",
        "---\n{podAntiAffinity: {},}",
    ],
)
def test_an_affinity_in_a_text_is_json_or_yaml(text: str) -> None:
    wanted: dict[str, Any] = {"podAntiAffinity": {}}
    quoted = text.replace("\n", "\n    ")
    assert (
        only(f"resourceGroups:\n- resourceGroup: g\n  affinity: |\n    {quoted}\n").affinity
        == wanted
    )
    assert (
        only(f"resourceGroups:\n- resourceGroup: g\n  affinity: {json.dumps(text)}\n").affinity
        == wanted
    )


@pytest.mark.parametrize("text", ["''", "' '", "null", "'null'", "{}", "'{}'"])
def test_an_affinity_may_be_none(text: str) -> None:
    assert only(f"resourceGroups: [{{resourceGroup: g, affinity: {text}}}]").affinity is None


def test_keys_of_annotations_are_compared_as_the_api_server_does() -> None:
    group = only(
        "resourceGroups: [{resourceGroup: g, object: {key: annotation, value: ['Example.COM/Team: a']}}]"
    )
    assert group.annotations == (("Example.COM/Team", "a"),)


def test_texts_are_texts_whatever_yaml_makes_of_them() -> None:
    group = only(
        "resourceGroups: [{resourceGroup: 7, object: {value: ['tier: 1', {on: yes}]}, "
        "labels: {a: yes, b: 1, c: 2020-01-01, d: 0x10}}]"
    )
    assert group.name == "7"
    assert group.labels == {"a": "yes", "b": "1", "c": "2020-01-01", "d": "0x10"}
    assert group.annotations == (
        ("tier", "1"),
        ("on", "yes"),
        ("volcano.sh/resource-group", "7"),
    )


def test_anchors_and_merges_are_understood() -> None:
    groups, _ = parse(
        b"resourceGroups:\n- &cpu\n  resourceGroup: cpu\n  labels: &labels {class: cpu, disk: ssd}\n"
        b"- <<: *cpu\n  resourceGroup: gpu\n  labels: {<<: *labels, class: gpu}\n"
    )
    assert [(each.name, each.labels) for each in groups.groups] == [
        ("cpu", {"class": "cpu", "disk": "ssd"}),
        ("gpu", {"class": "gpu", "disk": "ssd"}),
    ]
