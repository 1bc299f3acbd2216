"""Labels wherever a template has them: on pods, in selectors, on claims."""

from functools import lru_cache

from pumice.api.names import dns_label_problem, label_value_problem, qualified_name_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site

__all__ = ["key_problem", "label_problem", "labels", "value_problem"]


@lru_cache(maxsize=4096)
def key_problem(key: str) -> str | None:
    """Say why a text is no key of a label, or None when it is; keys recur in every pod."""
    return qualified_name_problem(key)


@lru_cache(maxsize=4096)
def value_problem(value: str) -> str | None:
    """Say why a text is no value of a label, or None when it is."""
    return label_value_problem(value)


@lru_cache(maxsize=4096)
def label_problem(name: str) -> str | None:
    """Say why a text is no DNS label, or None when it is; names of volumes recur in every pod."""
    return dns_label_problem(name)


def labels(site: Site, rule: Rule, found: Raw, field: str) -> None:
    """Check a map of labels.

    Args:
        site: Where to report.
        rule: The rule that a bad key or value breaks.
        found: Keys and values.
        field: Where the map is, from the site on.
    """
    for key, value in found.items():
        if problem := key_problem(key):
            site.report(rule, f"the key {problem}", f"{field}.{key}")
        if problem := value_problem(value):
            site.report(rule, problem, f"{field}.{key}")
