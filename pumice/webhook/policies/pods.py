"""Pods in CEL: the annotations that limit how many of a Job are taken away at once."""

from pumice.api import keys
from pumice.webhook.policies.cel import each, joined, one, texts, word
from pumice.webhook.policies.form import Form, Room

__all__ = ["ROOM"]

_KEYS = (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE)
_INTEGER = "^[+-]?0*[0-9]{1,19}$"
_MOST, _LEAST = str(2**63 - 1), str(2**63)
_PLAIN = "^(0|-?[1-9][0-9]*|(0|[1-9][0-9]*)%)$"
_NUMBER = "b.value.replace('%', '')"
_LAST = f"{_NUMBER}.substring({_NUMBER}.size() - {len(_MOST)})"
_FITS = f"{_LAST} <= ({_NUMBER}.startsWith('-') ? '{_LEAST}' : '{_MOST}')"  # a sign comes before all digits
_IS = f"({_NUMBER}.matches('{_INTEGER}') && ({_NUMBER}.size() < {len(_MOST)} || {_FITS}))"
_VALUE = f"int({_NUMBER}.replace('+', ''))"
_SHARE = "b.value.contains('%')"


def _budget(condition: str, message: str) -> str:
    path = "'metadata.annotations[' + b.key + ']'"
    return each(
        "$budgets", "i, b", condition, path, joined(f"'{message}, found '", word("b.value"))
    )


_SOUND = f"{_IS} && ({_SHARE} ? {_VALUE} >= 1 && {_VALUE} <= 99 : {_VALUE} > 0)"

ROOM = Room(
    {
        "budgets": (
            f"{texts(_KEYS)}.filter(k, k in $object.metadata.?annotations.orValue({{}}))"
            ".map(k, {'key': k, 'value': string($object.metadata.annotations[k])})"
        ),
    },
    (
        Form("POD-JDB-INT", _budget(f"{_IS} && !{_SHARE} && {_VALUE} <= 0", "must be 1 or more")),
        Form(
            "POD-JDB-PARSE",
            _budget(f"!{_IS}", "must be a number of pods such as 2, or a percentage such as 50%"),
        ),
        Form(
            "POD-JDB-FORM",
            _budget(
                f"{_SOUND} && !b.value.matches('{_PLAIN}')",
                "must be written plainly, such as 2 or 50%",
            ),
        ),
        Form(
            "POD-JDB-PERCENT",
            _budget(
                f"{_IS} && {_SHARE} && ({_VALUE} < 1 || {_VALUE} > 99)",
                "must be between 1% and 99%",
            ),
        ),
        Form(
            "POD-JDB-BOTH",
            one(
                "$budgets.size() > 1",
                f"'metadata.annotations[{_KEYS[1]}]'",
                f"'must not be set together with {_KEYS[0]}; keep one of the two'",
            ),
        ),
    ),
)
"""New pods of our schedulers."""
