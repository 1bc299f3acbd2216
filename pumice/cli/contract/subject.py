"""The plugin under test, an example to try it on, and everything that it says about it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api.jobs import Job
from pumice.plugins import JobPlugin, PodEdits, Raw, Registry, Values, dependencies
from pumice.plugins.applied import read_arguments

__all__ = ["Example", "Subject", "arguments", "job_of", "said"]


@dataclass(frozen=True)
class Example:
    """One of a Job's pods, before it is wired.

    Attributes:
        job: The Job, which names the plugin.
        position: Position of the pod's task in the Job.
        index: Index of the pod in its task.
        pod: The pod.
    """

    job: Raw
    position: int
    index: int
    pod: Raw


@dataclass(frozen=True)
class Subject:
    """A plugin that is put to the test.

    Attributes:
        plugin: The plugin.
        fresh: Makes another of its kind; None where only the object is known.
        registry: All plugins, this one among them.
        file: Its file, empty where it has none.
    """

    plugin: JobPlugin
    fresh: Callable[[], JobPlugin] | None
    registry: Registry
    file: str


def job_of(subject: Subject, example: Example) -> Job:
    """The example's Job as admission leaves it: with the plugins that are required."""
    manifest = deepcopy(example.job)
    plugins = manifest["spec"]["plugins"]
    plugins.update(dependencies(plugins, subject.registry))
    return msgspec.convert(manifest, Job)


def said(plugin: JobPlugin, job: Job, *, backwards: bool = False) -> dict[str, Any]:
    """Everything that a plugin says about a Job and its pods, by what was asked.

    Args:
        plugin: The plugin.
        job: The Job.
        backwards: Whether to ask for the last pod first, which must make no difference.
    """
    values = arguments(plugin, job)
    answers: dict[str, Any] = {
        "check": plugin.check(job, values),
        "job_annotations": plugin.job_annotations(job, values),
        "objects": list(plugin.objects(job, values)),
        "secrets": list(plugin.secrets(job, values)),
    }
    edit = plugin.for_job(job, values)
    pods = [(task, index) for task in job.tasks for index in range(task.size + 1)]
    edits: dict[str, PodEdits] = {}
    for task, index in reversed(pods) if backwards else pods:
        edits[f"the edits of pod {task.name}-{index}"] = edit(task, index)
    answers |= dict(sorted(edits.items()))
    return deepcopy(answers)


def arguments(plugin: JobPlugin, job: Job) -> Values:
    """The plugin's arguments in a Job."""
    words = (job.spec.plugins or {}).get(plugin.name)
    return read_arguments(plugin.arguments, words, strict_upstream=False).values
