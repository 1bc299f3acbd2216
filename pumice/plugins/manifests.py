"""Objects that plugins want beside a Job: their manifests, and whether a Job's name can be part of theirs."""

from collections.abc import Iterable
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.kinds import Kind

__all__ = ["Derived", "manifest", "name_errors"]


Derived = tuple[str, str, str | None]
"""A name that follows from the Job's: what has it, as messages call it; the name; and what is wrong with it."""


def manifest(kind: Kind, name: str, namespace: str, **sections: Any) -> dict[str, Any]:
    """The manifest of an object, without owner references."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **sections}


def name_errors(job: Job, plugin: str, derived: Iterable[Derived]) -> list[FieldError]:
    """Refuse a Job after which something cannot be named; one that has no name yet is not judged.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        derived: What it names after the Job.
    """
    if not job.metadata.name:
        return []
    return [
        FieldError(
            "metadata.name",
            f'plugin {plugin} names a {what} "{name}" after the Job, which is invalid: {problem}; '
            "choose another name for the Job",
            "JOB-PLUGIN-NAME",
        )
        for what, name, problem in derived
        if problem
    ]
