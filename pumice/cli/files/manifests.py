"""Manifests from files and from stdin, each with its source.

A document that cannot be read is one line, `FILE: document N, line M: …`, and hides no other document. It makes the
exit code 2 if the user named its file, or if it was meant to be a manifest. Other files of a folder, such as the values
of a Helm chart or the workflows of a CI system, are skipped with a note.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pumice.api.fields import plain
from pumice.api.json_words import kind_of
from pumice.api.kinds import of_object
from pumice.api.meta import Raw
from pumice.api.raw import object_in
from pumice.cli.exits import UserError
from pumice.cli.files.contents import STDIN, read_bytes
from pumice.cli.files.folders import find_files, first_action, render_first
from pumice.cli.files.kustomizations import NAMES, Kustomizations, build_first, completed
from pumice.cli.output import note

GENERATED_STEM = 58
"""Characters of a `generateName` that the API server keeps, so that the name fits into a label."""


@dataclass(frozen=True, slots=True)
class Source:
    """Position of a manifest.

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
        """`FILE: document N, line M`, with the item if there is one."""
        item = f", item {self.item}" if self.item else ""
        return f"{_shown(self.file)}: document {self.document}, line {self.line}{item}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and its source.

    Attributes:
        object: The object, as raw JSON.
        source: Its position.
    """

    object: Raw
    source: Source

    @property
    def name(self) -> str:
        """`metadata.name`, or else `generateName`."""
        return str(self._metadata.get("name") or self._metadata.get("generateName") or "")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, or `default`; empty for a cluster-scoped kind."""
        kind = of_object(self.object)
        if kind is not None and not kind.namespaced:
            return ""
        return str(self._metadata.get("namespace") or "default")

    @property
    def identity(self) -> str:
        """`Kind/namespace/name`, or `Kind/name` for a cluster-scoped kind."""
        parts = (str(self.object["kind"]), self.namespace, self.name)
        return "/".join(part for part in parts if part)

    @property
    def _metadata(self) -> Raw:
        return object_in(self.object, "metadata")


class ReadProblem(str):
    """An input that cannot be read, as one line that begins with the file.

    Attributes:
        file: The file; empty if the problem is not in one.
        line: Line in the file, from 1; 0 if the problem concerns the file as a whole.
        message: The problem without the file and the line.
    """

    file: str
    line: int
    message: str

    def __new__(cls, text: str, file: str = "", line: int = 0, message: str = "") -> "ReadProblem":
        """Create it from the line, with its position."""
        made = super().__new__(cls, text)
        made.file, made.line, made.message = file, line, message or text
        return made


@dataclass(slots=True)
class ManifestReading:
    """Result of reading.

    Attributes:
        manifests: The objects, in the order of the files.
        problems: What could not be read, a line each.
        texts: Contents of what cannot be read a second time, such as stdin, by name.
        unrendered: Folders with templates of Helm charts, a line each, which says how to render them.
        kustomizations: Those that may list the files as patches.
    """

    manifests: list[Manifest] = field(default_factory=list)
    problems: list[ReadProblem] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    unrendered: list[str] = field(default_factory=list)
    kustomizations: Kustomizations = field(default_factory=Kustomizations)


def read(files: Sequence[str | Path], *, may_be_empty: bool = False) -> list[Manifest]:
    """Read every object of files; see `read_all`.

    Args:
        files: Paths, and `-` for stdin.
        may_be_empty: Whether a file without objects is valid, as from a cluster without such objects.

    Raises:
        UserError: A file cannot be read, is empty, is not YAML, or holds a value that is not an object.
    """
    reading = read_all(files, may_be_empty=may_be_empty)
    if reading.problems:
        raise UserError(reading.problems[0])
    return reading.manifests


def read_all(
    files: Sequence[str | Path],
    *,
    may_be_empty: bool = False,
    skip_others: bool = False,
    report: Callable[[str], None] = note,
    given: Mapping[str, bytes] | None = None,
) -> ManifestReading:
    """Read every object of files as far as possible; items of Lists are separate manifests.

    Of a directory and its subdirectories all files are read that are named like manifests, in the order of their paths.
    Files that are not manifests are skipped with a note.

    Args:
        files: Paths, and `-` for stdin.
        may_be_empty: Whether a file without objects is valid, as from a cluster without such objects.
        skip_others: Whether to skip also named files that are not manifests.
        report: Gets a line for each file or folder that is skipped.
        given: Further contents, by the name that stands for them in messages.

    Raises:
        UserError: Stdin is named twice.
    """
    names = [str(file) for file in files]
    if names.count(STDIN) > 1:
        raise UserError("stdin (-) can be read only once")
    reading = ManifestReading()
    for name, text in (given or {}).items():
        reading.texts[name] = text
        reading.problems += [problem for problem, _ in _read_one(name, reading)]
    for name in names:
        if name == STDIN or not is_folder(name):
            if skip_others:
                _read_or_skip(name, reading, report)
            else:
                problems = _read_one(name, reading, may_be_empty=may_be_empty)
                reading.problems += [problem for problem, _ in problems]
            continue
        found = find_files(name)
        for folder in found.skipped:
            report(plain(f"skipped {folder}"))
        reading.unrendered += found.skipped
        reading.problems += [ReadProblem(problem) for problem in found.problems]
        for file in found.files:
            _read_or_skip(str(file), reading, report)
    return reading


def read_objects(files: Sequence[str | Path], *, may_be_empty: bool = False) -> list[Raw]:
    """`read`, without the sources."""
    return [manifest.object for manifest in read(files, may_be_empty=may_be_empty)]


def named(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Manifests that each have a name: a `generateName` gets five digits.

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


def is_folder(name: str) -> bool:
    """True if a name is that of a directory."""
    try:
        return Path(name).is_dir()
    except ValueError:
        return False  # a null byte in the name, which is reported when the file is read


def _read_or_skip(name: str, reading: ManifestReading, report: Callable[[str], None]) -> None:
    """Read a file that may not hold manifests; report why it, or a part of it, is skipped."""
    problems = _read_one(name, reading)
    reading.problems += [problem for problem, is_meant in problems if is_meant]
    skipped = [problem for problem, is_meant in problems if not is_meant]
    if skipped:
        more = f" (and {len(skipped) - 1} more like it)" if len(skipped) > 1 else ""
        report(plain(f"skipped {skipped[0]}{more}"))


_Problem = tuple[ReadProblem, bool]
"""A problem of a document, and whether the document was meant to be a manifest."""


def _read_one(name: str, reading: ManifestReading, *, may_be_empty: bool = False) -> list[_Problem]:
    """Add the objects of a file to the result, and return the problems of the rest."""
    # YAML is read by the verbs that take files only; `pumice --help` must not wait for it.
    from pumice.api.documents import parse
    from pumice.api.yaml_values import DocumentError

    try:
        raw = reading.texts[name] if name in reading.texts else read_bytes(name)
    except UserError as error:
        message = str(error).removeprefix(f"{name}: ")
        return [(ReadProblem(str(error), name, message=message), True)]
    if name == STDIN or not Path(name).is_file():
        reading.texts[name] = raw
    elif listed := reading.kustomizations.of_patch(name):
        message = f"is a patch that {listed} lists; {build_first(listed)}"
        return [(ReadProblem(f"{name}: {message}", name, message=message), False)]
    shown, problems, before = _shown(name), list[_Problem](), len(reading.manifests)
    failed_at: list[int] = []

    def failed(error: DocumentError) -> None:
        where = f"document {error.document}" + (f", line {error.line}" if error.line else "")
        where += f", column {error.column}" if error.column else ""
        text, line = str(error), error.line or 0
        problem = ReadProblem(f"{shown}: {where}: {text}", name, line, text)
        is_meant = _looks_like_manifests(raw) or Path(name).name in NAMES
        problems.append((problem, is_meant))
        failed_at.append(line or 1)

    is_empty = True
    for number, line, value in parse(raw, failed):
        is_empty = False
        for entry, source in _entries(completed(name, value), Source(name, number, line)):
            problem = _problem(entry)
            if problem:
                told = ReadProblem(f"{source}: {problem}", name, line, problem)
                problems.append((told, _is_meant(entry)))
            else:
                reading.manifests.append(Manifest(entry, source))
    if b"{{" in raw and (line := first_action(name, raw, failed_at)):
        del reading.manifests[before:]
        message = f"is a template with {{{{ … }}}} actions; {render_first(name)}"
        return [(ReadProblem(f"{shown}: line {line}: {message}", name, line, message), False)]
    if is_empty and not problems and not may_be_empty:
        message = "is empty, expected manifests"
        problems.append((ReadProblem(f"{shown}: {message}", name, message=message), False))
    return problems


_API_VERSION = re.compile(rb'^(apiVersion|\s*"apiVersion")\s*:', re.MULTILINE)


def _looks_like_manifests(raw: bytes) -> bool:
    """True if an unreadable text was meant to hold manifests, and is not a template of them."""
    return b"{{" not in raw and _API_VERSION.search(raw) is not None


def _is_meant(value: Any) -> bool:
    """True if a value that is not an object was meant to be one, for example with a kind and without an apiVersion."""
    return isinstance(value, dict) and len({"apiVersion", "kind", "metadata"} & value.keys()) > 1


def _entries(value: Any, source: Source) -> Iterator[tuple[Any, Source]]:
    """The objects of a document: itself, the items of a List, or the entries of a JSON array."""
    if isinstance(value, list):
        defaults: Raw = {}
        entries = value
    elif isinstance(value, dict) and _is_list(value):
        kind = str(value["kind"]).removesuffix("List")
        defaults = {"apiVersion": value["apiVersion"], "kind": kind} if kind else {}
        entries = value["items"] or []
    else:
        yield value, source
        return
    for number, entry in enumerate(entries, 1):
        place = Source(source.file, source.document, source.line, number)
        yield {**defaults, **entry} if isinstance(entry, dict) else entry, place


def _is_list(value: Raw) -> bool:
    return (
        str(value.get("kind", "")).endswith("List")
        and isinstance(value.get("apiVersion"), str)
        and isinstance(value.get("items"), list | None)
        and "items" in value
    )


def _problem(value: Any) -> str:
    """Why a value is not an object of Kubernetes; empty if it is one."""
    if not isinstance(value, dict):
        return f"expected an object, found {kind_of(value)}"
    items = value.get("items")
    if value.get("kind") == "List" and items and not isinstance(items, list):
        return f"items: expected a list, found {kind_of(items)}"
    for name, example in _EXAMPLES.items():
        found = value.get(name)
        if not found:
            return f"{name} is missing, expected for example {example}"
        if not isinstance(found, str):
            return f"{name} is {kind_of(found)}, expected for example {example}"
    return ""


_EXAMPLES = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}


def _shown(file: str) -> str:
    return "stdin" if file == STDIN else file


T = TypeVar("T")


def decode(manifest: Manifest, type: type[T]) -> T:  # noqa: A002 - the word that msgspec uses
    """Decode a manifest into a struct; the namespace is `default` if it is not set.

    Raises:
        UserError: It has no name, or a field has the wrong type.
    """
    raw = manifest.object
    if not isinstance(raw.get("metadata"), dict) or not manifest.name:
        raise UserError(f"{manifest.source}: metadata.name is missing")
    kind = of_object(raw)
    if kind is not None and kind.namespaced and not raw["metadata"].get("namespace"):
        raw = raw | {"metadata": raw["metadata"] | {"namespace": "default"}}
    try:
        return msgspec.convert(raw, type)
    except msgspec.ValidationError as error:
        raise UserError(f"{manifest.source}: {manifest.identity}: {error}") from None
