from typing import Any

import pytest
from hypothesis import given

from pumice.webhook.rules.differences import Difference, differences, shown, shown_change
from tests.unit.webhook.shapes import JOBS, JSON, Raw

SAME = [
    ({"a": None}, {}),
    ({"a": []}, {"a": None}),
    ({"a": {}}, {}),
    ({"a": ""}, {}),
    ({"resources": {"limits": {"cpu": 1}}}, {"resources": {"limits": {"cpu": "1000m"}}}),
    ({"emptyDir": {"sizeLimit": "1Gi"}}, {"emptyDir": {"sizeLimit": "1024Mi"}}),
    ({"hostNetwork": False}, {}),
    ({"ports": [{"containerPort": 80, "hostPort": 0}]}, {"ports": [{"containerPort": 80}]}),
    ({"metadata": {"creationTimestamp": None}}, {"metadata": {}}),
    ([], None),
    ({"timeout": "60s"}, {"timeout": "1m"}),
    ({"runningEstimate": "90m"}, {"runningEstimate": "1h30m0s"}),
    ({"emptyDir": {}}, {"emptyDir": None}),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_what_kubernetes_takes_for_the_same_is_the_same(old: Any, new: Any) -> None:
    assert list(differences(old, new, "spec")) == []
    assert list(differences(new, old, "spec")) == []


OTHER = [
    ({"a": 1}, {"a": 2}, Difference("spec.a", 1, 2)),
    ({"a": 1}, {}, Difference("spec.a", 1, None)),
    ({"a": [1, 2]}, {"a": [1, 3]}, Difference("spec.a[1]", 2, 3)),
    ({"a": [1]}, {"a": [1, 2]}, Difference("spec.a", [1], [1, 2])),
    ({"a": {"b": 1}}, {"a": 5}, Difference("spec.a", {"b": 1}, 5)),
    ({"a": True}, {"a": "true"}, Difference("spec.a", True, "true")),
    ({"runAsUser": 0}, {}, Difference("spec.runAsUser", 0, None)),
    ({"automount": False}, {}, Difference("spec.automount", False, None)),
    ({"plugins": {"svc": []}}, {"plugins": {}}, Difference("spec.plugins.svc", [], None)),
    ({"labels": {"a": ""}}, {}, Difference("spec.labels.a", "", None)),
    ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "x"}}, Difference("spec.limits.cpu", "1", "x")),
    ({"timeout": "60s"}, {"timeout": "61s"}, Difference("spec.timeout", "60s", "61s")),
    ({"timeout": "soon"}, {"timeout": "60s"}, Difference("spec.timeout", "soon", "60s")),
    ({"args": ["60s"]}, {"args": ["1m"]}, Difference("spec.args[0]", "60s", "1m")),
    (
        {"env": [{"name": "A"}]},
        {"env": [{"name": "B"}, {"name": "A"}]},
        Difference("spec.env[0]", None, {"name": "B"}),
    ),
    (
        {"env": [{"name": "B"}, {"name": "A"}]},
        {"env": [{"name": "A"}]},
        Difference("spec.env[0]", {"name": "B"}, None),
    ),
    (
        {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
        {"env": [{"name": "A", "value": "2"}, {"name": "B"}]},
        Difference("spec.env[0].value", "1", "2"),
    ),
    (
        {"env": [{"name": "A"}, {"name": "A"}]},
        {"env": [{"name": "A"}]},
        Difference("spec.env", [{"name": "A"}, {"name": "A"}], [{"name": "A"}]),
    ),
    (
        {"env": [{"name": "A"}, {"name": None}]},
        {"env": [{"name": "A"}]},
        Difference("spec.env", [{"name": "A"}, {"name": None}], [{"name": "A"}]),
    ),
]


@pytest.mark.parametrize(("old", "new", "found"), OTHER)
def test_a_difference_is_named_where_it_is(old: Any, new: Any, found: Difference) -> None:
    assert list(differences(old, new, "spec")) == [found]


def test_all_differences_are_found_in_the_order_of_their_names() -> None:
    found = differences({"b": 1, "a": {"d": 1, "c": 1}}, {"b": 2, "a": {}}, "spec")
    assert [each.path for each in found] == ["spec.a.c", "spec.a.d", "spec.b"]


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 → 2"]),
        ({}, {"plugins": {"svc": []}}, ["plugins.svc: [] added"]),
        ({"a": 1, "b": 2}, {"b": 2}, ["a: 1 removed"]),
        ({"a": [{"x": 1}]}, {"a": [{"x": 2}]}, ["a[0].x: 1 → 2"]),
        ({"a": {"b": True}}, {"a": {"b": "yes"}}, ['a.b: true → "yes"']),
    ],
)
def test_a_difference_is_one_line(old: Any, new: Any, lines: list[str]) -> None:
    assert [str(each) for each in differences(old, new, "")] == lines


def test_a_long_value_is_cut() -> None:
    assert shown(None) == "nothing"
    assert shown("a") == '"a"'
    assert shown({"a": "x" * 500}).endswith("…")
    assert len(shown("x" * 500)) < 130


def test_items_that_went_came_and_changed_are_reported_one_by_one() -> None:
    def mounted(**paths: str) -> list[Raw]:
        return [{"name": name, "mountPath": path} for path, name in paths.items()]

    found = differences(mounted(a="v", b="v"), mounted(b="w", c="v", d="v"), "mounts")
    assert list(found) == [
        Difference("mounts[0]", {"name": "v", "mountPath": "a"}, None),
        Difference("mounts[0].name", "v", "w"),
        Difference("mounts[1]", None, {"name": "v", "mountPath": "c"}),
        Difference("mounts[2]", None, {"name": "v", "mountPath": "d"}),
    ]


def test_short_values_are_shown_whole_and_long_ones_from_where_they_part() -> None:
    assert shown_change("a", None) == '"a" → nothing'
    long = "x" * 300
    before, after = shown_change([long, 1, long], [long, 2, long]).split(" → ")
    assert before.startswith("…x")
    assert before.endswith("x…")
    assert '",1,"' in before
    assert '",2,"' in after
    assert max(len(before), len(after)) < 130
    assert shown_change(long, "y") == f'"{long[:119]}… → "y"'


@given(JSON, JSON)
def test_what_differs_one_way_differs_the_other_way(old: Any, new: Any) -> None:
    assert list(differences(old, old, "spec")) == []
    found, back = differences(old, new, "spec"), differences(new, old, "spec")
    assert bool(list(found)) == bool(list(back))


@given(JOBS, JOBS)
def test_a_difference_can_always_be_shown(old: Any, new: Any) -> None:
    for each in differences(old, new, ""):
        assert " → " in shown_change(each.old, each.new)
