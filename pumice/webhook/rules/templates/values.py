"""What several rooms ask of a single value."""

from collections.abc import Sequence
from typing import TypeGuard

from pumice.api.json_words import either, quoted
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site

__all__ = ["is_int", "members", "one_of", "quoted", "relative_path", "text", "without_backsteps"]


def is_int(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; in JSON, true and false are none."""
    return type(value) is int


def text(site: Site, rule: Rule, value: object, field: str) -> str:
    """A text that must be there.

    Returns:
        The text; an empty one when there is none, which is reported, and when it is of another
        type, which is not: `types` has done so.
    """
    if value is None or value == "":
        site.report(rule, "must be set, found none", field, "FieldValueRequired")
        return ""
    return value if isinstance(value, str) else ""


def one_of(site: Site, rule: Rule, value: object, known: Sequence[str], field: str) -> None:
    """A text that must be one of the known ones; what is no text is passed over."""
    if isinstance(value, str) and value not in known:
        hint = site.case.did_you_mean(value, known)
        message = f"must be {either(known)}, found {quoted(value)}{hint}"
        site.report(rule, message, field, "FieldValueNotSupported")


def without_backsteps(site: Site, rule: Rule, path: str, field: str) -> None:
    """A path must not lead upwards."""
    if ".." in path and ".." in path.split("/"):
        site.report(rule, f'must not contain "..", found {quoted(path)}', field)


def relative_path(site: Site, rule: Rule, path: str, field: str) -> None:
    """A path must be relative and not lead upwards."""
    if path.startswith("/"):
        site.report(rule, f"must be a relative path, found {quoted(path)}", field)
    without_backsteps(site, rule, path, field)


def members(
    site: Site,
    rule: Rule,
    union: Raw,
    known: Sequence[str],
    field: str,
    *,
    never: Sequence[str] = (),
) -> list[str]:
    """The members that are set of an object that must have exactly one of them.

    An object whose only member is none of the known ones passes, unless that looks misspelt:
    Kubernetes adds members to such objects, and who writes one has a newer Kubernetes.

    Args:
        site: Where it is.
        rule: The rule that it breaks when it has none, or several.
        union: The object.
        known: Its members.
        field: Where it is, from the site on.
        never: Members that the like has elsewhere, and this one has not.

    Returns:
        Those that are set, in the order of `known`.
    """
    if len(union) == 1 and (only := next(iter(union))) in known and union[only] is not None:
        return [only]
    found = [name for name in known if union.get(name) is not None]
    if len(found) > 1:
        message = f"must have one of {either(known)}, found {' and '.join(found)}"
        site.report(rule, message, field)
    elif not found:
        others = [name for name, value in union.items() if isinstance(value, dict)]
        hint = next((hint for name in others if (hint := site.case.did_you_mean(name, known))), "")
        if hint or not any(name not in never for name in others):
            seen = quoted(others[0]) if others else "none"
            site.report(rule, f"must have one of {either(known)}, found {seen}{hint}", field)
    return found
