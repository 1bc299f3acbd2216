"""Manifests from files and from stdin, each with the place it comes from.

What is wrong with a file is told in one line, `FILE: document N, line M: …`, and ends the verb with
exit code 2: the file was not understood, so nothing can be said about what stands in it.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pumice.api.json_words import kind_of
from pumice.api.kinds import of_object
from pumice.cli.exits import UserError

__all__ = ["Manifest", "Raw", "Source", "named", "read", "read_bytes", "read_objects"]

Raw = dict[str, Any]
"""An object as JSON gives it."""

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
GENERATED_STEM = 58
"""Characters of a `generateName` that the API server keeps, so that the name fits into a label."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a manifest stands.

    Attributes:
        file: Path as the user gave it; `-` for stdin.
        document: Number of the document in the file, from 1.
        line: First line of the document, from 1.
        item: Number of the item in a List, from 1; 0 for a document of its own.
    """

    file: str
    document: int = 1
    line: int = 1
    item: int = 0

    def __str__(self) -> str:
        """`FILE: document N, line M`, with the item where there is one."""
        item = f", item {self.item}" if self.item else ""
        return f"{_shown(self.file)}: document {self.document}, line {self.line}{item}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and where it stands.

    Attributes:
        object: The object, as raw JSON.
        source: Where it stands.
    """

    object: Raw
    source: Source

    @property
    def name(self) -> str:
        """`metadata.name`, or the `generateName` that stands in for it."""
        return str(self._metadata.get("name") or self._metadata.get("generateName") or "")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, `default` when left out; empty for what lives in none."""
        kind = of_object(self.object)
        if kind is not None and not kind.namespaced:
            return ""
        return str(self._metadata.get("namespace") or "default")

    @property
    def identity(self) -> str:
        """`Kind/namespace/name`, or `Kind/name` for what lives in no namespace."""
        parts = (str(self.object["kind"]), self.namespace, self.name)
        return "/".join(part for part in parts if part)

    @property
    def _metadata(self) -> Raw:
        metadata = self.object.get("metadata")
        return metadata if isinstance(metadata, dict) else {}


def read(files: Sequence[str | Path], *, may_be_empty: bool = False) -> list[Manifest]:
    """Read every object of files; Lists are taken apart.

    Of a directory all files are read that are named like manifests, those below it included, in the
    order of their paths.

    Args:
        files: Paths, and `-` for stdin.
        may_be_empty: A file without any object is one of a cluster without any, rather than a slip.

    Raises:
        UserError: A file cannot be read, is empty, is no YAML, or holds something that is no object.
    """
    names = [str(file) for file in files]
    if names.count(STDIN) > 1:
        raise UserError("stdin (-) can be read only once")
    found: list[Manifest] = []
    for file in (each for name in names for each in _files(name)):
        manifests = _read_one(file)
        if manifests is None and not may_be_empty:
            raise UserError(f"{_shown(file)}: is empty, expected manifests")
        found.extend(manifests or ())
    return found


def read_objects(files: Sequence[str | Path], *, may_be_empty: bool = False) -> list[Raw]:
    """`read`, without the places."""
    return [manifest.object for manifest in read(files, may_be_empty=may_be_empty)]


def named(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Manifests of which each has a name: where there is only a `generateName`, it gets five digits.

    The API server appends five random characters; counting gives the same names each time.
    """
    found: list[Manifest] = []
    generated = 0
    for manifest in manifests:
        metadata = manifest.object.get("metadata")
        if isinstance(metadata, dict) and not metadata.get("name") and manifest.name:
            generated += 1
            name = f"{manifest.name[:GENERATED_STEM]}{generated:05}"
            renamed = manifest.object | {"metadata": metadata | {"name": name}}
            found.append(Manifest(renamed, manifest.source))
        else:
            found.append(manifest)
    return found


def _files(name: str) -> list[str]:
    """The file itself, or the manifests of a directory."""
    try:
        if name == STDIN or not Path(name).is_dir():
            return [name]
    except ValueError:
        return [name]  # which is told when it is read
    found = sorted(
        path for path in Path(name).rglob("*") if path.suffix in SUFFIXES and path.is_file()
    )
    if not found:
        raise UserError(f"{name}: holds no manifests, expected files *{', *'.join(SUFFIXES)}")
    return [str(path) for path in found]


def read_bytes(file: str | Path) -> bytes:
    """Content of a file, or of stdin for `-`.

    Raises:
        UserError: It cannot be read.
    """
    if str(file) == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except IsADirectoryError:
        raise UserError(f"{file}: is a directory, expected a file of manifests") from None
    except FileNotFoundError:
        raise UserError(f"{file}: no such file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read: {getattr(error, 'strerror', error)}") from None


def _read_one(name: str) -> list[Manifest] | None:
    """The objects of a file; None where there is no document."""
    # YAML is read by the verbs that take files only; `pumice --help` must not wait for it.
    from pumice.cli.documents import DocumentError, parse

    raw = read_bytes(name)
    manifests: list[Manifest] = []
    documents = 0
    try:
        for number, line, value in parse(raw):
            documents += 1
            manifests.extend(_objects(value, Source(name, number, line)))
    except DocumentError as error:
        where = f"document {error.document}" + (f", line {error.line}" if error.line else "")
        raise UserError(f"{_shown(name)}: {where}: {error}") from None
    return manifests if documents else None


def _objects(value: Any, source: Source) -> Iterable[Manifest]:
    """The objects of a document: itself, the items of a List, or the entries of a JSON array."""
    if isinstance(value, list):
        defaults: Raw = {}
        entries = value
    elif isinstance(value, dict) and _is_list(value):
        kind = str(value["kind"]).removesuffix("List")
        defaults = {"apiVersion": value["apiVersion"], "kind": kind} if kind else {}
        entries = value["items"] or []
    elif isinstance(value, dict) and value.get("kind") == "List" and value.get("items"):
        raise UserError(f"{source}: items: expected a list, found {kind_of(value['items'])}")
    else:
        yield _manifest(value, source)
        return
    for number, entry in enumerate(entries, 1):
        place = Source(source.file, source.document, source.line, number)
        yield _manifest({**defaults, **entry} if isinstance(entry, dict) else entry, place)


def _is_list(value: Raw) -> bool:
    return (
        str(value.get("kind", "")).endswith("List")
        and isinstance(value.get("apiVersion"), str)
        and isinstance(value.get("items"), list | None)
        and "items" in value
    )


def _manifest(value: Any, source: Source) -> Manifest:
    if not isinstance(value, dict):
        raise UserError(f"{source}: expected an object, found {kind_of(value)}")
    for field in ("apiVersion", "kind"):
        found = value.get(field)
        example = f"expected for example {_EXAMPLES[field]}"
        if not found:
            raise UserError(f"{source}: {field} is missing, {example}")
        if not isinstance(found, str):
            raise UserError(f"{source}: {field} is {kind_of(found)}, {example}")
    return Manifest(value, source)


_EXAMPLES = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}


def _shown(file: str) -> str:
    return "stdin" if file == STDIN else file
