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
    """A rule of admission, as the docs show it.

    Attributes:
        code: Stable name; stands in every message, in audit annotations and in metrics.
        title: What must hold, in one line.
        why: What goes wrong otherwise.
        example: A fragment of a manifest that breaks the rule.
        reason: Kubernetes' class of the error.
        level: How strict it is unless settings say otherwise.
        stricter: Volcano admits what breaks this rule; setting `strict-upstream` makes it a warning.
        phrases: Fragments of Volcano's text for the same mistake, by which users, searches and scripts know it. A message
            has that of the situation, letter for letter; `…` stands for a value.
        compares: The rule compares several fields, so its result about an object without one of
            them may be wrong. A rule that finds the same name twice is right without the others.
        since: Version that brought the rule.
    """

    code: str
    title: str
    why: str
    example: str
    reason: Reason = "FieldValueInvalid"
    level: Level = "enforce"
    stricter: bool = False
    phrases: tuple[str, ...] = ()
    compares: bool = False
    since: str = "0.1"


warned = partial(Rule, level="warn")
"""A rule that warns, unless settings say otherwise."""

stricter = partial(Rule, stricter=True)
"""A rule that refuses what Volcano admits."""


def rules_in(*files: ModuleType) -> tuple[Rule, ...]:
    """The rules of some files, in the order of their definition; one that a file imports comes with the first that has it."""
    found = (value for file in files for value in vars(file).values() if isinstance(value, Rule))
    return tuple(dict.fromkeys(found))
