"""The file of resource groups: what is said about one that is wrong, or has no effect."""

import pytest

from pumice.api.setting_errors import SettingError
from pumice.webhook.resource_group_file import parse


def problems(text: str | bytes) -> list[str]:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(SettingError) as caught:
        parse(raw)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return str(caught.value).splitlines()


def warnings(text: str) -> list[str]:
    return [str(each) for each in parse(text.encode())[1]]


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    assert problems(
        """resourceGroups:
- resourceGroup: a
  object: {key: namespaces, value: [x]}
  schedulerName: A b
  tolerations:
  - {operator: Exist, key: k, effect: NoSchedul}
  - {operator: Exists, value: v, tolerationSeconds: 5x}
  labels: {"a b": "c d"}
  affinity: '{"nodeAffinity": '
- {}
- resourceGroup: b
  object: {key: annotation, value: ["key:value", 5]}
  affinity: {nodeAffinity: 5}
- resourceGroup: c
  labels:
    x: [1]
- e
"""
    ) == [
        'line 3: resourceGroups[0].object.key: must be namespace or annotation, found the string "namespaces" (did you mean "namespace"?)',
        "line 4: resourceGroups[0].schedulerName: a lowercase RFC 1123 subdomain must consist of lowercase letters, digits, '-' and '.', and start and end with a letter or digit, found \"A b\"",
        'line 6: resourceGroups[0].tolerations[0].operator: must be Equal or Exists, found "Exist" (did you mean "Exists"?)',
        'line 6: resourceGroups[0].tolerations[0].effect: must be NoSchedule, PreferNoSchedule or NoExecute, found "NoSchedul" (did you mean "NoSchedule"?)',
        'line 7: resourceGroups[0].tolerations[1].tolerationSeconds: json: cannot unmarshal the string "5x" into an integer',
        "line 7: resourceGroups[0].tolerations[1].value: value must be empty when `operator` is 'Exists', found \"v\"",
        "line 8: resourceGroups[0].labels.a b: invalid key: name part must consist of alphanumeric characters, '-', '_' and '.', and start and end with an alphanumeric character, found \"a b\"",
        "line 9: resourceGroups[0].affinity: must be JSON text or an object: Input data was truncated",
        "line 10: resourceGroups[1]: needs a name (resourceGroup), or an object that says which pods are its",
        'line 12: resourceGroups[2].object.value[0]: must be an annotation such as "key: value", found "key:value"',
        'line 12: resourceGroups[2].object.value[1]: must be an annotation such as "key: value", found "5"',
        "line 13: resourceGroups[2].affinity.nodeAffinity: json: cannot unmarshal the integer 5 into an object",
        "line 16: resourceGroups[3].labels.x: must be a string, found a list",
        'line 17: resourceGroups[4]: must be an object, found the string "e"',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("resourceGroups: [a", "line 2: did not find expected ',' or ']'"),
        (b"# \xff", "line 1: must be UTF-8 text, found byte 0xff"),
        ("- a", "line 1: must be an object, found a list"),
        ("resourceGroup: []", "line 1: resourceGroups: must be set"),
        ("resourceGroups: []\n---\na: b", "line 3: must be one document, here begins another"),
        ("resourceGroups: &a [*a]", "an alias contains itself"),
        ("[" * 300_000 + "]" * 300_000, "line 1: nested too deeply"),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {x: !!python/object:a {}}}]",
            "line 1: tag !!python/object:a has no counterpart in JSON and cannot be used",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: 7}]",
            "resourceGroups[0].affinity: must be an affinity: nodeAffinity, podAffinity, podAntiAffinity",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {nodeAffinity: {a: .nan}}}]",
            "resourceGroups[0].affinity: number '.nan' cannot be written as JSON",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {nodeAffinity: {a: !!binary aGk=}}}]",
            "resourceGroups[0].affinity: tag !!binary has no counterpart in JSON",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: '{\"nodeAffinity\": []}'}]",
            "resourceGroups[0].affinity.nodeAffinity: json: cannot unmarshal a list into an object",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}]",
            "IgnoredDuringExecution[0].topologyKey: can not be empty",
        ),
        (
            "resourceGroups: [{resourceGroup: g, tolerations: [{effect: NoSchedule}]}]",
            "resourceGroups[0].tolerations[0].operator: operator must be Exists when `key` is empty",
        ),
        (
            "resourceGroups: [{resourceGroup: g, tolerations: [{key: a, tolerationSeconds: 5}]}]",
            "resourceGroups[0].tolerations[0].effect: effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: {key: namespace, value: [A, null]}}]",
            "resourceGroups[0].object.value[0]: a lowercase RFC 1123 label must consist",
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: {value: [{a b: c}]}}]",
            "resourceGroups[0].object.value[0].a b: invalid key of an annotation: name part must consist",
        ),
        (
            "resourceGroups: [{resourceGroup: g, labels: [a], tolerations: {}, object: 5}]",
            "resourceGroups[0].labels: must be an object, found a list",
        ),
        (
            "resourceGroups: [{resourceGroup: g, labels: {<<: 5}}]",
            "line 1: expected a mapping or list of mappings for merging",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_has_a_line_and_a_path(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(text)), problems(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("resourceGroups: []\nresourceGroups: []\n", "line 2: key 'resourceGroups' appears twice"),
        ("resourceGroups:\nresourceGroups:\n", "line 2: key 'resourceGroups' appears twice"),
        (
            "resourceGroups:\n- resourceGroup: g\n  object: {value: ['a: b', 'c: [d]']}\n",
            "line 3: resourceGroups[0].object.value[1].c: must be a string, found a list",
        ),
        (
            "resourceGroups:\n- resourceGroup: g\n  object: {value: ['{a: b, a: c}']}\n",
            (
                'line 3: resourceGroups[0].object.value[0]: must be an annotation such as "key: value", '
                "found \"{a: b, a: c}\": key 'a' appears twice"
            ),
        ),
        (
            "resourceGroups:\n- resourceGroup: g\n  object: {value: ['<<: 5']}\n",
            (
                'line 3: resourceGroups[0].object.value[0]: must be an annotation such as "key: value", '
                'found "<<: 5": expected a mapping or list of mappings for merging'
            ),
        ),
        (
            "resourceGroups:\n- resourceGroup: g\n  affinity: |\n    nodeAffinity: {a: .nan}\n",
            "line 3: resourceGroups[0].affinity: number '.nan' cannot be written as JSON",
        ),
        (
            "resourceGroups:\n- resourceGroup: g\n  affinity: |\n    nodeAffinity: 5\n",
            "line 3: resourceGroups[0].affinity.nodeAffinity: json: cannot unmarshal the integer 5 into an object",
        ),
    ],
)
def test_it_is_reported_once_and_with_the_line_of_the_file(text: str, told: str) -> None:
    assert problems(text) == [told]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("resourceGroups: []\nother: 1", "other: unknown key, ignored, known are resourceGroups"),
        (
            "resourceGroups: [{resourceGroup: g, toleration: []}]",
            'resourceGroups[0].toleration: unknown key, ignored (did you mean "tolerations"?)',
        ),
        (
            "resourceGroups: [{resourceGroup: g, tolerations: [{key: a, Effect: b}]}]",
            'tolerations[0].Effect: unknown key, ignored (did you mean "effect"?)',
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {podAffinitie: {}}}]",
            'affinity.podAffinitie: there is no field "podAffinitie" (did you mean "podAffinity"?)',
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: {key: namespace}}]",
            "resourceGroups[0].object: has no value, so no pod belongs to this group",
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: {key: annotation, value: []}}]",
            "resourceGroups[0].object: has no value, so no pod belongs to this group",
        ),
        (
            "resourceGroups: [{resourceGroup: g}, {resourceGroup: g}]",
            'claims annotation "volcano.sh/resource-group: g", which group "g" (resourceGroups[0]) has',
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: &o {key: namespace, value: [a, a]}}, {resourceGroup: h, object: *o}]",
            'resourceGroups[1]: claims namespace "a", which group "g" (resourceGroups[0]) has already',
        ),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_said(text: str, said: str) -> None:
    (found,) = warnings(text)
    assert said in found
