"""Objects that plugins want beside a Job: their manifests, and whether a Job's name can be part of theirs."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.kinds import Kind

__all__ = ["Derived", "manifest", "name_errors"]


class Derived(NamedTuple):
    """A name that follows from the Job's.

    Attributes:
        what: What has it, for the message: `Service`.
        name: The name.
        problem: What is wrong with it; None when nothing is.
    """

    what: str
    name: str
    problem: str | None


def manifest(kind: Kind, name: str, namespace: str, **sections: Any) -> dict[str, Any]:
    """The manifest of an object, without owner references."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **sections}


def name_errors(job: Job, plugin: str, derived: Iterable[Derived]) -> tuple[FieldError, ...]:
    """Refuse a Job after which something cannot be named; one that has no name yet is not judged.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        derived: What it names after the Job.
    """
    if not job.metadata.name:
        return ()
    return tuple(
        FieldError(
            "metadata.name",
            f'plugin {plugin} names a {each.what} "{each.name}" after the Job, and that {each.problem}; '
            "choose another name for the Job",
            "JOB-PLUGIN-NAME",
        )
        for each in derived
        if each.problem
    )
