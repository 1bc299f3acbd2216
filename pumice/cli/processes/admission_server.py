"""The server of `pumice webhook`: admission over HTTP, with a cluster or with objects from files; its certificate comes from files, from Pumice itself, or there is none."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pumice.api.keys import DEFAULT_SCHEDULER
from pumice.api.names import dns_subdomain_problem
from pumice.cli.exits import UserError
from pumice.cli.files import checking, manifests
from pumice.cli.options import CertificateNames
from pumice.cli.processes.components import cert_settings, connected, is_in_pod, require_port
from pumice.cli.processes.volcano_flags import settings_among
from pumice.cluster.child_process import in_child_process
from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.plugins import PluginSettings
from pumice.webhook.registrations import enabled_paths
from pumice.webhook.rules.rule import RuleSettings
from pumice.webhook.server import (
    Certificates,
    FileCertificates,
    InsecureAddressError,
    KeptCertificates,
    ServerSettings,
    StateSource,
    WebhookWorker,
)
from pumice.webhook.view import Snapshot

if TYPE_CHECKING:
    from pumice.certs.rotation import CertSettings


def checked(names: CertificateNames) -> CertificateNames:
    """The names.

    Raises:
        UserError: A name or the URL is invalid.
    """
    given = {
        "--webhook-service-name": names.service,
        "--webhook-namespace": names.namespace,
        "--webhook-secret-name": names.secret,
    }
    for flag, name in given.items():
        if name is not None and (problem := dns_subdomain_problem(name)):
            raise UserError(f"{flag}: {problem}")
    _hosts(names.url)
    return names


def of_our_own(client: Client, names: CertificateNames) -> Certificates | None:
    """Certificates that this process creates; None if TLS is not requested.

    Raises:
        UserError: The URL is invalid.
    """
    if not (is_in_pod() or names.service or names.url):
        return None
    from pumice.certs.keeper import CertificateManager

    return KeptCertificates(CertificateManager(client, _certificate_settings(client, names)))


def compared(files: FileCertificates, client: Client, names: CertificateNames) -> Certificates:
    """The same certificates; if the webhook configurations are known, ready only while they trust them.

    Raises:
        UserError: The URL is invalid.
    """
    if names.service or names.url:
        from pumice.certs.injection import Injector

        files.compare_with(Injector.of(client, _certificate_settings(client, names)))
    return files


def _certificate_settings(client: Client, names: CertificateNames) -> "CertSettings":
    hosts = _hosts(names.url)
    return cert_settings(
        names.service or "pumice-webhook",
        names.namespace or client.connection.namespace,
        names.secret,
        names=hosts.names,
        addresses=hosts.addresses,
    )


def from_files(certificate: Path | None, key: Path | None) -> FileCertificates | None:
    """Certificates that another tool renews; None without files.

    Raises:
        UserError: There is no usable pair.
    """
    if certificate is None or key is None:
        return None
    try:
        return FileCertificates(certificate, key)
    except ValueError as error:
        raise UserError(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Hosts:
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def _hosts(url: str | None) -> _Hosts:
    """The host of a URL, in the form that a certificate has."""
    if url is None:
        return _Hosts()
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme != "https":  # the API server calls nothing else
        raise UserError(f"--webhook-url {url!r}: expected an address such as https://10.0.0.1:8443")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _Hosts(names=(host,))
    return _Hosts(addresses=(host,))


_LONGEST_DRAIN = 300.0
"""Maximum drain time in seconds, as in the chart; a terminating pod has about as long."""

_DEFAULTS: tuple[list[str], ...] = ([], [f"scheduler-name={DEFAULT_SCHEDULER}"])
"""Settings that change nothing; the chart always passes the scheduler's name."""


@dataclass(frozen=True, slots=True)
class AdmissionServer:
    """Options of the server.

    Attributes:
        admission: Settings of admission.
        plugin_settings: What the cluster's operator has decided about job plugins.
        paths: Enabled endpoints; all if None.
        files: Certificate and key that another tool renews.
        listening: Addresses and shutdown.
        conf: File of resource groups.
        view: Objects from files; None with a cluster.
        names: Names in certificates that Pumice creates.
    """

    admission: RuleSettings
    plugin_settings: PluginSettings
    paths: tuple[str, ...] | None
    files: tuple[Path | None, Path | None]
    listening: ServerSettings
    conf: str | None
    view: Snapshot | None
    names: CertificateNames

    def check(self) -> None:
        """Check the files without starting a server.

        Raises:
            UserError: One of them cannot be used.
        """
        checking.read_groups(self.conf)
        from_files(*self.files)

    async def run(self, kubeconfig: Path | None, server: str | None) -> None:
        """Serve until a signal to stop.

        Raises:
            UserError: The server cannot listen, its certificate cannot be used, or it would serve without TLS on a
                public address.
        """
        require_port("--port", self.listening.host, self.listening.port)
        require_port("--metrics-port", self.listening.host, self.listening.metrics_port)
        files = from_files(*self.files)
        try:
            if self.view is not None:
                await self._serve(StateSource(self.view), files)
                return
            async with connected(kubeconfig, server) as client:
                names = self.names
                kept = compared(files, client, names) if files else of_our_own(client, names)
                await self._serve(StateSource.of_cluster(client), kept)
        except InsecureAddressError as error:
            raise UserError(str(error)) from None

    async def _serve(self, source: StateSource, certificates: Certificates | None) -> None:
        worker = WebhookWorker(
            source,
            checking.registry(),
            self.admission,
            self.listening,
            certificates,
            paths=self.paths,
            conf=Path(self.conf) if self.conf is not None else None,
            plugin_settings=self.plugin_settings,
        )
        await run_until_stopped(worker.tasks())


def settings_from_flags(
    arguments: Sequence[str],
    scheduler_names: Sequence[str],
    assignments: Sequence[str],
    plugin_assignments: Sequence[str],
) -> tuple[RuleSettings, PluginSettings, list[str]]:
    """Settings of admission and of job plugins, and the arguments that are not settings.

    They are read in a child process, since reading them imports pydantic.

    Raises:
        UserError: There is no such setting or it has no such value.
    """
    as_flags, others = settings_among(arguments)
    named = [f"scheduler-name={name}" for name in scheduler_names]
    wanted = [*as_flags, *named, *assignments]
    if not plugin_assignments and wanted in _DEFAULTS:
        return RuleSettings(), PluginSettings(), others
    return (*in_child_process(_settings, wanted, plugin_assignments), others)


def _settings(
    assignments: Sequence[str], plugin_assignments: Sequence[str]
) -> tuple[RuleSettings, PluginSettings]:
    return (
        checking.read_settings(assignments),
        checking.read_plugin_settings(plugin_assignments, "--set-plugins"),
    )


def read_state(files: Sequence[str] | None) -> Snapshot | None:
    """Objects of the files of `--state`; None without files.

    Raises:
        UserError: A file cannot be read.
    """
    return checking.snapshot(manifests.read_objects(files, may_be_empty=True)) if files else None


def read_paths(enabled: str | None) -> tuple[str, ...] | None:
    """Paths of `--enabled-admission`; None for all.

    Raises:
        UserError: There is no such endpoint.
    """
    if enabled is None:
        return None
    try:
        return enabled_paths(enabled)
    except ValueError as error:
        raise UserError(f"--enabled-admission: {error}") from None


def paired(certificate: Path | None, key: Path | None) -> tuple[Path | None, Path | None]:
    """A certificate and its key, or neither.

    Raises:
        UserError: One of them is missing.
    """
    if (certificate is None) != (key is None):
        raise UserError("--tls-cert-file and --tls-private-key-file go together, one is missing")
    return certificate, key


def listening_at(
    host: str | None, port: int, metrics_port: int | None, drain_seconds: float | None
) -> ServerSettings:
    """Defaults for listening and shutdown: all addresses in a pod, loopback otherwise.

    Raises:
        UserError: The drain time is too long, or both ports are equal.
    """
    if drain_seconds is not None and not 0 <= drain_seconds <= _LONGEST_DRAIN:
        raise UserError(
            f"--drain-seconds {drain_seconds:g}: expected 0 to {_LONGEST_DRAIN:g} seconds"
        )
    if port and port == metrics_port:
        raise UserError(f"--port and --metrics-port are both {port}")
    in_pod = is_in_pod()
    drain = 5.0 if in_pod else 0.0
    return ServerSettings(
        host=host or ("0.0.0.0" if in_pod else "127.0.0.1"),
        port=port,
        metrics_port=metrics_port,
        drain_seconds=drain if drain_seconds is None else drain_seconds,
    )
