"""The fields of a kubeconfig, and what is said of those that have another type or another name.

kubectl refuses wrong types and passes over unknown names. Here those are reported, because most are misspelt.
"""

import logging
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pumice.api.json_words import kind_of, shown
from pumice.api.messages import listed
from pumice.cluster.connection import ConfigurationError

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


def check(file: Path, path: str, kind: object, value: object) -> None:
    """Refuse a field with a value of another type.

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


@cache
def warn_once(message: str) -> None:
    """Log a warning, and not again in this process."""
    logger.warning("%s", message)
