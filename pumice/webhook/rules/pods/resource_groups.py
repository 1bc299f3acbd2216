"""What the pods of a resource group get.

Each step adds what is missing and leaves the rest alone, so a second pass changes nothing and what is
younger than Pumice in a toleration or a gate stays.
"""

from typing import Any

from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftPod, DraftPodPlace
from pumice.webhook.rules.rule import Rule, rules_in
from pumice.webhook.rules.terms import Group

__all__ = ["RULES", "resource_group"]

POD_GROUP_SCHEDULER = Rule(
    "POD-GROUP-SCHEDULER",
    "a pod names no other scheduler than its resource group",
    "The group's scheduler counts, as in Volcano; the one that the pod names never sees it.",
    "annotations: {volcano.sh/resource-group: gpu}, schedulerName: mine",
    level="warn",
)

RULES = rules_in(globals())

_NO_SPEC = DraftPodPlace()
_BUILTIN_SCHEDULER = "default-scheduler"
"""What the API server writes where a pod names no scheduler."""


def resource_group(case: Case, pod: DraftPod, group: Group) -> None:
    """Write what a group gives to a pod into the case's patch.

    Args:
        case: Where the patch and the warnings go.
        pod: The pod as it came.
        group: The group that it belongs to.
    """
    spec, patch = pod.spec or _NO_SPEC, case.patch
    _node_selector(case, spec, group)
    if group.affinity is not None and spec.affinity is None:
        patch.set("/spec/affinity", group.affinity)
    _tolerations(case, spec, group)
    wanted, named = group.scheduler_name, spec.scheduler_name
    if wanted and wanted != named:
        patch.set("/spec/schedulerName", wanted)
        if named not in ("", _BUILTIN_SCHEDULER):
            message = (
                f'"{named}" becomes "{wanted}", the scheduler of resource group "{group.name}"'
            )
            case.report(POD_GROUP_SCHEDULER, "spec.schedulerName", message)


def _node_selector(case: Case, spec: DraftPodPlace, group: Group) -> None:
    """Select the group's nodes; of two values for a label the group's counts."""
    selector = spec.node_selector
    if selector is None:
        if group.labels:
            case.patch.set("/spec/nodeSelector", group.labels)
        return
    for key, value in group.labels.items():
        if selector.get(key) != value:
            case.patch.set(f"/spec/nodeSelector/{escape(key)}", value)


def _tolerations(case: Case, spec: DraftPodPlace, group: Group) -> None:
    if spec.tolerations is None:
        if group.tolerations:
            case.patch.set("/spec/tolerations", list(group.tolerations))
        return
    present = [_plain(each) for each in spec.tolerations]
    for wanted in group.tolerations:
        if _plain(wanted) not in present:
            case.patch.set("/spec/tolerations/-", wanted)


def _plain(toleration: dict[str, Any]) -> dict[str, Any]:
    """A toleration without what says nothing: `Equal` is what an empty operator means."""
    return {
        key: value
        for key, value in toleration.items()
        if value not in ("", None) and (key, value) != ("operator", "Equal")
    }
