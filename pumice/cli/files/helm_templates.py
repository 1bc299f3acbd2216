"""Templates of Helm charts, which must be rendered before they are manifests."""

import itertools
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

__all__ = ["first_action", "is_template_folder", "render_first"]

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
