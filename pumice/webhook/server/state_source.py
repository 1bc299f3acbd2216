"""Where the webhook finds objects: in caches of a cluster and its API server, or in files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.probes import Check
from pumice.webhook.server.cached_view import CachedView
from pumice.webhook.server.lookup import LiveOwners, LiveQueues, OwnerLookup, QueueLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.view import AdmissionView

__all__ = ["StateSource"]


@dataclass(frozen=True, slots=True)
class StateSource:
    """Where the webhook finds objects.

    Attributes:
        view: What exists.
        metrics: What is counted.
        queues: Finds queues that the view lacks; None without an API server.
        owners: The same for owners of pods.
        caches: Watch caches that keep the view current.
        checks: What must hold before reviews are answered from the view, by name.
    """

    view: AdmissionView
    metrics: ServerMetrics = field(default_factory=ServerMetrics)
    queues: QueueLookup | None = None
    owners: OwnerLookup | None = None
    caches: tuple[WatchCache[Any], ...] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)

    @classmethod
    def of_cluster(cls, client: Client) -> "StateSource":
        """A cluster; nothing is read before the caches run."""
        metrics, view = ServerMetrics(), CachedView(client)
        for cache in view.caches:
            metrics.cache_age.labels(cache.kind.plural).set_function(partial(getattr, cache, "age"))
        return cls(
            view,
            metrics,
            LiveQueues(client, metrics),
            LiveOwners(client, metrics),
            view.caches,
            {"caches": lambda: view.problem},
        )
