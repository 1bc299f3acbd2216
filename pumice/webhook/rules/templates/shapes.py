"""Shapes: checks that several rows of tables use.

Each shape creates a check from a rule and the description of valid values.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from pumice.api.fields import Reason
from pumice.api.json_words import either, quoted
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Check, Row, compiled

Problem = Callable[[str], str | None]
"""Returns what is wrong with a string, or None."""

NOT_SET = "must be set, found none"


def refused(
    code: str,
    title: str,
    example: str,
    *,
    reason: Reason = "FieldValueInvalid",
    later: bool = False,
    compares: bool = False,
) -> Rule:
    """A rule that Kubernetes enforces, without a reason of its own.

    If `later` is true, Kubernetes admits the template and refuses its pods, and Volcano admits both.
    """
    why = "Kubernetes refuses the pod otherwise."
    if later:
        why = "Kubernetes takes the template, and then refuses each of its pods."
    return Rule(code, title, why, example, reason, stricter=later, compares=compares)


def required(
    rule: Rule,
    problem: Problem | None = None,
    *,
    message: str = NOT_SET,
    reason: Reason | None = "FieldValueRequired",
) -> Check:
    """A value that must not be empty, and must have no problem."""

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        if not found:
            site.report(rule, message, field, reason)
        elif problem is not None and (wrong := problem(found)):
            site.report(rule, wrong, field)

    return check


def present(rule: Rule, then: Check, reason: Reason | None = None, message: str = NOT_SET) -> Check:
    """A value that must be present, even if it is empty; another check validates it."""

    def check(site: Site, found: Any, field: str, owner: Raw) -> None:
        if found is None:
            site.report(rule, message, field, reason)
        else:
            then(site, found, field, owner)

    return check


def breaking(rule: Rule, message: str, breaks: Callable[[Site, Any, Raw], object]) -> Check:
    """A value that breaks the rule where `breaks` says so of the site, the value and the object that has it."""

    def check(site: Site, found: Any, field: str, owner: Raw) -> None:
        if breaks(site, found, owner):
            site.report(rule, message, field)

    return check


def remark(rule: Rule, message: str) -> Check:
    """A field whose presence breaks the rule."""
    return breaking(rule, message, lambda *_: True)


def excludes(rule: Rule, other: str, message: str = "") -> Check:
    """A value that must be empty if another member of its object is not."""
    wrong = message or f"must not be set together with {other}"
    return breaking(rule, wrong, lambda _, found, owner: found and owner.get(other))


def needs(rule: Rule, other: str, message: str = "") -> Check:
    """A value that, unless it is empty, requires another member of its object."""

    def check(site: Site, found: Any, field: str, owner: Raw) -> None:
        if found and other not in owner:
            around, dot, own = field.rpartition(".")
            wrong = message or f"must be set with {own}"
            site.report(rule, f"{wrong}, found none", f"{around}{dot}{other}")

    return check


def only_with(rule: Rule, other: str, value: str, message: str = "") -> Check:
    """A field that is allowed only if another member of its object has a certain value."""
    wrong = message or f"must not be set unless {other} is {value}"
    return breaking(rule, wrong, lambda _, _found, owner: owner.get(other) != value)


def not_for(rule: Rule, system: str, *, what: str = "", empty: bool = False) -> Check:
    """A field that a pod of an operating system must not have; an empty value is allowed if `empty` is true.

    `what` names the field in messages.
    """
    wrong = f"{what} cannot be set for a {system} pod".lstrip()
    return breaking(
        rule, wrong, lambda site, found, _: site.pod.os == system and (found or not empty)
    )


def name(rule: Rule, problem: Problem, *, empty: bool = False) -> Check:
    """A string that must have no problem; an empty one is skipped if `empty` is true."""

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        if (found or not empty) and (wrong := problem(found)):
            site.report(rule, wrong, field)

    return check


def matching(
    rule: Rule, wanted: str, fits: Callable[[str], object], *, empty: bool = False
) -> Check:
    """A string that must match; messages describe the expected form. An empty one is skipped if `empty` is true."""

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        if (found or not empty) and not fits(found):
            site.report(rule, f"{wanted}, found {quoted(found)}", field)

    return check


def one_of(rule: Rule, known: Sequence[str], *, problem: str = "", empty: bool = False) -> Check:
    """A string that must be one of the known ones; an empty one is skipped if `empty` is true.

    Messages begin with `problem`.
    """
    words = frozenset((*known, "") if empty else known)
    start = f"{problem}: " if problem else ""

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        if found not in words:
            hint = site.case.did_you_mean(found, known)
            message = f"{start}must be {either(known)}, found {quoted(found)}{hint}"
            site.report(rule, message, field, "FieldValueNotSupported")

    return check


def within(rule: Rule, low: int, high: float = inf, words: str = "") -> Check:
    """A number from `low` to `high`; `words` describe the range in messages."""
    bounds = (
        f"between {low} and {high}, inclusive" if high < inf else f"greater than or equal to {low}"
    )
    wanted = words or f"must be {bounds}"

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        if not low <= found <= high:
            site.report(rule, f"{wanted}, found {found}", field)

    return check


def at_most(rule: Rule, most: int, reason: Reason | None = None, unit: str = "") -> Check:
    """A list or string whose length is at most this; messages name the unit."""

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        if len(found) > most:
            message = f"must not have more than {most}{unit}, found {len(found)}"
            site.report(rule, message, field, reason)

    return check


def unique(
    rule: Rule,
    member: str,
    *,
    words: str = "is already the name of",
    then: Check | None = None,
) -> Check:
    """A list of objects of which no two have the same value in a member.

    Args:
        rule: The rule that the second of two breaks.
        member: The member; empty values are skipped.
        words: Words in messages between the value and the path of the first.
        then: Checks each object after the comparison.
    """

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        seen: dict[str, int] = {}
        for index, item in enumerate(found):
            value, where = item.get(member), f"{field}[{index}]"
            if value and (first := seen.setdefault(value, index)) != index:
                message = f"{quoted(value)} {words} {site.path}.{field}[{first}]"
                site.report(rule, message, f"{where}.{member}")
            if then is not None:
                then(site, item, where, found)

    return check


def exactly_one(
    rule: Rule,
    known: Sequence[str],
    *,
    never: Sequence[str] = (),
    neither: str = "must have one of ",
    several: str = "must not have more than one member",
) -> Check:
    """An object that must have exactly one of these members.

    An object whose only member is not known passes, unless it looks misspelt: Kubernetes adds members to such
    objects, and a manifest may be for a newer Kubernetes.

    Args:
        rule: The rule about objects with none or several.
        known: Its members.
        never: Members that similar objects have and this type does not.
        neither: The message if it has none; the members are appended.
        several: The message if it has more than one.
    """
    members = either([f"`{each}`" for each in known])

    def check(site: Site, union: Any, field: str, _: Raw) -> None:
        if len(union) == 1 and next(iter(union)) in known:
            return
        found = [each for each in known if each in union]
        if len(found) > 1:
            message = f"{several}, found {' and '.join(found)}; keep one of them"
            site.report(rule, message, field)
        elif not found:
            others = [each for each, value in union.items() if isinstance(value, dict)]
            hints = (site.case.did_you_mean(each, known) for each in others)
            hint = next((hint for hint in hints if hint), "")
            if hint or not any(each not in never for each in others):
                seen = quoted(others[0]) if others else "none"
                site.report(rule, f"{neither}{members}, found {seen}{hint}", field)

    return check


def one_of_two(
    rule: Rule, one: str, other: str, *, neither: str = "", both: str = "", empty: bool = True
) -> Check:
    """An object that must have one of two members and not both; empty ones count as missing if `empty` is true.

    The problem is named as `neither` or `both` says.
    """
    wanted = f"must have {one} or {other}"

    def check(site: Site, found: Any, field: str, _: Raw) -> None:
        has = bool(found.get(one)) if empty else one in found
        if has is (bool(found.get(other)) if empty else other in found):
            message = (
                f"{both or wanted}, found both" if has else f"{neither or wanted}, found neither"
            )
            site.report(rule, message, field)

    return check


def without_backsteps(rule: Rule) -> Check:
    """A path that must not contain `..`."""
    return matching(rule, "must not contain '..'", lambda path: ".." not in path.split("/"))


def relative_path(rule: Rule) -> Check:
    """A path that must be relative and not contain `..`."""
    relative = matching(rule, "must be a relative path", lambda path: not path.startswith("/"))
    return compiled((Row("", relative), Row("", without_backsteps(rule))))
