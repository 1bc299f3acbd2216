"""Checks of an object without the fields that cannot be read, because they have a wrong type.

Such a field is reported, and its intended value is not guessed. The rules then check the object without it, so that a
wrong type and a misspelt plugin in one object are both reported. Its absence may cause problems that the whole object
does not have, or hide others:

- at the field, inside it and around it: a list of policies without one of them may be too short
- where a rule compares fields (`Rule.compares`), of which one may be the missing one

These results are left out. All others also hold for the whole object, since a rule about one field is right about every
field that is present.

Whole objects are checked like this by `Admission`, by the paths that their schema reports; pod templates by
`templates/pod`, by the paths that their types report; and `offline` applies it to the defaults of an object, too.
"""

from collections.abc import Callable, Container, Iterable

from pumice.api.fields import FieldError
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.paths import Within


def check_rest(
    case: Case,
    dropped: Iterable[str],
    comparing: Container[str],
    check: Callable[[Case], None],
) -> None:
    """Check an object without some fields, and report what also holds for the whole object.

    Args:
        case: The case of the object, in which the fields are already reported.
        dropped: Paths of the fields.
        comparing: Codes of the rules that compare fields.
        check: Checks the rest of the object; gets a case of its own.
    """
    rest = case.sibling()
    check(rest)
    paths = Within(dropped)
    case.errors += _unaffected(rest.errors, paths, comparing)
    case.warnings += _unaffected(rest.warnings, paths, comparing)
    case.excesses |= rest.excesses
    case.missing_queues += rest.missing_queues
    case.crashes += rest.crashes


def unaffected(
    found: Iterable[FieldError], dropped: Iterable[str], comparing: Container[str]
) -> list[FieldError]:
    """Results about an object without some fields that also hold for the whole object; arguments as in `check_rest`."""
    return _unaffected(found, Within(dropped), comparing)


def _unaffected(
    found: Iterable[FieldError], dropped: Within, comparing: Container[str]
) -> list[FieldError]:
    return [
        each
        for each in found
        if each.code not in comparing and each.path not in dropped and not dropped.below(each.path)
    ]
