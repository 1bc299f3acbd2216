"""The webhook as the tasks of a process: caches, certificates, ports, and the file of resource groups.

The file is read again when it changes. The groups of the last valid file stay in effect. An invalid file is logged once, and shown in `/readyz?verbose` and in
the metrics until it is corrected. It does not make the webhook unready, because all replicas read the same file.

"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.cluster.cache import WatchCache
from pumice.cluster.child_process import in_child_process
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.events import EventRecorder
from pumice.cluster.files import FollowedFile, UnusableFileError
from pumice.cluster.lifecycle import SupervisedTask
from pumice.cluster.set_aside import ObjectFaults
from pumice.plugins import PluginSettings, Registry
from pumice.plugins.settings import DEFAULT
from pumice.serving.probes import Check, Probes
from pumice.webhook.admission import Admission
from pumice.webhook.endpoints import ENDPOINTS
from pumice.webhook.rules.resource_groups import ResourceGroups
from pumice.webhook.rules.rule import RuleSettings
from pumice.webhook.server.certificates import Certificates, FileCertificates
from pumice.webhook.server.listener import Listener
from pumice.webhook.server.lookup import CachedView, LiveLookup
from pumice.webhook.server.metrics import ServerMetrics
from pumice.webhook.server.reviews import Reviews
from pumice.webhook.server.settings import ServerSettings
from pumice.webhook.view import AdmissionView

logger = logging.getLogger(__name__)


class GroupsFile(FollowedFile):
    """Resource groups of a file that may change."""

    kept = "the groups read before stay"
    none = "no resource groups are in effect"

    def __init__(
        self,
        path: Path,
        use: Callable[[ResourceGroups], None],
        metrics: ServerMetrics,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Read the file for the first time; it need not exist yet. `use` puts its groups into effect."""
        super().__init__(path, clock=clock)
        self._use = use
        self._metrics = metrics
        self.look()

    def take(self, raw: bytes) -> None:
        """Put the groups of the file into effect."""
        try:
            groups, warnings = in_child_process(_parsed, raw)
        except SettingError as error:
            self._metrics.conf_reads.labels("failed").inc()
            for problem in error.problems:
                logger.error("%s: %s", self.path, problem)
            self._warn(error.warnings)
            more = len(error.problems) - 1
            rest = f" (and {more} more, see the log)" if more else ""
            raise UnusableFileError(f"{error.problems[0]}{rest}") from None
        self._use(groups)
        self._metrics.conf_reads.labels("loaded").inc()
        self._metrics.conf_unusable.set(0)
        self._metrics.groups.set(len(groups))
        self._warn(warnings)
        names = ", ".join(group.name or "?" for group in groups.groups) or "none"
        logger.info("resource groups of %s in effect: %s", self.path, names)

    def hold(self, why: str) -> None:
        """Record that the groups in effect are not those of the file."""
        super().hold(why)
        self._metrics.conf_unusable.set(1)

    def _warn(self, warnings: Iterable[SettingProblem]) -> None:
        for warning in warnings:
            logger.warning("%s: %s", self.path, warning)


def _parsed(raw: bytes) -> tuple[ResourceGroups, tuple[SettingProblem, ...]]:
    from pumice.webhook.resource_group_file import parse  # imports pydantic

    return parse(raw)


@dataclass(frozen=True, slots=True)
class StateSource:
    """Source of objects for the webhook: caches of a cluster and its API server, or files.

    Attributes:
        view: The objects.
        metrics: Metrics of the webhook.
        lookup: Finds objects that the view lacks; None without an API server.
        caches: Watch caches that keep the view current.
        faults: Reports objects at which something fails unexpectedly.
        checks: Readiness checks before reviews are answered from the view, by name.
    """

    view: AdmissionView
    metrics: ServerMetrics = field(default_factory=ServerMetrics)
    lookup: LiveLookup | None = None
    caches: tuple[WatchCache[Any], ...] = ()
    checks: Mapping[str, Check] = field(default_factory=dict)
    faults: ObjectFaults = field(default_factory=ObjectFaults)

    @classmethod
    def of_cluster(cls, client: Client) -> "StateSource":
        """A cluster as source; nothing is read before the caches run."""
        metrics, view = ServerMetrics(), CachedView(client)
        recorder = EventRecorder(client, "pumice-webhook", instance=gethostname())
        faults = ObjectFaults(metrics.registry, recorder)
        for cache in view.caches:
            cache.faults = faults
            metrics.cache_age.labels(cache.kind.plural).set_function(
                partial(getattr, cache.reflector, "age")
            )
        return cls(
            view,
            metrics,
            LiveLookup(client, metrics),
            view.caches,
            {"caches": lambda: view.problem},
            faults,
        )


class WebhookWorker:
    """The webhook, of a cluster or over objects from files.

    Attributes:
        source: The source of objects.
        metrics: Metrics of the webhook.
        listener: The ports.
    """

    def __init__(
        self,
        source: StateSource,
        plugins: Registry,
        admission: RuleSettings | None = None,
        settings: ServerSettings | None = None,
        certificates: Certificates | None = None,
        *,
        paths: Sequence[str] | None = None,
        conf: Path | None = None,
        plugin_settings: PluginSettings = DEFAULT,
        clock: Clock | None = None,
    ) -> None:
        """Create a worker.

        Args:
            source: The source of objects.
            plugins: The job plugins that exist.
            admission: Settings of admission.
            settings: Addresses and shutdown.
            certificates: The serving certificate; plain HTTP on loopback if None.
            paths: Enabled endpoints; all if None.
            conf: File of resource groups, which need not exist yet.
            plugin_settings: What the cluster's operator has decided about job plugins.
            clock: Waits and measures.

        Raises:
            InsecureAddressError: Plain HTTP was asked for on an address that others can reach.
        """
        self.source, self.metrics = source, source.metrics
        self._certificates = certificates
        if certificates is not None:
            certificates.report_to(source.faults)
        settings = settings or ServerSettings()
        judging = Admission(
            admission or RuleSettings(),
            source.view,
            plugins,
            plugin_settings=plugin_settings,
        )

        def use(groups: ResourceGroups) -> None:
            judging.groups = groups

        self._groups = GroupsFile(conf, use, self.metrics, clock=clock) if conf else None
        self._probes = _probes(source, certificates, self._groups)
        self.listener = Listener(
            Reviews(judging, self.metrics, settings, source.lookup),
            self._probes,
            tuple(ENDPOINTS if paths is None else paths),
            settings,
            self.metrics,
            tls=certificates.serving.context if certificates is not None else None,
            clock=clock,
        )

    @property
    def ready(self) -> bool:
        """True if reviews can be answered and the API server would accept the certificate."""
        return not self._probes.problems

    def tasks(self) -> list[SupervisedTask]:
        """The tasks to run; the ports come last, so that they are stopped first."""
        watches = [
            SupervisedTask(f"watch of {each.kind.plural}", each.run) for each in self.source.caches
        ]
        certificates = self._certificates.tasks() if self._certificates else []
        groups = [SupervisedTask("resource groups", self._groups.run)] if self._groups else []
        port = SupervisedTask("reviews", self.listener.run, grace=self.listener.grace)
        recorder = self.source.faults.recorder
        events = [SupervisedTask("events", recorder.run)] if recorder is not None else []
        return [*watches, *certificates, *groups, *events, port]


def _probes(
    source: StateSource, certificates: Certificates | None, groups: GroupsFile | None
) -> Probes:
    """Readiness of a worker, and remarks for administrators."""
    metrics, checks, notes = source.metrics, dict(source.checks), dict[str, Check]()
    if certificates is not None:
        checks["certificate"] = lambda: certificates.problem
        metrics.certificate_expiry.set_function(lambda: certificates.serving.expires)
    if groups is not None:
        notes["resource groups"] = lambda: groups.problem
    if isinstance(certificates, FileCertificates):
        notes["certificate files"] = lambda: certificates.note
        metrics.certificate_unusable.set_function(lambda: certificates.note is not None)
    return Probes(metrics.registry, checks, notes)
