"""Updates of a Job in CEL: of its spec only counts and the priority change.

Both sides are compared without what stands for nothing and without what is the default, so a default that one side
lacks is no change. Other than in the webhook, values are compared as they are written: another spelling of the same
quantity or duration is a change.
"""

from pumice.webhook.policies.cel import each, joined, one, word
from pumice.webhook.policies.form import Form

__all__ = ["FROZEN", "SHIFTED", "UPDATES", "VARIABLES"]

_SAID = "v != null && v != '' && v != [] && v != {}"
_NO_PART = "['totalPartitions', 'minPartitions']"

VARIABLES = {
    "frozen": (
        "$spec.transformMap(k, v, !(k in ['minAvailable', 'priorityClassName', 'tasks', 'volumes']) && "
        f"{_SAID} && !(k == 'queue' && v == 'default') && !(k == 'maxRetry' && v in [0, 3]), dyn(v))"
    ),
    "frozenVolumes": (
        "$spec.?volumes.orValue([]).map(c, c.transformMap(k, v, "
        f"{_SAID} && !(k == 'volumeClaimName' && c.?volumeClaim.orValue(null) != null), dyn(v)))"
    ),
    "frozenTasks": (
        "$tasks.map(t, t.transformMap(k, v, !(k in ['name', 'replicas', 'minAvailable', 'partitionPolicy']) && "
        f"{_SAID} && !(k == 'maxRetry' && v in [0, 3]), dyn(v)))"
    ),
    "frozenParts": f"$parts.map(p, p.transformMap(k, v, !(k in {_NO_PART}) && {_SAID}, dyn(v)))",
}
"""What must not change, for both objects; tasks apart from the rest, and their partitions apart from them."""

UPDATES = {
    "sameTasks": "request.operation == 'UPDATE' && $names.size() == variables.old_names.size()",
    "otherOrder": (
        "$sameTasks && $names != variables.old_names && "
        "$names.all(n, $names.filter(m, m == n).size() == variables.old_names.filter(m, m == n).size())"
    ),
    "pairs": (
        "request.operation != 'UPDATE' ? [] : $sameTasks && !$otherOrder ? $names.transformList(i, n, [i, i]) : "
        "$names.transformList(i, n, n in variables.old_names, [i, variables.old_names.indexOf(n)])"
    ),
    "shiftedTasks": (
        "$names.size() == 0 ? ['spec.tasks'] : $names.transformList(i, n, i >= variables.old_names.size() || "
        "variables.old_names[i] != n, 'spec.tasks[' + string(i) + ']')"
    ),
}
"""What follows from both objects of an update: which task is compared with which stored one, and which stand elsewhere."""

SHIFTED = "spec.tasks", "shiftedTasks"
"""Where tasks come, go or change places, what is wrong with those that stay has to be told."""

_MUTABLE = (
    "'must not change; only priorityClassName and counts may be changed: minAvailable, and of a task replicas, "
    "minAvailable, totalPartitions and minPartitions'"
)


def _differing(new: str, old: str) -> str:
    """Keys of two maps that differ, as a list."""
    return (
        f"({new}.map(k, k).filter(k, !(k in {old}) || {new}[k] != {old}[k]) + "
        f"{old}.map(k, k).filter(k, !(k in {new})))"
    )


def _changes() -> tuple[str, ...]:
    updating, task = "request.operation == 'UPDATE'", "'spec.tasks[' + string(p[0]) + ']"
    of_spec = each(
        _differing("$frozen", "variables.old_frozen"),
        "i, k",
        "true",
        "'spec.' + string(k)",
        _MUTABLE,
    )
    of_task = each(
        _differing("$frozenTasks[p[0]]", "variables.old_frozenTasks[p[1]]"),
        "i, k",
        "true",
        f"{task}.' + string(k)",
        _MUTABLE,
    )

    def of_pair(condition: str, field: str, message: str) -> str:
        return each("$pairs", "i, p", condition, f"{task}.{field}'", message)

    return (
        f"({updating} ? {of_spec} : [])",
        one(
            f"{updating} && $frozenVolumes != variables.old_frozenVolumes",
            "'spec.volumes'",
            _MUTABLE,
        ),
        one("$otherOrder", "'spec.tasks'", "'must keep their order'"),
        f"$pairs.map(p, {of_task}).flatten()",
        of_pair(
            "$frozenParts[p[0]] != variables.old_frozenParts[p[1]]", "partitionPolicy", _MUTABLE
        ),
        of_pair(
            "$names[p[0]] != variables.old_names[p[1]]",
            "name",
            joined("'must not change, it was '", word("variables.old_names[p[1]]")),
        ),
    )


FROZEN = (
    Form("JOB-IMMUTABLE", joined(*_changes()), always=True),
    Form(
        "JOB-TASK-COUNT",
        one(
            "request.operation == 'UPDATE' && !$sameTasks",
            "'spec.tasks'",
            joined(
                "'tasks must be neither added nor removed: '",
                "string(variables.old_names.size())",
                "' before, '",
                "string($names.size())",
                "' now'",
            ),
        ),
        always=True,
    ),
)
"""The forms, which come before all others."""
