"""Where the certificate of `pumice webhook` comes from: files, Pumice itself, or nowhere."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pumice.api.names import dns_subdomain_problem
from pumice.cli.exits import UserError
from pumice.cli.processes.components import in_cluster
from pumice.cluster.client import Client
from pumice.webhook.server import Certificates, FileCertificates, KeptCertificates

if TYPE_CHECKING:
    from pumice.certs.settings import CertSettings

__all__ = ["CertificateNames", "compared", "from_files", "named", "of_our_own"]


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """What certificates of Pumice's own are made for.

    Attributes:
        service: Service that the API server calls.
        namespace: Its namespace.
        secret: Secret that holds the authorities.
        url: Address that it calls instead.
    """

    service: str | None
    namespace: str | None
    secret: str
    url: str | None


def named(
    service: str | None, namespace: str | None, secret: str, url: str | None
) -> CertificateNames:
    """The names, where they can be ones.

    Raises:
        UserError: Kubernetes has no object of such a name, or nothing can be called at such a URL.
    """
    given = {
        "--webhook-service-name": service,
        "--webhook-namespace": namespace,
        "--webhook-secret-name": secret,
    }
    for flag, name in given.items():
        if name is not None and (problem := dns_subdomain_problem(name)):
            raise UserError(f"{flag}: {problem}")
    _hosts(url)
    return CertificateNames(service, namespace, secret, url)


def of_our_own(client: Client, names: CertificateNames) -> Certificates | None:
    """Certificates that this process makes; None where nothing asks for TLS.

    Raises:
        UserError: The URL is none.
    """
    if not (in_cluster() or names.service or names.url):
        return None
    from pumice.certs.keeper import CertificateManager

    return KeptCertificates(CertificateManager(client, _settings(client, names)))


def compared(files: FileCertificates, client: Client, names: CertificateNames) -> Certificates:
    """The same; where it is known who calls, ready only while the webhook configurations trust it.

    Raises:
        UserError: The URL is none.
    """
    if names.service or names.url:
        from pumice.certs.injection import Injector

        files.compare_with(Injector.of(client, _settings(client, names)))
    return files


def _settings(client: Client, names: CertificateNames) -> "CertSettings":
    from pumice.cli.processes.authorities import cert_settings

    hosts = _hosts(names.url)
    return cert_settings(
        names.service or "pumice-webhook",
        names.namespace or client.connection.namespace,
        names.secret,
        names=hosts.names,
        addresses=hosts.addresses,
    )


def from_files(certificate: Path | None, key: Path | None) -> FileCertificates | None:
    """Certificates that another tool renews; None where no files are given.

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
    """The host of a URL, as a certificate names it."""
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
