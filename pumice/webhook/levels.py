"""Levels of rules, by cluster and namespace.

Precedence: the object's namespace > the whole cluster > `strict-upstream` > the rule's own. Levels are resolved once, so a review
needs one lookup for its namespace, and another for each problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pumice.webhook.rules import catalogue
from pumice.webhook.rules.rule import Level
from pumice.webhook.rules.terms import Terms

__all__ = ["Levels", "TermsWithLevels", "upstream"]

Levels = Mapping[str, Level]
"""Levels by code; missing rules have their own level."""


@dataclass(frozen=True)
class TermsWithLevels(Terms):
    """The settings that rules read, and how strict each rule is.

    Attributes:
        rules: Levels of the whole cluster.
        namespaces: Levels of the objects of a namespace, by its name.
    """

    rules: Levels = field(default_factory=dict)
    namespaces: Mapping[str, Levels] = field(default_factory=dict)

    # These are resolved once, so that no review has to; a private attribute would cost it a microsecond.
    @cached_property
    def cluster_levels(self) -> Levels:
        """Levels that settings give rules."""
        return {**(upstream() if self.strict_upstream else {}), **self.rules}

    @cached_property
    def namespace_levels(self) -> Mapping[str, Levels]:
        """The same by namespace, for namespaces with levels of their own."""
        return {name: {**self.cluster_levels, **own} for name, own in self.namespaces.items()}

    def levels(self, namespace: str) -> Levels:
        """Levels for the objects of a namespace; its name is empty for cluster-scoped objects."""
        return self.namespace_levels.get(namespace, self.cluster_levels)


def upstream() -> dict[str, Level]:
    """Levels of `strict-upstream`: rules that are stricter than Volcano's only warn.

    For rules that are only partly stricter, callers use `Case.report(…, stricter=)`.
    """
    return dict.fromkeys((rule.code for rule in catalogue.ALL if rule.stricter), "warn")
