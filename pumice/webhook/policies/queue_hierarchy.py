"""The annotations of hierarchical fair share in CEL."""

from pumice.api import keys
from pumice.webhook.policies.cel import each, joined, one, word
from pumice.webhook.policies.form import Form

__all__ = ["VARIABLES", "annotation", "forms"]


def annotation(owner: str, key: str) -> str:
    """An annotation of an object, an empty text when it is not there."""
    return f"{owner}.metadata.?annotations[?'{key}'].orValue('')"


VARIABLES = {
    "hierarchy": annotation("$object", keys.HIERARCHY),
    "weights": annotation("$object", keys.HIERARCHY_WEIGHTS),
    "shares": (
        "$weights == '' && ($hierarchy == '' || $hierarchy.contains('/')) ? [] : $weights.split('/')"
    ),
}
"""The path and the weights of its steps; of one step no weight is a weight that is no number."""

_PATH = f"'metadata.annotations[{keys.HIERARCHY_WEIGHTS}]'"
_NOT_FINITE = "(?i)^([+]?(inf|infinity)|nan)$"
_DECIMAL = r"([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"
_HEX = r"0[xX]([0-9a-fA-F]+\\.?[0-9a-fA-F]*|\\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
_NUMBER = f"(?i)^([+-]?({_DECIMAL}|{_HEX}|inf|infinity)|nan)$"
_NOT_ABOVE_0 = r"^(-.*|[+]?([0.]+([eE].*)?|0[xX][0.]+[pP].*))$"


def forms() -> tuple[Form, ...]:
    """The forms.

    Source: webhook specification, section 10.3.
    """

    def weight(condition: str, message: str) -> str:
        return each("$shares", "i, w", condition, _PATH, joined(f"'{message}, found '", word("w")))

    steps = "$hierarchy.split('/').size()"
    return (
        Form(
            "Q-HIER-LEN",
            one(
                f"($hierarchy != '' || $weights != '') && {steps} != $weights.split('/').size()",
                _PATH,
                f"'must have one weight for each of the ' + string({steps}) + ' steps of ' + {word('$hierarchy')}",
            ),
        ),
        Form(
            "Q-HIER-WEIGHT-FINITE", weight(f"w.matches('{_NOT_FINITE}')", "must be finite numbers")
        ),
        Form("Q-HIER-WEIGHT-NUM", weight(f"!w.matches('{_NUMBER}')", "must be numbers")),
        Form(
            "Q-HIER-WEIGHT-POS",
            weight(f"w.matches('{_NUMBER}') && w.matches('{_NOT_ABOVE_0}')", "must be above 0"),
        ),
    )
