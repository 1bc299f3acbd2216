"""Everything that is wrong or doubtful about the plugins of a Job.

A bad argument never refuses a Job: manifests that Volcano accepts must pass, and the plugin works on
with what it had. A name that is no plugin does refuse it, and so does what a plugin knows to fail later.
"""

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.jobs import Job
from pumice.plugins.applied import applied, read_arguments
from pumice.plugins.arguments import Parsed
from pumice.plugins.interface import Findings
from pumice.plugins.registry import Registry

__all__ = ["problems"]


def problems(job: Job, registry: Registry, *, strict_upstream: bool = False) -> Findings:
    """Judge the plugins of a Job, in a stable order; never raises, whatever the Job holds."""
    errors = _unknown(job, registry)
    warnings: list[FieldError] = []
    _judge_unavailable(job, registry, strict_upstream, errors, warnings)
    for each in applied(job, registry, strict_upstream=strict_upstream):
        warnings.extend(_argument_warnings(each.plugin.name, each.parsed))
        found = each.plugin.check(job, each.parsed.values)
        errors.extend(found.errors)
        warnings.extend(found.warnings)
    return Findings(tuple(errors), tuple(warnings))


def _unknown(job: Job, registry: Registry) -> list[FieldError]:
    known = registry.known_names
    return [
        FieldError(
            f"spec.plugins.{name}", registry.unknown(name), "JOB-PLUGIN", "FieldValueNotSupported"
        )
        for name in job.spec.plugins or ()
        if name not in known
    ]


def _judge_unavailable(
    job: Job,
    registry: Registry,
    strict_upstream: bool,
    errors: list[FieldError],
    warnings: list[FieldError],
) -> None:
    plugins = job.spec.plugins or {}
    for each in registry.lacking:
        if each.name not in plugins:
            continue
        path = f"spec.plugins.{each.name}"
        text = f'plugin "{each.name}" is not part of this version: the pods are not wired for it'
        warnings.append(FieldError(path, text, "JOB-PLUGIN-UNAVAILABLE"))
        if each.arguments is None:
            continue
        parsed = read_arguments(each.arguments, plugins[each.name], strict_upstream=strict_upstream)
        warnings.extend(_argument_warnings(each.name, parsed))
        if each.needs_task and job.task(parsed.values[each.needs_task]) is None:
            errors.append(_missing_task(job, each.name, each.needs_task, parsed))


def _missing_task(job: Job, plugin: str, argument: str, parsed: Parsed) -> FieldError:
    wanted = parsed.values[argument]
    hint = did_you_mean(wanted, [task.name for task in job.tasks])
    text = (
        f'plugin "{plugin}" needs a task named "{wanted}", which the Job does not have{hint}; name one '
        f"so, or say which it is with --{argument}=<task>"
    )
    code = f"JOB-{plugin}-{argument}".upper()
    return FieldError("spec.tasks", text, code, "FieldValueNotFound")


def _argument_warnings(plugin: str, parsed: Parsed) -> list[FieldError]:
    return [
        FieldError(f"spec.plugins.{plugin}[{each.position}]", each.message, "JOB-PLUGIN-ARGUMENT")
        for each in parsed.problems
    ]
