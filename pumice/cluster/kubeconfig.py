"""Where the address and the credentials of the API server come from.

The first source that exists is used: an explicit kubeconfig, an explicit server (for loopback servers without
authentication), `$KUBECONFIG`, the pod's service account, `~/.kube/config`.

There are two readers of kubeconfigs. The one here supports static fields: address, CA, token, client certificate, name and password,
impersonation. For `exec` plugins, `auth-provider` and several merged files the official package `kubernetes.aio.config`
is used. It could read the static fields, too, but importing it takes 0.8 s of CPU and 25 MiB, which is too much for the
start of a webhook.
"""

import base64
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from multidict import CIMultiDict

from pumice.api.messages import listed
from pumice.cluster.connection import (
    ConfigurationError,
    Connection,
    Credentials,
    NoServerError,
    StaticCredentials,
    TokenFile,
    basic,
    bearer,
    contents,
    load_pair,
)

Entry = dict[str, Any]


async def load(paths: str, *, server: str | None = None, context: str | None = None) -> Connection:
    """Read a kubeconfig.

    Args:
        paths: One path, or several as in `$KUBECONFIG`, joined by the system's path separator.
        server: Address to use instead of the file's.
        context: Name of the context; the file's current context by default.

    Raises:
        ConfigurationError: When the file is missing, malformed or refers to something missing.
    """
    files = _split(paths)
    if not files:
        raise ConfigurationError("the path of the kubeconfig is empty")
    if len(files) > 1:
        for each in files:
            with suppress(OSError):
                contents(each)  # which refuses one without end
        return await _official(paths, server, context)
    file = files[0]
    chosen, cluster, user = _parts(file, context)
    if "exec" in user or "auth-provider" in user:
        return await _official(str(file), server, context)
    try:
        return Connection(
            server=(server or _text(file, cluster, "cluster", "server")).rstrip("/"),
            credentials=_credentials(file, user),
            tls=_tls(file, cluster, user, server or str(cluster["server"])),
            server_name=cluster.get("tls-server-name"),
            proxy=cluster.get("proxy-url"),
            namespace=chosen.get("namespace") or "default",
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"kubeconfig {file}: {error}") from error


def _split(paths: str) -> list[Path]:
    return [Path(part).expanduser() for part in paths.split(os.pathsep) if part]


async def _official(paths: str, server: str | None, context: str | None) -> Connection:
    from pumice.cluster import official

    return await official.load(paths, server=server, context=context)


def _parts(file: Path, wanted: str | None) -> tuple[Entry, Entry, Entry]:
    """A context (the current one by default) with its cluster and its user."""
    import yaml  # which a pod does not need

    try:
        text = contents(file).decode("utf-8")
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise ConfigurationError(f"kubeconfig {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"kubeconfig {file}: must be UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigurationError(f"kubeconfig {file} is no YAML: {where}{what}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"kubeconfig {file}: expected a mapping at the top")
    if "clusters" not in document and (kind := document.get("kind")) not in (None, "Config"):
        raise ConfigurationError(f"kubeconfig {file}: is a {kind}, expected a kubeconfig")
    current = wanted or document.get("current-context")
    if not current:
        raise ConfigurationError(
            f"kubeconfig {file}: current-context is not set; see `kubectl config use-context`"
        )
    context = _named(file, document, "contexts", "context", str(current))
    cluster = _named(file, document, "clusters", "cluster", str(context.get("cluster", "")))
    name = context.get("user")
    user = _named(file, document, "users", "user", str(name)) if name else {}
    return context, cluster, user


def _named(file: Path, document: Entry, section: str, key: str, name: str) -> Entry:
    for entry in document.get(section) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            value = entry.get(key) or {}
            if isinstance(value, dict):
                return value
    known = [
        str(each.get("name")) for each in document.get(section) or () if isinstance(each, dict)
    ]
    there = f"; there are {listed(known, ', ')}" if known else ""
    raise ConfigurationError(f"kubeconfig {file}: {section} has no entry named {name!r}{there}")


def _text(file: Path, entry: Entry, section: str, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"kubeconfig {file}: {section}.{key} is missing")
    return value


def _credentials(file: Path, user: Entry) -> Credentials:
    extra: CIMultiDict[str] = CIMultiDict()
    if who := user.get("as"):
        extra["Impersonate-User"] = str(who)
    for group in user.get("as-groups") or ():
        extra.add("Impersonate-Group", str(group))
    if token := user.get("token"):
        return StaticCredentials(bearer(str(token)), extra)
    if path := user.get("tokenFile"):
        return TokenFile(file.parent / str(path), extra)
    if user.get("username"):
        return StaticCredentials(basic(str(user["username"]), str(user.get("password", ""))), extra)
    return StaticCredentials(extra)


def _tls(file: Path, cluster: Entry, user: Entry, server: str) -> ssl.SSLContext | None:
    if not server.startswith("https:"):
        return None
    authority = _data(file, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _data(file, user, "client-certificate")
    key = _data(file, user, "client-key")
    if certificate and key:
        load_pair(context, certificate, key)
    elif certificate or key:
        raise ConfigurationError(
            f"kubeconfig {file}: client-certificate and client-key go together, one is missing"
        )
    return context


def _data(file: Path, entry: Entry, key: str) -> bytes | None:
    """Content of `key-data` (base64) or of the file that `key` names, relative to the kubeconfig."""
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(str(data), validate=True)
    if path := entry.get(key):
        return contents(file.parent / str(path))
    return None


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Directory in which the kubelet mounts a pod's token, CA and namespace."""


async def find_connection(
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
        return await load(str(kubeconfig), server=server, context=context)
    if server is not None:
        if context is not None:
            raise ConfigurationError(
                f"context {context!r} is looked for in a kubeconfig: give --kubeconfig FILE, too"
            )
        return Connection(server=server.rstrip("/"), credentials=StaticCredentials())
    if paths := environ.get("KUBECONFIG"):
        return await load(paths, context=context)
    if environ.get("KUBERNETES_SERVICE_HOST") and context is None:
        return in_cluster(environ, service_account)
    if default := _home_config(environ):
        return await load(default, context=context)
    raise NoServerError(
        "no API server known: give --kubeconfig FILE, set KUBECONFIG, create ~/.kube/config, or "
        "run in a pod with a service account"
    )


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
