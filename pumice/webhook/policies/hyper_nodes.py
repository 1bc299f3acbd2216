"""HyperNodes in CEL: how their members are selected."""

from pumice.webhook.policies.cel import each, joined, one, word
from pumice.webhook.policies.form import Form, Room
from pumice.webhook.policies.selectors import selector_problems

__all__ = ["ROOM"]

_SELECTOR = "'spec.members[' + string(i) + '].selector"
_WAYS = (
    "['exactMatch', 'regexMatch', 'labelMatch'].filter(w, w in m.selector && m.selector[w] != null)"
)
_SELECTED = "m.?selector.orValue(null) != null"
_PATTERN = "m.?selector.?regexMatch.?pattern.orValue('')"


def _member(condition: str, field: str, message: str) -> str:
    return each("$members", "i, m", condition, f"{_SELECTOR}{field}'", message)


def _ways() -> tuple[Form, ...]:
    exact = "m.?selector.?exactMatch.?name.orValue('')"
    return (
        Form(
            "HN-NO-MEMBERS",
            one(
                "$members.size() == 0",
                "'spec.members'",
                "'must name what the HyperNode consists of'",
            ),
        ),
        Form(
            "HN-NO-SELECTOR",
            _member(
                f"!({_SELECTED})",
                "",
                "'must be set: one of exactMatch, regexMatch and labelMatch'",
            ),
        ),
        Form(
            "HN-INEXACT",
            _member(
                f"m.?type.orValue('') == 'HyperNode' && {_SELECTED} && {_WAYS}.size() > 0 && "
                f"{_WAYS} != ['exactMatch']",
                "",
                "'Volcano looks at members of type HyperNode only if they have exactMatch'",
            ),
        ),
        Form(
            "HN-SELF",
            _member(
                f"m.?type.orValue('') == 'HyperNode' && {exact} == $name",
                ".exactMatch.name",
                joined(word("$name"), "' is the HyperNode itself'"),
            ),
        ),
    )


def _others() -> tuple[Form, ...]:
    labels = "m.?selector.?labelMatch.orValue(null)"
    empty = f"{labels}.?matchLabels.orValue({{}}).size() == 0 && {labels}.?matchExpressions.orValue([]).size() == 0"
    selected = selector_problems("m.selector.labelMatch", f"{_SELECTOR}.labelMatch'")
    return (
        Form(
            "HN-EVERYTHING",
            _member(
                f"{labels} != null && {empty}",
                ".labelMatch",
                "'is empty, and so stands for all there are'",
            ),
        ),
        Form(
            "HN-LABELS",
            f"$members.transformList(i, m, {labels} == null ? [] : {selected}).flatten()",
        ),
        Form(
            "HN-DUPLICATE",
            each(
                "$members",
                "i, m",
                "$members.indexOf(m) != i",
                "'spec.members[' + string(i) + ']'",
                "'is the same as spec.members[' + string($members.indexOf(m)) + ']'",
            ),
        ),
        Form(
            "HN-REGEX",
            "$patterns.all(p, p in $standing || ''.matches(p) in [true, false])",
            erring=True,
        ),
    )


ROOM = Room(
    {
        "name": "string($object.metadata.?name.orValue(''))",
        "members": "$object.?spec.?members.orValue([])",
        "patterns": f"$members.map(m, string({_PATTERN}))",
    },
    (*_ways(), *_others()),
    between={"standing": "request.operation == 'UPDATE' ? variables.old_patterns : []"},
)
"""New and changed HyperNodes."""
