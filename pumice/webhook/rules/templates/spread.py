"""Topology spread constraints: how unevenly pods may lie over zones or nodes."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.deprecated import NODE_LABELS, node_label
from pumice.webhook.rules.templates.doubtful import no_selector
from pumice.webhook.rules.templates.selectors import TPL_LABEL_KEYS, label_keys, label_selector
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import one_of

__all__ = ["RULES", "topology_spread"]

TPL_SPREAD = Rule(
    "TPL-SPREAD",
    "spread constraints have a positive maxSkew, a topologyKey, and policies that exist",
    "Kubernetes refuses the pod otherwise.",
    "topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]",
)
TPL_SPREAD_DUP = Rule(
    "TPL-SPREAD-DUP",
    "no two spread constraints have the same topologyKey and whenUnsatisfiable",
    "Kubernetes refuses the pod otherwise.",
    "topologySpreadConstraints: [{topologyKey: zone, …}, {topologyKey: zone, …}]",
    reason="FieldValueDuplicate",
)

RULES = (TPL_SPREAD, TPL_SPREAD_DUP)

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def topology_spread(site: Site, spec: Raw, pod_labels: frozenset[str]) -> None:
    """Check `topologySpreadConstraints`.

    Args:
        site: Where the pod's spec is.
        spec: The spec.
        pod_labels: Keys of the labels that a pod of the template will have.
    """
    kinds: dict[tuple[str, str], int] = {}
    for index, constraint in entries(spec["topologySpreadConstraints"]):
        field = f"topologySpreadConstraints[{index}]"
        _constraint(site, constraint, field)
        kind = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if (first := kinds.setdefault(kind, index)) != index:
            message = (
                f"has the topologyKey and whenUnsatisfiable of topologySpreadConstraints[{first}]"
            )
            site.report(TPL_SPREAD_DUP, message, field)
        if "labelSelector" in constraint:
            label_selector(site, constraint["labelSelector"], f"{field}.labelSelector")
        else:
            no_selector(site, field)
        if "matchLabelKeys" in constraint:
            # Volcano's code is that of a Kubernetes which does not add to selectors, and refuses this.
            label_keys(site, constraint, field, pod_labels, named=TPL_LABEL_KEYS)


def _constraint(site: Site, constraint: Raw, field: str) -> None:
    skew, domains = constraint.get("maxSkew", 0), constraint.get("minDomains")
    action = constraint.get("whenUnsatisfiable", "")
    if skew < 1:
        site.report(TPL_SPREAD, f"must be at least 1, found {skew}", f"{field}.maxSkew")
    if not constraint.get("topologyKey"):
        site.report(TPL_SPREAD, "must be set, found none", f"{field}.topologyKey")
    elif constraint["topologyKey"] in NODE_LABELS:
        node_label(site, constraint["topologyKey"], f"{field}.topologyKey")
    one_of(site, TPL_SPREAD, action, _ACTIONS, f"{field}.whenUnsatisfiable")
    if domains is not None:
        if domains < 1:
            site.report(TPL_SPREAD, f"must be at least 1, found {domains}", f"{field}.minDomains")
        if action != "DoNotSchedule":
            message = "is only for constraints with whenUnsatisfiable DoNotSchedule"
            site.report(TPL_SPREAD, message, f"{field}.minDomains")
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if policy in constraint:
            one_of(site, TPL_SPREAD, constraint[policy], _POLICIES, f"{field}.{policy}")
