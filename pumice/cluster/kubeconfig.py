"""Where the address and the credentials of the API server come from.

The first source that exists is used: an explicit kubeconfig, an explicit server (for loopback servers without
authentication), `$KUBECONFIG`, the pod's service account, `~/.kube/config`.

Several kubeconfigs are merged as by kubectl: of what several files have, the first counts.
"""

# ruff: noqa: PTH110, PTH111, PTH113 - methods of Path raise for a path that cannot be looked at

import asyncio
import base64
import os
import ssl
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from urllib.parse import quote

from multidict import CIMultiDict

from pumice.api.json_words import quoted
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
    joined,
    load_pair,
)
from pumice.cluster.exec_plugin import run
from pumice.cluster.kubeconfig_fields import (
    STRINGS,
    Entry,
    Fields,
    check,
    checked,
    data,
    trusting,
    warn_once,
)
from pumice.cluster.renewed import Granted, RenewedCredentials

_WAYS = (
    "token tokenFile",
    "username password",
    "client-certificate client-certificate-data",
    "exec auth-provider",
)

_IN_NAMES_OF_HEADERS = "!#$&'*+^`|"
"""Characters that client-go does not encode there, beside letters, digits and `_.-~`."""


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
    name, chosen, cluster, user = _parts(files, context)  # another may be the current one later
    if not (address := server or cluster.fields.get("server")):
        raise ConfigurationError(f"kubeconfig {cluster.file}: cluster.server is missing")
    proxy = cluster.fields.get("proxy-url")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"kubeconfig {cluster.file}: cluster.proxy-url: expected http://HOST:PORT or https://HOST:PORT, found {quoted(proxy)}"
        )
    try:
        extra, make_tls = _impersonated(user), partial(_tls, cluster, user, address)
        tls = make_tls()
        credentials = _credentials(user, extra)
        if is_renewed := credentials is None:
            ask = partial(_granted, files, name, server)
            credentials = renewed = RenewedCredentials(ask, extra, make_tls)
            await renewed.renew()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"kubeconfig {_names(files)}: {error}") from error
    return Connection(
        server=address.rstrip("/"),
        credentials=credentials,
        tls=tls,
        server_name=cluster.fields.get("tls-server-name") or None,
        proxy=proxy or None,
        namespace=chosen.fields.get("namespace") or "default",
        load=partial(load, paths, server=server, context=name) if is_renewed else None,
    )


def _split(paths: str) -> list[Path]:
    files = [Path(os.path.expanduser(part)) for part in paths.split(os.pathsep) if part]
    if not files:
        raise ConfigurationError("the path of the kubeconfig is empty")
    return files


def _parts(files: Sequence[Path], wanted: str | None) -> tuple[str, Entry, Entry, Entry]:
    """Name of a context (the current one by default), and the context with its cluster and its user."""
    found = [
        Entry(each, _document(each)) for each in files if len(files) == 1 or os.path.exists(each)
    ]
    if not found:
        raise ConfigurationError(f"kubeconfig {_names(files)}: No such file or directory")
    named = [each.fields.get("current-context") for each in found]
    name = wanted or next(filter(None, named), None)
    if not name:
        raise ConfigurationError(
            f"kubeconfig {_names(files)}: current-context is not set; see `kubectl config use-context`"
        )
    context = _named(found, "contexts", "context", str(name))
    cluster = _named(found, "clusters", "cluster", str(context.fields.get("cluster", "")))
    who = context.fields.get("user")
    user = _named(found, "users", "user", str(who)) if who else Entry(context.file, {})
    return str(name), context, cluster, user


def _document(file: Path) -> Fields:
    """The content of a kubeconfig."""
    import yaml  # which a pod does not need

    try:
        text = (contents if os.path.isfile(file) else _of_pipe)(file).decode("utf-8")
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
    document = {} if document is None else document  # empty, or comments alone
    if not isinstance(document, dict):
        raise ConfigurationError(f"kubeconfig {file}: expected a mapping at the top")
    if "clusters" not in document and (kind := document.get("kind")) not in (None, "Config"):
        raise ConfigurationError(f"kubeconfig {file}: is a {kind}, expected a kubeconfig")
    return document


_of_pipe = cache(contents)
"""What was read from a pipe or a device, which gives it once: `--kubeconfig <(...)`."""


def _named(documents: Sequence[Entry], section: str, key: str, name: str) -> Entry:
    known = []
    for file, fields in documents:
        entries = fields.get(section)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                value = entry.get(key) or {}
                if entry.get("name") == name and isinstance(value, dict):
                    return Entry(file, checked(file, key, value))
                known.append(str(entry.get("name")))
    there = f"; there are {listed(known, ', ')}" if known else ""
    where = _names([each.file for each in documents])
    raise ConfigurationError(f"kubeconfig {where}: {section} has no entry named {name!r}{there}")


def _names(files: Sequence[Path]) -> str:
    return os.pathsep.join(str(each) for each in files)


def _impersonated(user: Entry) -> CIMultiDict[str]:
    """Headers that name whom the user acts for."""
    file, fields = user
    headers: CIMultiDict[str] = CIMultiDict()
    for key, header in (("as", "User"), ("as-uid", "Uid")):
        if value := fields.get(key):
            headers[f"Impersonate-{header}"] = value
    for group in fields.get("as-groups", ()):
        headers.add("Impersonate-Group", group)
    for key, values in fields.get("as-user-extra", {}).items():
        check(file, f"user.as-user-extra.{key}", STRINGS, values)
        for value in values:
            headers.add(f"Impersonate-Extra-{quote(str(key), safe=_IN_NAMES_OF_HEADERS)}", value)
    if headers and not fields.get("as"):
        raise ConfigurationError(
            f"kubeconfig {file}: user.as: expected the user to act for, as as-uid, as-groups or as-user-extra are set; found nothing"
        )
    return joined(headers)


def _credentials(user: Entry, extra: Mapping[str, str]) -> Credentials | None:
    """How the user signs in; None if by a plugin or a provider, which count less than all else, as for kubectl."""
    file, fields = user
    tokens, names, pair, asked = (
        [f"user.{key}" for key in keys.split() if fields.get(key, "") != ""] for keys in _WAYS
    )
    if (tokens and names) or len(asked) > 1 or names == ["user.password"]:
        found = ", ".join(tokens + names + asked)
        raise ConfigurationError(f"kubeconfig {file}: expected one way to sign in, found {found}")
    given = tokens + names + (pair if "exec" in fields else [])
    if asked and not given:
        return None
    if asked:
        warn_once(f"kubeconfig {file}: {asked[0]} has no effect beside {given[0]}")
    if path := fields.get("tokenFile"):
        return TokenFile(file.parent / path, extra)
    if token := fields.get("token"):
        return StaticCredentials(bearer(token), extra)
    if name := fields.get("username"):
        return StaticCredentials(basic(name, fields.get("password", "")), extra)
    return StaticCredentials(extra)


async def _granted(files: Sequence[Path], context: str, server: str | None) -> Granted:
    """What the user's plugin or provider gives now; the files are read again."""
    _, _, cluster, user = _parts(files, context)
    if "exec" in user.fields:
        return await run(user, _about(cluster, server or cluster.fields.get("server", "")))
    if "auth-provider" in user.fields:
        from pumice.cluster.oidc import signed_in  # which few need

        return await asyncio.to_thread(signed_in, partial(_parts, files, context))
    raise ConfigurationError(f"kubeconfig {user.file}: user: expected exec or auth-provider")


def _about(cluster: Entry, address: str) -> Fields:
    """What an `exec` plugin may learn of the cluster."""
    names = ("tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    about = {name: cluster.fields[name] for name in names if name in cluster.fields}
    about["server"] = address
    if authority := data(cluster, "certificate-authority"):
        about["certificate-authority-data"] = base64.b64encode(authority).decode()
    for each in cluster.fields.get("extensions", ()):
        match each:
            case {"name": "client.authentication.k8s.io/exec", "extension": config}:
                about["config"] = config
    return about


def _tls(cluster: Entry, user: Entry, server: str) -> ssl.SSLContext | None:
    if not server.startswith("https:"):
        return None
    authority = data(cluster, "certificate-authority")
    context = trusting(authority) if authority is not None else ssl.create_default_context()
    if cluster.fields.get("insecure-skip-tls-verify"):
        if authority is not None:
            raise ConfigurationError(
                f"kubeconfig {cluster.file}: cluster.insecure-skip-tls-verify: expected no certificate-authority beside it, found one"
            )
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = data(user, "client-certificate")
    key = data(user, "client-key")
    if certificate and key:
        load_pair(context, certificate, key)
    elif certificate or key:
        raise ConfigurationError(
            f"kubeconfig {user.file}: client-certificate and client-key go together, one is missing"
        )
    return context


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
    default = Path(os.path.expanduser(environ.get("HOME", "~")), ".kube", "config")
    return str(default) if os.path.isfile(default) else None


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
            tls=trusting(contents(authority)),
            namespace=contents(namespace).decode().strip() if namespace.is_file() else "default",
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the pod's service account under {folder} cannot be used: {error}; "
            "is automountServiceAccountToken off?"
        ) from error
