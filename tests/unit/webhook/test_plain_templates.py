"""What is left out of a template before it is judged: nothing that any rule has something to say about."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.webhook.rules.templates.plain import without_plain
from tests.unit.webhook.shapes import SCALARS
from tests.unit.webhook.template_rows import BASE, TemplateRow, judged, template_rows

Raw = dict[str, Any]

TEXTS = st.sampled_from(["A", "B", "A=B", "", "$(A)", "a\n", "ü"])
ODD = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.just({"name": "A"}))
VARIABLES = st.lists(
    st.one_of(
        st.fixed_dictionaries({"name": TEXTS, "value": TEXTS}),
        st.fixed_dictionaries(
            {}, optional={"name": TEXTS, "value": st.one_of(TEXTS, ODD), "valueFrom": ODD, "x": ODD}
        ),
        ODD,
    ),
    max_size=4,
)
LISTS = st.one_of(st.lists(st.one_of(TEXTS, ODD), max_size=3), st.lists(TEXTS, max_size=3), ODD)
CONTAINERS = st.fixed_dictionaries({}, optional={"command": LISTS, "args": LISTS, "env": VARIABLES})


def with_container(container: Raw) -> Raw:
    template = copy.deepcopy(BASE)
    template["spec"]["containers"][0] |= container
    return template


def rest(container: Raw) -> set[str]:
    """The fields of a container that rules still see."""
    return {*without_plain(with_container(container))["spec"]["containers"][0]}


def assert_nothing_is_lost(template: Raw, given_settings: list[str] | None = None) -> None:
    before = copy.deepcopy(template)
    whole, part = judged(template, given_settings), judged(without_plain(template), given_settings)
    assert (part.errors, part.warnings) == (whole.errors, whole.warnings)
    assert template == before


def test_texts_and_variables_are_left_out() -> None:
    env = [{"name": "A", "value": ""}, {"value": "$(A)", "name": "b.c-d"}]
    assert rest({"command": ["sh"], "args": [], "env": env}) == {"name", "image"}


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("command", "sh"),
        ("command", {"sh": 1}),
        ("args", [1]),
        ("args", None),
        ("env", []),
        ("env", None),
        ("env", {"ab": 1}),
        ("env", "ab"),
        ("env", [{"name": "A"}]),
        ("env", [{"name": "A", "value": None}]),
        ("env", [{"name": "A", "value": 1}]),
        ("env", [{"name": "A=", "value": "a"}]),
        ("env", [{"name": "", "value": "a"}, {"name": "A", "value": "a"}]),
        ("env", [{"name": [], "value": "a"}]),
        ("env", [{"name": "A", "valueFrom": {}}]),
        ("env", [{"name": "A", "value": "a", "x": 1}]),
        ("env", [{"name": "A", "value": "a"}, {"name": "A", "value": "b"}]),
        ("env", [{"name": "A", "value": "a"}, None]),
    ],
)
def test_everything_else_stays(field: str, found: Any) -> None:
    assert field in rest({field: found})


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        "x",
        {},
        {"containers": None},
        {"containers": {}},
        {"containers": ""},
        {"containers": [None, "x", []]},
    ],
)
def test_what_has_no_containers_stays_as_it_is(spec: Any) -> None:
    assert without_plain({"spec": spec}) == {"spec": spec}
    assert_nothing_is_lost({"spec": spec})


@pytest.mark.parametrize("row", [*template_rows()], ids=lambda row: row.name)
def test_rules_say_the_same_of_every_row(row: TemplateRow) -> None:
    assert_nothing_is_lost(row.template, row.settings)


@settings(deadline=None)
@given(CONTAINERS)
def test_rules_say_the_same_of_any_arguments_and_variables(container: Raw) -> None:
    assert_nothing_is_lost(with_container(container))


@settings(deadline=None)
@given(st.one_of(ODD, st.just({}), st.lists(st.one_of(CONTAINERS, ODD), max_size=3)))
def test_rules_say_the_same_of_any_containers(containers: Any) -> None:
    assert_nothing_is_lost({"spec": {"containers": containers}})
