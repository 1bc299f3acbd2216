"""The file of resource groups: what it means, and what is said about one that is wrong."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.groups.model import NO_GROUPS, ResourceGroup, ResourceGroups
from pumice.webhook.groups.parsing import ConfError, parse
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.builders import pod
from tests.unit.webhook.reviewing import answer, operations, patched, request, reraise
from tests.unit.webhook.shapes import JSON, OBJECTS

Raw = dict[str, Any]

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


def problems(text: str | bytes) -> list[str]:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(ConfError) as caught:
        parse(raw)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return str(caught.value).splitlines()


def warnings(text: str) -> list[str]:
    return [str(each) for each in parse(text.encode())[1]]


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


def test_everything_that_is_wrong_is_told_at_once() -> None:
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
  resourceGroup: d
- e
"""
    ) == [
        'line 3: resourceGroups[0].object.key: must be one of namespace, annotation, or left out, found "namespaces" (did you mean "namespace"?)',
        "line 4: resourceGroups[0].schedulerName: must consist of lower case letters, digits, '-' and '.', and start and end with a letter or digit, found 'A b'",
        'line 6: resourceGroups[0].tolerations[0].operator: must be Equal or Exists, found "Exist" (did you mean "Exists"?)',
        'line 6: resourceGroups[0].tolerations[0].effect: must be NoSchedule, PreferNoSchedule or NoExecute, found "NoSchedul" (did you mean "NoSchedule"?)',
        'line 7: resourceGroups[0].tolerations[1].tolerationSeconds: must be a whole number, found "5x"',
        'line 7: resourceGroups[0].tolerations[1].value: must be empty with operator Exists, found "v"',
        "line 8: resourceGroups[0].labels.a b: the key must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit, found 'a b'",
        "line 9: resourceGroups[0].affinity: must be JSON text or a mapping: Input data was truncated",
        "line 10: resourceGroups[1]: needs a name (resourceGroup), or an object that says which pods are its",
        'line 12: resourceGroups[2].object.value[0]: must be an annotation such as "key: value", found "key:value"',
        'line 12: resourceGroups[2].object.value[1]: must be an annotation such as "key: value", found "5"',
        "line 13: resourceGroups[2].affinity.nodeAffinity: must be an object, found the number 5",
        "line 15: resourceGroups[3].resourceGroup: appears twice",
        "line 16: resourceGroups[4]: must be a mapping with a name (resourceGroup)",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("resourceGroups: [a", "line 2: did not find expected ',' or ']'"),
        (b"# \xff", "line 1: must be UTF-8 text, found byte 0xff"),
        ("- a", "line 1: must be a mapping, found a list"),
        ("resourceGroup: []", "line 1: must hold a list resourceGroups"),
        ("resourceGroups: []\n---\na: b", "line 3: must be one document, here begins another"),
        ("resourceGroups: &a [*a]", "must hold at most 100000 values, aliases written out"),
        ("[" * 300_000 + "]" * 300_000, "line 1: must be nested at most 100 deep"),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {x: !!python/object:a {}}}]",
            None,
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: 7}]",
            "resourceGroups[0].affinity: must be an affinity: nodeAffinity, podAffinity, podAntiAffinity",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {nodeAffinity: {a: .nan}}}]",
            "resourceGroups[0].affinity: number .nan cannot be written as JSON",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {nodeAffinity: {a: !!binary aGk=}}}]",
            "resourceGroups[0].affinity: tag !!binary has no counterpart in JSON",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: '{\"nodeAffinity\": []}'}]",
            "resourceGroups[0].affinity.nodeAffinity: must be an object, found a list",
        ),
        (
            "resourceGroups: [{resourceGroup: g, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}]",
            "IgnoredDuringExecution[0].topologyKey: must be set, found none",
        ),
        (
            "resourceGroups: [{resourceGroup: g, tolerations: [{effect: NoSchedule}]}]",
            "resourceGroups[0].tolerations[0].operator: must be Exists where there is no key",
        ),
        (
            "resourceGroups: [{resourceGroup: g, tolerations: [{key: a, tolerationSeconds: 5}]}]",
            "resourceGroups[0].tolerations[0].effect: must be \"NoExecute\" with tolerationSeconds",
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: {key: namespace, value: [A, null]}}]",
            "resourceGroups[0].object.value[0]: must consist of lower case",
        ),
        (
            "resourceGroups: [{resourceGroup: g, object: {value: [{a b: c}]}}]",
            "resourceGroups[0].object.value[0].a b: the key of an annotation must consist",
        ),
        (
            "resourceGroups: [{resourceGroup: g, labels: [a], tolerations: {}, object: 5}]",
            "resourceGroups[0].labels: must be a mapping, found a list",
        ),
        (
            "resourceGroups: [{resourceGroup: g, labels: {<<: 5}}]",
            "resourceGroups[0].labels: must merge (<<) mappings only",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_has_a_line_and_a_path(text: str, problem: str | None) -> None:
    if problem is None:
        assert only_unknown(text)
        return
    assert any(problem in found for found in problems(text)), problems(text)


def only_unknown(text: str) -> bool:
    """Whether a file is taken but for a field that is not known."""
    return all("no field" in found for found in warnings(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("resourceGroups: []\nother: 1", "other: is no field and has no effect"),
        (
            "resourceGroups: [{resourceGroup: g, toleration: []}]",
            'resourceGroups[0].toleration: is no field and has no effect (did you mean "tolerations"?)',
        ),
        (
            "resourceGroups: [{resourceGroup: g, tolerations: [{key: a, Effect: b}]}]",
            'tolerations[0].Effect: is no field and has no effect (did you mean "effect"?)',
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


def test_a_pod_finds_the_first_group_that_claims_it() -> None:
    groups = ResourceGroups(
        [
            ResourceGroup(name="a", annotations=(("team", "x"), ("team", "y"), ("empty", ""))),
            ResourceGroup(name="b", namespaces=("lab",)),
            ResourceGroup(name="c", annotations=(("team", "x"), ("area", "z"))),
        ]
    )

    def found(namespace: str = "", **annotations: str) -> str | None:
        group = groups.find(namespace, annotations)
        return group.name if group is not None else None

    assert found(team="x", area="z") == "a"
    assert found("lab", team="y") == "a"
    assert found("lab", area="z") == "b"
    assert found(area="z") == "c"
    assert found(team="w", area="w") is None
    assert found("other") is None
    assert found(empty="") == "a"
    assert NO_GROUPS.find("lab", {"team": "x"}) is None
    assert not NO_GROUPS


GROUPS = ResourceGroups(
    [
        ResourceGroup(
            name="all",
            namespaces=("lab",),
            labels={"volcano.sh/nodetype": "lab", "a": "b"},
            affinity={"podAntiAffinity": {}},
            tolerations=({"key": "lab", "operator": "Exists"}, {"key": "gpu", "value": "a100"}),
            scheduler_name="volcano",
        )
    ]
)
ADMISSION = Admission(
    AdmissionSettings(scheduling_gates_queue_admission=True),
    Snapshot(),
    builtin(),
    groups=GROUPS,
    on_crash=reraise,
)
TOLERATIONS = st.sampled_from(
    [
        {"key": "lab", "operator": "Exists"},
        {"key": "gpu", "operator": "Equal", "value": "a100", "effect": ""},
        {"key": "other", "fromTheFuture": {"a": [1]}},
        {},
    ]
)
PODS: st.SearchStrategy[Raw] = st.fixed_dictionaries(
    {"containers": st.just([{"name": "main", "image": "busybox"}])},
    optional={
        "schedulerName": st.sampled_from(["", "volcano", "mine"]),
        "nodeSelector": st.one_of(
            st.none(), st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["b", "c"]))
        ),
        "affinity": st.sampled_from([None, {}, {"nodeAffinity": {}}]),
        "tolerations": st.one_of(st.none(), st.lists(TOLERATIONS, max_size=3)),
        "schedulingGates": st.one_of(
            st.none(),
            st.lists(
                st.sampled_from(
                    [{"name": "x"}, {"name": "scheduling.volcano.sh/queue-allocation-gate"}]
                ),
                max_size=2,
            ),
        ),
    },
)


@settings(deadline=None)
@given(PODS, st.booleans())
def test_a_second_pass_changes_nothing_and_none_takes_anything_away(spec: Raw, gated: bool) -> None:
    marks = {"scheduling.volcano.sh/queue-allocation-gate": "true"} if gated else {}
    before = pod(namespace="lab", annotations=marks) | {"spec": spec}
    result = patched(copy.deepcopy(before), asked(before))
    assert operations(asked(result)) == []
    after = result["spec"]
    assert (spec.get("nodeSelector") or {}).items() - {("a", "c")} <= after["nodeSelector"].items()
    for field in ("tolerations", "schedulingGates"):
        present = spec.get(field) or []
        assert (after.get(field) or [])[: len(present)] == present
    if spec.get("affinity") is not None:
        assert after["affinity"] == spec["affinity"]
    assert after["schedulerName"] == "volcano"


def asked(obj: Raw) -> Raw:
    response = answer(ADMISSION, "/pods/mutate", request("/pods/mutate", obj))
    assert response["allowed"]
    return response


@settings(deadline=None)
@given(OBJECTS)
def test_no_pod_is_too_odd_for_a_group(obj: Raw) -> None:
    for path in ("/pods/mutate", "/pods/validate"):
        body = request(path, obj) | {"namespace": "lab"}
        response = answer(ADMISSION, path, body)
        assert response["allowed"] or response["status"]["code"] == 422


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["resourceGroups", "object", "key", "value"]), JSON), JSON)
def test_no_content_is_too_odd_for_the_reader(content: Raw, group: Any) -> None:
    for conf in (content, {"resourceGroups": [content, group]}):
        try:
            parse(json_of(conf))
        except ConfError:
            continue


def json_of(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value) if fits(value) else b"{}"


def fits(value: Any) -> bool:
    """Whether msgspec can write a value."""
    if isinstance(value, dict):
        return all(map(fits, value.values()))
    if isinstance(value, list):
        return all(map(fits, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_are_too_odd_for_the_reader(raw: bytes) -> None:
    for text in (raw, b"resourceGroups:\n- " + raw):
        try:
            parse(text)
        except ConfError:
            continue
