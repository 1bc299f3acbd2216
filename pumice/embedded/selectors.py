"""Label and field selectors, as they stand in query strings."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pumice.api.meta import LabelExpression, labels_match
from pumice.embedded import statuses
from pumice.embedded.storage import Obj

Selector = Callable[[Obj], bool]
"""Whether an object is selected."""
LabelTest = Callable[[dict[str, str]], bool]

_EXPRESSION = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s,=!()<>]+)
      | (?P<key>[^\s,=!()<>]+)\s*
        (?:
            (?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,()]*)
          | (?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


def everything(_obj: Obj) -> bool:
    """The selector that selects all."""
    return True


def parse_labels(text: str) -> LabelTest | None:
    """Read a label selector; None when it selects everything.

    Raises:
        ApiStatusError: 400 when the text is no selector.
    """
    expressions: list[LabelExpression] = []
    comparisons: list[LabelTest] = []
    position = 0
    while position < len(text):
        match = _EXPRESSION.match(text, position)
        if match is None:
            raise statuses.bad_request(f"unable to parse requirement: {text[position:]!r}")
        if match["operator"] in ("<", ">"):
            comparison = _comparison(match["key"], match["value"], greater=match["operator"] == ">")
            comparisons.append(comparison)
        else:
            expressions.append(_expression(match))
        position = match.end()
    if expressions:
        comparisons.append(partial(labels_match, expressions))
    return _all(comparisons)


def _expression(match: re.Match[str]) -> LabelExpression:
    if match["absent"]:
        return match["absent_key"], "DoesNotExist", ()
    if match["set"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return match["key"], "In" if match["set"] == "in" else "NotIn", values
    if match["operator"] is None:
        return match["key"], "Exists", ()
    return match["key"], "NotIn" if match["operator"] == "!=" else "In", (match["value"],)


def _comparison(key: str, value: str, *, greater: bool) -> LabelTest:
    try:
        bound = int(value)
    except ValueError as error:
        raise statuses.bad_request(
            "for 'Gt', 'Lt' operators, the value must be an integer"
        ) from error

    def holds(labels: dict[str, str]) -> bool:
        try:
            number = int(labels[key])
        except (KeyError, ValueError):
            return False
        return number > bound if greater else number < bound

    return holds


def parse_fields(text: str, supported: Iterable[str] = ()) -> Selector | None:
    """Read a field selector; None when it selects everything.

    Raises:
        ApiStatusError: 400 when the text is no selector or names a field that the kind cannot be
            selected by.
    """
    known = {"metadata.name", "metadata.namespace", *supported}
    tests: list[Selector] = []
    for requirement in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([^=!]+?)(!=|==|=)(.*)", requirement)
        if match is None:
            raise statuses.bad_request(
                f"invalid selector: '{text}'; can't understand '{requirement}'"
            )
        field, operator, value = match.groups()
        if field not in known:
            raise statuses.bad_request(f"field label not supported: {field}")
        tests.append(_field_test(field, value, equal=operator != "!="))
    return _all(tests)


def _field_test(field: str, value: str, *, equal: bool) -> Selector:
    steps = field.split(".")
    return lambda obj: (_text_at(obj, steps) == value) is equal


def _text_at(obj: Any, steps: list[str]) -> str:
    for step in steps:
        obj = obj.get(step) if isinstance(obj, dict) else None
    match obj:
        case None:
            return "false" if steps[-1] in {"unschedulable", "hostNetwork"} else ""
        case bool():
            return str(obj).lower()
        case dict():
            return str(obj.get("component", ""))
        case _:
            return str(obj)


def _all(tests: list[Callable[[Any], bool]]) -> Callable[[Any], bool] | None:
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda subject: all(test(subject) for test in tests)


def selector(labels: str, fields: str, supported: Iterable[str] = ()) -> Selector:
    """Both selectors of a request as one.

    Raises:
        ApiStatusError: 400 when one of them cannot be read.
    """
    label_test, field_test = parse_labels(labels), parse_fields(fields, supported)
    if label_test is None:
        return field_test or everything

    def selected(obj: Obj) -> bool:
        return label_test(obj["metadata"].get("labels") or {}) and (
            field_test is None or field_test(obj)
        )

    return selected
