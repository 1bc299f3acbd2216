"""Kubeconfigs that need more than parsing: `exec` plugins, OIDC, Google, several merged files.

The official package `kubernetes.aio.config` reads them into a `Configuration`, which has the headers. The package loads
credentials once and does not renew them, so the files are loaded again shortly before a plugin's credentials expire and
after a 401.
"""

import asyncio
import ssl
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.connection import ConfigurationError, Connection

if TYPE_CHECKING:
    from kubernetes.aio.client import Configuration

EXPIRY_MARGIN = 60.0
"""Seconds before the expiry of a plugin's credentials at which they are renewed."""

RETRY_SECONDS = 10.0
"""Minimum time between two renewals, so that a failing plugin is not run for each request."""


async def load(paths: str, *, server: str | None = None, context: str | None = None) -> Connection:
    """Read kubeconfigs with the official package.

    Args:
        paths: One path, or several, joined by the system's path separator.
        server: Address to use instead of the file's.
        context: Name of the context; the current one by default.

    Raises:
        ConfigurationError: With the package's explanation.
    """
    configuration, loader = await _read(paths, context)
    tls = _tls(configuration) if (server or configuration.host).startswith("https:") else None
    credentials = OfficialCredentials(paths, configuration, loader, tls, context=context)
    return Connection(
        server=(server or configuration.host).rstrip("/"),
        credentials=credentials,
        tls=tls,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
        namespace=_namespace(loader),
        load=partial(load, paths, server=server, context=context),
    )


async def _read(paths: str, context: str | None) -> tuple["Configuration", Any]:
    from kubernetes.aio import client, config

    configuration = client.Configuration()
    try:
        loader = await config.load_kube_config(  # type: ignore[no-untyped-call]  # not annotated
            config_file=paths,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except (config.ConfigException, OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"kubeconfig {paths}: {error}") from error
    return configuration, loader


def _namespace(loader: Any) -> str:
    """The namespace of the context."""
    context = (loader.current_context or {}).get("context") or {}
    return str(context.get("namespace") or "default")


def _tls(configuration: "Configuration") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


class OfficialCredentials:
    """Headers from the official package's configuration, renewed before they expire."""

    def __init__(
        self,
        paths: str,
        configuration: "Configuration",
        loader: Any,
        tls: ssl.SSLContext | None,
        *,
        context: str | None = None,
    ) -> None:
        self._paths = paths
        self._context = context
        self._configuration = configuration
        self._loader = loader
        self._tls = tls
        self._clock: Clock = SystemClock()
        self._lock = asyncio.Lock()
        self._renewed_at = self._clock.monotonic()

    async def headers(self) -> Mapping[str, str]:
        """The configuration's headers, after renewing credentials that are about to expire."""
        expiry = getattr(self._loader, "exec_plugin_expiry", None)
        now = self._clock.wall()
        if isinstance(expiry, datetime) and now >= expiry.timestamp() - EXPIRY_MARGIN:
            await self.refused()
        settings = await self._configuration.auth_settings()
        found = settings.get("BearerToken")
        return {found["key"]: found["value"]} if found and found["value"] else {}

    async def refused(self) -> bool:
        """Load the files again, and run the plugins that they name."""
        async with self._lock:
            if self._clock.monotonic() - self._renewed_at < RETRY_SECONDS:
                return True  # another request has just renewed them
            self._renewed_at = self._clock.monotonic()
            self._configuration, self._loader = await _read(self._paths, self._context)
            if self._tls is not None and self._configuration.cert_file:
                self._tls.load_cert_chain(
                    self._configuration.cert_file, self._configuration.key_file
                )
        return True
