"""CronJobs in CEL: when they are due, and the Jobs that they make."""

from pumice.api.schedules import DESCRIPTORS
from pumice.api.time_zones import time_zones
from pumice.webhook.policies.cel import (
    QUALIFIED,
    each,
    is_label_value,
    is_qualified,
    joined,
    one,
    texts,
    word,
)
from pumice.webhook.policies.form import Form, Room
from pumice.webhook.policies.jobs import JobPlace, job_variables, later_forms
from pumice.webhook.policies.lifecycle_policies import DURATION

__all__ = ["ROOM"]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 6, _WEEKDAYS),
)

_TEMPLATE = JobPlace(
    "spec.jobTemplate.spec",
    "$object.?spec.?jobTemplate.?spec.orValue({})",
    f"(size($own) <= 52 && $own.matches('{QUALIFIED}') ? $own : 'x') + '-10000000'",
)
_NUMBER = "[+]?0*[0-9]{1,9}"
_STEP = "[+]?0*[0-9]{1,19}"
_LONGEST_STEP = str(2**63 - 1)


def _item_pattern(names: tuple[str, ...]) -> str:
    value = "|".join((_NUMBER, *names))
    return f"(?i)^([*?](-[^/]*)?|({value})(-({value}))?)(/{_STEP})?$"


def _value(text: str, low: int, names: tuple[str, ...]) -> str:
    """The number that an end of a range stands for."""
    number = f"int({text}.replace('+', ''))"
    if not names:
        return number
    listed = texts(names)
    word_ = f"{text}.lowerAscii()"
    return f"({word_} in {listed} ? {listed}.indexOf({word_}) + {low} : {number})"


def _good(position: int) -> str:
    """Whether every item of a field, in `$fields`, can be."""
    _, low, high, names = _FIELDS[position]
    span = "x.split('/')[0]"
    ends = f"{span}.split('-')"
    first, last = (_value(f"{ends}[{end}]", low, names) for end in ("0", f"{ends}.size() - 1"))
    step, digits = "x.split('/')[1]", len(_LONGEST_STEP)
    fits = f"({step}.size() < {digits} || {step}.substring({step}.size() - {digits}) <= '{_LONGEST_STEP}')"
    return (
        f"$fields[{position}].split(',').filter(x, x != '').all(x, x.matches('{_item_pattern(names)}') && "
        f"(!x.contains('/') || ({fits} && int({step}.replace('+', '')) > 0)) && (x.startsWith('*') || x.startsWith('?') || "
        f"({first} >= {low} && {last} <= {high} && {first} <= {last})))"
    )


_FIVE = f"$usual && !$descriptor && $fields.size() == {len(_FIELDS)}"
_SECONDS = "duration($interval).getSeconds()"

_SCHEDULE = {
    "schedule": "string($object.?spec.?schedule.orValue(''))",
    "usual": "$schedule != '' && !$schedule.contains('TZ')",
    "descriptor": "$schedule.startsWith('@')",
    "interval": "$schedule.startsWith('@every ') ? $schedule.substring(7) : ''",
    "spans": f"$interval.matches('{DURATION}')",
    "fields": (
        "$schedule.replace('\\t', ' ').replace('\\n', ' ').replace('\\r', ' ').split(' ').filter(p, p != '')"
    ),
    "unreadable": " || ".join(f"!({_good(position)})" for position in range(len(_FIELDS))),
}
"""What the schedule says."""


def _schedule() -> tuple[Form, ...]:
    path, shown = "'spec.schedule'", word("$schedule")
    fields = ", ".join(name for name, *_ in _FIELDS)

    def wrong(condition: str, *message: str) -> str:
        return one(condition, path, joined(*message))

    return (
        Form(
            "CRON-SCHEDULE",
            joined(
                wrong("$schedule == ''", "'must be set, for example */5 * * * * or @daily'"),
                wrong(
                    f"$usual && $descriptor && !$spans && !($schedule in {texts(DESCRIPTORS)})",
                    "'must be a descriptor such as @daily or @every 90m, found '",
                    shown,
                ),
                wrong(
                    f"$usual && !$descriptor && $fields.size() != {len(_FIELDS)}",
                    f"'must have 5 fields ({fields}) or be a descriptor, found '",
                    "string($fields.size())",
                    "': '",
                    shown,
                ),
                wrong(
                    f"{_FIVE} && $unreadable",
                    f"'must have fields that can be read ({fields}), found '",
                    shown,
                ),
            ),
        ),
        Form(
            "CRON-TZ",
            wrong(
                "$schedule.contains('TZ')",
                "'must not name a time zone, found '",
                shown,
                "'; use spec.timeZone'",
            ),
        ),
        Form(
            "CRON-SCHEDULE-ODD",
            joined(
                wrong(
                    f"{_FIVE} && !$unreadable && "
                    "$fields.exists(p, p.split(',').exists(x, x == '' || x.matches('^[*?]-')))",
                    "'says something that does not count, found '",
                    shown,
                ),
                wrong(
                    f"$usual && $spans && ({_SECONDS} < 1 || duration($interval) != duration(string({_SECONDS}) + 's'))",
                    "'counts in whole seconds, 1 at least, found '",
                    shown,
                ),
            ),
        ),
    )


def _zone() -> Form:
    return Form(
        "CRON-ZONE",
        one(
            f"$zone != null && !($zone in {texts(sorted(time_zones()))})",
            "'spec.timeZone'",
            joined("'must be a name such as Europe/Oslo or UTC, found '", word("$zone")),
        ),
    )


def _labels() -> Form:
    def of(field: str, condition: str) -> str:
        return each(
            f"$meta.?{field}.orValue({{}})",
            "k, v",
            condition,
            f"'spec.jobTemplate.metadata.{field}.' + k",
            joined("'is none that a Job can have, found '", word("k + '=' + v")),
        )

    return Form(
        "CRON-LABELS",
        joined(
            of("labels", f"!{is_qualified('k')} || !{is_label_value('v')}"),
            of("annotations", f"!{is_qualified('k.lowerAscii()')}"),
        ),
    )


ROOM = Room(
    {
        "own": "string($object.metadata.?name.orValue(''))",
        **_SCHEDULE,
        "zone": "$object.?spec.?timeZone.orValue(null)",
        "meta": "$object.?spec.?jobTemplate.?metadata.orValue({})",
        **job_variables(_TEMPLATE),
    },
    (
        Form(
            "CRON-NAME",
            one(
                f"size($own) > 52 || !$own.matches('{QUALIFIED}')",
                "'metadata.name'",
                "'must be at most 52 characters, found ' + string(size($own))",
            ),
        ),
        *_schedule(),
        _zone(),
        _labels(),
        *later_forms(_TEMPLATE),
    ),
)
"""New and changed CronJobs."""
