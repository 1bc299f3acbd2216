"""The file into which `pumice dev` writes its kubeconfig.

Only a file that `pumice dev` wrote is ever replaced or removed. It is known by an entry of the kubeconfig's list
`extensions`, which kubectl keeps when it changes the file, for instance to choose another namespace.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from pumice.cli.exits import UserError
from pumice.cluster.connection import replace

MARK = "pumice.dev/dev"
"""Name of the extension that only files of `pumice dev` have."""


def check(file: Path) -> None:
    """Check that a kubeconfig may be written to a path, before the cluster is started.

    Raises:
        UserError: The path holds a file that `pumice dev` did not write, or of one that still runs, or its folder is
            missing or not writable.
    """
    _check_writable(file)
    server = _server(_read(file.resolve()))
    if server and _answers(server):
        what = f"belongs to another `pumice dev`, which answers at {server}"
        raise _problem(file, f"{what}; stop that one (`pumice dev stop`), or name another file")


def _check_writable(file: Path) -> None:
    try:
        target = file.resolve()
        if target.is_dir():
            raise _problem(file, "is a directory, expected a file")
        if os.path.lexists(target):
            if not _is_own(_read(target)):
                what = "exists and was not written by `pumice dev`; name another file, or remove this one"
                raise _problem(file, what)
        elif not target.parent.is_dir():
            raise _problem(file, f"there is no folder {target.parent}")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise _problem(file, f"the folder {target.parent} is not writable")
    except OSError as error:
        raise _problem(file, f"cannot be read: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # a symbolic link to itself, or a null byte
        raise _problem(file, f"is no path: {error}") from None


def is_own(file: str) -> bool:
    """Whether a file is a kubeconfig of `pumice dev`, to which no other cluster was added."""
    try:
        return _is_own(_read(Path(file)))
    except (OSError, ValueError):
        return False


@contextmanager
def written(file: Path, text: str) -> Iterator[None]:
    """Write a kubeconfig to a file, which only its owner can read, and remove it at the end of the block.

    It appears complete: who waits for the file may use it as soon as it is there. The file is not removed if it was replaced, for example by another `pumice dev`.

    Args:
        file: Path; a file of an earlier `pumice dev` is replaced.
        text: The kubeconfig.

    Raises:
        UserError: The file must not or cannot be written.
    """
    _check_writable(file)
    config = yaml.safe_load(text)
    config["extensions"] = [{"name": MARK, "extension": {}}]
    try:
        target = file.resolve()
        replace(target, yaml.safe_dump(config, sort_keys=False))
    except OSError as error:
        raise _problem(file, f"cannot be written: {error.strerror}") from None
    try:
        yield
    finally:
        try:
            found = _read(target)
            if _is_own(found) and found["clusters"] == config["clusters"]:
                target.unlink()
        except OSError:
            pass  # it was removed already


def _problem(file: Path, what: str) -> UserError:
    return UserError(f"--kubeconfig {file}: {what}")


def _read(file: Path) -> Any:
    """The content of a file; None if it is not YAML, or not a regular file."""
    if not file.is_file():
        return None
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        return None


def _server(config: Any) -> str:
    """The address of the API server in a kubeconfig of one cluster; empty if there is none."""
    try:
        return str(config["clusters"][0]["cluster"]["server"])
    except (KeyError, IndexError, TypeError):
        return ""


def _answers(server: str) -> bool:
    """True if something listens at an address of this machine."""
    try:
        address = urlsplit(server)
        with socket.create_connection((address.hostname, address.port), timeout=1):
            return True
    except (OSError, ValueError):
        return False


def _is_own(config: Any) -> bool:
    """True for a kubeconfig of `pumice dev` to which no other cluster was added."""
    if not isinstance(config, dict):
        return False
    extensions, clusters = config.get("extensions"), config.get("clusters")
    if not isinstance(extensions, list) or not isinstance(clusters, list):
        return False
    marked = any(isinstance(each, dict) and each.get("name") == MARK for each in extensions)
    return marked and len(clusters) == 1
