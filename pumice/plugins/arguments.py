"""The arguments of a job plugin: their declaration, and how the words of a Job are parsed.

`spec.plugins` gives each plugin a list of words (`["--port=5000", "--ps", "server"]`). A plugin declares its flags as
data (`ArgumentSpec`); `parse` reads the words into `Values` and a list of problems. A word that cannot be read does not
stop the parser: the argument keeps its value, later words are still read, and a problem says what was found and what is
used instead.

Volcano stops at the first word that it cannot read, sets a bad boolean to false and a bad integer to 0, without a
message. `strict_upstream` reproduces this exactly (`upstream_arguments`), for users who depend on it; problems are
still listed. Both parsers use the types and problems of this file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pumice.api.fields import closest
from pumice.api.meta import parse_bool
from pumice.plugins import words
from pumice.plugins.settings import DEFAULT, PluginSettings

_SHORT = 64
"""Maximum length of words that are cached; keys are longer."""

_IS = "--{name} is {used}"
_FLAG = re.compile(r"--?([^-=][^=]*)(?:=(.*))?", re.DOTALL)


class BadValueError(ValueError):
    """A word has the wrong type for its argument.

    Attributes:
        upstream: The value that Volcano uses instead.
        accepted_upstream: Whether Volcano takes the value without complaint.
    """

    def __init__(
        self, expected: str, *, upstream: Any = None, accepted_upstream: bool = False
    ) -> None:
        super().__init__(f"expected {expected}")
        self.upstream = upstream
        self.accepted_upstream = accepted_upstream


@dataclass(frozen=True, slots=True)
class ValueType:
    """Type of an argument's value.

    Attributes:
        name: Name in the documentation.
        read: Turns a word into the value; raises `BadValueError` or any `ValueError` whose text says
            what was expected.
    """

    name: str
    read: Callable[[str], Any]


def _read_integer(word: str) -> int:
    value = words.integer(word)
    if value is None:
        raise BadValueError("an integer", upstream=0)
    if not words.MIN_INT64 <= value <= words.MAX_INT64:
        clamped = words.MAX_INT64 if value > 0 else words.MIN_INT64
        raise BadValueError("an integer of 64 bits", upstream=clamped)
    return value


def _read_boolean(word: str) -> bool:
    value = parse_bool(word)
    if value is None:
        raise BadValueError("true or false", upstream=False)
    return value


def between(name: str, noun: str, least: int, most: int) -> ValueType:
    """Type of an argument that is an integer in a range; Volcano does not check the range.

    Args:
        name: Name of the type.
        noun: Description of the integer, with its article: `a port`.
        least: The minimum.
        most: The maximum.
    """
    expected = f"{noun} from {least} to {most}"

    def read(word: str) -> int:
        try:
            value = _read_integer(word)
        except BadValueError as error:
            raise BadValueError(expected, upstream=error.upstream) from error
        if not least <= value <= most:
            raise BadValueError(expected, upstream=value, accepted_upstream=True)
        return value

    return ValueType(name, read)


TEXT = ValueType("text", str)
INTEGER = ValueType("integer", _read_integer)
PORT = between("port", "a port", 1, 65535)
BOOLEAN = ValueType("boolean", _read_boolean)


def one_of(name: str, choices: Iterable[str]) -> ValueType:
    """Type of an argument with a fixed set of words."""
    known = tuple(choices)

    def read(word: str) -> str:
        if word in known:
            return word
        raise ValueError(f"expected one of {', '.join(known)}")

    return ValueType(name, read)


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag of a plugin.

    Attributes:
        name: Name without the dashes.
        kind: Type of the value. A boolean may have no value and never uses the next argument as its value.
        default: Value when the Job does not set it.
        help: One line for the documentation, without a full stop.
        ours: Whether the flag exists only in Pumice, although Volcano has the plugin, too.
    """

    name: str
    kind: ValueType
    default: Any
    help: str
    ours: bool = False


class ArgumentSpec:
    """The flags of a plugin, in the order in which the documentation lists them."""

    __slots__ = ("_arguments", "defaults")

    def __init__(self, *arguments: Argument) -> None:
        self._arguments = {argument.name: argument for argument in arguments}
        if len(self._arguments) != len(arguments):
            names = [argument.name for argument in arguments]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"argument --{twice} is declared twice")
        self.defaults = Values({argument.name: argument.default for argument in arguments})

    def __iter__(self) -> Iterator[Argument]:
        return iter(self._arguments.values())

    def get(self, name: str) -> Argument | None:
        """Find a flag by name."""
        return self._arguments.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the flags, without dashes."""
        return tuple(self._arguments)


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a plugin's arguments, by name without dashes: `values["port"]`.

    Attributes:
        of: The values; every declared argument has one.
        given: Names of the arguments that the Job sets; others have their default.
        strict_upstream: Whether to give Volcano's result where Pumice's differs.
        settings: Settings of the cluster's operator.
    """

    of: Mapping[str, Any]
    given: frozenset[str] = field(default_factory=frozenset)
    strict_upstream: bool = False
    settings: PluginSettings = DEFAULT

    def __getitem__(self, name: str) -> Any:
        return self.of[name]


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """A word that cannot be used.

    Attributes:
        position: Index of the word in the plugin's list.
        used: The value that is used instead, as a word; empty if there is none.
        message: The problem as one sentence.
        kept: Name of the flag with that value; empty if the flag is unknown.
        keeps: Last part of the message, with `{used}` and the flag's `{name}`.
    """

    position: int
    used: str
    message: str
    kept: str = ""
    keeps: str = ""

    def with_used(self, used: str) -> "ArgumentProblem":
        """The same problem, if the rest of the Job determines the value that is used instead."""
        old, new = (_outcome(self.keeps, self.kept, each) for each in (self.used, used))
        return replace(self, used=used, message=self.message.removesuffix(old) + new)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Result of parsing the arguments of a plugin."""

    values: Values
    problems: tuple[ArgumentProblem, ...] = ()


def shown(value: Any) -> str:
    """A value as a user would write it."""
    if isinstance(value, tuple):
        separator = ";" if any(isinstance(each, tuple) for each in value) else ","
        return separator.join(shown(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def split_flag(word: str) -> tuple[str, str | None] | None:
    """Name and value (None without `=`) of a flag; None if the word does not have the form of a flag."""
    match = _FLAG.fullmatch(word)
    return (match[1], match[2]) if match else None


def parse(spec: ArgumentSpec, vector: Sequence[str]) -> Parsed:
    """Parse all words of a plugin, also after invalid ones."""
    if sum(map(len, vector)) <= _SHORT:
        return _parsed(spec, tuple(vector))
    return _read(spec, vector)


@lru_cache(maxsize=1024)
def _parsed(spec: ArgumentSpec, vector: tuple[str, ...]) -> Parsed:
    # Jobs give their plugins the same few words over and over.
    return _read(spec, vector)


def _read(spec: ArgumentSpec, vector: Sequence[str]) -> Parsed:
    reader = _ArgumentReader(spec, vector)
    while reader.position < len(vector):
        reader.step()
    values = spec.defaults
    if reader.values:
        values = Values({**values.of, **reader.values}, frozenset(reader.values))
    return Parsed(values, tuple(each.problem(values) for each in reader.faults))


@dataclass(frozen=True, slots=True)
class _Fault:
    """An invalid argument, before the value that is used is known: a later argument may still set the flag.

    Attributes:
        position: Index of the word.
        argument: Flag that keeps its value; None if the flag is unknown.
        text: What is wrong.
        keeps: Text about the value that is used, with placeholders `{used}` and the flag's `{name}`.
    """

    position: int
    argument: Argument | None
    text: str
    keeps: str = "{used} is used instead"

    def problem(self, values: Values) -> ArgumentProblem:
        """The problem, with what is used instead."""
        argument = self.argument
        if argument is None:
            return ArgumentProblem(self.position, "", self.text)
        kept, used = argument.name, shown(values[argument.name])
        message = f"{self.text}; {_outcome(self.keeps, kept, used)}"
        return ArgumentProblem(self.position, used, message, kept, self.keeps)


def _outcome(keeps: str, name: str, used: str) -> str:
    """The end of a message, about the value that is used instead."""
    return (keeps if used else "--{name} stays empty").format(used=used, name=name)


_MOST_FAULTS = 100  # of one plugin; a response holds fewer warnings than this


class _ArgumentReader:
    def __init__(self, spec: ArgumentSpec, vector: Sequence[str]) -> None:
        self.spec = spec
        self.vector = vector
        self.position = 0
        self.values: dict[str, Any] = {}
        self.faults: list[_Fault] = []
        self.bare: Argument | None = None

    def step(self) -> None:
        word = self.vector[self.position]
        flag = split_flag(word)
        bare, self.bare = self.bare, None
        if flag is None:
            self._stray(word, bare)
            self.position += 1
            return
        name, value = flag
        argument = self.spec.get(name)
        if argument is None:
            self._unknown(name, value)
        elif value is not None:
            self._set(argument, value, 1)
        elif argument.kind is BOOLEAN:
            self._set(argument, "true", 1)
            self.bare = argument
        elif (following := self._value_after()) is not None:
            self._set(argument, following, 2)
        else:
            self._keep(argument, f"--{name} has no value")
            self.position += 1

    def _set(self, argument: Argument, word: str, consumed: int) -> None:
        try:
            self.values[argument.name] = argument.kind.read(word)
        except ValueError as error:
            self._keep(argument, f'bad value "{word}" for --{argument.name}: {error}')
        self.position += consumed

    def _keep(self, argument: Argument, text: str) -> None:
        self._report(_Fault(self.position, argument, text))

    def _report(self, fault: _Fault) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)

    def _stray(self, word: str, bare: Argument | None) -> None:
        """A word that is not a flag; after a boolean it was probably meant as its value."""
        if len(self.faults) >= _MOST_FAULTS:  # there may be very many of them
            return
        hint = "flags are written --name=value" if self.spec.names else "it takes no arguments"
        if bare is not None:
            right = word if parse_bool(word) is not None else "true or false"
            hint = f"write --{bare.name}={right}"
        text = f'"{word}" is not a flag and is ignored: {hint}'
        self._report(_Fault(self.position, bare, text, _IS))

    def _unknown(self, name: str, value: str | None) -> None:
        if len(self.faults) < _MOST_FAULTS:  # the closest name takes time to find
            self._report(self._unknown_fault(name))
        # A word behind an unknown flag is most likely its value: one mistake, one problem.
        following = self._next()
        takes_next = value is None and following is not None and not following.startswith("-")
        self.position += 2 if takes_next else 1

    def _unknown_fault(self, name: str) -> _Fault:
        meant = closest(name, self.spec.names)
        text = f"unknown argument --{name} is ignored"
        if meant is not None:
            text += f' (did you mean "--{meant}"?)'
        else:
            known = ", ".join(f"--{each}" for each in self.spec.names)
            text += f" (known: {known})" if known else " (it takes no arguments)"
        argument = None if meant is None else self.spec.get(meant)
        return _Fault(self.position, argument, text, _IS)

    def _next(self) -> str | None:
        following = self.position + 1
        return self.vector[following] if following < len(self.vector) else None

    def _value_after(self) -> str | None:
        """The next word, unless it is another of this plugin's flags."""
        word = self._next()
        flag = split_flag(word) if word is not None else None
        return None if flag is not None and self.spec.get(flag[0]) is not None else word
