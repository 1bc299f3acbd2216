"""Files of a directory that may be manifests, and templates of Helm charts, which must be rendered before they are."""

import itertools
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pumice.cli.files.kustomizations import NAMES

_ACTION = re.compile(
    r"""\{\{-?\s*(?:[.$("`]|/\*|(?:block|define|else|end|if|include|range|template|toYaml|tpl|with)\b)"""
)
"""Start of an action of a Helm template. Other tools have braces in their manifests, such as `{{workflow.name}}`."""
_DOCUMENT = re.compile(r"^---", re.MULTILINE)


def is_template_folder(folder: Path) -> bool:
    """True for the folder `templates` of a chart."""
    folder = folder.absolute()  # `.` has no name
    return folder.name == "templates" and (folder.parent / "Chart.yaml").is_file()


def render_first(path: str) -> str:
    """The command that renders the chart of a file or a folder, and validates the result."""
    chart = _chart_of(Path(path)) or Path()
    return f"render it first: helm template {shlex.quote(str(chart))} | pumice lint -"


def first_action(file: str, raw: bytes, failed: Iterable[int]) -> int:
    """The line of the first action in a template; 0 for a file that is not a template.

    Args:
        file: Its name.
        raw: Its contents.
        failed: Lines, from 1, at which documents cannot be parsed. A document with actions that can be parsed is not a
            template, unless the file belongs to a chart.
    """
    text = raw.decode(errors="replace")
    action = _ACTION.search(text)
    if action is None:
        return 0
    if _chart_of(Path(file)) is None:
        starts = [0, *(match.start() for match in _DOCUMENT.finditer(text)), len(text)]
        offsets = [0, *(match.end() for match in re.finditer("\n", text))]
        ats = [offsets[min(line, len(offsets)) - 1] for line in failed]
        broken = [
            text[start:end]
            for start, end in itertools.pairwise(starts)
            if any(start <= at < end for at in ats)
        ]
        if not any(_ACTION.search(each) for each in broken):
            return 0
    return text.count("\n", 0, action.start()) + 1


def _chart_of(path: Path) -> Path | None:
    """The directory of the chart whose templates include this file or directory; None if there is none."""
    for folder in (path, *path.parents):
        if is_template_folder(folder):
            return folder.parent if folder.name else folder.absolute().parent
    return None


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
    if not folder:
        found.problems.append("a name is empty: expected a file, a directory, or - for stdin")
        return found

    def unreadable(error: OSError) -> None:
        found.problems.append(f"{error.filename}: cannot be read: {error.strerror}")

    for name, below, files in os.walk(folder, onerror=unreadable):
        here = Path(name)
        if is_template_folder(here):
            found.skipped.append(f"{here}: templates of a Helm chart; {render_first(name)}")
            below.clear()
            continue
        below[:] = sorted(each for each in below if not each.startswith("."))
        paths = (here / each for each in files if each.endswith(SUFFIXES) or each in NAMES)
        found.files += [path for path in paths if path.is_file()]
    found.files.sort()
    if not (found.files or found.skipped or found.problems):
        what = f"holds no manifests, expected files *{', *'.join(SUFFIXES)}"
        found.problems.append(f"{folder}: {what}")
    return found
