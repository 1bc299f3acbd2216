"""Validating policies as far as they do not depend on settings: what the chart's file holds and templates finish.

Levels of rules are set when Pumice is installed, and a policy either refuses or warns as a whole. So there are two for
each kind, and each takes of the draft what has its level: `manifests` in Python, a template in Helm, in the same way.
"""

from dataclasses import dataclass, field
from typing import Any

from pumice.api.kinds import Kind
from pumice.webhook.groups.model import NO_GROUPS
from pumice.webhook.policies.form import NEW, OLD, Form, Room, Side, identifier, on_side
from pumice.webhook.policies.ratchet import keys_of, rest_of
from pumice.webhook.policies.rooms import DELETION_ROOMS, ROOMS, UPDATE_ROOMS
from pumice.webhook.registrations import EXEMPT_NAMESPACES, REGISTRATIONS, Registration
from pumice.webhook.rules import catalogue
from pumice.webhook.rules.rule import Level
from pumice.webhook.settings import AdmissionSettings

__all__ = ["Draft", "DraftForm", "drafts", "match_constraints"]

Raw = dict[str, Any]
Variables = list[tuple[str, str]]
"""Names and expressions, in the order in which they may use each other."""

_GONE = Side("oldObject", "")
_KEYS = (("keys", "new"), ("old_keys", "old"))


@dataclass(frozen=True, slots=True)
class DraftForm:
    """A rule in a draft.

    Attributes:
        code: Of the rule.
        level: How strict it is unless settings say otherwise.
        stricter: Whether `strict-upstream` makes a warning of it.
        setting: Setting on which it depends, and the value that it must have; None for none.
        variables: The problems found, under the rule's name the ones that count.
        problems: The texts of those that count, a list.
        erring: A validation of its own instead, which fails to be evaluated.
    """

    code: str
    level: Level
    stricter: bool
    setting: tuple[str, bool] | None = None
    variables: Variables = field(default_factory=list)
    problems: str = ""
    erring: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """The policies of a kind.

    Attributes:
        name: What their names begin with.
        match: What they are asked about: `matchConstraints`, `matchConditions` and `failurePolicy`.
        variables: What the forms need.
        forms: The rules.
        covering: Codes of those that say of a path that it must not change.
    """

    name: str
    match: Raw
    variables: Variables
    forms: list[DraftForm]
    covering: tuple[str, ...] = ()


def match_constraints(
    registration: Registration, operations: tuple[str, ...], exempt_namespaces: tuple[str, ...]
) -> Raw:
    """What of the API a policy is about, as the webhook's registration has it."""
    kind = registration.kind
    constraints: Raw = {
        "matchPolicy": "Equivalent",
        "resourceRules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "resources": [kind.plural],
                "operations": list(operations),
                "scope": "Namespaced" if kind.namespaced else "Cluster",
            }
        ],
    }
    if kind.namespaced:
        name = "kubernetes.io/metadata.name"
        exempt = {"key": name, "operator": "NotIn", "values": list(exempt_namespaces)}
        constraints["namespaceSelector"] = {"matchExpressions": [exempt]}
    return constraints


def drafts(
    settings: AdmissionSettings, exempt_namespaces: tuple[str, ...] = EXEMPT_NAMESPACES
) -> list[Draft]:
    """All drafts, in the order of the registrations.

    Args:
        settings: Settings of admission, of which only those count that match conditions depend on.
        exempt_namespaces: Namespaces whose objects are never asked about.
    """
    found = []
    for each in REGISTRATIONS:
        if each.mutating or each.kind not in ROOMS:
            continue
        name = f"pumice-{each.kind.plural}"
        changes = [operation for operation in each.operations if operation != "DELETE"]
        if each.kind in UPDATE_ROOMS:
            changes.remove("UPDATE")
            match = _match(each, ("UPDATE",), settings, exempt_namespaces)
            updates = _draft(each.kind, f"{name}-updates", match, UPDATE_ROOMS[each.kind])
        match = _match(each, tuple(changes), settings, exempt_namespaces)
        found.append(_draft(each.kind, name, match, ROOMS[each.kind]))
        if each.kind in UPDATE_ROOMS:
            found.append(updates)
        if "DELETE" in each.operations and each.kind in DELETION_ROOMS:
            constraints = match_constraints(each, ("DELETE",), exempt_namespaces)
            deletion = {"failurePolicy": each.failure_policy, "matchConstraints": constraints}
            found.append(_draft(each.kind, f"{name}-deletion", deletion, DELETION_ROOMS[each.kind]))
    return found


def _match(
    registration: Registration,
    operations: tuple[str, ...],
    settings: AdmissionSettings,
    exempt_namespaces: tuple[str, ...],
) -> Raw:
    conditions = registration.conditions(settings, NO_GROUPS)
    return {
        "failurePolicy": registration.failure_policy,
        "matchConstraints": match_constraints(registration, operations, exempt_namespaces),
        "matchConditions": [
            {"name": each.name, "expression": each.expression} for each in conditions
        ],
    }


def _draft(kind: Kind, name: str, match: Raw, room: Room) -> Draft:
    names = {*room.variables, *room.between}
    deletion = room is DELETION_ROOMS.get(kind)
    sides = (_GONE,) if deletion else (NEW, OLD)
    variables = [
        (side.prefix + variable, on_side(expression, side, names))
        for side in sides
        for variable, expression in room.variables.items()
    ]
    variables.sort(key=lambda each: not each[0].startswith(OLD.prefix))
    variables += [
        (variable, on_side(expression, NEW, names)) for variable, expression in room.between.items()
    ]
    shared = {
        code for form in room.forms for code in form.standing if form.standing != (form.code,)
    }
    for form in room.forms:
        if form.code in shared:
            variables.append(_old(form, names))
    forms = [_form(form, names, room, deletion=deletion, shared=shared) for form in room.forms]
    return Draft(name, match, variables, forms, room.covering)


def _old(form: Form, names: set[str]) -> tuple[str, str]:
    """The variable of what was wrong with the stored object."""
    return f"{identifier(form.code)}_old", on_side(form.problems, OLD, names)


def _form(
    form: Form, names: set[str], room: Room, *, deletion: bool, shared: set[str]
) -> DraftForm:
    rule = catalogue.by_code(form.code)
    if rule is None:
        raise LookupError(f"there is no rule {form.code}")
    level = form.level or rule.level
    stricter = (rule.stricter or form.later) and level == "enforce"
    if form.erring:
        told = f"'[{form.code}]' == ''"  # so that the code stands in what the API server says
        erring = f"{on_side(form.problems, NEW, names)} || {told}"
        return DraftForm(form.code, level, stricter, form.setting, erring=erring)
    own = identifier(form.code)
    side = _GONE if deletion else NEW
    found = on_side(form.problems, side, names)
    told = f"variables.{own}.map(p, (p[0] == '' ? '' : p[0] + ': ') + p[1] + ' [{form.code}]')"
    if form.always or deletion:
        variables = [(own, found)]
    else:
        covered = bool(room.covering) and form.code not in room.covering
        keyed = room.shifted is None and not form.standing
        variables = [(f"{own}_new", found)]
        variables += [] if form.code in shared else [_old(form, names)]
        if keyed:
            variables += [(f"{own}_{keys}", keys_of(f"{own}_{of}")) for keys, of in _KEYS]
        rest = rest_of(
            form.code,
            form.standing or (form.code,),
            covered=covered,
            shifted=room.shifted,
            keyed=keyed,
        )
        variables.append((own, rest))
    return DraftForm(form.code, level, stricter, form.setting, variables, told)
