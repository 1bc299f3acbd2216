"""A Job's plugins at work: the objects that they want and its pods wired.

`Wiring` reads the arguments once and lets every plugin prepare once, so that wiring a pod costs only
what differs between pods. Plugins are applied in the registry's order, and their edits to a pod as one,
so that variables stand in that order too: those of `svc`, of `env`, of the framework.
"""

from pumice.api import keys, names
from pumice.api.jobs import Job, Task
from pumice.plugins.answers import fault_of_edits
from pumice.plugins.applied import FAILURES, Applied, applied
from pumice.plugins.edits import PodEdits, apply, merge
from pumice.plugins.errors import PluginError
from pumice.plugins.interface import PodEditor, Raw
from pumice.plugins.registry import Registry
from pumice.plugins.secrets import KeySecret
from pumice.plugins.settings import DEFAULT, PluginSettings

__all__ = ["Wiring", "job_annotations", "task_and_index", "wanted_objects", "wire"]

_UNNAMED_TASK = "default"


class Wiring:
    """The plugins of one Job, ready to be applied to its pods.

    Args:
        job: The Job after admission, with task names and required plugins filled in.
        registry: The plugins that there are.
        strict_upstream: Whether to give Volcano's result where Pumice's is better.
        settings: What the cluster's operator has decided.

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
            pod: The pod as raw JSON. It is not changed, nor is what it shares with a template.

        Returns:
            The wired pod; the very same object when there is nothing to add.

        Raises:
            PluginError: A plugin fails, or wants what no pod can have; the message names it.
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
        """Manifests of everything that the plugins want beside the Job, without owner references.

        Raises:
            PluginError: A plugin fails or gives something else; the message names it.
        """
        return [manifest for each in self._applied for manifest in each.objects(self._job)]

    def secrets(self) -> list[KeySecret]:
        """Secrets with key pairs that the plugins want beside the Job.

        Raises:
            PluginError: A plugin fails or gives something else; the message names it.
        """
        return [wanted for each in self._applied for wanted in each.secrets(self._job)]

    def job_annotations(self) -> dict[str, str]:
        """Annotations that the plugins want on the Job and that it does not carry.

        Raises:
            PluginError: A plugin fails or gives something else; the message names it.
        """
        return _missing_annotations(self._job, self._applied)

    def _blame(self, task: Task, index: int, pod: Raw) -> None:
        """Find out which plugin's edits cannot be had or applied, and raise what to say of it."""
        for each, edit in zip(self._applied, self._editors or (), strict=True):
            edits = each.edits(edit, task, index)
            try:
                apply(pod, merge((edits,)), user_wins=self._user_wins)
            except FAILURES as error:
                raise each.failed(error) from error


def wire(
    job: Job,
    registry: Registry,
    pod: Raw,
    task: Task,
    index: int,
    *,
    strict_upstream: bool = False,
) -> Raw:
    """Wire one pod; to wire several of a Job, keep a `Wiring`."""
    return Wiring(job, registry, strict_upstream=strict_upstream).pod(task, index, pod)


def wanted_objects(job: Job, registry: Registry, *, strict_upstream: bool = False) -> list[Raw]:
    """Manifests of everything that the Job's plugins want beside it."""
    return Wiring(job, registry, strict_upstream=strict_upstream).objects()


def job_annotations(
    job: Job, registry: Registry, *, strict_upstream: bool = False
) -> dict[str, str]:
    """Annotations that the Job's plugins want on it and that it does not carry.

    Unknown plugins are passed over; refusing them is up to `problems`.

    Raises:
        PluginError: A plugin fails or gives something else; the message names it.
    """
    return _missing_annotations(job, applied(job, registry, strict_upstream=strict_upstream))


def task_and_index(job: Job, pod: Raw) -> tuple[Task, int]:
    """Find which pod of a Job this is, by its task annotation and its name.

    A pod without the annotation belongs to task `default`, as in Volcano; a task that the Job does not
    have is returned with that name and nothing else.

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
    wired = ",".join(each.plugin.name for each in plugins)
    return PodEdits(annotations={keys.WIRED: wired}) if wired else PodEdits()


def _missing_annotations(job: Job, plugins: tuple[Applied, ...]) -> dict[str, str]:
    wanted: dict[str, str] = {}
    present = job.metadata.annotations or {}
    for each in plugins:
        for key, value in each.job_annotations(job).items():
            if key not in present:
                wanted.setdefault(key, value)
    return wanted
