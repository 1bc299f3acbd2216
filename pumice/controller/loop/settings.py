"""Settings of the controller's process."""

from dataclasses import dataclass

from pumice.api.keys import DEFAULT_SCHEDULER
from pumice.cluster.elected import ElectionSettings
from pumice.controller.jobs.reconcile import JobCheck
from pumice.controller.jobs.situation import LIMITS
from pumice.controller.loop.selection import CONTROLLERS
from pumice.plugins.settings import DEFAULT, PluginSettings

__all__ = ["ControllerSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings(ElectionSettings):
    """Settings of the controller.

    Attributes:
        controllers: The controllers that run, by their names in `--controllers`.
        workers: Number of objects of one namespace that a controller handles concurrently.
        concurrent_writes: Maximum number of concurrent requests for plans, of all controllers; namespaces take turns.
        namespace: The only namespace that is watched; None for all namespaces.
        secrets: Whether Secrets may be read and written; plugins that need Secrets require this.
        plugins: Settings of job plugins.
        max_pods_per_job: Maximum number of pods of a Job.
        window: Pods that one pass over a Job creates at most, and marks or removes at most.
        scheduler_names: Schedulers whose pods, if other controllers made them, get PodGroups.
        inherit_owner_annotations: Whether these PodGroups follow annotations of the pods' owners, too.
        discovery: Namespace and name of the ConfigMap that says how HyperNodes are discovered.
        check: Validates new Jobs if there is no webhook; otherwise None.
    """

    controllers: frozenset[str] = frozenset(CONTROLLERS)
    workers: int = 8
    concurrent_writes: int = 64
    namespace: str | None = None
    secrets: bool = True
    lease_name: str = "pumice-controller"
    identity: str = "pumice-controller"
    plugins: PluginSettings = DEFAULT
    max_pods_per_job: int = LIMITS.max_pods
    window: int = LIMITS.window
    scheduler_names: tuple[str, ...] = (DEFAULT_SCHEDULER,)
    inherit_owner_annotations: bool = True
    discovery: tuple[str, str] = ("volcano-system", "volcano-controller-configmap")
    check: JobCheck | None = None

    @property
    def passes(self) -> int:
        """Number of objects that a controller handles concurrently: those of four namespaces that use all they may."""
        return 4 * self.workers
