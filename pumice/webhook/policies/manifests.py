"""The policies and their bindings, as they are installed.

Of each kind two policies: one refuses, the other warns. A rule is in that of its level; where a namespace has another
level for it, the expression asks for the namespace.
"""

from typing import Any

from pumice.webhook.policies.cel import quoted
from pumice.webhook.policies.drafts import Draft, DraftForm, Variables, drafts
from pumice.webhook.policies.job_plugins import KNOWN_PLUGINS
from pumice.webhook.registrations import EXEMPT_NAMESPACES
from pumice.webhook.rules.rule import Level
from pumice.webhook.settings import AdmissionSettings

__all__ = ["API_VERSION", "LEVEL_ACTIONS", "binding", "policies", "scope"]

Raw = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"
LEVEL_ACTIONS: dict[Level, list[str]] = {"enforce": ["Deny"], "warn": ["Warn", "Audit"]}
"""What becomes of an object, by the level of the rules that it breaks."""

_SUFFIXES: dict[Level, str] = {"enforce": "", "warn": "-warn"}
_NO_MORE_PLUGINS = f", {quoted(KNOWN_PLUGINS)}"
_UNREADABLE = "breaks rules of admission; the reasons are too long to be told"


def policies(
    settings: AdmissionSettings,
    *,
    exempt_namespaces: tuple[str, ...] = EXEMPT_NAMESPACES,
    job_plugins: tuple[str, ...] = (),
) -> list[Raw]:
    """All policies that validate, each followed by its binding.

    Args:
        settings: Settings of admission; they say which rules are in which policy.
        exempt_namespaces: Namespaces whose objects are never asked about.
        job_plugins: Names of job plugins that are known and not built in.
    """
    plugins = "".join(f", {quoted(name)}" for name in job_plugins)
    found = []
    for draft in drafts(settings, exempt_namespaces):
        for level in LEVEL_ACTIONS:
            policy = _policy(draft, level, settings, plugins)
            if policy is not None:
                name = policy["metadata"]["name"]
                found += [policy, binding("Validating", name, LEVEL_ACTIONS[level])]
    return found


def binding(sort: str, name: str, actions: list[str] | None = None) -> Raw:
    """The binding of a policy, which bears the same name.

    Args:
        sort: `Validating` or `Mutating`.
        name: Of the policy.
        actions: What becomes of objects that a validating policy finds something wrong with.
    """
    spec: Raw = {"policyName": name}
    if actions is not None:
        spec["validationActions"] = actions
    return {
        "apiVersion": API_VERSION,
        "kind": f"{sort}AdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": spec,
    }


def scope(form: DraftForm, level: Level, settings: AdmissionSettings) -> str:
    """Where a rule has a level: a CEL condition, empty for nowhere."""
    if form.setting is not None and getattr(settings, form.setting[0]) != form.setting[1]:
        return ""
    own = "warn" if settings.strict_upstream and form.stricter else form.level
    usual = settings.rules.get(form.code, own)
    others = {
        name: levels[form.code]
        for name, levels in sorted(settings.namespaces.items())
        if form.code in levels
    }
    if usual == level:
        but = [name for name, other in others.items() if other != level]
        return f"!(request.namespace in {_list(but)})" if but else "true"
    only = [name for name, other in others.items() if other == level]
    return f"request.namespace in {_list(only)}" if only else ""


def _list(names: list[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _policy(draft: Draft, level: Level, settings: AdmissionSettings, plugins: str) -> Raw | None:
    scopes = {form.code: scope(form, level, settings) for form in draft.forms}
    forms = [form for form in draft.forms if scopes[form.code]]
    if not forms:
        return None
    variables: Variables = list(draft.variables)
    for form in draft.forms:
        if form.code in draft.covering:
            variables += form.variables
    if draft.covering:
        variables.append(("covered", _covered(draft, settings)))
    told = [form for form in forms if not form.erring]
    for form in told:
        if form.code not in draft.covering:
            variables += form.variables
    variables += [
        (f"{form.variables[-1][0]}_told", _told(form, scopes[form.code])) for form in told
    ]
    names = [f"variables.{form.variables[-1][0]}_told" for form in told]
    validations = []
    if level == "enforce" and names:
        variables.append(("problems", f"[{', '.join(names)}].flatten()"))
        validations.append(_validation("variables.problems"))
    else:
        validations += [_validation(name) for name in names]
    validations += [_erring(form, scopes[form.code]) for form in forms if form.erring]
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": draft.name + _SUFFIXES[level]},
        "spec": {
            **draft.match,
            "variables": [
                {"name": name, "expression": text.replace(_NO_MORE_PLUGINS, plugins)}
                for name, text in variables
            ],
            "validations": validations,
        },
    }


def _covered(draft: Draft, settings: AdmissionSettings) -> str:
    """Paths that must not change, as far as somebody is refused for it."""
    found = []
    for form in draft.forms:
        where = scope(form, "enforce", settings) if form.code in draft.covering else ""
        if where:
            found.append(f"({where} ? variables.{form.variables[-1][0]}.map(p, p[0]) : [])")
    return " + ".join(found) or "[]"


def _told(form: DraftForm, where: str) -> str:
    return form.problems if where == "true" else f"{where} ? {form.problems} : []"


def _validation(problems: str) -> Raw:
    text = f"{problems}.join('; ').replace('\\n', ' ')"
    return {
        "expression": f"{problems}.size() == 0",
        "messageExpression": f"bytes({text}).size() <= 5000 ? {text} : {text}.substring(0, 1200) + ' …'",
        "message": _UNREADABLE,
        "reason": "Invalid",
    }


def _erring(form: DraftForm, where: str) -> Raw:
    expression = form.erring if where == "true" else f"!({where}) || ({form.erring})"
    return {"expression": expression, "message": _UNREADABLE, "reason": "Invalid"}
