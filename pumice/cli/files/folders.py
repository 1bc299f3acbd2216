"""Files of a directory that may be manifests."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from pumice.cli.files.helm_templates import is_template_folder, render_first

__all__ = ["SUFFIXES", "Found", "find_files"]

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(slots=True)
class Found:
    """Files of a directory.

    Attributes:
        files: Files that are named like manifests, in the order of their paths.
        skipped: Folders that were left out, each with the reason.
        problems: Folders that cannot be read, each with the reason.
    """

    files: list[Path] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def find_files(folder: str) -> Found:
    """Find files in a directory and its subdirectories that are named like manifests.

    Hidden folders, such as `.git` and `.github`, are left out, and so are templates of Helm charts, which must be
    rendered first.
    """
    found = Found()

    def unreadable(error: OSError) -> None:
        found.problems.append(f"{error.filename}: cannot be read: {error.strerror}")

    for name, below, files in os.walk(folder, onerror=unreadable):
        here = Path(name)
        if is_template_folder(here):
            found.skipped.append(f"{here}: templates of a Helm chart; {render_first(name)}")
            below.clear()
            continue
        below[:] = sorted(each for each in below if not each.startswith("."))
        paths = (here / each for each in files if each.endswith(SUFFIXES))
        found.files += [path for path in paths if path.is_file()]
    found.files.sort()
    if not (found.files or found.skipped or found.problems):
        what = f"holds no manifests, expected files *{', *'.join(SUFFIXES)}"
        found.problems.append(f"{folder}: {what}")
    return found
