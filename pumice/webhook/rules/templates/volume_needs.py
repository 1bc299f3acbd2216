"""What the source of a volume must say: the rule, and the usual ways to check it."""

from collections.abc import Callable

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site

__all__ = ["RULES", "TPL_VOLUME_SOURCE", "SourceCheck", "require"]

TPL_VOLUME_SOURCE = Rule(
    "TPL-VOLUME-SOURCE",
    "the source of a volume says all that it must, within its limits",
    "Kubernetes refuses the pod otherwise.",
    "volumes: [{name: data, nfs: {server: nas}}]",
)

RULES = (TPL_VOLUME_SOURCE,)

SourceCheck = tuple[str, ...] | Callable[[Site, Raw, str], None]
"""What a source needs: members that are not empty, or a check that is told where the source is, from
the site on."""


def require(site: Site, source: Raw, field: str, *names: str) -> None:
    """Check that members are not empty.

    Args:
        site: Where to report.
        source: What has them.
        field: Where it is, from the site on.
        names: The members.
    """
    for name in names:
        if not source.get(name):
            site.report(TPL_VOLUME_SOURCE, "must be set, found none", f"{field}.{name}")
