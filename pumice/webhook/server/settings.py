"""Settings of the server, as opposed to those of admission."""

import ipaddress
from dataclasses import dataclass

from pumice.serving.connections import CONNECTIONS

BODY_LIMIT = 8 * 1024 * 1024
"""Maximum size of a review in bytes.

kube-apiserver takes request bodies of at most 3 MiB, so no object is larger. A review of an update contains two
objects, 6 MiB with managedFields, and user, groups, extras (some identity providers send hundreds) and options. 2 MiB
are left for these.
"""


class InsecureAddressError(ValueError):
    """Plain HTTP is configured on an address that is not loopback."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Addresses, limits and shutdown of the server.

    Attributes:
        host: Address to listen on.
        port: Port; 0 takes a free one.
        metrics_port: Port for probes and metrics over plain HTTP; none when None. They are on the main
            port too.
        drain_seconds: How long it still answers after the signal to stop, while the API server still has its address.
        shutdown_seconds: How long running reviews may take after that.
        idle_seconds: After the drain, how long no request must arrive before it stops.
        read_seconds: How long a review may take to arrive.
        quiet_seconds: How long a TLS handshake and the first byte on a connection may take, and how
            long nothing may arrive within a review.
        lookup_seconds: Maximum duration of a lookup of a missing queue; the API server's own timeout shortens it.
        body_limit: Maximum size of a review in bytes.
        body_budget: Bytes that all large bodies together may take; further ones wait.
        connection_limit: How many connections may be open on a port; fewer if the process may not
            have as many descriptors. For a further one, the one that has waited longest is closed.
    """

    host: str = "127.0.0.1"
    port: int = 0
    metrics_port: int | None = None
    drain_seconds: float = 5.0
    shutdown_seconds: float = 20.0
    idle_seconds: float = 0.25
    read_seconds: float = 30.0
    quiet_seconds: float = 5.0
    lookup_seconds: float = 2.0
    body_limit: int = BODY_LIMIT
    body_budget: int = 64 * 1024 * 1024
    connection_limit: int = CONNECTIONS

    def require_loopback(self) -> None:
        """Refuse plain HTTP on a public address.

        Raises:
            InsecureAddressError: The address is not loopback.
        """
        try:
            local = self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            local = False
        if not local:
            raise InsecureAddressError(
                f"without a certificate only loopback is served, found address {self.host}; give a "
                "certificate and its key, or listen on 127.0.0.1"
            )
