"""The connection to one API server: address, verification of its certificate, credentials."""

import ssl
from collections.abc import Awaitable, Callable
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
        load: Reads the same connection again, with credentials that are renewed by themselves; None if event loops of
            several threads may share the credentials, which change in one step or not at all.
    """

    server: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
    load: "Callable[[], Awaitable[Connection]] | None" = None

    async def of_another_thread(self) -> "Connection":
        """The connection to use in the event loop of another thread; call it there.

        Raises:
            ConfigurationError: When it cannot be read again.
        """
        return self if self.load is None else await self.load()
