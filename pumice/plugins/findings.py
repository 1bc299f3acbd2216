"""All errors and warnings about the plugins of a Job.

An invalid argument does not refuse a Job: manifests that Volcano accepts must pass, and the plugin uses the previous
value. A Job is refused for an unknown plugin, for a problem that would make it fail later, and if a plugin itself
fails.
"""

from collections.abc import Iterable

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.suggestions import Suggestions
from pumice.plugins.applied import applied
from pumice.plugins.arguments import ArgumentProblem
from pumice.plugins.interface import Findings, PluginError
from pumice.plugins.registry import Registry

__all__ = ["problems"]


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
