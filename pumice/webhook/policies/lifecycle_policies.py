"""Lifecycle policies in CEL: the lists of the Job and of its tasks, laid out as one."""

from pumice.api.jobs import ACTIONS
from pumice.webhook.policies.cel import each, joined, texts, word
from pumice.webhook.policies.form import Form
from pumice.webhook.rules.jobs.policies import EVENTS

__all__ = ["DURATION", "forms", "variables"]

_FRACTION = r"(\\.[0-9]{0,20})?"
_PART = (
    f"([0-9]{{1,7}}{_FRACTION}h|[0-9]{{1,9}}{_FRACTION}m|[0-9]{{1,10}}{_FRACTION}s|[0-9]{{1,13}}{_FRACTION}ms|"
    f"[0-9]{{1,16}}{_FRACTION}(us|µs|μs)|[0-9]{{1,19}}{_FRACTION}ns|"
    r"\\.[0-9]{1,20}(ns|us|µs|μs|ms|s|m|h))"
)
DURATION = f"^[+-]?(0|{_PART}{{1,10}})$"
"""A duration as Go writes it, of no more digits than 64 bits hold."""

_NOTHING = r"^([+]?(0|([0.]+(ns|us|µs|μs|ms|s|m|h))+)|-.*)$"
"""A duration that is over at once."""


def variables(path: str) -> dict[str, str]:
    """The policies and their events: where each stands, in which list, and what it says.

    Args:
        path: Of the Job's spec.
    """

    def listed(policies: str, where: str, divided: str) -> str:
        fields = {
            "list": where,
            "at": f"{where} + '[' + string(k) + ']'",
            "k": "k",
            "p": "p",
            "divided": divided,
            "coded": "p.?exitCode.orValue(null) != null",
            "timed": "p.?timeout.orValue(null) != null",
            "events": _EVENTS,
        }
        entries = ", ".join(f"'{name}': dyn({value})" for name, value in fields.items())
        return f"{policies}.transformList(k, p, {{{entries}}})"

    of_job = listed(
        "$spec.?policies.orValue([])", f"'{path}.policies'", "$parts.exists(q, q != {})"
    )
    of_task = listed(
        "t.?policies.orValue([])",
        f"'{path}.tasks[' + string(i) + '].policies'",
        "$parts[i] != {}",
    )
    return {
        "policies": f"{of_job} + $tasks.transformList(i, t, {of_task}).flatten()",
        "events": (
            "$policies.map(q, q.events.map(e, {'e': dyn(e), 'list': dyn(q.list), 'k': dyn(q.k), "
            "'at': dyn(q.at + (q.p.?event.orValue('') == e ? '.event' : '.events')), 'timed': dyn(q.timed)}))"
            ".flatten()"
        ),
    }


_EVENTS = "(p.?events.orValue([]) + (p.?event.orValue('') != '' ? [p.event] : [])).map(e, string(e)).distinct()"
_NAMED = "q.p.?action.orValue('')"


def forms(path: str) -> tuple[Form, ...]:
    """The forms, for the policies of a Job.

    Args:
        path: Of its spec.
    """
    return (*_triggers(), *_of_events(), *_of_codes(), *_durations(path), _partitions())


def _policies(condition: str, field: str, message: str) -> str:
    return each("$policies", "i, q", condition, f"q.at + '{field}'", message)


def _events(condition: str, message: str) -> str:
    return each("$events", "i, e", condition, "string(e.at)", message)


def _triggers() -> tuple[Form, ...]:
    return (
        Form(
            "POL-NOTHING",
            _policies(
                "q.events.size() == 0 && !q.coded",
                "",
                "'must have event, events or exitCode, found none'",
            ),
        ),
        Form(
            "POL-EVENT-AND-CODE",
            _policies(
                "q.events.size() > 0 && q.coded",
                ".exitCode",
                "'must not be set together with events; write two policies'",
            ),
        ),
    )


def _of_events() -> tuple[Form, ...]:
    known, expected = texts(EVENTS), f"', expected one of {', '.join(EVENTS)}'"
    actions = f"', expected one of {', '.join(ACTIONS)}'"
    earlier = "$events.exists(f, f.list == e.list && f.k < e.k && f.e == e.e)"
    return (
        Form(
            "POL-BAD-EVENT",
            _events(
                f"!(e.e in {known})",
                joined(word("e.e"), "' is not an event that a policy may name'", expected),
            ),
        ),
        Form(
            "POL-BAD-ACTION",
            _policies(
                f"(q.events.size() > 0 || !q.coded && {_NAMED} != '') && !({_NAMED} in {texts(ACTIONS)})",
                ".action",
                joined(word(_NAMED), "' is not an action that a policy may name'", actions),
            ),
        ),
        Form(
            "POL-DUP-EVENT",
            _events(
                f"e.e in {known} && {earlier}",
                joined(word("e.e"), "' is already handled in the same list'"),
            ),
        ),
        Form(
            "POL-ANY-ALONE",
            _events(
                "e.e == '*' && !$events.exists(f, f.list == e.list && f.k < e.k && f.e == '*') && "
                "$events.exists(f, f.list == e.list && f.e != '*')",
                "'stands for every event, so it must stand alone'",
            ),
        ),
        Form(
            "POL-PENDING",
            _events(
                f"e.e == 'PodPending' && !e.timed && !{earlier}",
                "'\"PodPending\" has no effect without a timeout, such as timeout: 10m'",
            ),
        ),
        Form(
            "POL-NEVER",
            _events(
                f"e.e == 'JobUpdated' && !{earlier}",
                "'\"JobUpdated\" is never raised, so nothing is done'",
            ),
        ),
    )


def _of_codes() -> tuple[Form, ...]:
    alone = "q.events.size() == 0 && q.coded"
    code = "int(q.p.exitCode)"
    earlier = (
        "$policies.exists(r, r.list == q.list && r.k < q.k && r.coded && r.events.size() == 0 && "
        "r.p.exitCode == q.p.exitCode)"
    )
    return (
        Form(
            "POL-CODE-ZERO",
            _policies(
                f"{alone} && {code} == 0",
                ".exitCode",
                "'must not be 0: a pod that exits with 0 has succeeded'",
            ),
        ),
        Form(
            "POL-DUP-CODE",
            _policies(
                f"{alone} && {code} != 0 && {earlier}",
                ".exitCode",
                f"string({code}) + ' is already handled in the same list'",
            ),
        ),
        Form(
            "POL-CODE-RANGE",
            _policies(
                f"{alone} && {code} != 0 && ({code} < 0 || {code} > 255) && !{earlier}",
                ".exitCode",
                f"string({code}) + ' is no exit code of a process, those are 1 to 255'",
            ),
        ),
        Form(
            "POL-NO-ACTION",
            _policies(
                f"{alone} && {_NAMED} == ''",
                ".action",
                f"'nothing will be done on exit code ' + string({code})",
            ),
        ),
        Form(
            "POL-BAD-CODE-ACTION",
            _policies(
                f"{alone} && {_NAMED} != '' && !({_NAMED} in {texts(ACTIONS)})",
                ".action",
                joined(
                    word(_NAMED),
                    f"' is not an action that a policy may name, expected one of {', '.join(ACTIONS)}'",
                ),
            ),
        ),
    )


def _durations(path: str) -> tuple[Form, ...]:
    whole = f"[{{'at': '{path}.runningEstimate', 'd': string($spec.runningEstimate)}}]"
    found = (
        f"((has($spec.runningEstimate) ? {whole} : []) + $policies.filter(q, q.timed)"
        ".map(q, {'at': q.at + '.timeout', 'd': string(q.p.timeout)}))"
    )
    return (
        Form(
            "POL-TIMEOUT",
            each(
                found,
                "i, d",
                f"!d.d.matches('{DURATION}')",
                "d.at",
                joined("'must be a duration such as 90s, 10m or 1h30m, found '", word("d.d")),
            ),
        ),
        Form(
            "POL-AT-ONCE",
            each(
                found,
                "i, d",
                f"d.d.matches('{DURATION}') && d.d.matches('{_NOTHING}')",
                "d.at",
                joined(word("d.d"), "' stands for no time at all'"),
            ),
        ),
    )


def _partitions() -> Form:
    return Form(
        "POL-PARTITION",
        _policies(
            f"{_NAMED} == 'RestartPartition' && !q.divided",
            ".action",
            "'RestartPartition has no effect here: no partitionPolicy divides the pods'",
        ),
    )
