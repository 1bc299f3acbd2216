"""The forms: pieces of CEL that name only what there is."""

import re

import pytest

from pumice.api import kinds
from pumice.plugins import builtin
from pumice.webhook.policies import cel
from pumice.webhook.policies.form import NEW, OLD, Form, identifier, on_side
from pumice.webhook.policies.job_plugins import dependent
from pumice.webhook.policies.rooms import DELETION_ROOMS, ROOMS, UPDATE_ROOMS, forms_of
from pumice.webhook.rules import catalogue

EVERY_FORM = [
    pytest.param(form, id=f"{kind.kind}-{form.code}") for kind in ROOMS for form in forms_of(kind)
]


def test_an_expression_is_about_the_one_or_the_other_object() -> None:
    expression = "$object.spec == $names[0] && '$jobPlugins' != '$'"

    assert on_side(expression, NEW, {"names"}) == (
        "object.spec == variables.names[0] && '$jobPlugins' != '$'"
    )
    assert on_side(expression, OLD, {"names"}) == (
        "oldObject.spec == variables.old_names[0] && '$jobPlugins' != '$'"
    )


def test_a_text_is_quoted_as_cel_reads_it() -> None:
    assert cel.quoted("it's a \\ and\na line") == "'it\\'s a \\\\ and\\na line'"
    assert cel.texts(["a", "b"]) == "['a', 'b']"


def test_a_problem_has_a_path_and_a_message_and_perhaps_a_measure() -> None:
    assert cel.one("a", "'p'", "'m'") == "(a ? [['p', 'm']] : [])"
    assert (
        cel.each("$l", "i, x", "x > 1", "'p'", cel.measured("'m'", "x - 1", "'l'"))
        == "$l.transformList(i, x, x > 1, ['p', 'm', string(double(x - 1)), 'l'])"
    )


def test_plugins_are_added_for_those_that_need_them_near_and_far() -> None:
    found = dependent()
    for name in builtin().names:
        for needed in builtin().requires(name):
            assert name in found[needed]
    assert "mpi" in found["ssh"]


@pytest.mark.parametrize("form", EVERY_FORM)
def test_a_form_is_that_of_a_rule_and_balanced(form: Form) -> None:
    assert catalogue.by_code(form.code) is not None
    outside = re.sub(r"'(?:[^'\\]|\\.)*'", "''", form.problems)
    for opening, closing in ("()", "[]", "{}"):
        assert outside.count(opening) == outside.count(closing)


@pytest.mark.parametrize("kind", ROOMS, ids=lambda kind: kind.kind)
def test_a_room_has_each_code_once_and_each_variable_before_its_use(kind: kinds.Kind) -> None:
    for room in filter(None, (ROOMS[kind], UPDATE_ROOMS.get(kind), DELETION_ROOMS.get(kind))):
        codes = [form.code for form in room.forms]
        assert len(codes) == len(set(codes))
        assert len({identifier(code) for code in codes} | set(room.variables)) == len(codes) + len(
            room.variables
        )
        assert set(room.covering) <= room.codes
        assert room.shifted is None or room.shifted[1] in room.between
        known = {"object"}
        for name, expression in (*room.variables.items(), *room.between.items()):
            assert used(expression) <= known, name
            known.add(name)
        for form in room.forms:
            assert used(form.problems) <= known | {"jobPlugins"}, form.code


def used(expression: str) -> set[str]:
    """Names that an expression takes for variables."""
    return set(re.findall(r"\$([a-z]\w*)", expression))
