"""The fields of a kubeconfig, and what is said of those that have another type or another name.

kubectl refuses wrong types and passes over unknown names. Here those are reported, because most are misspelt.
"""

import base64
import logging
import re
import ssl
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pumice.api.json_words import kind_of, shown
from pumice.api.messages import listed
from pumice.cluster.connection import ConfigurationError, contents

logger = logging.getLogger(__name__)

Fields = dict[str, Any]

STRINGS = "strings"
"""Kind of a field that is a list of strings."""

_WORDS: dict[object, str] = {str: "a string", bool: "a boolean", list: "a list", dict: "an object"}
_SECRET = ("token", "password", "data", "secret")


def _kinds(**names: str) -> dict[str, object]:
    kinds = {"text": str, "boolean": bool, "lists": list, "objects": dict, "strings": STRINGS}
    return {name: kinds[kind] for kind, each in names.items() for name in each.split()}


_KNOWN = {
    "context": _kinds(text="cluster user namespace", lists="extensions"),
    "cluster": _kinds(
        text="server tls-server-name certificate-authority certificate-authority-data proxy-url",
        boolean="insecure-skip-tls-verify disable-compression",
        lists="extensions",
    ),
    "user": _kinds(
        text="client-certificate client-certificate-data client-key client-key-data token tokenFile username password as as-uid",
        strings="as-groups",
        objects="as-user-extra auth-provider exec",
        lists="extensions",
    ),
    "user.exec": _kinds(
        text="command apiVersion installHint interactiveMode",
        strings="args",
        boolean="provideClusterInfo",
        lists="env",
    ),
    "user.exec.env": _kinds(text="name value"),
    "user.auth-provider": _kinds(text="name", objects="config"),
    "user.auth-provider.config": _kinds(
        text="client-id client-secret extra-scopes id-token idp-certificate-authority idp-certificate-authority-data "
        "idp-issuer-url refresh-token"
    ),
}


class Entry(NamedTuple):
    """A context, cluster or user, and the file that has it: paths in it are relative to the file's folder."""

    file: Path
    fields: Fields


def checked(file: Path, section: str, fields: Fields) -> Fields:
    """The known fields of a section that are not null; of others a warning tells, once.

    Raises:
        ConfigurationError: A field has another type.
    """
    known = _KNOWN[section]
    if unknown := [f"{section}.{name}" for name in fields if name not in known]:
        warn_once(f"kubeconfig {file}: unknown and without effect: {listed(unknown)}")
    found = {name: fields[name] for name in known if fields.get(name) is not None}
    for name, value in found.items():
        check(file, f"{section}.{name}", known[name], value)
    return found


def check(file: Path, path: str, kind: object, value: Any) -> Any:
    """A value of a field, which has the type that it must have.

    Raises:
        ConfigurationError: It says what was expected, and what was found unless that is a secret.
    """
    if kind == STRINGS and isinstance(value, list):
        for index, each in enumerate(value):
            check(file, f"{path}[{index}]", str, each)
    elif not isinstance(value, fitting := list if kind == STRINGS else kind):  # type: ignore[arg-type]
        found = kind_of(value) if path.endswith(_SECRET) else shown(value)
        raise ConfigurationError(
            f"kubeconfig {file}: {path}: expected {_WORDS[fitting]}, found {found}"
        )
    return value


def data(entry: Entry, key: str) -> bytes | None:
    """Content of `key-data` (base64, which may be wrapped) or of the file that `key` names, relative to the kubeconfig.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no base64.
        ConfigurationError: The file is too large, or both are given.
    """
    if entry.fields.get(key) and entry.fields.get(f"{key}-data"):
        raise ConfigurationError(
            f"kubeconfig {entry.file}: expected {key} or {key}-data, found both"
        )
    if text := entry.fields.get(f"{key}-data"):
        return base64.b64decode(re.sub("[\r\n]", "", text), validate=True)
    if path := entry.fields.get(key):
        return contents(entry.file.parent / path)
    return None


def trusting(authorities: bytes) -> ssl.SSLContext:
    """A context that trusts these certificates, PEM, alone; text between them may have any encoding.

    Raises:
        ValueError: There are none.
    """
    if not authorities:  # which would mean those of the system
        raise ValueError("the file of the certificate authority is empty, expected certificates")
    return ssl.create_default_context(cadata=authorities.decode("ascii", "backslashreplace"))


@cache
def warn_once(message: str) -> None:
    """Log a warning, and not again in this process."""
    logger.warning("%s", message)
