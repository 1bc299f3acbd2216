"""Defaults of a Job in CEL: variables, and the JSON patch that writes what is missing.

Source: webhook specification, section 4; section 15, items 1 and 10.
"""

from pumice.api import keys
from pumice.webhook.policies.job_plugins import dependent
from pumice.webhook.rules.jobs.defaults import DEFAULT_RETRIES
from pumice.webhook.rules.jobs.min_available import MAX_INT32

__all__ = ["SCHEDULER", "form"]

SCHEDULER = "$firstScheduler"
"""Stands within a text for the scheduler of Jobs that name none."""

_UPDATING = "variables.updating"


def _patch(condition: str, path: str, value: str) -> str:
    return f"({condition} ? [JSONPatch{{op: 'add', path: {path}, value: {value}}}] : [])"


def _minima(tasks: str) -> str:
    """What each task needs; the default of that is never negative."""
    parts = "(t.?partitionPolicy.orValue(null) == null ? {} : t.partitionPolicy)"
    least, size = (
        f"int({parts}.?{name}.orValue(0))" for name in ("minPartitions", "partitionSize")
    )
    replicas = "int(t.?replicas.orValue(0))"
    return (
        f"{tasks}.map(t, t.?minAvailable.orValue(null) != null ? int(t.minAvailable) : {least} > 0 ? "
        f"({least} * {size} > 0 ? {least} * {size} : 0) : {replicas} > 0 ? {replicas} : 0)"
    )


def _variables() -> dict[str, str]:
    mine = "m.?fieldsV1[?'f:spec'][?'f:minAvailable'].hasValue()"
    return {
        "updating": "request.operation == 'UPDATE'",
        "spec": "object.?spec.orValue({})",
        "old": "variables.updating ? oldObject.?spec.orValue({}) : {}",
        "tasks": "variables.spec.?tasks.orValue([])",
        "oldTasks": "variables.old.?tasks.orValue([])",
        "was": (
            "variables.tasks.transformList(i, t, i < variables.oldTasks.size() ? variables.oldTasks[i] : {})"
        ),
        "minima": _minima("variables.tasks"),
        "least": f"[0, [variables.minima.sum(), {MAX_INT32}].min()].max()",
        "follows": (
            "variables.updating && variables.oldTasks.size() > 0 && "
            "variables.spec.?minAvailable.orValue(null) == variables.old.?minAvailable.orValue(null) && "
            f"{_minima('variables.oldTasks')}.sum() == variables.old.?minAvailable.orValue(-1) && "
            "object.metadata.?managedFields.orValue([]).size() > 0 && "
            f"!object.metadata.managedFields.exists(m, {mine})"
        ),
        **_names(),
    }


def _names() -> dict[str, str]:
    """Names of tasks without one: by position, passing over those that another task bears.

    Each takes the next free number from its position on that no task before it has taken. So the number is, among
    the free ones, the place of the first from the position on, pushed back by the tasks before that crowd there.
    """
    name = "t.?name.orValue('')"
    ahead = "variables.free.filter(n, n < variables.unnamed[{0}]).size()"
    return {
        "stated": f"variables.tasks.map(t, {name})",
        "unnamed": f"variables.tasks.transformList(i, t, {name} == '', i)",
        "free": (
            "variables.unnamed.size() == 0 ? [] : lists.range(variables.tasks.size() * 2)"
            ".filter(n, !(('default' + string(n)) in variables.stated))"
        ),
        "placed": f"variables.unnamed.transformList(k, u, {ahead.format('k')} - k)",
        "numbers": (
            "variables.unnamed.transformList(k, u, "
            "variables.free[variables.placed.slice(0, k + 1).max() + k])"
        ),
    }


def form() -> tuple[dict[str, str], str]:
    """Variables and the patch."""
    spec, old = "variables.spec", "variables.old"
    retries = f"{DEFAULT_RETRIES}"

    def missing(field: str) -> str:
        """Whether a field of the spec is to be written, for which zero is as good as nothing."""
        return f"{spec}.?{field}.orValue(EMPTY) == EMPTY && (!{_UPDATING} || {old}.?{field}.orValue(EMPTY) != EMPTY)"

    zero, empty = "0", "''"
    least = f"{spec}.?minAvailable.orValue(null)"
    stored = f"{old}.?minAvailable.orValue(null)"
    plugins = [
        _patch(
            f"[{', '.join(map(repr, by))}].exists(p, p in {spec}.?plugins.orValue({{}})) && "
            f"!('{name}' in {spec}.plugins) && (!{_UPDATING} || '{name}' in {old}.?plugins.orValue({{}}))",
            f"'/spec/plugins/{name}'",
            "[]",
        )
        for name, by in dependent().items()
    ]
    parts = [
        "(has(object.spec) ? [] : [JSONPatch{op: 'add', path: '/spec', value: Object.spec{}}])",
        _patch(
            missing("queue").replace("EMPTY", empty), "'/spec/queue'", f"'{keys.DEFAULT_QUEUE}'"
        ),
        _patch(
            missing("schedulerName").replace("EMPTY", empty),
            "'/spec/schedulerName'",
            f"({_UPDATING} ? string({old}.schedulerName) : '{SCHEDULER}')",
        ),
        _patch(missing("maxRetry").replace("EMPTY", zero), "'/spec/maxRetry'", retries),
        _tasks(retries),
        _patch(
            f"{least} != variables.least && ({least} == null || {least} == 0 ? "
            f"!{_UPDATING} || ({stored} != null && {stored} != {least}) : variables.follows)",
            "'/spec/minAvailable'",
            "variables.least",
        ),
        *plugins,
    ]
    return _variables(), " + ".join(parts)


def _tasks(retries: str) -> str:
    was, path = "variables.was[i]", "'/spec/tasks/' + string(i) + '/"
    pod, pod_before = ("t.?template.?spec", f"{was}.?template.?spec")
    additions = (
        _patch(
            f"t.?name.orValue('') == '' && (!{_UPDATING} || {was}.?name.orValue('') != '')",
            f"{path}name'",
            "'default' + string(variables.numbers[variables.unnamed.indexOf(i)])",
        ),
        _patch(
            f"{pod}.?hostNetwork.orValue(false) == true && {pod}.?dnsPolicy.orValue('') == '' && "
            f"(!{_UPDATING} || {pod_before}.?dnsPolicy.orValue('') != '')",
            f"{path}template/spec/dnsPolicy'",
            "'ClusterFirstWithHostNet'",
        ),
        _patch(
            f"t.?minAvailable.orValue(null) == null && "
            f"(!{_UPDATING} || {was}.?minAvailable.orValue(null) != null)",
            f"{path}minAvailable'",
            "variables.minima[i]",
        ),
        _patch(
            f"t.?maxRetry.orValue(0) == 0 && (!{_UPDATING} || {was}.?maxRetry.orValue(0) != 0)",
            f"{path}maxRetry'",
            retries,
        ),
    )
    return f"variables.tasks.transformList(i, t, {' + '.join(additions)}).flatten()"
