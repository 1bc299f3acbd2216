"""Amounts of a Queue in CEL: capability, deserved and guarantee, each for itself and in their order."""

from pumice.webhook.policies.cel import amount, each, integral, joined, measured, whole, word
from pumice.webhook.policies.form import Form

__all__ = ["VARIABLES", "forms", "orders"]

_PLACES = (
    ("capability", "spec.capability"),
    ("deserved", "spec.deserved"),
    ("guaranteed", "spec.guarantee.resource"),
)

VARIABLES = {
    "capability": "$spec.?capability.orValue({})",
    "deserved": "$spec.?deserved.orValue({})",
    "guaranteed": "$spec.?guarantee.?resource.orValue({})",
}
"""The three maps of amounts."""

_IS = "isQuantity(string(v))"


def forms() -> tuple[Form, ...]:
    """The forms that look at each amount for itself."""
    found = joined("'must be 0 or more, found '", word("v"))
    return (
        Form("Q-NEG", _in_all(f"{_IS} && sign({amount('v')}) < 0", found)),
        Form(
            "Q-INT",
            _in_all(
                f"{_IS} && !{whole('v')} && {integral('k')}",
                joined("'must be a whole number, found '", word("v")),
            ),
        ),
        Form(
            "Q-CAP-ZERO",
            each(
                "$capability",
                "k, v",
                f"{_IS} && sign({amount('v')}) == 0",
                "'spec.capability.' + k",
                "'0 means none here; Volcano takes 0 cpu or memory for unlimited, so leave it out if that is meant'",
            ),
        ),
    )


def _in_all(condition: str, message: str) -> str:
    """A condition on every amount, `v` of resource `k`."""
    return joined(
        *(each(f"${name}", "k, v", condition, f"'{path}.' + k", message) for name, path in _PLACES)
    )


def orders() -> tuple[Form, ...]:
    """The forms that compare amounts: guarantee ≤ deserved ≤ capability.

    Source: webhook specification, section 10.3.
    """
    missing, more = "Q-GUAR-NO-DESERVED", "Q-GUAR-GT-DESERVED"
    claimed = "'deserved.' + k"
    value = f"{amount('v')}.asApproximateFloat()"
    return (
        Form(
            missing,
            each(
                "$guaranteed",
                "k, v",
                f"{_IS} && !(k in $deserved)",
                "'spec.deserved.' + k",
                measured(
                    joined("'must be at least the guarantee of '", word("v"), "', found none'"),
                    value,
                    claimed,
                ),
            ),
            standing=(missing, more),
        ),
        Form(
            more,
            _excess("guaranteed", "deserved", "spec.guarantee.resource", claimed),
            standing=(missing, more),
        ),
        Form(
            "Q-DES-GT-CAP",
            _excess("deserved", "capability", "spec.deserved", "'capability.' + k"),
        ),
    )


def _excess(smaller: str, larger: str, path: str, limit: str) -> str:
    most = f"${larger}[k]"
    return each(
        f"${smaller}",
        "k, v",
        f"{_IS} && k in ${larger} && isQuantity(string({most})) && {amount('v')}.isGreaterThan({amount(most)})",
        f"'{path}.' + k",
        measured(
            joined(f"'must be at most {larger} ('", f"string({most})", "'), found '", word("v")),
            f"{amount('v')}.asApproximateFloat() - {amount(most)}.asApproximateFloat()",
            limit,
        ),
    )
