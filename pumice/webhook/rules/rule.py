"""The description of a rule, without the code that checks it."""

from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Literal

from pumice.api.fields import Reason

Level = Literal["enforce", "warn", "off"]
"""`enforce` refuses the object, `warn` admits it with a warning, `off` disables the rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of admission, as in the docs.

    Attributes:
        code: Stable name, used in messages, audit annotations and metrics.
        title: What must hold, in one line.
        why: What goes wrong otherwise.
        example: A fragment of a manifest that breaks the rule.
        reason: Kubernetes' class of the error.
        level: Default level.
        stricter: Whether Volcano admits objects that break it; setting `strict-upstream` makes it a warning.
        compares: Whether it compares several fields, so that its result about an object without one of them may be
            wrong. A rule about duplicate names does not.
        since: First version with the rule.
    """

    code: str
    title: str
    why: str
    example: str
    reason: Reason = "FieldValueInvalid"
    level: Level = "enforce"
    stricter: bool = False
    compares: bool = False
    since: str = "0.1"


warned = partial(Rule, level="warn")
"""A rule that warns, unless settings say otherwise."""

stricter = partial(Rule, stricter=True)
"""A rule that refuses what Volcano admits."""


def rules_in(*files: ModuleType) -> tuple[Rule, ...]:
    """The rules of some files, in the order of their definition; an imported rule is listed with the first file that has it."""
    found = (value for file in files for value in vars(file).values() if isinstance(value, Rule))
    return tuple(dict.fromkeys(found))
