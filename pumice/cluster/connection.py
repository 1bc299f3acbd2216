"""The connection to one API server: address, verification of its certificate, credentials."""

import ssl
from dataclasses import dataclass

from pumice.cluster.credentials import Credentials

__all__ = ["ConfigurationError", "Connection"]


class ConfigurationError(Exception):
    """The configuration of an API server cannot be used; the text says what is missing and how to set it."""


@dataclass(frozen=True, slots=True)
class Connection:
    """All parameters for the connection to one API server.

    Attributes:
        server: Base URL without a trailing slash; it may have a path.
        credentials: Source of authentication headers.
        tls: TLS context, which verifies the server and presents the client certificate; None for plain HTTP.
        server_name: Name in the server's certificate, if it is not the host's.
        proxy: URL of an HTTP proxy.
        namespace: Namespace of the context or of the pod.
    """

    server: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
