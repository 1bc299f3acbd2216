"""The plugins of a Job, applied: the objects that they want, and wired pods.

`Wiring` parses the arguments and prepares every plugin once, so wiring a pod computes only what differs between pods.
Plugins are applied in the registry's order, and variables have the same order: those of `svc`, of `env`, of the
framework.
"""

from pumice.api import keys, names
from pumice.api.jobs import Job, Task
from pumice.api.meta import Raw
from pumice.plugins.applied import FAILURES, Applied, applied
from pumice.plugins.edits import PodEdits, apply, merge
from pumice.plugins.interface import KeySecret, PluginError, PodEditor, fault_of_edits
from pumice.plugins.registry import Registry
from pumice.plugins.settings import DEFAULT, PluginSettings

_UNNAMED_TASK = "default"
_NO_EDITS = PodEdits()


class Wiring:
    """The plugins of one Job, prepared for its pods.

    Args:
        job: The Job after admission, with task names and required plugins filled in.
        registry: The job plugins.
        strict_upstream: Whether to give Volcano's result where Pumice's differs.
        settings: Settings of the cluster's operator.

    Raises:
        PluginError: The Job names an unknown plugin.
    """

    def __init__(
        self,
        job: Job,
        registry: Registry,
        *,
        strict_upstream: bool = False,
        settings: PluginSettings = DEFAULT,
    ) -> None:
        for name in job.spec.plugins or ():
            if name not in registry.names:
                raise PluginError(f'job "{job.metadata.name}": {registry.unknown(name)}')
        self._job = job
        strict = strict_upstream or settings.strict_upstream
        self._user_wins = not strict
        self._applied = applied(job, registry, strict_upstream=strict, settings=settings)
        self._editors: tuple[PodEditor, ...] | None = None
        self._marker = _marker(self._applied)

    def pod(self, task: Task, index: int, pod: Raw) -> Raw:
        """Wire the pod of a task at an index.

        Args:
            task: The task, as `job.tasks` has it.
            index: Index of the pod within the task, from 0.
            pod: The pod as raw JSON. Neither it nor a template with which it shares parts is changed.

        Returns:
            The wired pod; the same object if there is nothing to add.

        Raises:
            PluginError: A plugin fails or returns invalid edits; the message names it.
        """
        if not self._applied:
            return pod
        if self._editors is None:
            self._editors = tuple(each.editor(self._job) for each in self._applied)
        try:
            edits = merge((*(edit(task, index) for edit in self._editors), self._marker))
            if fault_of_edits(edits):
                raise PluginError("a plugin gives edits that no pod can have")
            return apply(pod, edits, user_wins=self._user_wins)
        except FAILURES as error:
            self._blame(task, index, pod)
            raise PluginError(f"the plugins cannot be applied together: {error!r}") from error

    def objects(self) -> list[Raw]:
        """Manifests of all objects that the plugins want for the Job, without owner references.

        Raises:
            PluginError: A plugin fails or returns an invalid result; the message names it.
        """
        return [manifest for each in self._applied for manifest in each.objects(self._job)]

    def secrets(self) -> list[KeySecret]:
        """Secrets with key pairs that the plugins want for the Job.

        Raises:
            PluginError: A plugin fails or returns an invalid result; the message names it.
        """
        return [wanted for each in self._applied for wanted in each.secrets(self._job)]

    def job_annotations(self) -> dict[str, str]:
        """Annotations that the plugins want on the Job and that it does not have.

        Raises:
            PluginError: A plugin fails or returns an invalid result; the message names it.
        """
        return _missing_annotations(self._job, self._applied)

    def _blame(self, task: Task, index: int, pod: Raw) -> None:
        """Find the plugin whose edits fail, and raise its error."""
        for each, edit in zip(self._applied, self._editors or (), strict=True):
            edits = each.edits(edit, task, index)
            try:
                apply(pod, merge((edits,)), user_wins=self._user_wins)
            except FAILURES as error:
                raise each.failed(error) from error


def job_annotations(
    job: Job, registry: Registry, *, strict_upstream: bool = False
) -> dict[str, str]:
    """Annotations that the Job's plugins want on it and that it does not have.

    Unknown plugins are skipped; `problems` refuses them.

    Raises:
        PluginError: A plugin fails or returns an invalid result; the message names it.
    """
    return _missing_annotations(job, applied(job, registry, strict_upstream=strict_upstream))


def task_and_index(job: Job, pod: Raw) -> tuple[Task, int]:
    """The task and the index of a pod, from its task annotation and its name.

    A pod without the annotation belongs to task `default`, as in Volcano; for an unknown task, a task with only that
    name is returned.

    Raises:
        PluginError: The pod's name does not end in an index.
    """
    metadata = pod.get("metadata") or {}
    name = str(metadata.get("name", ""))
    index = names.pod_index(name)
    if not (index.isascii() and index.isdigit()):
        raise PluginError(
            f'pod "{name}": expected a name <job>-<task>-<index> that ends in a number'
        )
    task_name = (metadata.get("annotations") or {}).get(keys.TASK_SPEC) or _UNNAMED_TASK
    return job.task(task_name) or Task(name=task_name), int(index)


def _marker(plugins: tuple[Applied, ...]) -> PodEdits:
    if not plugins:
        return _NO_EDITS
    return PodEdits(annotations={keys.WIRED: ",".join(each.plugin.name for each in plugins)})


def _missing_annotations(job: Job, plugins: tuple[Applied, ...]) -> dict[str, str]:
    wanted: dict[str, str] = {}
    present = job.metadata.annotations or {}
    for each in plugins:
        for key, value in each.job_annotations(job).items():
            if key not in present:
                wanted.setdefault(key, value)
    return wanted
