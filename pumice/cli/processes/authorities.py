"""Settings of the certificates that Pumice creates, for the two verbs that create them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.certs.settings import CertSettings

__all__ = ["cert_settings"]


def cert_settings(
    service: str,
    namespace: str,
    secret: str,
    *,
    names: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
) -> "CertSettings":
    """Certificates for a Service, trusted by the webhook configurations of every endpoint.

    Args:
        service: Service that the API server calls.
        namespace: Its namespace.
        secret: Secret with the certificate authorities.
        names: Further DNS names, for webhooks that are called by URL.
        addresses: Further IP addresses, likewise.
    """
    from pumice.certs.settings import CertSettings
    from pumice.webhook.registrations import REGISTRATIONS

    return CertSettings(
        service=service,
        namespace=namespace,
        secret=secret,
        mutating=tuple(each.configuration_name for each in REGISTRATIONS if each.mutating),
        validating=tuple(each.configuration_name for each in REGISTRATIONS if not each.mutating),
        extra_names=names,
        extra_addresses=addresses,
    )
