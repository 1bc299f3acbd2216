"""What a rule looks like in CEL, apart from the kind that it judges."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pumice.webhook.rules.rule import Level

__all__ = ["SIDES", "Form", "Room", "Side", "identifier", "on_side"]

_NAME = re.compile(r"\$([a-z]\w*)")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two objects that an update is about.

    Attributes:
        object: The variable that holds it.
        prefix: What the names of variables that follow from it begin with.
    """

    object: str
    prefix: str


SIDES = NEW, OLD = Side("object", ""), Side("oldObject", "old_")


@dataclass(frozen=True, slots=True)
class Form:
    """A rule in CEL.

    Attributes:
        code: Of the rule.
        problems: An expression for what is wrong with `$object`: a list with, for each problem, the list of path and
            message, and for one that can be measured also by how much and which limit is passed. `$name` is a
            variable of the room for the same object.
        level: How strict the rule is with this kind, where not as strict as elsewhere.
        later: Volcano does not judge this here, only what the object will make or when it is made, so it admits
            whatever breaks the rule.
        setting: Setting of admission on which it depends, and the value that it must have.
        standing: Codes of the rules whose problems an update may already have had; its own unless given.
        always: It compares the two objects of an update, so what was wrong before does not matter.
        deletion: It judges `oldObject` when that is deleted.
        erring: The expression cannot say what is wrong, it fails to be evaluated then; it yields a truth.
    """

    code: str
    problems: str
    level: Level | None = None
    later: bool = False
    setting: tuple[str, bool] | None = None
    standing: tuple[str, ...] = ()
    always: bool = False
    deletion: bool = False
    erring: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """All forms of one kind.

    Attributes:
        variables: What several forms need, name to expression; each may use those before it.
        forms: In the order in which problems are told.
        between: Variables that follow from both objects of an update, after the others.
        covering: Codes of forms that say of a path that it must not change; what else is wrong below such a path
            goes without saying.
        shifted: A list that changes as a whole, and the variable that holds the paths of those of its items that do
            not stand where they stood, below which alone the rest goes without saying; items of other lists that move
            are then others. Without it an item is known again where it has moved.
    """

    variables: Mapping[str, str]
    forms: tuple[Form, ...]
    covering: tuple[str, ...] = ()
    between: Mapping[str, str] = field(default_factory=dict)
    shifted: tuple[str, str] | None = None

    @property
    def codes(self) -> frozenset[str]:
        """Codes of all forms."""
        return frozenset(form.code for form in self.forms)


def identifier(code: str) -> str:
    """A code as the name of a CEL variable."""
    return code.replace("-", "_")


def on_side(expression: str, side: Side, names: Collection[str]) -> str:
    """An expression about one of the two objects, `$object` and `$name` put in.

    Args:
        expression: The expression; what it holds of other words with a dollar is left to the chart.
        side: Which object.
        names: Of variables.
    """

    def named(match: re.Match[str]) -> str:
        name = match[1]
        if name == "object":
            return side.object
        return f"variables.{side.prefix}{name}" if name in names else match[0]

    return _NAME.sub(named, expression)
