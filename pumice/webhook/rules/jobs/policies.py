"""Lifecycle policies: their events, exit codes and actions exist and are not repeated."""

from collections.abc import Sequence

from pumice.api.durations import duration_problem, parse_nanoseconds
from pumice.api.jobs import ACTIONS, Job, LifecyclePolicy
from pumice.api.meta import MAX_INT32
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.jobs.min_available import JOB_OVERFLOW
from pumice.webhook.rules.rule import Rule, stricter, warned

EVENTS = (
    "*",
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
"""Events that a user may name; `OutOfSync`, `CommandIssued` and `PodRunning` are the controller's."""

_INTERNAL = ("OutOfSync", "CommandIssued", "PodRunning")
_INTERNAL_ACTIONS = ("SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue")
_WORDS = {
    "event": (EVENTS, _INTERNAL, "the controller"),
    "action": (ACTIONS, _INTERNAL_ACTIONS, "controllers"),
}
"""Events and actions: those of users, those that only controllers use, and which controllers these are."""

_ANY = "*"
_PENDING = "PodPending"
_NEVER = "JobUpdated"

POL_NOTHING = Rule(
    "POL-NOTHING",
    "a policy says when it applies: event, events or exitCode",
    "A policy without a trigger never does anything.",
    "policies: [{action: AbortJob}]",
    reason="FieldValueRequired",
)
POL_EVENT_AND_CODE = Rule(
    "POL-EVENT-AND-CODE",
    "a policy applies to events or to an exit code, not both",
    "Events and exit codes are matched separately; write two policies.",
    "policies: [{event: PodFailed, exitCode: 3, action: AbortJob}]",
    reason="FieldValueForbidden",
)
POL_BAD_EVENT = Rule(
    "POL-BAD-EVENT",
    "events of a policy exist",
    "A policy for an event that does not exist never applies.",
    "policies: [{event: PodFaild, action: RestartJob}]",
    reason="FieldValueNotSupported",
)
POL_BAD_ACTION = Rule(
    "POL-BAD-ACTION",
    "actions of a policy exist",
    "The controller ignores an action that it does not know.",
    "policies: [{event: PodFailed, action: RestartAll}]",
    reason="FieldValueNotSupported",
)
POL_BAD_CODE_ACTION = stricter(
    "POL-BAD-CODE-ACTION",
    "actions of an exit-code policy exist",
    "Volcano does not look at the action of an exit-code policy, and then does nothing.",
    "policies: [{exitCode: 3, action: RestartAll}]",
    reason="FieldValueNotSupported",
)
POL_NO_ACTION = warned(
    "POL-NO-ACTION",
    "an exit-code policy names an action",
    "Without an action nothing happens when a container exits with the code.",
    "policies: [{exitCode: 3}]",
    reason="FieldValueRequired",
)
POL_DUP_EVENT = Rule(
    "POL-DUP-EVENT",
    "no two policies of a list apply to the same event",
    "Only one of them could be applied.",
    "policies: [{event: PodFailed, action: AbortJob}, {event: PodFailed, action: RestartJob}]",
    reason="FieldValueDuplicate",
)
POL_ANY_ALONE = Rule(
    "POL-ANY-ALONE",
    'beside the event "*" a list names no other event',
    "`*` already stands for every event.",
    'policies: [{event: "*", action: AbortJob}, {event: PodFailed, action: RestartJob}]',
    reason="FieldValueForbidden",
)
POL_CODE_ZERO = Rule(
    "POL-CODE-ZERO",
    "exitCode is not 0",
    "A pod that exits with 0 has succeeded.",
    "policies: [{exitCode: 0, action: AbortJob}]",
)
POL_DUP_CODE = Rule(
    "POL-DUP-CODE",
    "no two policies of a list apply to the same exit code",
    "Only one of them could be applied.",
    "policies: [{exitCode: 3, action: AbortJob}, {exitCode: 3, action: RestartJob}]",
    reason="FieldValueDuplicate",
)
POL_CODE_RANGE = warned(
    "POL-CODE-RANGE",
    "exitCode is one that a process can exit with: 1 to 255",
    "Linux keeps eight bits of an exit code, so the policy would never apply.",
    "policies: [{exitCode: 256, action: RestartJob}]",
)
POL_PENDING = warned(
    "POL-PENDING",
    "a policy for PodPending has a timeout",
    "Every pod is pending at first; without a timeout the policy never applies.",
    "policies: [{event: PodPending, action: RestartJob}]",
    compares=True,
)
POL_NEVER = warned(
    "POL-NEVER",
    "policies do not wait for JobUpdated",
    "The API has the event, but neither Volcano nor Pumice raises it.",
    "policies: [{event: JobUpdated, action: RestartJob}]",
)
POL_TIMEOUT = stricter(
    "POL-TIMEOUT",
    "durations are written like 90s, 10m or 1h30m",
    "A duration that cannot be read stops the controller from reading the Job.",
    "policies: [{event: PodPending, action: AbortJob, timeout: 10 minutes}]",
)
POL_AT_ONCE = warned(
    "POL-AT-ONCE",
    "durations are longer than 0",
    "The action would be taken immediately, as without a timeout.",
    "policies: [{event: PodFailed, action: AbortJob, timeout: 0s}]",
)
POL_PARTITION = warned(
    "POL-PARTITION",
    "RestartPartition is used where there are partitions",
    "Without a partitionPolicy there is nothing to restart.",
    "policies: [{event: PodFailed, action: RestartPartition}]",
    compares=True,
)


def lifecycle_policies(case: Case, job: Job) -> None:
    """Check the policies of the Job and of each task, each list on its own."""
    if job.spec.running_estimate is not None:
        _duration(case, "spec.runningEstimate", job.spec.running_estimate, "a time of 0")
    if job.spec.policies and not _plain(job.spec.policies):
        divided = any(task.partition_policy is not None for task in job.tasks)
        _List(case, "spec.policies", partitioned=divided).judge(job.spec.policies)
    for index, task in enumerate(job.tasks):
        if task.policies and not _plain(task.policies):
            path, divided = f"spec.tasks[{index}].policies", task.partition_policy is not None
            _List(case, path, partitioned=divided).judge(task.policies)


def _duration(case: Case, path: str, text: str, otherwise: str) -> None:
    """Check that a duration can be parsed and is greater than 0."""
    if problem := duration_problem(text):
        case.report(POL_TIMEOUT, path, problem)
    elif (parse_nanoseconds(text) or 0) <= 0:
        case.report(POL_AT_ONCE, path, f'"{text}" means {otherwise}')


def _plain(policies: Sequence[LifecyclePolicy]) -> bool:
    """True if a list is of the common form that has no problems.

    Nearly all lists are, and this takes a tenth of the time of all checks.
    """
    events = {
        each.event
        for each in policies
        if each.event in _PLAIN_EVENTS
        and each.action in _PLAIN_ACTIONS
        and each.events is None
        and each.exit_code is None
        and each.timeout is None
    }
    return len(events) == len(policies)


_PLAIN_EVENTS = frozenset(EVENTS) - {_ANY, _PENDING, _NEVER}
_PLAIN_ACTIONS = frozenset(ACTIONS) - {"RestartPartition"}


class _List:
    """One list of policies, with the events and exit codes of the policies checked so far."""

    def __init__(self, case: Case, path: str, *, partitioned: bool) -> None:
        self._case, self._path, self._partitioned = case, path, partitioned
        self._events: dict[str, str] = {}
        self._codes: dict[int, str] = {}

    def judge(self, policies: Sequence[LifecyclePolicy]) -> None:
        """Check each policy, then the list as a whole."""
        for index, policy in enumerate(policies):
            self._policy(policy, f"{self._path}[{index}]")
        others = [event for event in self._events if event not in ("", _ANY)]
        if _ANY in self._events and others:
            also = ", ".join(f"{event} ({self._events[event]})" for event in others)
            message = (
                'if there\'s * here, no other policy should be here that names an event, since "*" is every '
                f"event; also found {also}"
            )
            self._case.report(POL_ANY_ALONE, self._events[_ANY], message)

    def _policy(self, policy: LifecyclePolicy, path: str) -> None:
        report, code = self._case.report, policy.exit_code
        # Of an event that is repeated here the last path is used.
        named = {event: f"{path}.events[{at}]" for at, event in enumerate(policy.events or ())}
        if policy.event:
            named[policy.event] = f"{path}.event"
        if policy.timeout is not None:
            _duration(self._case, f"{path}.timeout", policy.timeout, "acting immediately")
        if policy.action == "RestartPartition" and not self._partitioned:
            message = "RestartPartition has no effect here: no partitionPolicy divides the pods"
            report(POL_PARTITION, f"{path}.action", message)
        if named and code is not None:
            message = (
                f"must not specify event and exitCode simultaneously, found {code} beside "
                f"{', '.join(named)}; write two policies"
            )
            report(POL_EVENT_AND_CODE, f"{path}.exitCode", message)
        elif code is not None:
            self._exit_code(code, f"{path}.exitCode")
            if not policy.action:
                message = f"has no effect on exit code {code}, expected one of {', '.join(ACTIONS)}"
                report(POL_NO_ACTION, f"{path}.action", message)
            else:
                self._check_word(POL_BAD_CODE_ACTION, "action", policy.action, f"{path}.action")
        elif not named:
            message = "either event and exitCode should be specified: one of them, found none; write event, events or exitCode"
            report(POL_NOTHING, path, message)
        for event, where in named.items():
            if self._check_word(POL_BAD_EVENT, "event", event, where):
                self._event(event, where, policy)
            self._events.setdefault(event, where)
        if named or (code is None and policy.action):
            self._check_word(POL_BAD_ACTION, "action", policy.action, f"{path}.action")

    def _event(self, event: str, where: str, policy: LifecyclePolicy) -> None:
        if event in self._events:
            message = (
                f'duplicate event "{event}" across different policy: '
                f"a duplicate policy event of {self._events[event]}"
            )
            self._case.report(POL_DUP_EVENT, where, message)
        elif event == _PENDING and policy.timeout is None:
            message = f'"{event}" has no effect without a timeout, such as timeout: 10m'
            self._case.report(POL_PENDING, where, message)
        elif event == _NEVER:
            message = f'"{event}" is never raised, so the policy has no effect'
            self._case.report(POL_NEVER, where, message)

    def _check_word(self, rule: Rule, noun: str, found: str, path: str) -> bool:
        """Report an event or action that does not exist or is not for users; true if it is valid."""
        known, internal, of_whom = _WORDS[noun]
        if found in known:
            return True
        hint = f", which is for {of_whom} only"
        if found not in internal:
            hint = self._case.did_you_mean(found, known)
        shown = f' "{found}"{hint}' if found else ": found none"
        message = f"invalid policy {noun}{shown}; valid {noun}s are {', '.join(known)}"
        self._case.report(rule, path, message)
        return False

    def _exit_code(self, code: int, where: str) -> None:
        if code == 0:
            message = "0 is not a valid error code: a container that exits with 0 has succeeded"
            self._case.report(POL_CODE_ZERO, where, message)
        elif code in self._codes:
            message = f"duplicate exitCode {code}, already used by {self._codes[code]}"
            self._case.report(POL_DUP_CODE, where, message)
        elif not -MAX_INT32 - 1 <= code <= MAX_INT32:
            self._case.report(JOB_OVERFLOW, where, f"must fit into 32 bits, found {code}")
        elif not 0 < code < 256:
            message = f"{code} is not an exit code of a process; exit codes are 1 to 255"
            self._case.report(POL_CODE_RANGE, where, message)
        self._codes.setdefault(code, where)
