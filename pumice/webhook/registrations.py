"""The table of endpoints: the path of each, the requests for which it is called, and the failure policy.

The server's routes, the chart's webhook configurations and the embedded API server's admission are generated from this
table. It limits the effect of an outage. Only requests for Pumice's own kinds need an answer, those for pods do not.
The webhook is not called for requests that no rule could refuse (an update that does not change the spec, an object
that is being deleted, a pod of another scheduler). It is not called for nodes and for Kubernetes' garbage collection,
so namespaces and orphaned objects can be deleted while the webhook is down.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pumice.api import keys, kinds
from pumice.api.fields import did_you_mean
from pumice.api.kinds import Kind
from pumice.webhook.rules.labels import ADDED, MOST_ANNOTATIONS, MOST_LABELS
from pumice.webhook.rules.resource_groups import NO_GROUPS, ResourceGroups
from pumice.webhook.rules.rule import RuleSettings

TIMEOUT_SECONDS = 5
"""Timeout of the API server in seconds; a review takes a fraction of a millisecond."""

EXEMPT_NAMESPACES = ("kube-system",)
"""Namespaces for which webhooks are never called; the chart adds its own namespace."""

MatchCondition = dict[str, str]
"""Name and CEL expression over `object`, `oldObject` and `request`; the API server calls the webhook only if it is true."""

Conditions = Callable[[RuleSettings, ResourceGroups], tuple[MatchCondition, ...]]


@dataclass(frozen=True, slots=True)
class Registration:
    """A webhook endpoint and its registration with the API server.

    Attributes:
        kind: Kind of the objects.
        mutating: Whether the webhook may change the object; if false it validates.
        operations: Operations on which it is called.
        conditions: Match conditions, by settings and resource groups.
        failure_policy: What the API server does if the webhook does not respond.
        lenient: Whether reviews of other operations are admitted.
    """

    kind: Kind
    mutating: bool
    operations: tuple[str, ...]
    conditions: Conditions
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    lenient: bool = False

    @property
    def _verb(self) -> str:
        return "mutate" if self.mutating else "validate"

    @property
    def path(self) -> str:
        """URL path: `/jobs/validate`."""
        return f"/{self.kind.plural}/{self._verb}"

    @property
    def name(self) -> str:
        """Name of the webhook: Volcano's."""
        return f"{self._verb}{self.kind.kind.lower()}.volcano.sh"

    @property
    def configuration_name(self) -> str:
        """Name of the webhook configuration object: Volcano's."""
        return "volcano-admission-service" + self.path.replace("/", "-")


def _condition(name: str, expression: str) -> MatchCondition:
    return {"name": name, "expression": expression}


_NOT_GOING = _condition(
    "not-being-deleted",
    "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)",
)
_OTHER_SPEC = (
    "request.operation != 'UPDATE' || !has(object.spec) || !has(oldObject.spec) || "
    "object.spec != oldObject.spec"
)
_NOT_BY_A_NODE = _condition(
    "not-by-a-node",
    "!has(request.userInfo.groups) || !('system:nodes' in request.userInfo.groups)",
)
# Where the controllers of Kubernetes have no accounts of their own, all of them are
# system:kube-controller-manager: what one creates, or deletes in a cascade, must be checked.
_NOT_BY_HOUSEKEEPING = _condition(
    "not-by-housekeeping",
    "!has(request.userInfo.username) || "
    "request.userInfo.username != 'system:serviceaccount:kube-system:namespace-controller' && "
    "(request.operation != 'UPDATE' || !(request.userInfo.username in "
    "['system:serviceaccount:kube-system:generic-garbage-collector', "
    "'system:kube-controller-manager']))",
)


def _annotation_differs(key: str) -> str:
    """CEL: an annotation differs before and after."""
    return " != ".join(
        f"(has({annotations}) && '{key}' in {annotations} ? {annotations}['{key}'] : '')"
        for annotations in ("object.metadata.annotations", "oldObject.metadata.annotations")
    )


def _of_changes(name: str, *annotations: str) -> Conditions:
    """Match conditions for changes of the spec and of some annotations by users."""
    changed = " || ".join([_OTHER_SPEC, *map(_annotation_differs, annotations)])
    found = (_NOT_GOING, _condition(name, changed), _NOT_BY_A_NODE, _NOT_BY_HOUSEKEEPING)
    return lambda _settings, _groups: found


_SPEC = _of_changes("spec-changes")
_SPEC_OR_HIERARCHY = _of_changes("spec-or-hierarchy-changes", *keys.QUEUE_ANNOTATIONS)
_SPEC_OR_FAILURE_OPTIONS = _of_changes(
    "spec-or-failure-option-changes", keys.FLOW_RETRIES, keys.ON_FAILURE
)
_JOB_MUTATION = _of_changes(
    "spec-or-topology-changes",
    keys.TOPOLOGY_AFFINITY,
    keys.TOPOLOGY_ANTI_AFFINITY,
    keys.TOPOLOGY_TASK_ORDER,
    keys.TOPOLOGY_JSON,
)


def _pod_mutation(_: RuleSettings, groups: ResourceGroups) -> tuple[MatchCondition, ...]:
    """Match conditions for pods that may be changed: by annotation, or by the namespace of a group."""
    known = (keys.PLUGINS, keys.RESOURCE_GROUP, keys.QUEUE_ALLOCATION_GATE)
    annotated = _annotated(*known, *(key for key in groups.annotation_keys if key not in known))
    in_groups = f"request.namespace in {_list(*groups.namespaces)}"
    return (_condition("concerned", f"{annotated} || {in_groups}"), _NOT_BY_A_NODE)


def _pod_validation(settings: RuleSettings, _: ResourceGroups) -> tuple[MatchCondition, ...]:
    """Match conditions for pods of Pumice's schedulers with a budget or a cool-down, many labels or annotations, or device claims.

    Also for pods with a duration, unless they have an owner: what a controller is warned of, its user does not see.
    """
    names = _list(*settings.scheduler_names)
    ours = f"has(object.spec.schedulerName) && object.spec.schedulerName in {names}"
    budgets = _annotated(keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE, keys.COOLDOWN_TIME)
    cools = f"(has(object.metadata.labels) && '{keys.COOLDOWN_TIME}' in object.metadata.labels)"
    runs = f"({_annotated(keys.DURATION)} && !has(object.metadata.ownerReferences))"
    labels, annotations = MOST_LABELS + ADDED, MOST_ANNOTATIONS + ADDED
    many = f"{_more('labels', labels)} || {_more('annotations', annotations)}"
    concerned = f"{budgets} || {cools} || {runs} || {many} || has(object.spec.resourceClaims)"
    return (_condition("ours", ours), _condition("concerned", concerned), _NOT_BY_A_NODE)


def _more(field: str, most: int) -> str:
    """CEL: an object has more labels or annotations than these."""
    return f"(has(object.metadata.{field}) && size(object.metadata.{field}) > {most})"


def _annotated(*wanted: str) -> str:
    """CEL: an object has one of these annotations."""
    annotations = "object.metadata.annotations"
    return f"(has({annotations}) && {_list(*wanted)}.exists(key, key in {annotations}))"


def _list(*texts: str) -> str:
    quoted = ", ".join(f"'{text}'" for text in texts)
    return f"[{quoted}]"


_CREATE = ("CREATE",)
_CHANGES = ("CREATE", "UPDATE")
_ALL = ("CREATE", "UPDATE", "DELETE")

REGISTRATIONS: tuple[Registration, ...] = (
    Registration(kinds.JOB, True, _CHANGES, _JOB_MUTATION),
    Registration(kinds.JOB, False, _CHANGES, _SPEC),
    Registration(kinds.QUEUE, True, _CHANGES, _SPEC_OR_HIERARCHY),
    Registration(kinds.QUEUE, False, _ALL, _SPEC_OR_HIERARCHY),
    Registration(kinds.POD_GROUP, True, _CHANGES, _SPEC),
    Registration(kinds.POD_GROUP, False, _CHANGES, _SPEC),
    Registration(kinds.POD, True, _CREATE, _pod_mutation, "Ignore"),
    Registration(kinds.POD, False, _CREATE, _pod_validation, "Ignore"),
    Registration(kinds.CRON_JOB, False, _CHANGES, _SPEC),
    Registration(kinds.JOB_FLOW, False, _CHANGES, _SPEC_OR_FAILURE_OPTIONS),
    Registration(kinds.JOB_TEMPLATE, False, _CHANGES, _SPEC),
    Registration(kinds.HYPER_NODE, False, _CHANGES, _SPEC, lenient=True),
)
"""Every endpoint; for each kind the mutating one is first."""


def enabled_paths(text: str) -> tuple[str, ...]:
    """Parse the list of endpoints of `--enabled-admission`, separated by commas.

    Blanks, empty items and duplicates are ignored.

    Raises:
        ValueError: There is no such endpoint.
    """
    known = [each.path for each in REGISTRATIONS]
    wanted = dict.fromkeys(item.strip() for item in text.split(",") if item.strip())
    for path in wanted:
        if path not in known:
            hint = did_you_mean(path, known) or f", known are {', '.join(known)}"
            raise ValueError(f"there is no endpoint {path}{hint}")
    return tuple(wanted)


def configuration(
    registration: Registration,
    settings: RuleSettings,
    client_config: dict[str, Any],
    *,
    groups: ResourceGroups = NO_GROUPS,
) -> dict[str, Any]:
    """The webhook configuration object of an endpoint.

    Match conditions depend on the settings of admission and on the resource groups. `client_config` says how the API
    server reaches the endpoint: `url` or `service`, and `caBundle`.
    """
    kind = registration.kind
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [kind.plural],
        "operations": list(registration.operations),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
    }
    webhook: dict[str, Any] = {
        "name": registration.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config,
        "rules": [rule],
        "failurePolicy": registration.failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "matchConditions": [dict(each) for each in registration.conditions(settings, groups)],
    }
    if kind.namespaced:
        webhook["namespaceSelector"] = _none_of("kubernetes.io/metadata.name", *EXEMPT_NAMESPACES)
    if kind == kinds.POD and not (registration.mutating and groups.groups):
        # The controller marks pods for which the webhook need not be called, unless they are of resource groups. Match
        # conditions would be enough, but the API server converts a pod for each webhook that has some.
        webhook["objectSelector"] = _none_of(keys.ADMISSION, keys.ADMISSION_UNNEEDED)
    if registration.mutating:
        webhook["reinvocationPolicy"] = "IfNeeded"
    of = kinds.MUTATING_WEBHOOKS if registration.mutating else kinds.VALIDATING_WEBHOOKS
    return {
        "apiVersion": of.api_version,
        "kind": of.kind,
        "metadata": {"name": registration.configuration_name},
        "webhooks": [webhook],
    }


def _none_of(label: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": label, "operator": "NotIn", "values": list(values)}]}


def configurations(
    settings: RuleSettings,
    client_config: Callable[[str], dict[str, Any]],
    *,
    groups: ResourceGroups = NO_GROUPS,
) -> list[dict[str, Any]]:
    """The webhook configuration objects of all endpoints; `client_config` says by path how each is reached."""
    return [
        configuration(each, settings, client_config(each.path), groups=groups)
        for each in REGISTRATIONS
    ]
