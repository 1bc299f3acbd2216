"""The HyperNode: nodes, or smaller HyperNodes, that are near to each other in the network.

Group `topology.volcano.sh/v1alpha1`, cluster-scoped.
"""

from typing import Annotated

from pumice.api.markers import DNS_SUBDOMAIN_PATTERN, Marker, Validation
from pumice.api.meta import ApiStruct, LabelSelector, ObjectMeta

MEMBER_TYPES = ("Node", "HyperNode")
"""What a HyperNode may consist of."""

# Volcano's own words are kept: users and scripts know its refusals by them.
NO_SELECTOR = (
    "member selector must have one of exactMatch, regexMatch, or labelMatch: "
    "Either ExactMatch or RegexMatch or LabelMatch must be specified"
)
SEVERAL_SELECTORS = (
    "cannot specify more than one selector type: "
    "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
)
_ONE_WAY = (
    Validation(
        rule="has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
        message=NO_SELECTOR,
    ),
    Validation(
        rule="(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + "
        "(has(self.labelMatch) ? 1 : 0) <= 1",
        message=SEVERAL_SELECTORS,
    ),
)


class ExactMatch(ApiStruct, frozen=True):
    """One member by its name.

    Attributes:
        name: Name of the node or HyperNode.
    """

    name: Annotated[
        str,
        Marker(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN_PATTERN, required=True),
    ] = ""


class RegexMatch(ApiStruct, frozen=True):
    """All members whose names a regular expression matches.

    Attributes:
        pattern: RE2 syntax; it may match anywhere in the name unless `^` and `$` say otherwise.
    """

    pattern: Annotated[str, Marker(min_length=1, required=True)] = ""


class MemberSelector(ApiStruct, frozen=True):
    """Which nodes or HyperNodes are meant, in exactly one of three ways.

    Attributes:
        exact_match: The one of this name.
        regex_match: Those whose names match.
        label_match: Those whose labels match.
    """

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None

    @property
    def ways(self) -> tuple[str, ...]:
        """The fields that are set: `exactMatch`, `regexMatch`, `labelMatch`."""
        named = {
            "exactMatch": self.exact_match,
            "regexMatch": self.regex_match,
            "labelMatch": self.label_match,
        }
        return tuple(name for name, way in named.items() if way is not None)


class Member(ApiStruct, frozen=True):
    """Nodes or HyperNodes that belong to a HyperNode.

    Attributes:
        type: `Node` or `HyperNode`.
        selector: Which of them.
    """

    type: Annotated[str, Marker(enum=MEMBER_TYPES, required=True)] = ""
    selector: Annotated[MemberSelector | None, Marker(validations=_ONE_WAY)] = None


class HyperNodeSpec(ApiStruct, frozen=True):
    """Members of a HyperNode and its tier.

    Attributes:
        tier: How far apart the members are; a HyperNode's tier is above that of its members.
        tier_name: Name of the tier, for example of a kind of switch.
        members: What it consists of.
    """

    tier: Annotated[int, Marker(minimum=0, required=True, format="int64")] = 0
    tier_name: Annotated[str, Marker(max_length=253)] = ""
    members: Annotated[list[Member] | None, Marker(min_items=1)] = None


class HyperNodeCondition(ApiStruct, frozen=True):
    """Something that is true of the HyperNode, and why.

    Attributes:
        type: Type of the condition.
        status: `True`, `False` or `Unknown`.
        observed_generation: Generation of the spec for which the condition was set.
        last_transition_time: When the status changed.
        reason: One word why.
        message: One sentence why.
    """

    type: Annotated[str, Marker(required=True)] = ""
    status: Annotated[str, Marker(enum=("True", "False", "Unknown"), required=True)] = ""
    observed_generation: Annotated[int, Marker(minimum=0, format="int64")] = 0
    last_transition_time: Annotated[str | None, Marker(format="date-time", required=True)] = None
    reason: Annotated[str, Marker(required=True)] = ""
    message: Annotated[str, Marker(required=True)] = ""


class HyperNodeStatus(ApiStruct, frozen=True):
    """Conditions of a HyperNode and its number of nodes.

    Attributes:
        conditions: What is true of it.
        node_count: Nodes in it, those of its HyperNodes included.
    """

    conditions: list[HyperNodeCondition] | None = None
    node_count: Annotated[int, Marker(minimum=0, format="int64")] = 0


class HyperNode(ApiStruct, frozen=True):
    """Nodes that are near to each other in the network.

    Attributes:
        spec: What it consists of.
        status: Its observed state.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()

    @property
    def members(self) -> list[Member]:
        """The members, empty when left out."""
        return self.spec.members or []
