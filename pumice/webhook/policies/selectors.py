"""Label selectors in CEL."""

from pumice.webhook.policies.cel import each, is_label_value, is_qualified, joined, word

__all__ = ["selector_problems"]

_OPERATORS = "['In', 'NotIn', 'Exists', 'DoesNotExist']"


def selector_problems(selector: str, path: str) -> str:
    """What of a selector cannot be understood: a list of problems.

    Args:
        selector: Expression for the selector, an object.
        path: Expression for where it stands.
    """
    key = "string(e.?key.orValue(''))"
    values = "e.?values.orValue([])"
    wrong = (
        f"!{is_qualified(key)} || !(e.?operator.orValue('') in {_OPERATORS}) || "
        f"(e.operator in ['In', 'NotIn'] ? {values}.size() == 0 || !{values}.all(v, {is_label_value('v')}) "
        f": {values}.size() > 0)"
    )
    return joined(
        each(
            f"{selector}.?matchLabels.orValue({{}})",
            "k, v",
            f"!{is_qualified('k')} || !{is_label_value('v')}",
            f"{path} + '.matchLabels.' + k",
            joined("'must have the key and the value of a label, found '", word("k + '=' + v")),
        ),
        each(
            f"{selector}.?matchExpressions.orValue([])",
            "x, e",
            wrong,
            f"{path} + '.matchExpressions[' + string(x) + ']'",
            "'must have the key of a label, one of the operators In, NotIn, Exists and DoesNotExist, and values "
            "of labels with the first two only'",
        ),
    )
