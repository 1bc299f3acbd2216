"""The smaller gangs inside a gang: each entry of `spec.subGroupPolicy`, all of them looked at."""

from pumice.api.names import qualified_name_problem
from pumice.api.podgroups import PodGroup, SubGroupPolicy
from pumice.webhook.rules.case import Case, Check
from pumice.webhook.rules.labels import selector_problems
from pumice.webhook.rules.network_topology import contradiction
from pumice.webhook.rules.pod_group_checks import INT32_MAX, PG_TOPO_BOTH
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.tiers import PG_TIER, network_tier

__all__ = ["CHECKS", "RULES"]

PG_PART_NAME = Rule(
    "PG-PART-NAME",
    "sub-groups have different names",
    "The pods of two sub-groups of one name could not be told apart.",
    "subGroupPolicy: [{name: workers}, {name: workers}]",
    reason="FieldValueDuplicate",
    stricter=True,
)
PG_PART_SIZE = Rule(
    "PG-PART-SIZE",
    "a sub-group has at least 1 pod, and the least number of sub-groups is 0 or more",
    "There is no gang of fewer pods than none.",
    "subGroupPolicy: [{name: workers, subGroupSize: 0}]",
    stricter=True,
)
PG_PART_SELECTOR = Rule(
    "PG-PART-SELECTOR",
    "the label selector of a sub-group can be understood",
    "No pod has a label that cannot be, so the sub-group would stay empty.",
    "labelSelector: {matchExpressions: [{key: role, operator: Is, values: [worker]}]}",
    stricter=True,
)
PG_PART_KEYS = Rule(
    "PG-PART-KEYS",
    "matchLabelKeys are keys of labels, each named once",
    "A label that cannot be tells no sub-groups apart.",
    'matchLabelKeys: ["rack number"]',
    stricter=True,
)
PG_PART_SUM = Rule(
    "PG-PART-SUM",
    "the sub-groups that must start together are no more than minMember",
    "The gang would start before enough of its sub-groups are complete.",
    "minMember: 4, subGroupPolicy: [{name: workers, subGroupSize: 4, minSubGroups: 2}]",
    level="warn",
    compares=True,
)

RULES = (PG_PART_NAME, PG_PART_SIZE, PG_PART_SELECTOR, PG_PART_KEYS, PG_PART_SUM)


def _names(case: Case, group: PodGroup) -> None:
    first: dict[str, int] = {}
    for index, policy in enumerate(group.spec.sub_group_policy or ()):
        if policy.name and first.setdefault(policy.name, index) != index:
            message = (
                f'"{policy.name}" is the name of spec.subGroupPolicy[{first[policy.name]}] already'
            )
            case.report(PG_PART_NAME, f"spec.subGroupPolicy[{index}].name", message)


def _parts(case: Case, group: PodGroup) -> None:
    for index, policy in enumerate(group.spec.sub_group_policy or ()):
        path = f"spec.subGroupPolicy[{index}]"
        _topology(case, path, policy)
        _size(case, path, policy, group.spec.min_member)
        _selector(case, path, policy)


def _topology(case: Case, path: str, policy: SubGroupPolicy) -> None:
    if problem := contradiction(policy.network_topology):
        where = f"{path}.networkTopology.highestTierName"
        case.report(PG_TOPO_BOTH, where, f'of sub-group "{policy.name}" {problem}')
    else:
        network_tier(case, PG_TIER, f"{path}.networkTopology", policy.network_topology)


def _size(case: Case, path: str, policy: SubGroupPolicy, minimum: int) -> None:
    size, count = policy.sub_group_size, policy.min_sub_groups
    if size is not None and not 1 <= size <= INT32_MAX:
        message = f"must be between 1 and {INT32_MAX}, found {size}"
        case.report(PG_PART_SIZE, f"{path}.subGroupSize", message)
    if count is not None and not 0 <= count <= INT32_MAX:
        message = f"must be between 0 and {INT32_MAX}, found {count}"
        case.report(PG_PART_SIZE, f"{path}.minSubGroups", message)
    elif count is not None and (needed := count * max(size or 1, 1)) > minimum > 0:
        message = f"{count} sub-groups of {size or 1} are {needed} pods, more than spec.minMember ({minimum})"
        case.report(PG_PART_SUM, f"{path}.minSubGroups", message, excess=needed - minimum)


def _selector(case: Case, path: str, policy: SubGroupPolicy) -> None:
    if policy.label_selector is not None:
        for where, problem in selector_problems(policy.label_selector, case.suggestions):
            case.report(PG_PART_SELECTOR, f"{path}.labelSelector{where}", problem)
    seen: set[str] = set()
    for index, key in enumerate(policy.match_label_keys or ()):
        where = f"{path}.matchLabelKeys[{index}]"
        if wrong := qualified_name_problem(key):
            case.report(PG_PART_KEYS, where, wrong)
        elif key in seen:
            case.report(PG_PART_KEYS, where, f'"{key}" is there twice', "FieldValueDuplicate")
        seen.add(key)


CHECKS: tuple[Check[PodGroup], ...] = ((PG_PART_NAME, _names), (PG_PART_SIZE, _parts))
"""What is judged about sub-groups, in the order in which problems are told."""
