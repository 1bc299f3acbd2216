"""The webhook as the tasks of a process: caches, certificates, ports."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.lifecycle import Eternal
from pumice.cluster.probes import Check, Probes
from pumice.plugins import PluginSettings, Registry
from pumice.plugins.settings import DEFAULT
from pumice.webhook.admission import Admission, Crash
from pumice.webhook.groups.model import ResourceGroups
from pumice.webhook.server.cached_view import CachedView
from pumice.webhook.server.certificates import Certificates, FileCertificates
from pumice.webhook.server.groups import GroupsFile
from pumice.webhook.server.listener import Listener
from pumice.webhook.server.lookup import LiveOwners, LiveQueues, OwnerLookup, QueueLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews, log_crash
from pumice.webhook.server.settings import ServerSettings
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import AdmissionView

__all__ = ["OfflineWorker", "WebhookWorker"]


class _Worker:
    """What both have.

    Attributes:
        metrics: What is counted.
        listener: The ports.
    """

    def __init__(
        self,
        view: AdmissionView,
        plugins: Registry,
        admission: AdmissionSettings,
        settings: ServerSettings,
        certificates: Certificates | None,
        *,
        metrics: ServerMetrics,
        lookup: QueueLookup | None = None,
        owners: OwnerLookup | None = None,
        checks: dict[str, Check],
        paths: Sequence[str] | None = None,
        conf: Path | None = None,
        plugin_settings: PluginSettings = DEFAULT,
        clock: Clock | None = None,
    ) -> None:
        self.metrics = metrics
        self._certificates = certificates
        if certificates is not None:
            checks["certificate"] = lambda: certificates.problem
            metrics.certificate_expiry.set_function(lambda: certificates.expires)
        judging = Admission(
            admission, view, plugins, plugin_settings=plugin_settings, on_crash=self._crashed
        )

        def use(groups: ResourceGroups) -> None:
            judging.groups = groups

        self._groups = GroupsFile(conf, use, metrics, clock=clock) if conf is not None else None
        groups = self._groups
        notes: dict[str, Check] = {}
        if groups is not None:
            notes["resource groups"] = lambda: groups.problem
        if isinstance(certificates, FileCertificates):
            files = certificates
            notes["certificate files"] = lambda: files.note
            metrics.certificate_unusable.set_function(lambda: files.note is not None)
        self._probes = Probes(metrics.registry, checks, notes)
        self.listener = Listener(
            Reviews(judging, metrics, settings, lookup, owners),
            self._probes,
            tuple(judging.paths if paths is None else paths),
            settings,
            metrics,
            tls=certificates.context if certificates is not None else None,
            clock=clock,
        )

    @property
    def ready(self) -> bool:
        """Whether reviews can be judged and the API server would accept the certificate."""
        return not self._probes.problems

    def _crashed(self, crash: Crash) -> None:
        self.metrics.crashes.labels(crash.code).inc()
        log_crash(crash)

    def tasks(self) -> list[Eternal]:
        """What to run; the ports come last, so that they are the first to end."""
        certificates = self._certificates.tasks() if self._certificates is not None else []
        groups = [Eternal("resource groups", self._groups.run)] if self._groups is not None else []
        port = Eternal("reviews", self.listener.run, grace=self.listener.grace)
        return [*certificates, *groups, port]


class OfflineWorker(_Worker):
    """The webhook without a cluster, over objects from files."""

    def __init__(
        self,
        view: AdmissionView,
        plugins: Registry,
        admission: AdmissionSettings | None = None,
        settings: ServerSettings | None = None,
        certificates: Certificates | None = None,
        *,
        paths: Sequence[str] | None = None,
        conf: Path | None = None,
        plugin_settings: PluginSettings = DEFAULT,
        clock: Clock | None = None,
    ) -> None:
        """Describe a worker.

        Args:
            view: What exists.
            plugins: The job plugins that exist.
            admission: How strict to be.
            settings: Where to listen and how to end.
            certificates: What is presented; plain HTTP on loopback when None.
            paths: Where reviews are answered; everywhere when None.
            conf: File of resource groups, which need not be there yet; none when None.
            plugin_settings: What the cluster's operator has decided about job plugins.
            clock: Waits and measures.

        Raises:
            InsecureAddressError: Plain HTTP was asked for on an address that others can reach.
        """
        super().__init__(
            view,
            plugins,
            admission or AdmissionSettings(),
            settings or ServerSettings(),
            certificates,
            metrics=ServerMetrics(),
            checks={},
            paths=paths,
            conf=conf,
            plugin_settings=plugin_settings,
            clock=clock,
        )


class WebhookWorker(_Worker):
    """The webhook of a cluster."""

    def __init__(
        self,
        client: Client,
        plugins: Registry,
        admission: AdmissionSettings | None = None,
        settings: ServerSettings | None = None,
        certificates: Certificates | None = None,
        *,
        paths: Sequence[str] | None = None,
        conf: Path | None = None,
        plugin_settings: PluginSettings = DEFAULT,
        clock: Clock | None = None,
    ) -> None:
        """Describe a worker.

        Args:
            client: Session with the API server.
            plugins: The job plugins that exist.
            admission: How strict to be.
            settings: Where to listen and how to end.
            certificates: What is presented; plain HTTP on loopback when None.
            paths: Where reviews are answered; everywhere when None.
            conf: File of resource groups, which need not be there yet; none when None.
            plugin_settings: What the cluster's operator has decided about job plugins.
            clock: Waits and measures.

        Raises:
            InsecureAddressError: Plain HTTP was asked for on an address that others can reach.
        """
        metrics = ServerMetrics()
        view = CachedView(client, clock=clock)
        for cache in view.caches:
            metrics.cache_age.labels(cache.kind.plural).set_function(partial(getattr, cache, "age"))
        super().__init__(
            view,
            plugins,
            admission or AdmissionSettings(),
            settings or ServerSettings(),
            certificates,
            metrics=metrics,
            lookup=LiveQueues(client, metrics),
            owners=LiveOwners(client, metrics),
            checks={"caches": lambda: view.problem},
            paths=paths,
            conf=conf,
            plugin_settings=plugin_settings,
            clock=clock,
        )
        self._view = view

    def tasks(self) -> list[Eternal]:
        """What to run; the ports come last, so that they are the first to end."""
        watches = [Eternal(f"watch of {each.kind.plural}", each.run) for each in self._view.caches]
        return [*watches, *super().tasks()]
