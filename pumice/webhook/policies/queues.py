"""Queues in CEL: what can be said of one without the others.

What stands in the tree above and below, what other queues claim, and who waits in a queue, only the webhook sees.
"""

from pumice.api import keys
from pumice.webhook.policies import queue_amounts, queue_hierarchy, queue_node_groups
from pumice.webhook.policies.cel import each, joined, one, word
from pumice.webhook.policies.form import Form, Room

__all__ = ["DELETION", "ROOM"]

_PARENT = "string($spec.?parent.orValue(''))"


def _forms() -> tuple[Form, ...]:
    return (
        _root_frozen(),
        *queue_amounts.forms(),
        *_clusters(),
        *queue_node_groups.forms(),
        *queue_hierarchy.forms(),
        Form(
            "Q-SELF-PARENT",
            one(
                f"$name != 'root' && {_PARENT} == $name",
                "'spec.parent'",
                joined(word("$name"), "' cannot be its own parent'"),
            ),
        ),
        Form(
            "Q-ROOT-PARENT",
            one(
                f"$name == 'root' && {_PARENT} != ''",
                "'spec.parent'",
                joined("'root has no parent, found '", word(_PARENT)),
            ),
        ),
        *queue_amounts.orders(),
    )


def _root_frozen() -> Form:
    def same(field: str) -> str:
        new, old = (f"{owner}.?spec.?{field}.orValue({{}})" for owner in ("object", "oldObject"))
        return (
            f"{new}.size() == {old}.size() && {new}.all(k, k in {old} && (isQuantity(string({new}[k])) && "
            f"isQuantity(string({old}[k])) ? quantity(string({new}[k])).compareTo(quantity(string({old}[k]))) == 0 "
            f": {new}[k] == {old}[k]))"
        )

    message = "'of the queue root must not change'"
    frozen = "request.operation == 'UPDATE' && $name == 'root'"
    return Form(
        "Q-ROOT-FROZEN",
        joined(
            *(
                one(f"{frozen} && !({same(field)})", f"'spec.{path}'", message)
                for field, path in (
                    ("capability", "capability"),
                    ("deserved", "deserved"),
                    ("guarantee.?resource", "guarantee.resource"),
                )
            )
        ),
        setting=("enable_root_queue_protection", True),
        always=True,
    )


def _clusters() -> tuple[Form, ...]:
    where = "'spec.extendClusters[' + string(i) + ']"
    negative = each(
        "c.?capacity.orValue({})",
        "k, v",
        "isQuantity(string(v)) && sign(quantity(string(v))) < 0",
        f"{where}.capacity.' + k",
        joined("'must be 0 or more, found '", word("v")),
    )
    return (
        Form(
            "Q-CLUSTER-NAME",
            each("$clusterNames", "i, n", "n == ''", f"{where}.name'", "'must be set'"),
        ),
        Form(
            "Q-CLUSTER-DUP",
            each(
                "$clusterNames",
                "i, n",
                "n != '' && $clusterNames.indexOf(n) != i",
                f"{where}.name'",
                joined(word("n"), "' is in extendClusters already'"),
            ),
        ),
        Form(
            "Q-CLUSTER-WEIGHT",
            each(
                "$clusters",
                "i, c",
                "int(c.?weight.orValue(0)) < 0",
                f"{where}.weight'",
                "'must be 0 or more, found ' + string(c.weight)",
            ),
        ),
        Form("Q-CLUSTER-CAPACITY", f"$clusters.transformList(i, c, {negative}).flatten()"),
    )


ROOM = Room(
    {
        "name": "string($object.metadata.?name.orValue(''))",
        "spec": "$object.?spec.orValue({})",
        "clusters": "$spec.?extendClusters.orValue([])",
        "clusterNames": "$clusters.map(c, string(c.?name.orValue('')))",
        **queue_amounts.VARIABLES,
        **queue_node_groups.VARIABLES,
        **queue_hierarchy.VARIABLES,
    },
    _forms(),
)
"""New and changed queues."""


def _held(code: str, *, checked: bool) -> Form:
    pods = "$object.?status.?allocated.?pods.orValue('0')"
    message = joined(
        "'queue '", word("$name"), "' still has pods with resources: '", f"string({pods})"
    )
    found = one(
        f"$usual && isQuantity(string({pods})) && quantity(string({pods})).compareTo(quantity('1')) >= 0",
        "''",
        message,
    )
    return Form(code, found, setting=("enable_queue_allocated_pods_check", checked), deletion=True)


def _deletion() -> tuple[Form, ...]:
    counters = " + ".join(
        f"int($object.?status.?{each}.orValue(0))"
        for each in ("pending", "running", "inqueue", "unknown")
    )
    return (
        Form(
            "Q-DEL-DEFAULT",
            one(
                f"$name == '{keys.DEFAULT_QUEUE}'",
                "''",
                "'the queue default must stay: Jobs that name no queue go there'",
            ),
            deletion=True,
        ),
        Form(
            "Q-DEL-ROOT",
            one(
                f"$name == '{keys.ROOT_QUEUE}'",
                "''",
                "'the queue root must stay: all other queues are below it'",
            ),
            deletion=True,
        ),
        _held("Q-DEL-PODS", checked=True),
        _held("Q-DEL-RUNNING", checked=False),
        Form(
            "Q-DEL-GROUPS",
            one(
                f"$usual && {counters} > 0",
                "''",
                joined(
                    "'queue '",
                    word("$name"),
                    f"' still has PodGroups by its status: ' + string({counters})",
                    "'; close it, and wait until they are completed or delete them'",
                ),
            ),
            deletion=True,
        ),
    )


DELETION = Room(
    {
        "name": "string($object.metadata.?name.orValue(''))",
        "usual": f"!($name in ['{keys.DEFAULT_QUEUE}', '{keys.ROOT_QUEUE}'])",
    },
    _deletion(),
)
"""Queues that are deleted."""
