"""Credentials that expire: an `exec` plugin or an OIDC provider gives others.

They are asked for shortly before the expiry, and after a 401.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.connection import ConfigurationError, bearer, joined, load_pair

logger = logging.getLogger(__name__)

EXPIRY_MARGIN = 60.0
"""Seconds before the expiry of credentials at which they are renewed."""

RETRY_SECONDS = 10.0
"""Minimum time between two renewals, so that a failing plugin is not run for each request."""


class Granted(NamedTuple):
    """A bearer token, or a client's certificate and its key (PEM), or all three, until `expiry` (seconds since 1970)."""

    token: str
    certificate: str = ""
    key: str = ""
    expiry: float | None = None


class RenewedCredentials:
    """Credentials that are renewed before they expire.

    Each certificate has a TLS context of its own, so that no request goes over a connection with an earlier one.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[Granted]],
        extra: Mapping[str, str],
        context: Callable[[], ssl.SSLContext | None],
    ) -> None:
        """Create credentials, which `renew` is to get.

        Args:
            ask: Gets credentials; it may raise an OSError, a ValueError or a `ConfigurationError`.
            extra: Further headers.
            context: Makes a TLS context for a certificate; None for plain HTTP.
        """
        self.tls: ssl.SSLContext | None = None
        self._ask = ask
        self._extra = extra
        self._context = context
        self._granted = Granted("")
        self._clock: Clock = SystemClock()
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """Headers, after renewing credentials that are about to expire."""
        expiry = self._granted.expiry
        if expiry is not None and self._clock.wall() >= expiry - EXPIRY_MARGIN:
            await self.refused()
        return self._headers

    async def refused(self) -> bool:
        """Ask for other credentials; if that fails, the last ones are used."""
        async with self._lock:
            if self._clock.monotonic() - self._renewed_at >= RETRY_SECONDS:
                try:
                    await self.renew()
                except (OSError, ValueError, ConfigurationError) as error:
                    logger.warning("credentials were not renewed: %s", error)
        return True  # perhaps by another request

    async def renew(self) -> None:
        """Get credentials.

        Raises:
            OSError: A file cannot be read, or the certificate and the key do not fit.
            ValueError: Something is no base64, or the token no header.
            ConfigurationError: There are none; it says why.
        """
        try:
            granted = await self._ask()
        finally:  # after it: people may have taken long to sign in, and other requests wait for that
            self._renewed_at = self._clock.monotonic()
        headers = joined(bearer(granted.token) if granted.token else {}, self._extra)
        changed = granted[1:3] != self._granted[1:3]
        if granted.certificate and changed and (context := self._context()):
            load_pair(context, granted.certificate.encode(), granted.key.encode())
            self.tls = context
        self._headers, self._granted = headers, granted
