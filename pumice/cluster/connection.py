"""How one API server is reached: its address, how its certificate is checked, who we are to it."""

import ssl
from dataclasses import dataclass

from pumice.cluster.credentials import Credentials

__all__ = ["ConfigurationError", "Connection"]


class ConfigurationError(Exception):
    """No usable description of an API server; the text says what is missing and how to give it."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Everything that a client needs to reach one API server.

    Attributes:
        server: Base URL without a trailing slash; it may have a path.
        credentials: Source of authentication headers.
        tls: Checks the server and presents our certificate; None for plain HTTP.
        server_name: Name that the server's certificate must bear, where it is not the host's.
        proxy: URL of an HTTP proxy.
        namespace: Namespace of the context or of the pod.
    """

    server: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
