"""The source of the certificate of `pumice webhook`: files, Pumice itself, or none."""

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
    from pumice.certs.rotation import CertSettings

__all__ = ["CertificateNames", "compared", "from_files", "named", "of_our_own"]


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """Names in certificates that Pumice creates.

    Attributes:
        service: Service that the API server calls.
        namespace: Its namespace.
        secret: Secret with the certificate authorities.
        url: Address that it calls instead.
    """

    service: str | None
    namespace: str | None
    secret: str
    url: str | None


def named(
    service: str | None, namespace: str | None, secret: str, url: str | None
) -> CertificateNames:
    """The names, after validation.

    Raises:
        UserError: A name or the URL is invalid.
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
    """Certificates that this process creates; None if TLS is not requested.

    Raises:
        UserError: The URL is invalid.
    """
    if not (in_cluster() or names.service or names.url):
        return None
    from pumice.certs.keeper import CertificateManager

    return KeptCertificates(CertificateManager(client, _settings(client, names)))


def compared(files: FileCertificates, client: Client, names: CertificateNames) -> Certificates:
    """The same certificates; if the webhook configurations are known, ready only while they trust them.

    Raises:
        UserError: The URL is invalid.
    """
    if names.service or names.url:
        from pumice.certs.injection import Injector

        files.compare_with(Injector.of(client, _settings(client, names)))
    return files


def _settings(client: Client, names: CertificateNames) -> "CertSettings":
    from pumice.cli.processes.components import cert_settings

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
