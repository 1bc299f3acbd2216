"""Checks of a job plugin: each promise of the contract is tried on many Jobs, and the smallest Job that breaks it is kept."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Flaky

from pumice.plugins import JobPlugin, PluginError, Raw, Registry, builtin
from pumice.plugins.applied import FAILURES
from pumice.testing.contract import PROMISES, Promise, Subject, declaration
from pumice.testing.jobs import jobs

__all__ = ["ContractError", "Report", "Result", "check_job_plugin", "job_plugin_report"]


@dataclass(frozen=True)
class Result:
    """The outcome of one promise.

    Attributes:
        name: Name of the promise, one word.
        text: The promise as a sentence.
        problem: What is wrong; empty if the plugin keeps the promise.
        job: Manifest of the smallest Job found that breaks it; None if the problem is the same for every Job.
    """

    name: str
    text: str
    problem: str = ""
    job: Raw | None = None

    def details(self) -> Iterator[str]:
        """Lines that describe the problem, with the Job as YAML; none if there is no problem."""
        if self.problem:
            yield self.problem
        if self.job is not None:
            yield "The smallest example found:"
            job = msgspec.json.decode(msgspec.json.encode(self.job))  # nothing shared, for YAML
            for line in yaml.safe_dump(job, sort_keys=False).splitlines():
                yield f"  {line}"


@dataclass(frozen=True)
class Report:
    """The outcomes of all promises that were tried.

    Attributes:
        plugin: Name of the plugin.
        results: One for each promise, in the order of the documentation. The first that is broken is the last if
            the plugin cannot be registered or asked.
    """

    plugin: str
    results: tuple[Result, ...]

    @property
    def problems(self) -> tuple[Result, ...]:
        """The promises that the plugin breaks."""
        return tuple(each for each in self.results if each.problem)


class ContractError(AssertionError):
    """A plugin breaks its contract; the message lists every broken promise with an example.

    Attributes:
        report: All outcomes.
    """

    def __init__(self, report: Report) -> None:
        lines = [f'job plugin "{report.plugin}" breaks its contract']
        for each in report.problems:
            lines += [f"  {each.name}: {each.text}", *(f"    {line}" for line in each.details())]
        super().__init__("\n".join(lines))
        self.report = report


class _BrokenError(AssertionError):
    """Tells hypothesis that an example breaks a promise."""


def check_job_plugin(plugin: type[JobPlugin] | JobPlugin, *, examples: int = 100) -> None:
    """Check that a job plugin keeps its contract, which docs/writing-plugins.md describes.

        def test_contract() -> None:
            check_job_plugin(MyPlugin)

    Args:
        plugin: The plugin: its class, or an object if making one needs arguments.
        examples: How many Jobs to try for each promise. The same Jobs are tried in each run.

    Raises:
        ContractError: The plugin breaks a promise. It is an AssertionError, so a test fails with its message.
    """
    report = job_plugin_report(plugin, examples=examples)
    if report.problems:
        raise ContractError(report)


def job_plugin_report(plugin: type[JobPlugin] | JobPlugin, *, examples: int = 100) -> Report:
    """Try every promise of the contract on a job plugin and return all outcomes.

    Args:
        plugin: The plugin: its class, or an object if making one needs arguments.
        examples: How many Jobs to try for each promise. The same Jobs are tried in each run.
    """
    text = "registers, and describes itself properly"
    try:
        subject = _subject(plugin)
    except PluginError as error:
        return Report(_called(plugin), (Result("declared", text, str(error)),))
    except FAILURES as error:
        return Report(_called(plugin), (Result("declared", text, f"cannot be made: {error!r}"),))
    results = [Result("declared", text, declaration(subject))]
    for promise in PROMISES:
        results.append(_tried(promise, subject, examples))
        if promise.odd and results[-1].problem:
            break  # the other promises are about answers
    return Report(subject.plugin.name, tuple(results))


def _subject(found: Any) -> Subject:
    plugin = found() if isinstance(found, type) else found
    others = Registry(
        tuple(each for each in builtin().entries if type(each.plugin) is not type(plugin))
    )
    origin = f"{type(plugin).__module__}:{type(plugin).__qualname__}"
    return Subject(plugin, others.with_plugin(plugin, origin))


def _called(found: Any) -> str:
    return str(getattr(found, "name", "") or getattr(found, "__name__", "") or found)


def _tried(promise: Promise, subject: Subject, count: int) -> Result:
    """Try a promise on many Jobs; the result has the smallest one found that breaks it."""
    found: list[Result] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(jobs(subject.plugin, odd=promise.odd))
    def holds(job: Raw) -> None:
        try:
            problem = promise.problem(subject, job)
        except PluginError as error:
            problem = str(error)
        if problem:
            found.append(Result(promise.name, promise.text, problem, job))
            raise _BrokenError

    # hypothesis tries the smallest example last. A promise that is broken only sometimes is broken too.
    with suppress(_BrokenError, Flaky):
        holds()
    return found[-1] if found else Result(promise.name, promise.text)
