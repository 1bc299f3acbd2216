"""Sources of the API server's address and credentials.

The first one that exists is used: an explicit kubeconfig, an explicit server (for loopback servers without
authentication), `$KUBECONFIG`, the pod's service account, `~/.kube/config`.
"""

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from pumice.cluster.connection import ConfigurationError, Connection
from pumice.cluster.credentials import StaticCredentials, TokenFile

__all__ = ["SERVICE_ACCOUNT", "in_cluster", "load"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Directory in which the kubelet mounts a pod's token, CA and namespace."""


async def load(
    kubeconfig: str | Path | None = None,
    server: str | None = None,
    *,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Find the API server.

    Args:
        kubeconfig: Path of a kubeconfig file.
        server: Base URL. Without a kubeconfig there is no authentication; with one it replaces the file's address.
        context: Name of a context of the kubeconfig; its current one by default. The pod's service
            account is then not considered.
        environ: Environment variables; the process's own by default.
        service_account: Folder of the pod's token.

    Raises:
        ConfigurationError: When no source exists, or it cannot be read.
    """
    environ = os.environ if environ is None else environ
    if kubeconfig is not None:
        return await _file(str(kubeconfig), server, context)
    if server is not None:
        if context is not None:
            raise ConfigurationError(
                f"context {context!r} is looked for in a kubeconfig: give --kubeconfig FILE, too"
            )
        return Connection(server=server.rstrip("/"), credentials=StaticCredentials())
    if paths := environ.get("KUBECONFIG"):
        return await _file(paths, context=context)
    if environ.get("KUBERNETES_SERVICE_HOST") and context is None:
        return in_cluster(environ, service_account)
    if default := _home_config(environ):
        return await _file(default, context=context)
    raise ConfigurationError(
        "no API server known: give --kubeconfig FILE, set KUBECONFIG, create ~/.kube/config, or "
        "run in a pod with a service account"
    )


async def _file(paths: str, server: str | None = None, context: str | None = None) -> Connection:
    from pumice.cluster import kubeconfig  # brings YAML, which a pod does not need

    return await kubeconfig.load(paths, server=server, context=context)


def _home_config(environ: Mapping[str, str]) -> str | None:
    default = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    return str(default) if default.is_file() else None


def in_cluster(environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Connection:
    """Use the pod's service account.

    Raises:
        ConfigurationError: When a variable or a file is missing.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    authority, token, namespace = folder / "ca.crt", folder / "token", folder / "namespace"
    try:
        return Connection(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            credentials=TokenFile(token),
            tls=ssl.create_default_context(cafile=str(authority)),
            namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        )
    except OSError as error:
        raise ConfigurationError(
            f"the pod's service account under {folder} cannot be used: {error}; "
            "is automountServiceAccountToken off?"
        ) from error
