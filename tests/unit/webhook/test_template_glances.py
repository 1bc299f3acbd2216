"""What a single look at a template finds in order, the rules find in order, too."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.webhook.rules.templates import pod
from pumice.webhook.rules.templates.plain import is_simple
from tests.kit.examples import examples
from tests.unit.webhook.shapes import SCALARS
from tests.unit.webhook.template_rows import BASE, TemplateRow, judged, template_rows

Raw = dict[str, Any]

PORTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["http", "web", "", "A_Name", "a-name-that-is-too-long"]),
            "containerPort": st.sampled_from([80, 81, 0, 65535, 65536, -1]),
            "protocol": st.sampled_from(["TCP", "UDP", "", "tcp"]),
            "hostPort": st.sampled_from([0, 80, 70000]),
            "hostIP": st.sampled_from(["", "10.0.0.1"]),
        },
    ),
    max_size=3,
)
NAMES = st.sampled_from(
    ["cpu", "memory", "gpu", "nvidia.com/gpu", "nvdia.com/gpu", "example.com/x", "hugepages-2Mi"]
)
AMOUNTS = st.dictionaries(
    NAMES,
    st.sampled_from(["1", "500m", "2Mi", "3Mi", "-1", 1, 2, 0.5, True, "x", None]),
    max_size=3,
)


ODD = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.just({"name": "a"}))
CLAIM = st.one_of(
    st.sampled_from([{"claimName": "c"}, {"claimName": ""}, {"claimName": "c", "readOnly": "x"}]),
    st.fixed_dictionaries({"claimName": ODD}),
    ODD,
)
VOLUME = st.fixed_dictionaries(
    {"name": st.one_of(st.sampled_from(["a", "b", "c", "A_B", ""]), ODD)},
    optional={"persistentVolumeClaim": CLAIM, "emptyDir": st.just({}), "x": ODD},
)
MOUNT = st.fixed_dictionaries(
    {"name": st.one_of(st.sampled_from(["a", "b", "c"]), ODD)},
    optional={
        "mountPath": st.one_of(st.sampled_from(["/a", "/b", "/c", "", "/../a"]), ODD),
        "readOnly": st.one_of(st.booleans(), ODD),
    },
)
LISTED = {
    "volumeMounts": st.one_of(st.lists(MOUNT, max_size=3), ODD),
    "volumeDevices": st.just([{"name": "a", "devicePath": "/a"}]),
    "ports": st.one_of(PORTS, st.lists(st.fixed_dictionaries({"containerPort": ODD}), max_size=2)),
    "resources": st.one_of(st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "x": ODD}), ODD),
}
CONTAINER = st.fixed_dictionaries({}, optional=LISTED)


def assert_simple_ones_are_in_order(template: Any) -> None:
    if is_simple(template):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pod, "is_simple", lambda _: False)
            case = judged(template)
        assert [*case.errors, *case.warnings] == []


def assert_nothing_is_lost(template: Raw, given_settings: list[str] | None = None) -> None:
    before = copy.deepcopy(template)
    glanced = judged(template, given_settings)
    assert template == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod, "is_simple", lambda _: False)
        whole = judged(template, given_settings)
    assert (glanced.errors, glanced.warnings) == (whole.errors, whole.warnings)
    assert not glanced.crashes


@settings(deadline=None)
@given(
    st.one_of(st.lists(st.one_of(VOLUME, ODD), max_size=3), ODD),
    st.lists(CONTAINER, min_size=1, max_size=2),
    st.one_of(st.none(), st.lists(CONTAINER, max_size=1)),
    st.fixed_dictionaries(
        {}, optional={"hostNetwork": st.booleans(), "resources": st.just({"limits": {"cpu": "1"}})}
    ),
)
def test_rules_say_the_same_of_any_volumes_and_what_uses_them(
    volumes: Any, containers: list[Raw], init: list[Raw] | None, spec: Raw
) -> None:
    named = [{"name": f"c{index}", "image": "i"} | each for index, each in enumerate(containers)]
    spec = spec | {"volumes": volumes, "containers": named}
    if init is not None:
        spec["initContainers"] = [{"name": "init", "image": "i"} | each for each in init]
    assert_nothing_is_lost({"spec": spec})


@pytest.mark.parametrize("row", [*template_rows()], ids=lambda row: row.name)
def test_rules_say_the_same_of_every_row(row: TemplateRow) -> None:
    assert_nothing_is_lost(row.template, row.settings)


TEXT = st.sampled_from(["", "a", "A", "a.b", "a/b", "beta.kubernetes.io/os", " a", "-", "x" * 64])
LABELS = st.one_of(st.dictionaries(TEXT, st.one_of(TEXT, ODD), max_size=2), ODD)
POLICY = st.one_of(st.sampled_from(["", "Always", "Never", "OnFailure", "IfNotPresent"]), ODD)
TOLERATION = st.fixed_dictionaries(
    {},
    optional={
        "key": st.one_of(TEXT, ODD),
        "operator": st.one_of(st.sampled_from(["", "Equal", "Exists", "Gt", "exists"]), ODD),
        "value": st.one_of(TEXT, ODD),
        "effect": st.one_of(st.sampled_from(["", "NoSchedule", "NoExecute", "No"]), ODD),
        "tolerationSeconds": st.sampled_from([1, "1"]),
    },
)
NAMED = st.fixed_dictionaries(
    {"name": st.one_of(TEXT, ODD)},
    optional={"image": st.one_of(TEXT, ODD), "imagePullPolicy": POLICY, **LISTED},
)
SIMPLE_SPEC = st.fixed_dictionaries(
    {"containers": st.one_of(st.lists(NAMED, max_size=3), ODD)},
    optional={
        "restartPolicy": POLICY,
        "nodeSelector": LABELS,
        "tolerations": st.one_of(st.lists(st.one_of(TOLERATION, ODD), max_size=2), ODD),
        "schedulerName": st.one_of(TEXT, ODD),
        "serviceAccountName": st.one_of(TEXT, ODD),
        "priorityClassName": st.one_of(TEXT, ODD),
        "volumes": st.one_of(st.lists(VOLUME, max_size=2), ODD),
        "hostNetwork": st.just(True),
    },
)
METADATA = st.fixed_dictionaries({}, optional={"labels": LABELS, "annotations": LABELS})


@examples(300, always_the_same=False)
@given(SIMPLE_SPEC, st.one_of(METADATA, ODD))
def test_simple_templates_are_in_order(spec: Raw, metadata: Any) -> None:
    assert_simple_ones_are_in_order({"spec": spec, "metadata": metadata})
    assert_simple_ones_are_in_order({"spec": spec})


@pytest.mark.parametrize("part", ["metadata", "spec", "containers", "tolerations"])
@given(st.data())
def test_a_simple_template_with_a_field_changed_is_in_order_or_not_simple(
    part: str, data: st.DataObject
) -> None:
    template = copy.deepcopy(SIMPLE)
    places = {
        **template,
        **{each: template["spec"][each][0] for each in ("containers", "tolerations")},
    }
    place = places[part]
    field = data.draw(st.sampled_from([*place]))
    place[field] = data.draw(
        {"nodeSelector": LABELS, "labels": LABELS}.get(field, st.one_of(TEXT, POLICY))
    )
    assert_simple_ones_are_in_order(template)


SIMPLE: Raw = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [
            {
                "name": "a",
                "image": "a",
                "imagePullPolicy": "Always",
                "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
                "ports": [{"name": "http", "containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
            }
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "restartPolicy": "Never",
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
        "schedulerName": "volcano",
        "serviceAccountName": "a",
        "priorityClassName": "a",
    },
}


def test_which_templates_are_simple() -> None:
    assert is_simple(SIMPLE)
    assert is_simple(BASE)
    assert not is_simple({})
    assert not is_simple({"spec": {**SIMPLE["spec"], "containers": []}})
    assert not is_simple({"spec": {**SIMPLE["spec"], "hostNetwork": True}})


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a", "image": "a"}, {"name": "a", "image": "a"}]},
        {"containers": [{"name": "A", "image": "a"}]},
        {"containers": [{"name": "", "image": "a"}]},
        {"containers": [{"name": "a", "image": ""}]},
        {"containers": [{"name": "a", "image": " a"}]},
        {"containers": [{"name": "a", "image": "a", "imagePullPolicy": "Sometimes"}]},
        {"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 0}]}]},
        {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": "x"}}}]},
        {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": "-1"}}}]},
        {"volumes": [{"name": "other", "persistentVolumeClaim": {"claimName": "data"}}]},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": ""}}]},
        {
            "containers": [
                {"name": name, "image": "a", "ports": [{"containerPort": 80}]} for name in "ab"
            ]
        },
        {"volumes": []},
        {"volumes": None},
        {"restartPolicy": "never"},
        {"nodeSelector": {"-": "a"}},
        {"nodeSelector": {"a": "-"}},
        {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
        {"tolerations": [{}]},
        {"tolerations": [{"operator": "Equal", "value": "a"}]},
        {"tolerations": [{"operator": "Exists", "value": "a"}]},
        {"tolerations": [{"key": "-", "operator": "Exists"}]},
        {"tolerations": [{"key": "a", "value": "-"}]},
        {"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]},
        {"tolerations": [{"key": "a", "effect": "No"}]},
        {"serviceAccountName": "A"},
        {"priorityClassName": "A"},
    ],
    ids=str,
)
def test_what_rules_report_about_is_not_simple(spec: Raw) -> None:
    template = {**SIMPLE, "spec": {**SIMPLE["spec"], **spec}}
    case = judged(template)
    assert [*case.errors, *case.warnings] != []
    assert not is_simple(template)


@pytest.mark.parametrize("labels", [{"-": "a"}, {"a": "-"}], ids=str)
def test_labels_that_rules_report_are_not_simple(labels: Raw) -> None:
    template = {**SIMPLE, "metadata": {"labels": labels}}
    assert [each.code for each in judged(template).errors] == ["TPL-LABEL"]
    assert not is_simple(template)
