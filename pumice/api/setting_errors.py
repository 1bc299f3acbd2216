"""What is wrong with a setting or a configuration file, as `pumice.settings` finds it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from pumice.api.fields import plain
from pumice.api.json_words import quoted

_LONGEST_STEP = 100


class SettingProblem(msgspec.Struct, frozen=True):
    """A wrong value, or a part of a file that has no effect.

    Attributes:
        location: Keys and indexes that lead to the value; empty for the whole.
        message: What is expected, and what was found.
        code: Stable name of the kind of problem.
        line: Line of the file, counted from 1; None where it is not known.
    """

    location: tuple[str | int, ...]
    message: str
    code: str = ""
    line: int | None = None

    @property
    def path(self) -> str:
        """The location as users write it: `tiers[0].plugins[1].name`."""
        return path_of(self.location)

    def __str__(self) -> str:
        """`line 3: resourceGroups[0].object.key: …` with the parts that are known, without control characters."""
        where = [f"line {self.line}"] if self.line is not None else []
        return plain(": ".join([*where, *([self.path] if self.location else []), self.message]))


class SettingError(ValueError):
    """Settings that cannot be used; the message has one line for each problem.

    Attributes:
        problems: Everything that is wrong.
        warnings: What has no effect.
    """

    def __init__(
        self, problems: Iterable[SettingProblem], warnings: Iterable[SettingProblem] = ()
    ) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Problems and warnings, of which a pickled error is made again."""
        return SettingError, (self.problems, self.warnings)

    @classmethod
    def of(cls, message: str, *location: str | int) -> "SettingError":
        """The error for a single problem."""
        return cls([SettingProblem(location, message)])


def assigned(text: str) -> tuple[str, str]:
    """Name and value of `NAME=VALUE`.

    Raises:
        SettingError: The text is something else.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SettingError.of(f"{quoted(text)} is no setting, expected NAME=VALUE")
    return name.strip(), value.strip()


def path_of(location: Iterable[str | int]) -> str:
    """A location as users write it; very long keys are cut."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if len(step) <= _LONGEST_STEP else f".{step[:_LONGEST_STEP]}…"
    return path.removeprefix(".")
