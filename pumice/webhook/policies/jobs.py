"""Jobs in CEL, whether they are objects or stand inside another: numbers, names, partitions, topology, order.

What is defaulted is reckoned with as its default, so a Job inside a CronJob is judged as it will be.
"""

from dataclasses import dataclass, replace

from pumice.webhook.policies import containers, job_plugins, job_volumes, lifecycle_policies
from pumice.webhook.policies.cel import QUALIFIED, each, is_label, joined, measured, one, word
from pumice.webhook.policies.form import Form
from pumice.webhook.policies.graphs import circle, reaching
from pumice.webhook.rules.jobs.min_available import MAX_INT32

__all__ = ["JobPlace", "both_tiers", "job_forms", "job_variables", "later_forms"]

_OF_THE_RUN = frozenset({"JOB-PODNAME", "JOB-PODNAME-INDEX"})
"""Names that end in the moment of a run, or follow the name of a JobFlow, may have too little room."""


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a Job stands.

    Attributes:
        path: Path of its spec.
        spec: Expression for its spec, a map.
        name: Expression for its name; of a Job that is yet to be made, one as long as it will be.
        creating: Expression for whether the Job is a new one.
    """

    path: str
    spec: str
    name: str
    creating: str = "true"

    def at(self, field: str) -> str:
        """Expression for the path of a field of the spec."""
        return f"'{self.path}.{field}'"

    def of_task(self, field: str) -> str:
        """Expression for the path of a field of task `i`."""
        return f"'{self.path}.tasks[' + string(i) + '].{field}'"


def job_variables(place: JobPlace) -> dict[str, str]:
    """What the forms of a Job need."""
    stated = "t.?minAvailable.orValue(null)"
    parts = "t.?partitionPolicy.orValue(null)"
    return {
        "name": place.name,
        "spec": place.spec,
        "tasks": "$spec.?tasks.orValue([])",
        "names": "$tasks.transformList(i, t, t.?name.orValue('') == '' ? 'default' + string(i) : string(t.name))",
        "sizes": "$tasks.map(t, int(t.?replicas.orValue(0)))",
        "stated": f"$tasks.map(t, {stated} == null ? -1 : int(t.minAvailable))",
        "parts": f"$tasks.map(t, {parts} == null ? {{}} : t.partitionPolicy)",
        "minima": (
            "$tasks.transformList(i, t, $stated[i] >= 0 ? $stated[i] : "
            "int($parts[i].?minPartitions.orValue(0)) > 0 ? "
            "int($parts[i].minPartitions) * int($parts[i].partitionSize) : $sizes[i])"
        ),
        "total": "$sizes.sum()",
        "least": "$minima.sum()",
        "minimum": ("int($spec.?minAvailable.orValue(0)) > 0 ? int($spec.minAvailable) : $least"),
        "awaited": (
            "$tasks.map(t, t.?dependsOn.orValue(null) == null || t.dependsOn.?name.orValue(null) == null ? [] : "
            "t.dependsOn.name.map(n, string(n)))"
        ),
        **reaching("$names", "$awaited"),
        **containers.variables(place.path),
        **lifecycle_policies.variables(place.path),
        **job_volumes.variables(),
        **job_plugins.variables(),
    }


def job_forms(place: JobPlace) -> tuple[Form, ...]:
    """All forms of a Job, in the order in which the rules judge."""
    return (
        _tasks(place),
        *_names(place),
        *_counts(place),
        *lifecycle_policies.forms(place.path),
        *containers.forms(),
        *_partitions(place),
        *_topology(place),
        *job_plugins.forms(place.path),
        *job_volumes.forms(place.path, place.creating),
        *_order(place),
        _queue(place),
    )


def later_forms(place: JobPlace) -> tuple[Form, ...]:
    """All forms of a Job that another object will make."""
    return tuple(
        replace(form, level="warn" if form.code in _OF_THE_RUN else None, later=True)
        for form in job_forms(place)
    )


def _tasks(place: JobPlace) -> Form:
    message = "'must have at least one task, found none'"
    return Form("JOB-NO-TASKS", one("$tasks.size() == 0", place.at("tasks"), message))


def _names(place: JobPlace) -> tuple[Form, ...]:
    path = place.of_task("name")
    bad = f"size($name) > 63 || !$name.matches('{QUALIFIED}')"
    last = "$name + '-' + n + '-' + string($sizes[i] > 0 ? $sizes[i] - 1 : 0)"
    stem = "size($name) + size(n) + 2"
    fits = f"{is_label('n')} && $names.indexOf(n) == i && !({bad}) && size({last}) > 63"
    shown = joined(
        "'its last pod would be named \"'", last, "'\", which must be at most 63 characters'"
    )
    long_ = measured(shown, f"size({last})", path)
    return (
        Form(
            "JOB-NAME",
            one(bad, "'metadata.name'", "'must fit into a label, 63 characters at most'"),
        ),
        Form(
            "JOB-DUP-TASK",
            each(
                "$names",
                "i, n",
                f"{is_label('n')} && $names.indexOf(n) != i",
                path,
                joined(
                    word("n"),
                    f"' is already the name of {place.path}.tasks['",
                    "string($names.indexOf(n))",
                    "']'",
                ),
            ),
        ),
        Form(
            "JOB-PODNAME",
            each("$names", "i, n", f"{fits} && {stem} + size(string(i)) > 63", path, long_),
        ),
        Form(
            "JOB-PODNAME-INDEX",
            each("$names", "i, n", f"{fits} && {stem} + size(string(i)) <= 63", path, long_),
        ),
        Form(
            "JOB-LABEL",
            one(
                "size(string($spec.?queue.orValue(''))) > 63",
                place.at("queue"),
                "'becomes a label of every pod, which must be at most 63 characters'",
            ),
        ),
    )


def _counts(place: JobPlace) -> tuple[Form, ...]:
    return (*_of_tasks(place), *_of_the_job(place))


def _of_tasks(place: JobPlace) -> tuple[Form, ...]:
    tasks, least = place.at("tasks"), place.of_task("minAvailable")
    total = f"'must have at most {MAX_INT32} replicas together, found ' + string($total)"
    most = "'must be at most replicas (' + string($sizes[i]) + '), found ' + string(m)"
    return (
        Form("JOB-OVERFLOW", one(f"$total > {MAX_INT32}", tasks, measured(total, "$total", tasks))),
        Form(
            "JOB-TASK-MINAVAIL",
            each("$stated", "i, m", "m > $sizes[i]", least, measured(most, "m - $sizes[i]", least)),
        ),
        Form(
            "JOB-REPLICAS",
            each(
                "$sizes",
                "i, n",
                "n == 0",
                place.of_task("replicas"),
                "'is 0 or not set, so the task has no pods'",
            ),
        ),
    )


def _of_the_job(place: JobPlace) -> tuple[Form, ...]:
    wanted = "int($spec.?minSuccess.orValue(null) == null ? 0 : $spec.minSuccess)"
    apart = "($minimum > $least ? $minimum - $least : $least - $minimum)"

    def form(code: str, field: str, condition: str, message: str, excess: str) -> Form:
        path = place.at(field)
        found = measured(message, excess, path)
        return Form(code, one(f"$tasks.size() > 0 && {condition}", path, found))

    return (
        form(
            "JOB-MINAVAIL-TOTAL",
            "minAvailable",
            "$minimum > $total",
            "'must be at most ' + string($total) + ', the replicas of all tasks, found ' + string($minimum)",
            "$minimum - $total",
        ),
        form(
            "JOB-MINAVAIL-SUM",
            "minAvailable",
            f"$minimum > 0 && $minimum <= $total && $minimum != $least && $least <= {MAX_INT32}",
            "'is ' + string($minimum) + ', while minAvailable of the tasks adds up to ' + string($least)",
            apart,
        ),
        form(
            "JOB-MIN-SUCCESS",
            "minSuccess",
            f"{wanted} > $total",
            "'cannot be reached, since it is more than the replicas of all tasks (' + string($total) + '), found ' + "
            f"string({wanted})",
            f"{wanted} - $total",
        ),
    )


def _partitions(place: JobPlace) -> tuple[Form, ...]:
    total, size = "int(p.totalPartitions)", "int(p.partitionSize)"
    least = "int(p.?minPartitions.orValue(0))"
    sound = f"p != {{}} && {total} > 0 && {size} > 0"
    replicas, minimum = place.of_task("replicas"), place.of_task("minAvailable")
    fewest = place.of_task("partitionPolicy.minPartitions")

    def apart(left: str, right: str) -> str:
        return f"({left} > {right} ? {left} - {right} : {right} - {left})"

    return (
        Form(
            "PART-MIN-TOTAL",
            each(
                "$parts",
                "i, p",
                f"{sound} && {least} > {total}",
                fewest,
                measured(
                    f"'must be at most totalPartitions (' + string({total}) + '), found ' + string({least})",
                    f"{least} - {total}",
                    fewest,
                ),
            ),
        ),
        Form(
            "PART-PRODUCT",
            each(
                "$parts",
                "i, p",
                f"{sound} && $sizes[i] != {total} * {size}",
                replicas,
                measured(
                    f"'must be totalPartitions × partitionSize = ' + string({total} * {size}) + ', found ' + "
                    "string($sizes[i])",
                    apart("$sizes[i]", f"{total} * {size}"),
                    replicas,
                ),
            ),
        ),
        Form(
            "PART-MIN",
            each(
                "$parts",
                "i, p",
                f"{sound} && {least} > 0 && $stated[i] >= 0 && $stated[i] != {least} * {size}",
                minimum,
                measured(
                    f"'must be minPartitions × partitionSize = ' + string({least} * {size}) + ', found ' + "
                    "string($stated[i]) + '; leave it out to get this value'",
                    apart("$stated[i]", f"{least} * {size}"),
                    minimum,
                ),
            ),
        ),
    )


def both_tiers(topology: str) -> str:
    """Whether a topology, which may be null or missing, names its highest tier twice."""
    return (
        f"{topology} != null && {topology}.?highestTierAllowed.orValue(null) != null && "
        f"{topology}.?highestTierName.orValue('') != ''"
    )


def _topology(place: JobPlace) -> tuple[Form, ...]:
    whole, part = (f"{owner}.?networkTopology.orValue(null)" for owner in ("$spec", "p"))
    message = "'must not be set together with highestTierAllowed; keep one of the two'"
    where = place.of_task("partitionPolicy.networkTopology.highestTierName")
    found = one(both_tiers(whole), place.at("networkTopology.highestTierName"), message)
    return (
        Form(
            "JOB-TOPO-BOTH",
            joined(found, each("$parts", "i, p", both_tiers(part), where, message)),
        ),
    )


def _order(place: JobPlace) -> tuple[Form, ...]:
    path = f"'{place.path}.tasks[' + string(i) + '].dependsOn.name[' + string(k) + ']'"
    wrong = (
        "a.transformList(k, n, a.indexOf(n) != k || n == $names[i] || !(n in $names), "
        f"[{path}, a.indexOf(n) != k ? {word('n')} + ' is already listed' : "
        f"n == $names[i] ? 'task ' + {word('n')} + ' waits for itself' : 'there is no task ' + {word('n')}])"
    )
    iteration = "t.?dependsOn.?iteration.orValue('')"
    return (
        Form(
            "JOB-NOT-DAG",
            joined(
                f"$awaited.transformList(i, a, {wrong}).flatten()",
                circle(place.at("tasks"), "tasks wait for each other in a circle: "),
            ),
        ),
        Form(
            "JOB-DEP-ITERATION",
            each(
                "$tasks",
                "i, t",
                f"t.?dependsOn.orValue(null) != null && !({iteration} in ['', 'any', 'all'])",
                place.of_task("dependsOn.iteration"),
                joined(
                    "'must be any or all, found '",
                    word("t.dependsOn.iteration"),
                    "', which counts as all'",
                ),
            ),
        ),
    )


def _queue(place: JobPlace) -> Form:
    message = "'\"root\" holds other queues, name one of those'"
    return Form(
        "JOB-QUEUE-ROOT", one("$spec.?queue.orValue('') == 'root'", place.at("queue"), message)
    )
