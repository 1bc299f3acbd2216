"""Kustomizations: which files are their patches, and how they and Helm charts are rendered.

A patch has a part of an object only. What is wrong with it shows once the Kustomization is built.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pumice.api.fields import plain
from pumice.api.raw import list_in, objects_in
from pumice.cli.exits import UserError
from pumice.cli.files.contents import read_bytes

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file, one of which a folder has."""

_GROUP = "kustomize.config.k8s.io/"
_BY_DEFAULT = {"apiVersion": f"{_GROUP}v1beta1", "kind": "Kustomization"}
_MOST_BYTES = 1 << 20
"""Size of a Kustomization beyond which it is not asked for its patches."""
_LIMIT = 120.0
"""Seconds that rendering may take; it may fetch bases and charts."""


def build_first(file: str) -> str:
    """The command that builds the Kustomization of a file, and validates the result."""
    folder = shlex.quote(str(Path(file).parent))
    return f"build it first: kubectl kustomize {folder} | pumice lint -"


def completed(file: str, value: Any) -> Any:
    """A Kustomization with its apiVersion and kind, which may be left out; any other value as it is."""
    if Path(file).name in NAMES and isinstance(value, dict) and value.get("kind") is None:
        return _BY_DEFAULT | {key: each for key, each in value.items() if each is not None}
    return value


@dataclass(slots=True)
class Kustomizations:
    """What the Kustomizations beside and above files say of them; each is read once."""

    _patches: dict[Path, frozenset[str]] = field(default_factory=dict)

    def of_patch(self, file: str) -> str:
        """The file of the Kustomization that lists a file as a patch; empty if there is none."""
        path = os.path.realpath(file)
        for folder in Path(path).parents:
            found = self._patches.get(folder)
            if found is None:
                found = self._patches[folder] = frozenset(_patches_of(folder))
            if path in found:
                listing = next(folder / each for each in NAMES if (folder / each).is_file())
                return str(listing) if Path(file).is_absolute() else os.path.relpath(listing)
        return ""


def _patches_of(folder: Path) -> Iterator[str]:
    for name in NAMES:
        file = folder / name
        try:
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                continue
            raw = read_bytes(file)
        except (OSError, UserError):
            continue
        yield from (os.path.realpath(folder / each) for each in _listed(raw) if "\0" not in each)


def _listed(raw: bytes) -> Iterator[str]:
    """Paths of patches, and of other files with parts of objects, that a Kustomization names."""
    from pumice.api.documents import parse

    for _, _, value in parse(raw, lambda _: None):
        for key in ("patches", "patchesJson6902", "replacements"):
            for each in objects_in(value, key):
                if isinstance(each.get("path"), str):
                    yield each["path"]
        for key in ("patchesStrategicMerge", "configurations"):
            # A patch may stand in the list itself.
            yield from (
                each for each in list_in(value, key) if isinstance(each, str) and "\n" not in each
            )


def rendered(folder: str) -> tuple[str, bytes]:
    """Build the Kustomization, or render the Helm chart, of a folder, with what is installed.

    Returns:
        How it was done, for messages, and the manifests.

    Raises:
        UserError: The folder holds neither, no program for it is on PATH, or the program failed.
    """
    import shutil
    import subprocess

    path = Path(folder)
    if any((path / each).is_file() for each in NAMES):
        what, commands = "Kustomization", [("kustomize", "build"), ("kubectl", "kustomize")]
    elif (path / "Chart.yaml").is_file():
        what, commands = "Helm chart", [("helm", "template")]
    else:
        names = ", ".join((*NAMES, "Chart.yaml"))
        raise UserError(f"--render {folder}: expected a folder with one of {names}")
    installed = [each for each in commands if shutil.which(each[0])]
    if not installed:
        programs = " or ".join(each[0] for each in commands)
        raise UserError(
            f"--render {folder}: a {what} is rendered by {programs}, which is not on PATH"
        )
    # A name that begins with a dash is no option.
    command = [*installed[0], folder if path.is_absolute() else f"./{folder}"]
    shown = shlex.join([*installed[0], folder])
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"--render: `{shown}` did not end within {_LIMIT:g} s") from None
    except OSError as error:
        raise UserError(f"--render: `{shown}` cannot be run: {error.strerror}") from None
    if ran.returncode:
        said = " ".join(ran.stderr.decode(errors="replace").split())[:1000]
        raise UserError(
            plain(f"--render: `{shown}` failed: {said or f'exit code {ran.returncode}'}")
        )
    return f"{folder} ({' '.join(installed[0])})", ran.stdout
