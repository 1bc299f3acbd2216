"""Paths of collections and objects at an API server.

Users type names, and fields of objects name others. An API server decodes a path before it splits it and resolves `..`, so a
name with `/` would address another object whether it is escaped or not. Such a name is refused before a request is sent,
as client-go does.
"""

from pumice.api.kinds import Kind
from pumice.cluster.errors import InvalidName


def collection_path(kind: Kind, namespace: str | None) -> str:
    """Path of a collection; without a namespace, over all namespaces.

    Raises:
        InvalidName: Nothing can have the name of the namespace.
    """
    if kind.namespaced and namespace is not None:
        _check("namespace", namespace)
    return kind.collection(namespace)


def object_path(kind: Kind, name: str, namespace: str | None) -> str:
    """Path of an object.

    Raises:
        InvalidName: Nothing can have its name, or that of the namespace.
    """
    if kind.namespaced and namespace is not None:
        _check("namespace", namespace)
    _check(f"name of a {kind.kind}", name)
    return kind.path(name, namespace)


def _check(what: str, name: str) -> None:
    if name in ("", ".", "..") or "/" in name:
        message = (
            f'invalid {what} "{name}": expected one without "/" that is not empty, "." or ".."'
        )
        raise InvalidName(404, "InvalidName", message)
