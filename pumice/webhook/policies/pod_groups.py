"""PodGroups in CEL: the gang's numbers, its topology, and its parts."""

from dataclasses import replace

from pumice.webhook.policies.cel import (
    each,
    integral,
    is_qualified,
    joined,
    measured,
    one,
    whole,
    word,
)
from pumice.webhook.policies.form import Form, Room
from pumice.webhook.policies.jobs import both_tiers
from pumice.webhook.policies.selectors import selector_problems

__all__ = ["ROOM", "UPDATES"]

_PART = "'spec.subGroupPolicy[' + string(i) + ']"
_BOTH = "'must not be set together with highestTierAllowed; keep one of the two'"


_MINIMUM = "int($spec.?minMember.orValue(0))"


def _place() -> tuple[Form, ...]:
    amounts = each(
        "$spec.?minResources.orValue({})",
        "k, v",
        "isQuantity(string(v)) && (sign(quantity(string(v))) < 0 || "
        f"(!{whole('v')} && {integral('k')}))",
        "'spec.minResources.' + k",
        joined("'must be 0 or more, and whole where things are counted, found '", word("v")),
    )
    return (
        Form(
            "PG-QUEUE-ROOT",
            one(
                "$spec.?queue.orValue('') == 'root'",
                "'spec.queue'",
                "'\"root\" holds other queues, name one of those'",
            ),
        ),
        Form(
            "PG-TOPO-BOTH",
            joined(
                one(
                    both_tiers("$spec.?networkTopology.orValue(null)"),
                    "'spec.networkTopology.highestTierName'",
                    _BOTH,
                ),
                each(
                    "$parts",
                    "i, p",
                    both_tiers("p.?networkTopology.orValue(null)"),
                    f"{_PART}.networkTopology.highestTierName'",
                    _BOTH,
                ),
            ),
        ),
        Form("PG-MIN-RESOURCES", amounts),
    )


def _counts() -> tuple[Form, ...]:
    minimum, tasks = _MINIMUM, "$spec.?minTaskMember.orValue({})"
    total = f"{tasks}.map(k, int({tasks}[k])).sum()"
    return (
        Form(
            "PG-MIN-TASK",
            each(
                tasks,
                "k, v",
                "int(v) < 0",
                "'spec.minTaskMember.' + k",
                "'must be 0 or more, found ' + string(v)",
            ),
        ),
        Form(
            "PG-MIN-SUM",
            one(
                f"{tasks}.all(k, int({tasks}[k]) >= 0) && {minimum} >= 0 && {minimum} < {total}",
                "'spec.minMember'",
                measured(
                    f"string({minimum}) + ' is less than the ' + string({total}) + ' pods that minTaskMember asks for in "
                    "all, so the single tasks are not looked at'",
                    f"{total} - {minimum}",
                    "'spec.minMember'",
                ),
            ),
        ),
    )


def _parts() -> tuple[Form, ...]:
    size = "(p.?subGroupSize.orValue(null) == null ? 1 : int(p.subGroupSize))"
    count = "int(p.minSubGroups)"
    counted = "p.?minSubGroups.orValue(null) != null"
    needed = f"{count} * ({size} > 1 ? {size} : 1)"
    return (
        Form(
            "PG-PART-NAME",
            each(
                "$partNames",
                "i, n",
                "n != '' && $partNames.indexOf(n) != i",
                f"{_PART}.name'",
                joined(word("n"), "' is the name of a sub-group already'"),
            ),
        ),
        Form(
            "PG-PART-SUM",
            each(
                "$parts",
                "i, p",
                f"{counted} && {count} >= 0 && {_MINIMUM} > 0 && {needed} > {_MINIMUM}",
                f"{_PART}.minSubGroups'",
                measured(
                    f"string({needed}) + ' pods are more than spec.minMember (' + string({_MINIMUM}) + ')'",
                    f"{needed} - {_MINIMUM}",
                    f"{_PART}'",
                ),
            ),
        ),
    )


def _labels() -> tuple[Form, ...]:
    keys = each(
        "p.?matchLabelKeys.orValue([])",
        "j, k",
        f"!{is_qualified('k')} || p.matchLabelKeys.indexOf(k) != j",
        f"{_PART}.matchLabelKeys[' + string(j) + ']'",
        joined("'must be the key of a label, named once, found '", word("k")),
    )
    selectors = selector_problems("p.labelSelector", f"{_PART}.labelSelector'")
    return (
        Form(
            "PG-PART-SELECTOR",
            (
                "$parts.transformList(i, p, p.?labelSelector.orValue(null) == null ? [] : "
                f"{selectors}).flatten()"
            ),
        ),
        Form("PG-PART-KEYS", f"$parts.transformList(i, p, {keys}).flatten()"),
    )


ROOM = Room(
    {
        "spec": "$object.?spec.orValue({})",
        "parts": "$spec.?subGroupPolicy.orValue([])",
        "partNames": "$parts.map(p, string(p.?name.orValue('')))",
    },
    (*_place(), *_counts(), *_parts(), *_labels()),
)
"""New PodGroups."""

UPDATES = replace(ROOM, forms=tuple(replace(form, later=True) for form in ROOM.forms))
"""Changed PodGroups, of which Volcano judges none.

Source: webhook specification, section 8.2; section 14, M20.
"""
