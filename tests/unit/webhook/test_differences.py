from typing import Any

import pytest

from pumice.webhook.rules.differences import Difference, differences, shown

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
]


@pytest.mark.parametrize(("old", "new", "found"), OTHER)
def test_a_difference_is_named_where_it_is(old: Any, new: Any, found: Difference) -> None:
    assert list(differences(old, new, "spec")) == [found]


def test_all_differences_are_found_in_the_order_of_their_names() -> None:
    found = differences({"b": 1, "a": {"d": 1, "c": 1}}, {"b": 2, "a": {}}, "spec")
    assert [each.path for each in found] == ["spec.a.c", "spec.a.d", "spec.b"]


def test_a_long_value_is_cut() -> None:
    assert shown(None) == "nothing"
    assert shown("a") == '"a"'
    assert shown({"a": "x" * 500}).endswith("…")
    assert len(shown("x" * 500)) < 130
