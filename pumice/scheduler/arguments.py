"""Arguments of plugins and actions: declared, parsed leniently, and reported by name.

For a value of the wrong type the default is used, as in Volcano, with a warning that has the path. The settings page is
generated from the declarations.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from pumice.api.fields import did_you_mean
from pumice.api.json_words import shown
from pumice.api.meta import parse_bool

Value = bool | int | float | str

_EXPECTED = {
    bool: "true or false",
    int: "an integer without quotes",
    float: "a number without quotes",
    str: "a string",
}


class SchedulerArgument(msgspec.Struct, frozen=True):
    """One argument of a plugin or an action.

    Attributes:
        name: Key in the configuration file.
        default: Value when it is left out; its type is the argument's type.
        summary: What it does, one sentence.
        is_prefix: Whether any key that begins with `name` is meant, for example `binpack.resources.`.
        suffix: How such a key ends, for example `.weight`.
        is_absent: Whether it is Volcano's, but has no effect in this version.
        choices: The only texts that are meant, if not any.
        problem: Says why a string cannot be used, or None. Such a value is an error, as no other could stand for it.
        falls_back: Whether such a value keeps the default with a warning instead, as one of the wrong type does.
        takes_text: Whether a number may also be given as a string; `problem` says which strings are numbers.
    """

    name: str
    default: Value
    summary: str
    is_prefix: bool = False
    suffix: str = ""
    is_absent: bool = False
    choices: tuple[str, ...] = ()
    problem: Callable[[str], str | None] | None = None
    falls_back: bool = False
    takes_text: bool = False

    def why_unusable(self, value: object) -> str | None:
        """Why the configuration cannot be used with a value; None where it can."""
        if self.problem is None:
            return None
        problem = self.problem(str(value))
        if problem is None and not (self.takes_text or isinstance(value, str)):
            return f"must be a string, in quotation marks, found {shown(value)}"
        return problem

    @property
    def expected(self) -> str:
        """What a value must be, for messages."""
        return " or ".join(self.choices) if self.choices else _EXPECTED[type(self.default)]

    def read(self, value: object) -> Value | None:
        """The value if it has the right type, or None.

        A bool is also read from a text as Go does; a float also from an integer.
        """
        kind = type(self.default)
        if kind is bool:
            if isinstance(value, str):
                return parse_bool(value)
            return value if isinstance(value, bool) else None
        if isinstance(value, bool):
            return None
        if self.takes_text and isinstance(value, str):
            return kind(value)
        if kind is float and isinstance(value, int | float):
            return float(value)
        if kind is int and isinstance(value, int):
            return value
        if kind is str and isinstance(value, str) and value in (self.choices or (value,)):
            return value
        return None


ERROR_CACHE = SchedulerArgument(
    "predicateErrorCacheEnable",
    True,
    "Volcano's cache of refusals by role; pods of one shape always share their refusals here.",
)
"""An argument of all actions that place pods."""


class Arguments:
    """Values by name, checked against what is declared.

    Attributes:
        warnings: What was wrong with the given values, each with its path.
        problems: Values with which the configuration cannot be used: path and what is wrong.
    """

    def __init__(
        self,
        given: Mapping[str, object],
        declared: Iterable[SchedulerArgument],
        path: str = "arguments",
    ) -> None:
        self._declared = {argument.name + argument.suffix: argument for argument in declared}
        self._values: dict[str, Value] = {}
        warnings = []
        problems = []
        seen = set()
        for name, value in _without_objects(given, self._declared):
            argument = self._argument(name)
            where = f"{path}.{name}"
            if name in seen:
                problems.append((where, _TWICE))
                continue
            seen.add(name)
            if argument is None:
                hint = did_you_mean(name, self._declared)
                warnings.append(f"{where}: unknown argument, ignored{hint}")
                continue
            if argument.is_absent:
                warnings.append(f"{where}: not part of this version, ignored")
                continue
            problem = argument.why_unusable(value)
            if problem is not None and not argument.falls_back:
                problems.append((where, problem))
                continue
            if problem is not None:
                warnings.append(f"{where}: {problem}; the default {argument.default!r} stays")
                continue
            read = argument.read(value)
            if read is None:
                warnings.append(
                    f"{where}: must be {argument.expected}, found {shown(value)}; the "
                    f"default {argument.default!r} stays"
                )
                continue
            self._values[name] = read
        plain = {name: each for name, each in self._declared.items() if not each.is_prefix}
        self._known = {name: each.default for name, each in plain.items()} | self._values
        self.warnings = tuple(warnings)
        self.problems = tuple(problems)

    def _argument(self, name: str) -> SchedulerArgument | None:
        """What is declared under a name, or for a prefix that something follows."""
        exact = self._declared.get(name)
        if exact is not None and not exact.is_prefix:
            return exact
        for argument in self._declared.values():
            if argument.is_prefix and _between(name, argument.name, argument.suffix):
                return argument
        return None

    def texts(self, prefix: str, suffix: str = "") -> Iterator[tuple[str, str]]:
        """What stands after a prefix, and before a suffix, and the text that was given for it."""
        for name, value in self._values.items():
            if between := _between(name, prefix, suffix):
                yield between, str(value)

    def is_set(self, name: str) -> bool:
        """Whether a usable value was given."""
        return name in self._values

    def integer(self, name: str) -> int:
        """An integer argument."""
        value = self._get(name)
        assert isinstance(value, int)
        return value

    def number(self, name: str) -> float:
        """A float argument."""
        value = self._get(name)
        assert isinstance(value, int | float)
        return float(value)

    def flag(self, name: str) -> bool:
        """A bool argument."""
        return bool(self._get(name))

    def text(self, name: str) -> str:
        """A text argument."""
        return str(self._get(name))

    def names(self, name: str) -> list[str]:
        """A text argument that lists names between commas."""
        return names_in(self.text(name))

    def _get(self, name: str) -> Value:
        found = self._known.get(name)
        if found is None:
            argument = self._argument(name)
            if argument is None:
                raise KeyError(f"argument {name} is not declared")
            found = self._known[name] = argument.default
        return found


def names_in(text: str) -> list[str]:
    """Names between commas."""
    return [each for part in text.split(",") if (each := part.strip())]


_TWICE = "is given twice, by its whole name and in an object; keep one of them"
_DEEPEST = 4
"""Levels of objects in which arguments are looked for."""


def _between(name: str, prefix: str, suffix: str) -> str:
    """What stands between a prefix and a suffix; empty if nothing does."""
    if name.startswith(prefix) and name.endswith(suffix):
        return name[len(prefix) : len(name) - len(suffix)]
    return ""


def _without_objects(
    given: Mapping[str, object], declared: Iterable[str], path: str = "", depth: int = 0
) -> Iterator[tuple[str, object]]:
    """Arguments in objects by their whole names: `sra: {weight: 2}` is `sra.weight: 2` if there are arguments that begin so."""
    for key, value in given.items():
        name = f"{path}{key}"
        is_part = path or any(each.startswith(f"{name}.") for each in declared)
        if isinstance(value, dict) and is_part and depth < _DEEPEST:
            yield from _without_objects(value, declared, f"{name}.", depth + 1)
        else:
            yield name, value
