"""A plugin put to the test: every sentence of the contract on many examples, the smallest failure kept."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Flaky

from pumice.cli.contract.examples import examples
from pumice.cli.contract.processes import answers_by_process
from pumice.cli.contract.properties import PROPERTIES, Property, declaration
from pumice.cli.contract.samples import samples
from pumice.cli.contract.subject import Example, Subject, said
from pumice.plugins import JobPlugin, PluginError, Registry, builtin
from pumice.plugins.applied import FAILURES
from pumice.plugins.registry import Registered

__all__ = ["Verdict", "tried"]


_SECONDS = 1.0
"""What a plugin may take for a Job of a few pods; it takes a thousandth of that, usually."""


@dataclass(frozen=True)
class Verdict:
    """What came of one sentence of the contract.

    Attributes:
        name: One word for it.
        text: The sentence.
        problem: What is wrong; empty where it holds.
        example: The smallest example found, with `job` and `pod`; None where it needs none.
    """

    name: str
    text: str
    problem: str = ""
    example: dict[str, Any] | None = None


class _BrokenError(AssertionError):
    """Tells hypothesis that an example breaks the contract."""


def tried(found: Any, reference: str, number: int, count: int) -> tuple[str, list[Verdict]]:
    """Put a plugin to the test.

    Args:
        found: A class or an object that is meant to be a plugin.
        reference: What the user called it.
        number: Which one of the plugins there it is.
        count: Examples to try for each sentence.

    Returns:
        The plugin's name, and what came of every sentence; where it cannot be made, or answers so slowly
        that trying the others would take an hour, of those before.
    """
    text = "registers, and says properly what it is"
    try:
        plugin = found() if isinstance(found, type) else found
        registry = _others(plugin).with_plugin(plugin, reference)
    except PluginError as error:
        return _called(found), [Verdict("declared", text, str(error))]
    except FAILURES as error:
        return _called(found), [Verdict("declared", text, f"cannot be made: {error!r}")]
    fresh = found if isinstance(found, type) else None
    subject = Subject(plugin, fresh, registry, _file(plugin))
    verdicts = [Verdict("declared", text, declaration(subject))]
    text = "answers within a second"
    if problem := _slowness(subject):
        return plugin.name, [*verdicts, Verdict("quick", text, problem)]
    verdicts.append(Verdict("quick", text))
    verdicts += _verdicts(subject, count)
    if not any(each.problem for each in verdicts):
        text = "answers alike in every process, whatever the order of sets and of Jobs there"
        verdicts.append(Verdict("ordered", text, answers_by_process(reference, number)))
    return plugin.name, verdicts


def _others(plugin: Any) -> Registry:
    """The built-in plugins, without the one that is under test."""
    entries: Iterator[Registered] = (
        each for each in builtin().entries if type(each.plugin) is not type(plugin)
    )
    return Registry(tuple(entries))


def _slowness(subject: Subject) -> str:
    """How long a plugin takes for a small Job, where that is long."""
    job = next(iter(samples(subject.plugin)))
    start = time.perf_counter()
    with suppress(*FAILURES):  # which the next sentence tells
        said(subject.plugin, job)
    took = time.perf_counter() - start
    if took < _SECONDS:
        return ""
    return f"takes {took:.1f} seconds, and every review of a Job that names it waits for it"


def _called(found: Any) -> str:
    return str(getattr(found, "name", "") or getattr(found, "__name__", "") or found)


def _file(plugin: JobPlugin) -> str:
    code = getattr(type(plugin).__init__, "__code__", None)
    for each in vars(type(plugin)).values():
        code = getattr(each, "__code__", None) or code
    return code.co_filename if code is not None else ""


def _verdicts(subject: Subject, count: int) -> list[Verdict]:
    """Try all sentences on the same examples, and then each that fails by itself for a small one."""
    failures: dict[str, Verdict] = {}
    tried_ones: list[Property] = []
    for odd in (True, False):
        if "answers" in failures:
            break  # the others would look at what is no answer
        sentences = [each for each in PROPERTIES if each.odd is odd]
        tried_ones += sentences

        def look(example: Example, sentences: list[Property] = sentences) -> None:
            for each in sentences:
                if each.name in failures:
                    continue
                problem = _problem(each, subject, example, excused="total" in failures)
                if problem:
                    failures[each.name] = _failure(each, problem, example)

        _run(look, subject, odd, count)
    return [
        _smallest(each, subject, count, failures[each.name])
        if each.name in failures
        else Verdict(each.name, each.text)
        for each in tried_ones
    ]


def _smallest(sentence: Property, subject: Subject, count: int, first: Verdict) -> Verdict:
    """The same failure with the smallest example; the last one that hypothesis tries."""
    found = [first]

    def holds(example: Example) -> None:
        if problem := _problem(sentence, subject, example):
            found.append(_failure(sentence, problem, example))
            raise _BrokenError

    # What fails only now and then has failed, too.
    with suppress(_BrokenError, Flaky):
        _run(holds, subject, sentence.odd, count)
    return found[-1]


def _run(look: Callable[[Example], None], subject: Subject, odd: bool, count: int) -> None:
    run = settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run(given(examples(subject.plugin, odd=odd))(_of_one(look)))()


def _of_one(look: Callable[[Example], None]) -> Callable[[Example], None]:
    """A function of one argument, as hypothesis wants it."""

    def test(example: Example) -> None:
        look(example)

    return test


def _problem(
    sentence: Property, subject: Subject, example: Example, *, excused: bool = False
) -> str:
    """What is wrong; that the plugin raises is nothing new where it is excused."""
    try:
        return sentence.problem(subject, example)
    except FAILURES as error:
        return "" if excused else f"raises {error!r}"


def _failure(sentence: Property, problem: str, example: Example) -> Verdict:
    shown = {"job": example.job, "pod": example.pod}
    return Verdict(sentence.name, sentence.text, problem, shown)
