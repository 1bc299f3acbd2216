"""Pods of the configured schedulers: annotations that limit how many pods a Job loses at a time, and the number of labels."""

import re

from pumice.api import keys
from pumice.api.pods import Pod
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.labels import ADDED, MOST_ANNOTATIONS, MOST_LABELS, too_many
from pumice.webhook.rules.rule import Rule, stricter

POD_JDB_INT = Rule(
    "POD-JDB-INT",
    "a number of pods is greater than 0",
    "A budget of 0 pods allows every disruption or none.",
    'volcano.sh/jdb-min-available: "0"',
)
POD_JDB_PARSE = Rule(
    "POD-JDB-PARSE",
    "a disruption budget is an integer or a percentage",
    "A budget that cannot be parsed protects no pods.",
    "volcano.sh/jdb-min-available: half",
)
POD_JDB_FORM = stricter(
    "POD-JDB-FORM",
    "integers and percentages are written without signs and leading zeros",
    "Other programs parse `+5`, `05`, `%50` or `5%0` differently or not at all.",
    'volcano.sh/jdb-min-available: "%50"',
)
POD_JDB_PERCENT = Rule(
    "POD-JDB-PERCENT",
    "a percentage is between 1% and 99%",
    "0% protects no pods; with 100% no node can be drained.",
    "volcano.sh/jdb-max-unavailable: 100%",
)
POD_JDB_BOTH = Rule(
    "POD-JDB-BOTH",
    "a pod sets jdb-min-available or jdb-max-unavailable, not both",
    "The two may contradict each other.",
    'volcano.sh/jdb-min-available: "2", volcano.sh/jdb-max-unavailable: "1"',
    reason="FieldValueForbidden",
)
POD_MANY_LABELS = stricter(
    "POD-MANY-LABELS",
    f"a pod has at most {MOST_LABELS + ADDED} labels and {MOST_ANNOTATIONS + ADDED} annotations",
    "Scheduler and controller keep the labels and annotations of all pods.",
    "metadata: {labels: {l0: a, l1: a, …, l320: a}}",
    reason="FieldValueTooMany",
)

_INTEGER = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII)
_LIMIT = 2**63
_PLAIN = re.compile(r"0|-?[1-9]\d*|(0|[1-9]\d*)%", re.ASCII)
_KEYS = (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE)


def _disruption_budget(case: Case, pod: Pod) -> None:
    annotations = pod.metadata.annotations or {}
    present = [key for key in _KEYS if key in annotations]
    for key in present:
        _budget(case, key, annotations[key])
    if len(present) == len(_KEYS):
        message = f"not allow configure multiple annotations of this sort: {_KEYS[0]} is set too; keep one of the two"
        case.report(POD_JDB_BOTH, f"metadata.annotations[{_KEYS[1]}]", message)


_WANTED = "must be a positive integer or a valid percentage"


def _budget(case: Case, key: str, value: str) -> None:
    path, number = f"metadata.annotations[{key}]", _integer(value.replace("%", ""))
    if number is None:
        message = f'invalid value "{value}" for {key}: it {_WANTED}, such as 2 or 50%'
        case.report(POD_JDB_PARSE, path, message)
    elif "%" not in value and number <= 0:
        case.report(POD_JDB_INT, path, f'it {_WANTED}, found "{value}"')
    elif "%" in value and not 1 <= number <= 99:
        message = (
            f'{_WANTED}, found "{value}": it must be a valid percentage which between 1% ~ 99%'
        )
        case.report(POD_JDB_PERCENT, path, message)
    elif not _PLAIN.fullmatch(value):
        plain = f"{number}{'%' if '%' in value else ''}"
        case.report(POD_JDB_FORM, path, f'must be written as "{plain}", found "{value}"')


def _integer(text: str) -> int | None:
    """A number as Go reads it, in 64 bits; None if it is not a number."""
    digits = _INTEGER.fullmatch(text)
    number = int(digits[1] + digits[2]) if digits else _LIMIT
    return number if -_LIMIT <= number < _LIMIT else None


def _not_many(case: Case, pod: Pod) -> None:
    meta = pod.metadata
    for field, message, count in too_many(meta.labels, meta.annotations, added=ADDED):
        case.report(POD_MANY_LABELS, f"metadata.{field}", message, excess=count)


CHECKS: tuple[Check[Pod], ...] = (
    (POD_JDB_INT, _disruption_budget),
    (POD_MANY_LABELS, _not_many),
)
"""The checks of a Pod, in the order in which problems are reported."""


def validate(case: Case, pod: Pod, _: Pod | None) -> None:
    """Check a new pod of one of Pumice's schedulers; updates of pods are not reviewed."""
    if pod.spec.scheduler_name in case.settings.scheduler_names:
        run(case, CHECKS, pod)
