"""The plugins of a Job, with parsed arguments and with error handling.

Plugins may come from other packages. A failing plugin must not end the process, and the error must name it: each
exception, also `SystemExit`, becomes a `PluginError` with the plugin and its package.

An invalid argument does not refuse a Job: manifests that Volcano accepts must pass, and the plugin uses the previous
value. A Job is refused for an unknown plugin, for a problem that would make it fail later, and if a plugin itself
fails.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from pumice.api.fields import FieldError, Suggestions
from pumice.api.jobs import Job, Task
from pumice.api.meta import Raw
from pumice.plugins import interface
from pumice.plugins.arguments import ArgumentProblem, ArgumentSpec, Parsed, Values, parse, shown
from pumice.plugins.edits import PodEdits
from pumice.plugins.interface import Findings, JobPlugin, KeySecret, PluginError, PodEditor
from pumice.plugins.registry import Registered, Registry
from pumice.plugins.settings import DEFAULT, PluginSettings
from pumice.plugins.upstream_arguments import parse_upstream

FAILURES = (Exception, SystemExit)
"""Exceptions that a plugin may raise by mistake."""


class Applied(msgspec.Struct, frozen=True):
    """A plugin of a Job. Each of its methods may raise `PluginError`.

    Attributes:
        plugin: The plugin.
        parsed: Its arguments in this Job.
        origin: Its origin, as in the registry.
    """

    plugin: JobPlugin
    parsed: Parsed
    origin: str

    def problems(self, job: Job) -> tuple[ArgumentProblem, ...]:
        """Problems of its arguments, with the values that are used instead in this Job."""
        if type(self.plugin).in_effect is JobPlugin.in_effect:
            return self.parsed.problems
        return tuple(self._in_effect(job, each) for each in self.parsed.problems)

    def check(self, job: Job) -> Findings:
        """Errors and warnings of the plugin about the Job."""
        found: Findings = self._ask(self.plugin.check, job, interface.fault_of_findings)
        return found

    def job_annotations(self, job: Job) -> Mapping[str, str]:
        """Annotations that it wants on the Job."""
        found: Mapping[str, str] = self._ask(
            self.plugin.job_annotations, job, interface.fault_of_annotations
        )
        return found

    def objects(self, job: Job) -> list[Raw]:
        """Objects that it wants beside the Job."""
        found: list[Raw] = self._ask(
            lambda job, values: list(self.plugin.objects(job, values)),
            job,
            interface.fault_of_objects,
        )
        return found

    def secrets(self, job: Job) -> list[KeySecret]:
        """Secrets with key pairs that it wants beside the Job."""
        found: list[KeySecret] = self._ask(
            lambda job, values: list(self.plugin.secrets(job, values)),
            job,
            interface.fault_of_secrets,
        )
        return found

    def editor(self, job: Job) -> PodEditor:
        """The function that computes its edits to a pod; call it through `edits`."""
        found: PodEditor = self._ask(self.plugin.for_job, job, interface.fault_of_editor)
        return found

    def edits(self, edit: PodEditor, task: Task, index: int) -> PodEdits:
        """Its edits to the pod of a task at an index, computed by its editor."""
        found: PodEdits = self._ask(
            lambda task, _: edit(task, index), task, interface.fault_of_edits
        )
        return found

    def failed(self, error: BaseException) -> PluginError:
        """The error for an exception of the plugin."""
        if isinstance(error, PluginError):
            return PluginError(f"{_named(self.plugin, self.origin)}: {error}")
        return PluginError(f"{_named(self.plugin, self.origin)} failed with {_told(error)}")

    def _in_effect(self, job: Job, problem: ArgumentProblem) -> ArgumentProblem:
        if not problem.kept:
            return problem
        used = self._ask(
            lambda job, values: shown(self.plugin.in_effect(job, values, problem.kept)),
            job,
            lambda _: "",
        )
        return problem if used == problem.used else problem.with_used(used)

    def _ask(
        self, ask: Callable[[Any, Values], Any], about: Job | Task, fault_of: Callable[[Any], str]
    ) -> Any:
        try:
            found = ask(about, self.parsed.values)
            fault = fault_of(found)
        except FAILURES as error:
            raise self.failed(error) from error
        if fault:
            raise PluginError(f"{_named(self.plugin, self.origin)}: {fault}")
        return found


def applied(
    job: Job,
    registry: Registry,
    *,
    strict_upstream: bool = False,
    settings: PluginSettings = DEFAULT,
) -> tuple[Applied, ...]:
    """The Job's plugins in the order in which they are applied; names without a plugin are left out."""
    plugins = job.spec.plugins
    if not plugins:
        return ()
    return tuple(
        Applied(each.plugin, _read(each, plugins[name], strict_upstream, settings), each.origin)
        for name, each in registry.by_name.items()
        if name in plugins
    )


def read_arguments(
    spec: ArgumentSpec,
    vector: Sequence[str] | None,
    *,
    strict_upstream: bool,
    settings: PluginSettings = DEFAULT,
) -> Parsed:
    """Read a plugin's words by Pumice's rules or by Volcano's."""
    read = parse_upstream if strict_upstream else parse
    parsed = read(spec, vector or ())
    if settings is DEFAULT:
        return parsed
    return replace(parsed, values=replace(parsed.values, settings=settings))


def _read(
    entry: Registered, vector: Sequence[str] | None, strict_upstream: bool, settings: PluginSettings
) -> Parsed:
    """Read a plugin's words; if reading them fails, none of them has an effect."""
    spec = entry.plugin.arguments
    try:
        return read_arguments(spec, vector, strict_upstream=strict_upstream, settings=settings)
    except FAILURES as error:
        named = _named(entry.plugin, entry.origin)
        message = f"no argument is used: {named} failed to read them with {_told(error)}"
        parsed = read_arguments(spec, (), strict_upstream=strict_upstream, settings=settings)
        return replace(parsed, problems=(ArgumentProblem(0, "", message),))


def _named(plugin: JobPlugin, origin: str) -> str:
    return f'plugin "{plugin.name}" of {origin}'


def _told(error: BaseException) -> str:
    """The exception and where it was raised, for the plugin's author."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != __file__:
            place = f" ({Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{f': {text}' if text else ''}{place}"


def problems(job: Job, registry: Registry, *, strict_upstream: bool = False) -> Findings:
    """Check the plugins of a Job, in a stable order; never raises."""
    errors = _unknown(job, registry)
    warnings: list[FieldError] = []
    for each in applied(job, registry, strict_upstream=strict_upstream):
        try:
            if each.parsed.problems:
                warnings += _argument_warnings(each.plugin.name, each.problems(job))
            found = each.check(job)
        except PluginError as error:
            # Then the Job was not checked, and its pods could not be wired either.
            errors.append(FieldError(f"spec.plugins.{each.plugin.name}", str(error), "JOB-PLUGIN"))
            continue
        errors += found.errors
        warnings += found.warnings
    return Findings(tuple(errors), tuple(warnings))


def _unknown(job: Job, registry: Registry) -> list[FieldError]:
    known = registry.by_name
    unknown = [name for name in job.spec.plugins or () if name not in known]
    if not unknown:
        return []
    suggestions = Suggestions()
    return [
        FieldError(
            f"spec.plugins.{name}",
            registry.unknown(name, suggestions),
            "JOB-PLUGIN",
            "FieldValueNotSupported",
        )
        for name in unknown
    ]


def _argument_warnings(plugin: str, found: Iterable[ArgumentProblem]) -> list[FieldError]:
    return [
        FieldError(f"spec.plugins.{plugin}[{each.position}]", each.message, "JOB-PLUGIN-ARGUMENT")
        for each in found
    ]
