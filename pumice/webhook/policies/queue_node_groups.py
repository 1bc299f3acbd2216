"""Node groups of a Queue in CEL."""

from pumice.webhook.policies.cel import each, is_label_value, joined, word
from pumice.webhook.policies.form import Form

__all__ = ["VARIABLES", "forms"]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_LISTS = {
    "wantedRequired": ("nodeGroupAffinity", _REQUIRED),
    "wantedPreferred": ("nodeGroupAffinity", _PREFERRED),
    "unwantedRequired": ("nodeGroupAntiAffinity", _REQUIRED),
    "unwantedPreferred": ("nodeGroupAntiAffinity", _PREFERRED),
}

VARIABLES = {
    name: f"$spec.?affinity.?{terms}.?{field}.orValue([]).map(g, string(g))"
    for name, (terms, field) in _LISTS.items()
}
"""The four lists."""


def _path(name: str) -> str:
    terms, field = _LISTS[name]
    return f"'spec.affinity.{terms}.{field}[' + string(i) + ']'"


def _in(name: str, condition: str, message: str) -> str:
    return each(f"${name}", "i, g", condition, _path(name), message)


def _in_all(condition: str, message: str) -> str:
    return joined(*(_in(name, condition.replace("LIST", f"${name}"), message) for name in _LISTS))


def forms() -> tuple[Form, ...]:
    """The forms, for the lists each for itself and against each other."""
    good = f"g != '' && {is_label_value('g')}"
    never = joined(word("g"), "' is never used, because it is in required anti-affinity'")
    return (
        Form(
            "Q-GROUP-NAME",
            _in_all(
                f"!({good})",
                joined("'must be a label value and not empty, found '", word("g")),
            ),
        ),
        Form(
            "Q-GROUP-DUP",
            _in_all(
                f"{good} && LIST.indexOf(g) != i", joined(word("g"), "' is in the list already'")
            ),
        ),
        Form(
            "Q-GROUP-BOTH",
            _in(
                "unwantedRequired",
                "g in $wantedRequired",
                joined(
                    word("g"), "' is in required affinity too, so it must be used and must not'"
                ),
            ),
        ),
        Form(
            "Q-GROUP-PREFERENCE",
            joined(
                _in("wantedPreferred", "g in $unwantedRequired", never),
                _in("unwantedPreferred", "g in $unwantedRequired", never),
                _in(
                    "unwantedPreferred",
                    "!(g in $unwantedRequired) && g in $wantedPreferred",
                    joined(word("g"), "' is in preferred affinity too; it is used last'"),
                ),
            ),
        ),
    )
