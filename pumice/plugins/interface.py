"""What a job plugin is.

A plugin looks at a Job and says, as data, what it wants: annotations on the Job, objects beside it
and edits to each of its pods. It reads no cluster, writes nothing, keeps nothing between calls and
decides by its arguments alone; the controller makes the objects and admission writes the
annotations. So one plugin serves the controller, the pod webhook, `pumice render` and a table test
alike, and applying it twice equals applying it once.

Subclass `JobPlugin`, set `name` and `summary`, and override what the plugin needs: every method has
a default that wants nothing.
"""

# ruff: noqa: ARG002 (the defaults want nothing, so they look at nothing)
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.plugins.arguments import ArgumentSpec, Values
from pumice.plugins.edits import PodEdits
from pumice.plugins.secrets import KeySecret

__all__ = ["Findings", "JobPlugin", "PodEditor", "Raw"]

Raw = dict[str, Any]
"""A JSON object as a manifest gives it."""

PodEditor = Callable[[Task, int], PodEdits]
"""Edits for the pod of a task at an index, with everything about the Job known already."""


class Findings(NamedTuple):
    """What is wrong with a Job (it is refused) and what is doubtful (it is warned about)."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()


class JobPlugin:
    """Base of all job plugins.

    Attributes:
        name: Name in `spec.plugins`.
        summary: One sentence for the documentation.
        requires: Plugins that admission adds to a Job that names this one.
        after: Plugins that are applied before this one where a Job names both. Variables of a pod
            stand in this order, so a later plugin's can refer to an earlier one's.
        arguments: The flags that it takes.
    """

    name: str = ""
    summary: str = ""
    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ("svc", "ssh", "env")
    arguments: ArgumentSpec = ArgumentSpec()

    def check(self, job: Job, values: Values) -> Findings:
        """Judge the Job, for example whether its tasks play the roles that the plugin needs.

        Must not raise, whatever the Job holds.
        """
        return Findings()

    def in_effect(self, job: Job, values: Values, name: str) -> Any:
        """What an argument comes to in a Job, for those that the rest of the Job decides unless they are given.

        Warnings about an argument that cannot be read name it as what is used instead.
        """
        return values[name]

    def job_annotations(self, job: Job, values: Values) -> dict[str, str]:
        """Annotations that the Job should carry; those that it carries already are kept."""
        return {}

    def objects(self, job: Job, values: Values) -> Iterable[Raw]:
        """Objects wanted beside the Job, as manifests without owner references."""
        return ()

    def secrets(self, job: Job, values: Values) -> Iterable[KeySecret]:
        """Secrets wanted beside the Job that hold a key pair, which is made once and then kept."""
        return ()

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        """Edits to the pod of a task at an index (from 0)."""
        return PodEdits()

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """Prepare what all pods of a Job share and return the function that edits one.

        Override this method instead of `pod_edits` if the preparation is expensive: it is called once for a
        Job, and the function that it returns once for each pod.
        """
        return partial(self.pod_edits, job, values)
