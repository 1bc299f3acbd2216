"""JobFlows in CEL: their flows and what waits for what. What they change in Jobs only the webhook judges."""

from pumice.webhook.policies.cel import each, is_subdomain, joined, one, word
from pumice.webhook.policies.form import Form, Room
from pumice.webhook.policies.graphs import circle, reaching

__all__ = ["ROOM"]

_PATH = "'spec.flows[' + string(i) + '].name'"


def _order() -> tuple[Form, ...]:
    target = "'spec.flows[' + string(i) + '].dependsOn.targets[' + string(k) + ']'"

    def awaited(condition: str, message: str) -> str:
        found = each("a", "k, n", condition, target, message)
        return f"$awaited.transformList(i, a, {found}).flatten()"

    return (
        Form(
            "FLOW-UNDEFINED",
            awaited("n != $names[i] && !(n in $names)", joined("'there is no flow '", word("n"))),
        ),
        Form(
            "FLOW-CYCLE",
            joined(
                awaited("n == $names[i]", joined("'flow '", word("n"), "' waits for itself'")),
                circle("'spec.flows'", "flows wait for each other in a circle: "),
            ),
        ),
    )


def _names() -> tuple[Form, ...]:
    job = "($name + '-' + n)"
    first = "$names.indexOf(n) == i"
    good = is_subdomain("n")
    return (
        Form(
            "FLOW-UPDATE",
            one(
                "request.operation == 'UPDATE' && object.?spec != oldObject.?spec",
                "'spec'",
                "'a change has no effect on a JobFlow that runs; delete it and make it anew to have other Jobs'",
            ),
            always=True,
        ),
        Form(
            "FLOW-EMPTY",
            one("$flows.size() == 0", "'spec.flows'", "'is empty, so that no Job is made'"),
        ),
        Form(
            "FLOW-NAME",
            each(
                "$names",
                "i, n",
                f"!{good}",
                _PATH,
                joined("'must be a DNS subdomain, found '", word("n")),
            ),
        ),
        Form(
            "FLOW-DUPLICATE",
            each(
                "$names",
                "i, n",
                f"{good} && !({first})",
                _PATH,
                joined(word("n"), "' is already the name of a flow'"),
            ),
        ),
        Form(
            "FLOW-JOB-NAME",
            each(
                "$names",
                "i, n",
                f"{good} && {first} && size({job}) > 63",
                _PATH,
                joined(
                    "'its Job would be named '",
                    word(job),
                    "', which must be at most 63 characters'",
                ),
            ),
        ),
    )


ROOM = Room(
    {
        "name": "string($object.metadata.?name.orValue(''))",
        "flows": "$object.?spec.?flows.orValue([])",
        "names": "$flows.map(f, string(f.?name.orValue('')))",
        "awaited": (
            "$flows.transformList(i, f, $names.lastIndexOf($names[i]) != i || f.?dependsOn.orValue(null) == null || "
            "f.dependsOn.?targets.orValue(null) == null ? [] : f.dependsOn.targets.map(n, string(n)))"
        ),
        **reaching("$names", "$awaited"),
    },
    (*_names(), *_order()),
)
"""New and changed JobFlows."""
