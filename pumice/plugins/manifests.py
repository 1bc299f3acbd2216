"""Objects that plugins want for a Job: their manifests, and the check of names that contain the Job's name."""

from collections.abc import Iterable
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.json_words import quoted
from pumice.api.kinds import Kind

__all__ = ["Derived", "manifest", "name_errors"]


Derived = tuple[str, str, str | None]
"""A name that contains the Job's: its object in words, the name, and its problem."""


def manifest(kind: Kind, name: str, namespace: str, **sections: Any) -> dict[str, Any]:
    """The manifest of an object, without owner references."""
    metadata = {"name": name, "namespace": namespace}
    return {**kind.type_meta, "metadata": metadata, **sections}


def name_errors(job: Job, plugin: str, derived: Iterable[Derived]) -> list[FieldError]:
    """Refuse a Job whose name makes another name invalid; a Job without a name is not checked.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        derived: The names that contain the Job's.
    """
    if not job.metadata.name:
        return []
    return [
        FieldError(
            "metadata.name",
            f"plugin {plugin} names a {what} {quoted(name)} after the Job, which is invalid: {problem}; "
            "choose another name for the Job",
            "JOB-PLUGIN-NAME",
        )
        for what, name, problem in derived
        if problem
    ]
