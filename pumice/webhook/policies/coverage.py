"""What of every rule the policies have: all of it, a part, or nothing, and why.

What the policies have follows from their forms; the rest is stated here, so that a rule nobody thought of is missed by
a test and not by a user.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.webhook.policies.rooms import ROOMS, forms_of
from pumice.webhook.rules.catalogue import ALL, by_code

__all__ = [
    "DEFAULTS_LEFT",
    "PARTLY",
    "SCHEMA",
    "Coverage",
    "Partly",
    "coverage",
    "left_out",
    "table",
]


@dataclass(frozen=True, slots=True)
class Partly:
    """How a form differs from its rule.

    Attributes:
        refuses: Whether it refuses `more`, or `less`.
        why: What the difference is, for the page.
    """

    refuses: Literal["more", "less"]
    why: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """Who sees to a rule when there are policies and no webhook.

    Attributes:
        code: Of the rule.
        kinds: Kinds whose policies have it.
        schema: Whether the schema of the CRD has it, or a part of it.
        note: What only the webhook does, and why; empty when it does no more.
    """

    code: str
    kinds: tuple[Kind, ...]
    schema: bool
    note: str


_WORDS = "a word that is the value of the one before it is taken for an argument"

PARTLY = {
    "JOB-IMMUTABLE": Partly(
        "more",
        "values are compared as they are written: another spelling of the same quantity or duration, and an empty "
        "value in a pod template where there was none, count as a change",
    ),
    "JOB-MPI-MASTER": Partly("less", _WORDS),
    "JOB-RAY-HEAD": Partly("less", _WORDS),
    "JOB-MXNET-SCHEDULER": Partly("less", _WORDS),
    "JOB-NOT-DAG": Partly("less", "circles are looked for among up to 128 tasks that wait"),
    "FLOW-CYCLE": Partly("less", "circles are looked for among up to 128 flows that wait"),
    "Q-DEL-GROUPS": Partly(
        "less", "by the queue's status alone, which may be older than a PodGroup"
    ),
    "Q-GUAR-NO-DESERVED": Partly(
        "more", "told of the queue root beside a share that must not change"
    ),
    "Q-GUAR-GT-DESERVED": Partly(
        "more", "told of the queue root beside a share that must not change"
    ),
    "Q-DES-GT-CAP": Partly("more", "told of the queue root beside a share that must not change"),
    "Q-HIER-WEIGHT-NUM": Partly(
        "less", "what is too large to be held in 64 bits is taken for a number"
    ),
    "Q-HIER-WEIGHT-POS": Partly(
        "less", "what is too small to be held in 64 bits is taken for more than 0"
    ),
    "TPL-QUANTITY": Partly(
        "less", "of requests and limits alone, and as large as the API server can read them"
    ),
    "VOL-CLAIM": Partly(
        "less",
        "selectors, data sources, classes of attributes and fields of a wrong type are not looked at",
    ),
    "HN-REGEX": Partly(
        "less",
        "told only of a HyperNode that breaks no other rule, since a pattern is judged by its failure",
    ),
}
"""Rules whose form is not all of them."""

SCHEMA = frozenset(
    {
        "HN-SELECTOR",
        "HN-TIER",
        "JOB-NEGATIVE",
        "JOB-NO-TASKS",
        "JOB-OVERFLOW",
        "JOB-TASK-NAME",
        "PART-SIZE",
        "PART-TOTAL",
        "PG-MIN-MEMBER",
        "PG-PART-SIZE",
        "POL-BAD-EVENT",
        "Q-DEQUEUE",
        "Q-PRIORITY",
        "Q-QUANTITY",
        "Q-WEIGHT",
        "TPL-CONTAINER-DUP",
        "TPL-CONTAINER-NAME",
        "TPL-CONTAINERS",
        "VOL-COLON",
        "VOL-PATH",
    }
)
"""Rules that the schema of the CRD has, or a part of them; it refuses before any policy is asked."""

_OTHERS = "needs other objects of the cluster"
_OFFLINE = "is for files without a cluster"
_LATER = "policies see an object after its defaults, and cannot tell what was there before"
_ALIKE = "looks for the known name that is most alike"
_PLUGIN = "is judged by the plugin's own code"
_PODS = "comes with what is written into pods, which is the webhook's"
_JSON = "the annotation is JSON, which CEL does not read"
_TEMPLATES = "one of many rules about pod templates, which together cost more than a policy may; "
_TEMPLATE = f"{_TEMPLATES}without the webhook the API server refuses the pods"
_TEMPLATE_WARNS = f"{_TEMPLATES}without the webhook nobody is warned"

_LEFT = {
    "CRON-NEVER": "needs a calendar",
    "JOB-ANNOTATIONS": "counts the bytes of all texts, which costs more than a policy may",
    "JOB-PLUGIN-": _PLUGIN,
    "JOB-PRIORITY": _OTHERS,
    "JOB-QUEUE-": _OTHERS,
    "JOB-QUEUE-UNKNOWN": _OFFLINE,
    "JOB-TIER": _OTHERS,
    "JOB-ZERO": _LATER,
    "PG-PRIORITY": _OTHERS,
    "PG-QUEUE-": _OTHERS,
    "PG-QUEUE-UNKNOWN": _OFFLINE,
    "PG-RESOURCE": _ALIKE,
    "PG-TIER": _OTHERS,
    "POD-": _PODS,
    "Q-CAP-BELOW-ZERO": _OTHERS,
    "Q-CAP-DESC-": _OTHERS,
    "Q-CAP-GT-": _OTHERS,
    "Q-CAP-LT-": _OTHERS,
    "Q-CHILD-": _OTHERS,
    "Q-CLOSE-": _OTHERS,
    "Q-CYCLE": _OTHERS,
    "Q-DEL-CHILDREN": _OTHERS,
    "Q-DEL-MISSING": "the API server answers by itself",
    "Q-DEPTH": _OTHERS,
    "Q-GROUP-LIMITS": _JSON,
    "Q-HIER-BELOW": _OTHERS,
    "Q-HIER-SUBPATH": _OTHERS,
    "Q-PARENT-": _OTHERS,
    "Q-PARENT-UNKNOWN": _OFFLINE,
    "Q-RESOURCE": _ALIKE,
    "Q-ROOT-LIMIT": _OTHERS,
    "Q-SIB-": _OTHERS,
    "Q-STATE": "a status is written apart, where the schema of the CRD refuses other states",
    "Q-TREE-": _OTHERS,
    "Q-ZERO": _LATER,
    "TPL-": _TEMPLATE,
}
"""Why rules without a form have none, by how their codes begin; the longest beginning counts."""

DEFAULTS_LEFT: dict[Kind, dict[str, str]] = {
    kinds.JOB: {
        "/metadata/annotations/": "what plugin task-topology writes is its own code's",
        "/spec/tasks/*/dependsOn": "setting `mpi-depends-on` is the webhook's",
    },
    kinds.POD_GROUP: {
        "/spec/priorityClassName": "the default priority class is another object",
    },
    kinds.POD: {
        "/": "resource groups, gates and wiring by plugins are the webhook's",
    },
}
"""Defaults that policies do not write: how their JSON pointers begin, `*` for a position, and why."""


def table() -> tuple[Coverage, ...]:
    """The coverage of every rule, in the order of the catalogue.

    Raises:
        LookupError: Nothing is said of a rule.
    """
    return tuple(coverage(rule.code) for rule in ALL)


def left_out(code: str, kind: Kind) -> str:
    """Why the policies of a kind do not have a rule; empty when they do.

    Raises:
        LookupError: Nothing is said of it.
    """
    found = coverage(code)
    if kind in found.kinds:
        return ""
    if not found.kinds:
        return found.note or "has its place in the schema of the CRD"
    if kind == kinds.JOB_FLOW:
        return _PATCHES
    raise LookupError(f"nothing is said of rule {code} for a {kind.kind}")


_PATCHES = "what a JobFlow changes in its Jobs is judged by the webhook alone"


@cache
def coverage(code: str) -> Coverage:
    """The coverage of a rule.

    Raises:
        LookupError: Nothing is said of it.
    """
    having = tuple(kind for kind in ROOMS if any(form.code == code for form in forms_of(kind)))
    schema = code in SCHEMA
    if having:
        partly = PARTLY.get(code)
        return Coverage(code, having, schema, partly.why if partly is not None else "")
    if schema:
        return Coverage(code, (), True, "")
    beginnings = [each for each in _LEFT if code.startswith(each)]
    if not beginnings:
        raise LookupError(
            f"nothing is said of rule {code}: it needs a form, or a line in {__name__}"
        )
    note = _LEFT[max(beginnings, key=len)]
    rule = by_code(code)
    if note == _TEMPLATE and rule is not None and rule.level == "warn":
        note = _TEMPLATE_WARNS
    return Coverage(code, (), False, note)
