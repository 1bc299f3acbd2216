"""The controller's process as its controllers see it: its settings, its watches, and which controllers run.

Controllers that watch the same objects share one cache.

The option `--controllers` is that of Volcano's controller manager. An entry is a name, `+name` (the same as the name), `-name` (not this one), or `*` (all). For each controller the first
entry with its name decides, or else `*`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pumice.api.fields import Suggestions
from pumice.api.keys import DEFAULT_SCHEDULER
from pumice.api.kinds import Kind
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.elected import ElectedWorker, ElectionSettings
from pumice.cluster.turns import Slots
from pumice.controller.jobs.reconcile import JobCheck
from pumice.controller.jobs.situation import LIMITS
from pumice.controller.worker.metrics import ControllerMetrics
from pumice.plugins.settings import DEFAULT, PluginSettings

T = TypeVar("T")


class Watches:
    """Caches by kind and filters; each must `run`.

    Attributes:
        required: Caches that must be synced before the process is ready, in the order of creation.
        optional: Other caches: a cluster may lack their kinds, or their users wait for them.
    """

    def __init__(self, client: Client, *, namespace: str | None = None) -> None:
        """Create an empty set of watches.

        Args:
            client: Session with the API server.
            namespace: Watch this namespace only; all when None.
        """
        self.required: list[WatchCache[Any]] = []
        self.optional: list[WatchCache[Any]] = []
        self._client = client
        self._namespace = namespace
        self._known: dict[tuple[Any, ...], WatchCache[Any]] = {}

    def of(
        self,
        kind: Kind,
        type_: type[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        keep: Callable[[T], bool] | None = None,
        trim: Callable[[T], None] | None = None,
        optional: bool = False,
    ) -> WatchCache[T]:
        """The cache of a kind; equal arguments return the same cache.

        Args:
            kind: What to watch.
            type_: msgspec struct (or `dict`) into which objects are decoded.
            namespace: A namespace, if it is not that of the process.
            label_selector: Only objects with these labels.
            field_selector: Only objects with these fields.
            keep: Whether an object is kept in the cache; all are if None.
            trim: Drops the parts of a new object that nothing reads.
            optional: Whether the process is ready without this cache.
        """
        key = (kind, type_, namespace, label_selector, field_selector, keep, trim)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = WatchCache(
                self._client,
                kind,
                type_,
                namespace=(namespace or self._namespace) if kind.namespaced else None,
                label_selector=label_selector,
                field_selector=field_selector,
                keep=keep,
                trim=trim,
                optional=optional,
            )
            (self.optional if optional else self.required).append(found)
        elif not optional and found in self.optional:
            self.optional.remove(found)
            self.required.append(found)
        return found


ALL = "*"


CONTROLLERS = {
    "job-controller": "Jobs: their PodGroups, pods and the objects of plugins",
    "gc-controller": "removes Jobs when their `ttlSecondsAfterFinished` is over",
    "cronjob-controller": "CronJobs: their Jobs, made by the clock",
    "queue-controller": "opens and closes queues, and counts their PodGroups",
    "pg-controller": "PodGroups for pods of other owners: ReplicaSets, StatefulSets, batch Jobs, plain pods and all others",
    "hyperNode-controller": "HyperNodes: discovered by labels of Nodes, and the number of their Nodes",
    "jobflow-controller": "JobFlows: their Jobs, in order",
    "jobtemplate-controller": "JobTemplates: the list of Jobs that were made from each",
    "wiring-controller": "what plugins want for the pods of other controllers (`pumice.dev/plugins`)",
}
"""The purpose of each controller, by Volcano's name for it; `wiring-controller` is Pumice's own."""


NOT_BUILT = {"sharding-controller": "Pumice has no sharded scheduling"}
"""Controllers of Volcano that Pumice does not have, each with the reason; turning them off is accepted."""


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


class SelectionError(ValueError):
    """An invalid selection; the message says why and what to write instead."""


def selected(entries: Iterable[str]) -> frozenset[str]:
    """The selected controllers.

    Args:
        entries: Names, each with an optional `+` or `-`, and `*`.

    Raises:
        SelectionError: An entry is unknown or occurs twice, or selects a controller that is not built, or nothing is
            selected.
    """
    wanted: dict[str, bool] = {}
    for entry in entries:
        name = entry.lstrip("+-") if entry[:1] in "+-" else entry
        if name in wanted:
            raise SelectionError(f"controller {name!r} is named twice; name it once")
        if name != ALL and name not in CONTROLLERS and name not in NOT_BUILT:
            meant = Suggestions().did_you_mean(name, (*CONTROLLERS, *NOT_BUILT))
            raise SelectionError(
                f"unknown controller {name!r}{meant}; known are {', '.join(CONTROLLERS)}"
            )
        wanted[name] = not entry.startswith("-")
        if name in NOT_BUILT and wanted[name]:
            raise SelectionError(
                f"{name} cannot run: {NOT_BUILT[name]}; write -{name}, or leave it out"
            )
    rest = wanted.get(ALL, False)
    found = frozenset(name for name in CONTROLLERS if wanted.get(name, rest))
    if "job-controller" not in found and "gc-controller" in found:
        if "gc-controller" in wanted:
            raise SelectionError("gc-controller is a part of job-controller; select both")
        found -= {"gc-controller"}
    if not found:
        raise SelectionError("no controller is selected; name one, or write '*' for all of them")
    return found


class ControllerProcess(ElectedWorker[ControllerSettings, ControllerMetrics]):
    """A process that runs controllers.

    Attributes:
        slots: Requests of plans that are under way, of all controllers; namespaces take turns.
    """

    component = "pumice-controller"

    def __init__(
        self,
        client: Client,
        settings: ControllerSettings,
        caches: Iterable[WatchCache[Any]],
    ) -> None:
        """Create a process; the arguments are those of `ElectedWorker`."""
        super().__init__(client, settings, ControllerMetrics(), caches)
        self.slots = Slots(settings.concurrent_writes)
