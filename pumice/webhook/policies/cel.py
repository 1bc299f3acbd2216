"""Pieces of CEL that the rooms are made of.

Everything here is text. Values of a custom resource have no type in CEL, so numbers are told to be numbers
(`int(…)`) where they are added, and lists are built of texts only.
"""

from collections.abc import Iterable

from pumice.webhook.rules.resource_names import COUNTED

__all__ = [
    "LABEL",
    "QUALIFIED",
    "SUBDOMAIN",
    "amount",
    "each",
    "integral",
    "is_label",
    "is_label_value",
    "is_qualified",
    "is_simple",
    "is_subdomain",
    "joined",
    "listed",
    "mapped",
    "measured",
    "one",
    "quoted",
    "readable",
    "texts",
    "whole",
    "word",
]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL = f"^{_LABEL}$"
SUBDOMAIN = rf"^{_LABEL}(\\.{_LABEL})*$"
QUALIFIED = "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
"""Regular expressions as they stand between the quotes of a CEL text."""


def quoted(text: str) -> str:
    """A text as CEL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def texts(items: Iterable[str]) -> str:
    """A list of texts."""
    return f"[{', '.join(map(quoted, items))}]"


def word(value: str) -> str:
    """A value within double quotes, as a message shows it."""
    return f"'\"' + string({value}) + '\"'"


def joined(*parts: str) -> str:
    """Texts one after the other."""
    return " + ".join(parts)


def one(condition: str, path: str, message: str) -> str:
    """A problem if a condition holds, else none.

    Args:
        condition: What is wrong.
        path: Where, an expression.
        message: What to say, an expression.
    """
    return f"({condition} ? [[{path}, {message}]] : [])"


def each(items: str, names: str, condition: str, path: str, message: str) -> str:
    """A problem for each item of a list, or entry of a map made a list, for which a condition holds.

    Args:
        items: The list.
        names: What position and item are called in the other expressions, for example `i, t`.
        condition: What is wrong.
        path: Where, an expression.
        message: What to say, an expression.
    """
    return f"{items}.transformList({names}, {condition}, [{path}, {message}])"


def measured(message: str, excess: str, limit: str) -> str:
    """The rest of a problem that can be measured, to be given as its message.

    Args:
        message: What to say.
        excess: By how much it is too much, a number.
        limit: What is passed; what stays the same when only amounts change.
    """
    return f"{message}, string(double({excess})), {limit}"


def is_label(name: str) -> str:
    """Whether a text is a DNS label."""
    return f"(size({name}) <= 63 && {name}.matches('{LABEL}'))"


def is_subdomain(name: str) -> str:
    """Whether a text is a DNS subdomain."""
    return f"(size({name}) <= 253 && {name}.matches('{SUBDOMAIN}'))"


def is_label_value(name: str) -> str:
    """Whether a text is the value of a label."""
    return f"({name} == '' || (size({name}) <= 63 && {name}.matches('{QUALIFIED}')))"


def is_qualified(name: str) -> str:
    """Whether a text is a qualified name, with or without a prefix."""
    whole = rf"^({_LABEL}(\\.{_LABEL})*/)?([A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?)$"
    return f"(size({name}.split('/')[0]) <= 253 && {name}.matches('{whole}'))"


def listed(value: str) -> str:
    """A value if it is a list, else none; for fields that the schema of the CRD says nothing about."""
    return f"(type({value}) == list ? {value} : [])"


def mapped(value: str) -> str:
    """A value if it is an object, else an empty one."""
    return f"(type({value}) == map ? {value} : {{}})"


def integral(name: str) -> str:
    """Whether amounts of a resource are whole numbers.

    Source: webhook specification, section 10.3.
    """
    return (
        f"({name} in {texts(sorted(COUNTED))} || {name}.startsWith('count/') || "
        f"({name}.contains('/') && !{name}.contains('kubernetes.io/')))"
    )


def is_simple(value: str) -> str:
    """Whether a value is a text or a number."""
    return f"(type({value}) == string || type({value}) == int || type({value}) == double)"


def readable(value: str) -> str:
    """Whether a value is a quantity."""
    return f"({is_simple(value)} && isQuantity(string({value})))"


def whole(value: str) -> str:
    """Whether a value that is readable is a whole number, also where it is written in thousandths."""
    found = amount(value)
    near = f"{found}.asApproximateFloat()"
    return (
        f"({found}.isInteger() || ({near} > -9e15 && {near} < 9e15 && "
        f"{found}.compareTo(quantity(string(int({near})))) == 0))"
    )


def amount(value: str) -> str:
    """A value that is readable, as a quantity."""
    return f"quantity(string({value}))"
