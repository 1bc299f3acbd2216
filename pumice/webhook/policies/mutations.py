"""Policies that write defaults: for Jobs, Queues and PodGroups, what the webhook writes without looking further.

Each yields a JSON patch of single fields and is empty when nothing is missing, so it may be asked again at any time.
An update gets a default only where the stored object has it.
"""

from typing import Any

from pumice.api import keys, kinds
from pumice.webhook.groups.model import NO_GROUPS
from pumice.webhook.policies import job_defaults
from pumice.webhook.policies.drafts import match_constraints
from pumice.webhook.policies.manifests import API_VERSION, binding
from pumice.webhook.policies.queue_hierarchy import annotation
from pumice.webhook.registrations import EXEMPT_NAMESPACES, REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings

__all__ = ["DEFAULTED", "mutations", "patch"]

Raw = dict[str, Any]
_UPDATE = "request.operation == 'UPDATE'"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def patch(condition: str, path: str, value: str) -> str:
    """An addition to a JSON patch, if a condition holds: a list."""
    return f"({condition} ? [JSONPatch{{op: 'add', path: {path}, value: {value}}}] : [])"


def _with_spec(*additions: str) -> str:
    """A patch that begins with an empty spec where there is none."""
    return " + ".join(
        (
            "(has(object.spec) ? [] : [JSONPatch{op: 'add', path: '/spec', value: Object.spec{}}])",
            *additions,
        )
    )


def _queue() -> tuple[dict[str, str], str]:
    hierarchy, weights = (
        annotation("object", key) for key in (keys.HIERARCHY, keys.HIERARCHY_WEIGHTS)
    )
    before = annotation("oldObject", keys.HIERARCHY)
    moved = "variables.path != '' && variables.weights != '' && (!variables.updating || variables.before != variables.path)"
    rooted = f"{moved} && variables.path.split('/')[0] != '{keys.ROOT_QUEUE}'"
    spec, old = "variables.spec", "variables.old"

    def noted(key: str, value: str) -> str:
        return patch(rooted, f"'/metadata/annotations/' + jsonpatch.escapeKey('{key}')", value)

    return {
        "updating": _UPDATE,
        "spec": "object.?spec.orValue({})",
        "old": f"{_UPDATE} ? oldObject.?spec.orValue({{}}) : {{}}",
        "path": hierarchy,
        "weights": weights,
        "before": f"{_UPDATE} ? {before} : ''",
    }, _with_spec(
        noted(keys.HIERARCHY, f"'{keys.ROOT_QUEUE}/' + variables.path"),
        noted(keys.HIERARCHY_WEIGHTS, "'1/' + variables.weights"),
        patch(
            f"{spec}.?reclaimable.orValue(null) == null && "
            f"(!variables.updating || {old}.?reclaimable.orValue(null) != null)",
            "'/spec/reclaimable'",
            "true",
        ),
        patch(
            f"{spec}.?weight.orValue(0) == 0 && (!variables.updating || {old}.?weight.orValue(0) != 0)",
            "'/spec/weight'",
            "1",
        ),
    )


def _pod_group() -> tuple[dict[str, str], str]:
    applied = annotation("object", _LAST_APPLIED)
    queue = "variables.queue"
    owned = (
        "object.metadata.?managedFields.orValue([]).exists(m, m.?operation.orValue('') == 'Apply' && "
        "'f:spec' in m.?fieldsV1.orValue({}) && 'f:queue' in m.fieldsV1['f:spec'])"
    )
    of_part = _mode(
        "p.?networkTopology", "'/spec/subGroupPolicy/' + string(i) + '/networkTopology/mode'"
    )
    spec = "variables.applied.substring(variables.applied.indexOf('\"spec\":{'))"
    chosen = (
        "variables.applied == '' ? variables.owned : variables.applied.contains('\"spec\":{') && "
        f'{spec}.contains(\'"queue":"{keys.DEFAULT_QUEUE}"\')'
    )
    right = (
        f"!({queue} in ['', '{keys.DEFAULT_QUEUE}']) ? {queue} : "
        f"variables.wanted == '' || ({queue} != '' && variables.chosen) ? '{keys.DEFAULT_QUEUE}' : variables.wanted"
    )
    return {
        "queue": "string(object.?spec.?queue.orValue(''))",
        "wanted": annotation("namespaceObject", keys.NAMESPACE_QUEUE),
        "applied": applied,
        "owned": owned,
        "chosen": chosen,
        "right": right,
    }, _with_spec(
        patch(
            f"variables.right != {queue} && "
            f"(!({_UPDATE}) || oldObject.?spec.?queue.orValue('') == variables.right)",
            "'/spec/queue'",
            "variables.right",
        ),
        _mode("object.?spec.?networkTopology", "'/spec/networkTopology/mode'"),
        f"object.?spec.?subGroupPolicy.orValue([]).transformList(i, p, {of_part}).flatten()",
    )


def _mode(topology: str, path: str) -> str:
    return patch(f"{topology}.?mode.orValue('hard') == ''", path, "'hard'")


_FORMS = {kinds.JOB: job_defaults.form, kinds.QUEUE: _queue, kinds.POD_GROUP: _pod_group}

DEFAULTED = frozenset(_FORMS)
"""Kinds whose defaults policies write."""


def mutations(
    settings: AdmissionSettings, *, exempt_namespaces: tuple[str, ...] = EXEMPT_NAMESPACES
) -> list[Raw]:
    """All policies that mutate, each followed by its binding.

    Args:
        settings: Settings of admission; the first scheduler name is that of Jobs that name none.
        exempt_namespaces: Namespaces whose objects are never asked about.
    """
    found: list[Raw] = []
    for each in REGISTRATIONS:
        if not each.mutating or each.kind not in _FORMS:
            continue
        variables, expression = _FORMS[each.kind]()
        conditions = each.conditions(settings, NO_GROUPS)
        name = f"pumice-{each.kind.plural}-defaults"
        expression = expression.replace(job_defaults.SCHEDULER, settings.scheduler_names[0])
        spec = {
            "failurePolicy": each.failure_policy,
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": match_constraints(each, each.operations, exempt_namespaces),
            "matchConditions": [
                {"name": condition.name, "expression": condition.expression}
                for condition in conditions
            ],
            "variables": [{"name": key, "expression": text} for key, text in variables.items()],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        }
        found += [
            {
                "apiVersion": API_VERSION,
                "kind": "MutatingAdmissionPolicy",
                "metadata": {"name": name},
                "spec": spec,
            },
            binding("Mutating", name),
        ]
    return found
