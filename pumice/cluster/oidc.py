"""Users of a kubeconfig with an OIDC provider: an id token, and a refresh token for the next one.

As by kubectl, new tokens are written into the file that has the user: a provider may take each refresh token once. For
that reason threads and processes ask one after another. Everything here blocks.
"""

import base64
import fcntl
import os
import ssl
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import Request, urlopen

import msgspec
import yaml

from pumice.api.json_words import quoted
from pumice.cluster.connection import MOST_BYTES, ConfigurationError, basic, contents, replace
from pumice.cluster.kubeconfig_fields import Entry, Fields, checked, data, trusting, warn_once
from pumice.cluster.renewed import EXPIRY_MARGIN, Granted

_SECONDS = 10.0
"""How long to wait for an answer of the provider."""

_unwritten: dict[tuple[Path, str], dict[str, str]] = {}
"""By a file that cannot be written and its refresh token: the tokens that the provider gave instead."""


class _Claims(msgspec.Struct):
    exp: float | None = None


class _Discovery(msgspec.Struct):
    token_endpoint: str
    token_endpoint_auth_methods_supported: Sequence[str] = ("client_secret_basic",)


class _Tokens(msgspec.Struct):
    id_token: str
    refresh_token: str | None = None


def signed_in(read: Callable[[], tuple[str, Entry, Entry, Entry]]) -> Granted:
    """The id token of a user, of the provider if that of the file is about to expire.

    Args:
        read: Reads the name of a context, the context, its cluster and its user.

    Raises:
        ConfigurationError: The user has no valid token, and the provider gives none.
    """
    _, context, _, user = read()
    if not _is_valid(token := _settings(user).get("id-token", "")):
        with _turn(user.file):
            _, context, _, user = read()  # which another process may have changed
            if not _is_valid(token := _settings(user).get("id-token", "")):
                token = _refreshed(user, context.fields["user"])
    return Granted(token, expiry=_expiry(token))


def _settings(user: Entry) -> Fields:
    file = user.file
    provider = checked(file, "user.auth-provider", user.fields["auth-provider"])
    if (kind := provider.get("name", "")) != "oidc":
        raise ConfigurationError(
            f"kubeconfig {file}: user.auth-provider.name: expected oidc, found {quoted(kind)}; for others there are exec plugins, such as gke-gcloud-auth-plugin and kubelogin"
        )
    settings = checked(file, "user.auth-provider.config", provider.get("config", {}))
    return settings | _unwritten.get((file, settings.get("refresh-token", "")), {})


def _is_valid(token: str) -> bool:
    return (_expiry(token) or 0) > time.time() + EXPIRY_MARGIN


def _expiry(token: str) -> float | None:
    """When a JWT expires, in seconds since 1970; None if it does not say so."""
    try:
        claims = base64.urlsafe_b64decode(token.split(".")[1] + "==")
        return msgspec.json.decode(claims, type=_Claims).exp
    except (IndexError, ValueError, msgspec.DecodeError):
        return None


def _refreshed(user: Entry, name: str) -> str:
    """Ask the provider for tokens, and keep them."""
    file, settings = user.file, _settings(user)
    where = f"kubeconfig {file}: user.auth-provider.config"
    for key in ("idp-issuer-url", "client-id", "refresh-token"):
        if not settings.get(key):
            raise ConfigurationError(f"{where}.{key}: expected a string, found nothing")
    issuer = settings["idp-issuer-url"]
    try:
        authority = data(Entry(file, settings), "idp-certificate-authority")
        context = ssl.create_default_context() if authority is None else trusting(authority)
        place = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        found = msgspec.json.decode(_answer(context, place, {}, {}), type=_Discovery)
        form = {"grant_type": "refresh_token", "refresh_token": settings["refresh-token"]}
        who, secret = settings["client-id"], settings.get("client-secret", "")
        headers = {}
        if secret and "client_secret_basic" in found.token_endpoint_auth_methods_supported:
            headers = basic(quote_plus(who), quote_plus(secret))
        else:
            form |= {"client_id": who} | ({"client_secret": secret} if secret else {})
        answer = _answer(context, found.token_endpoint, form, headers)
        tokens = msgspec.json.decode(answer, type=_Tokens)
    except HTTPError as error:
        raise ConfigurationError(f"{where}: {issuer} answers {error.code}{_said(error)}") from error
    except (OSError, ValueError, HTTPException, msgspec.DecodeError) as error:
        raise ConfigurationError(f"{where}: no id token of {issuer}: {error}") from error
    kept = {
        "id-token": tokens.id_token,
        "refresh-token": tokens.refresh_token or form["refresh_token"],
    }
    try:
        _write(file, name, kept)
    except (OSError, LookupError, ConfigurationError) as error:
        _unwritten[file, user.fields["auth-provider"]["config"]["refresh-token"]] = kept
        warn_once(
            f"kubeconfig {file}: the provider's new tokens cannot be written there ({error}); if it takes a refresh token only once, the next process has to sign in again"
        )
    return tokens.id_token


def _said(error: HTTPError) -> str:
    """The beginning of what a provider says of an error."""
    with suppress(OSError, HTTPException):  # the answer stops short
        return f": {error.read(1000).decode(errors='replace')}"
    return ""


def _answer(context: ssl.SSLContext, url: str, form: Fields, headers: Mapping[str, str]) -> bytes:
    """The answer to a form, or to a GET request without one."""
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"expected an address that begins with https://, found {quoted(url)}")
    request = Request(
        url, urlencode(form).encode() or None, {"Accept": "application/json", **headers}
    )
    content, end = b"", time.monotonic() + _SECONDS
    with urlopen(request, timeout=_SECONDS, context=context) as answer:
        while part := answer.read1(MOST_BYTES - len(content)):
            content += part
            if time.monotonic() > end:  # others wait, and nothing interrupts this thread
                raise TimeoutError("the answer does not end")
    return content


@contextmanager
def _turn(file: Path) -> Iterator[None]:
    """Wait until no other thread or process asks for tokens of users in the same folder."""
    folder = os.open(file.resolve().parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _write(file: Path, name: str, tokens: Mapping[str, str]) -> None:
    """Write tokens of a user into a kubeconfig, of which all else stays, but comments do not, as by kubectl.

    Raises:
        OSError: The file cannot be written, or kubectl is writing it.
    """
    state = file.stat()
    if not stat.S_ISREG(state.st_mode) or not state.st_mode & 0o222 or not os.access(file, os.W_OK):
        raise PermissionError("it is not writable")
    lock = Path(f"{file}.lock")  # of kubectl, too, which puts it beside a symbolic link
    lock.touch(mode=0o600, exist_ok=False)
    try:
        document = yaml.safe_load(contents(file))
        for each in document["users"]:
            if isinstance(each, dict) and each.get("name") == name:
                user = each.get("user")
                if isinstance(user, dict):  # the one that is read
                    user["auth-provider"]["config"].update(tokens)
                    break
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        replace(file.resolve(), text, state)
    finally:
        lock.unlink()
