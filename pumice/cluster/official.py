"""Users of a kubeconfig with an `exec` plugin or an `auth-provider` (OIDC, Google).

The official package `kubernetes.aio.config` runs the plugin or asks the provider, and has the headers in a `Configuration`.
The package does so once, so it is asked again shortly before a plugin's credentials expire and after a 401. It reads no
file: the user's fields are read in `kubeconfig`, which also reads the files that they name.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.connection import ConfigurationError, joined

if TYPE_CHECKING:
    from kubernetes.aio.client import Configuration

logger = logging.getLogger(__name__)

EXPIRY_MARGIN = 60.0
"""Seconds before the expiry of a plugin's credentials at which they are renewed."""

RETRY_SECONDS = 10.0
"""Minimum time between two renewals, so that a failing plugin is not run for each request."""


class OfficialCredentials:
    """Headers from the official package's configuration, renewed before they expire."""

    def __init__(
        self,
        user: Callable[[], tuple[Path, dict[str, Any]]],
        extra: Mapping[str, str],
        tls: ssl.SSLContext | None,
    ) -> None:
        """Create credentials, which `renew` is to get.

        Args:
            user: Reads the user's fields in a kubeconfig, which it names; it may raise a `ConfigurationError`.
            extra: Further headers.
            tls: Gets the certificate that a plugin answers with.
        """
        self._user = user
        self._extra = extra
        self._tls = tls
        self._clock: Clock = SystemClock()
        self._lock = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """The configuration's headers, after renewing credentials that are about to expire."""
        expiry = getattr(self._loader, "exec_plugin_expiry", None)
        now = self._clock.wall()
        if isinstance(expiry, datetime) and now >= expiry.timestamp() - EXPIRY_MARGIN:
            await self.refused()
        settings = await self._configuration.auth_settings()
        found = settings.get("BearerToken")
        signed = {found["key"]: found["value"]} if found and found["value"] else {}
        return joined(signed, self._extra)

    async def refused(self) -> bool:
        """Read the user again, and run the plugin; if that fails, the last credentials are used."""
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
            OSError: A file that the user names, or a certificate of the plugin's, cannot be used; so does a ValueError.
            ConfigurationError: With the package's explanation.
        """
        self._renewed_at = self._clock.monotonic()
        configuration, loader = await _asked(*self._user())
        if self._tls is not None and configuration.cert_file:
            self._tls.load_cert_chain(configuration.cert_file, configuration.key_file)
        self._configuration, self._loader = configuration, loader


def _verified(requestor: Any) -> aiohttp.TCPConnector:
    """Connections to an OIDC provider; the package's own verify no certificate, or fail where an authority is named."""
    return aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=requestor._ssl_ca_cert))  # noqa: SLF001


async def _asked(file: Path, user: dict[str, Any]) -> tuple["Configuration", Any]:
    """What the official package makes of a user of a kubeconfig."""
    from kubernetes.aio import client, config
    from kubernetes.aio.config.openid import OpenIDRequestor

    OpenIDRequestor._get_connector = _verified  # type: ignore[method-assign]  # noqa: SLF001
    configuration = client.Configuration()
    document = {
        "current-context": "-",
        "contexts": [{"name": "-", "context": {"cluster": "-", "user": "-"}}],
        "clusters": [{"name": "-", "cluster": {}}],
        "users": [{"name": "-", "user": user}],
    }
    try:
        loader = await config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]  # not annotated
            document, client_configuration=configuration
        )
    except (
        config.ConfigException,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        aiohttp.ClientError,
    ) as error:
        raise ConfigurationError(f"kubeconfig {file}: {error}") from error
    if not (configuration.api_key or configuration.cert_file):  # the package has logged why
        raise ConfigurationError(
            f"kubeconfig {file}: the user's exec plugin or auth-provider (oidc, gcp) gave no credentials; "
            "run the plugin by hand to see why"
        )
    return configuration, loader
