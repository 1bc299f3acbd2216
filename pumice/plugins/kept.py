"""Variables that both a template and a plugin set.

The template's value is kept. In Volcano the plugin's second entry takes effect in the running container, so a warning
is given for users who rely on it.
"""

from collections.abc import Collection

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.plugins.arguments import Values
from pumice.plugins.used_names import used_names

__all__ = ["kept_warnings"]


def kept_warnings(
    job: Job, values: Values, names: Collection[str], *, tasks: Collection[str] | None = None
) -> list[FieldError]:
    """Warn about each place where a template sets a plugin's variable.

    Args:
        job: The Job.
        values: Arguments of the plugin; with `strict_upstream` no template value is kept.
        names: Variables of the plugin.
        tasks: Tasks in which it sets them; None for all.
    """
    if values.strict_upstream:
        return []
    if not used_names(job).may_set(names):
        return []
    wanted = frozenset(names)
    return [
        FieldError(
            f"spec.tasks[{position}].template.spec.{place}",
            f"{name} is set here and kept; leave it out to get the generated value",
            "JOB-PLUGIN-KEPT",
        )
        for position, task in enumerate(job.tasks)
        if tasks is None or task.name in tasks
        for place, name in _set(task.pod_spec(), wanted)
    ]


def _set(spec: dict[str, object], names: frozenset[str]) -> list[tuple[str, str]]:
    """Paths at which a pod's containers set one of the names, with the name."""
    found: list[tuple[str, str]] = []
    for key in ("containers", "initContainers"):
        containers = spec.get(key)
        for number, container in enumerate(containers if isinstance(containers, list) else ()):
            env = container.get("env") if isinstance(container, dict) else None
            for entry, variable in enumerate(env if isinstance(env, list) else ()):
                name = variable.get("name") if isinstance(variable, dict) else None
                if isinstance(name, str) and name in names:
                    found.append((f"{key}[{number}].env[{entry}]", name))
    return found
