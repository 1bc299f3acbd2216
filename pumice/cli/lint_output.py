"""Output of `pumice lint`: text, JSON, and workflow commands of GitHub Actions.

Positions are looked up here, only for problems.
"""

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pumice.api.fields import FieldError, plain
from pumice.api.messages import counted
from pumice.cli.files.manifests import Manifest, ReadProblem
from pumice.cli.output import paint, write, write_json_list

if TYPE_CHECKING:
    from pumice.cli.files.positions import Positions
    from pumice.webhook.offline import ManifestResult
    from pumice.webhook.rules.differences import Difference

_DROPPED = frozenset({"SCHEMA-NULL", "SCHEMA-UNKNOWN"})
"""Codes of warnings about removed fields, which are not reported again as changes."""


class LintFormat(enum.StrEnum):
    """Forms of what `pumice lint` prints."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """An object with its result.

    Attributes:
        manifest: The object and its position.
        before: The object with the namespace that the API server puts it in.
        result: The result of admission.
        next_runs: When a CronJob runs next; empty for other objects.
    """

    manifest: Manifest
    before: dict[str, Any]
    result: "ManifestResult"
    next_runs: str = ""

    @property
    def has_problems(self) -> bool:
        """Whether there are errors or warnings."""
        return bool(self.result.errors or self.result.warnings)

    def changes(self) -> "list[Difference]":
        """Changes by admission, without those that a warning reports; none for an object that is refused."""
        if not self.result.allowed:
            return []
        from pumice.webhook.rules.differences import differences

        told = {each.path for each in self.result.warnings if each.code in _DROPPED}
        found = differences(self.before, self.result.patched, "")
        return [change for change in found if change.path not in told]


@dataclass(slots=True)
class LintCounts:
    """Numbers of objects that were validated, and of their problems.

    Attributes:
        objects: All objects.
        refused: Objects with errors.
        warnings: Warnings of all objects.
    """

    objects: int = 0
    refused: int = 0
    warnings: int = 0

    def counting(self, findings: Iterable[LintFinding]) -> Iterator[LintFinding]:
        """The same findings, each counted when it is taken."""
        for finding in findings:
            self.objects += 1
            self.refused += not finding.result.allowed
            self.warnings += len(finding.result.warnings)
            yield finding


_Level = Literal["error", "warning"]
_COLOURS: dict[_Level, str] = {"error": "red", "warning": "yellow"}


def _problems(finding: LintFinding, positions: "Positions") -> list[tuple[_Level, FieldError, int]]:
    """Errors, then warnings, each with its line."""
    source, result = finding.manifest.source, finding.result
    found: list[tuple[_Level, FieldError]] = [("error", each) for each in result.errors]
    found += [("warning", each) for each in result.warnings]
    return [(level, each, positions.line(source, each.path)) for level, each in found]


def _by_line(finding: LintFinding, positions: "Positions") -> list[tuple[_Level, FieldError, int]]:
    """Errors, then warnings, each from the first line of the file to the last."""
    found = _problems(finding, positions)
    return sorted(found, key=lambda each: (each[0], each[2]))


def write_text(
    findings: Iterable[LintFinding],
    positions: "Positions",
    *,
    quiet: bool = False,
    with_changes: bool = False,
) -> None:
    """Write one line for each object and for each of its problems."""
    indent = "" if quiet else "  "
    for finding in findings:
        if not quiet:
            _write_head(finding)
        file = plain(finding.manifest.source.file)
        for level, problem, line in _by_line(finding, positions):
            word = paint(level, _COLOURS[level]) + " " * (9 - len(level))
            write(f"{indent}{word}{file}:{line}: {problem}")
        if with_changes and not quiet:
            for change in finding.changes():
                write(f"  {paint('change', 'blue')}   {change}")
        if finding.next_runs and not quiet:
            write(f"  next runs: {finding.next_runs}")


def _write_head(finding: LintFinding) -> None:
    allowed, manifest = finding.result.allowed, finding.manifest
    word = paint("admitted", "green") if allowed else paint("refused", "red")
    write(f"{paint(manifest.identity, 'bold')}: {word}  ({plain(str(manifest.source))})")


def write_counts(counts: LintCounts, *, strict: bool) -> None:
    """Write how many objects are admitted and refused, and for `strict` that warnings make the command fail."""
    admitted = counts.objects - counts.refused
    text = f"{counted(counts.objects, 'object')}: {admitted} admitted, {counts.refused} refused"
    if strict and counts.warnings:
        text += f"; failed for {counted(counts.warnings, 'warning')} (--strict)"
    write(text)


def write_results_json(
    findings: Iterable[LintFinding], positions: "Positions", *, with_changes: bool = False
) -> None:
    """A list with an entry for each object."""
    write_json_list(_as_json(each, positions, with_changes=with_changes) for each in findings)


def _as_json(finding: LintFinding, positions: "Positions", *, with_changes: bool) -> dict[str, Any]:
    manifest, result = finding.manifest, finding.result
    problems = [
        {
            "code": each.code,
            "path": each.path,
            "message": each.message,
            "level": level,
            "file": manifest.source.file,
            "line": line,
        }
        for level, each, line in _problems(finding, positions)
    ]
    found: dict[str, Any] = {"nextRuns": finding.next_runs} if finding.next_runs else {}
    found |= {
        "object": manifest.identity,
        "allowed": result.allowed,
        "errors": problems[: len(result.errors)],
        "warnings": [str(warning) for warning in result.warnings],
        "patched": result.patched,
        "file": manifest.source.file,
        "line": manifest.source.line,
        "problems": problems,
    }
    if with_changes:
        found["changes"] = [_change_as_json(each) for each in finding.changes()]
    return found


def _change_as_json(change: "Difference") -> dict[str, Any]:
    """A change without `before` where the field is added, and without `after` where it is removed."""
    values = {"path": change.path, "before": change.old, "after": change.new}
    return {key: value for key, value in values.items() if value is not None}


def write_github(
    findings: Iterable[LintFinding], unreadable: Iterable[ReadProblem], positions: "Positions"
) -> None:
    """A workflow command for each problem, which GitHub shows at the line of the file.

    Format: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    for finding in findings:
        file = finding.manifest.source.file
        for level, problem, line in _by_line(finding, positions):
            where = f"{problem.path}: " if problem.path else ""
            _write_command(level, file, line, problem.code, f"{where}{problem.message}")
    for unread in unreadable:
        _write_command("error", unread.file, unread.line, "unreadable", unread.message)


_OF_MESSAGES, _OF_PROPERTIES = "%\r\n", "%\r\n:,"
"""Characters with a meaning in a workflow command."""


def _write_command(level: _Level, file: str, line: int, title: str, message: str) -> None:
    properties = {"file": file, "line": str(line or ""), "title": title}
    listed = [f"{key}={_escaped(each, _OF_PROPERTIES)}" for key, each in properties.items() if each]
    write(f"::{level} {','.join(listed)}::{_escaped(message, _OF_MESSAGES)}")


def _escaped(text: str, special: str) -> str:
    """Text with special characters as workflow commands have them: `%0A` for a line end."""
    return re.sub(f"[{special}]", lambda match: f"%{ord(match[0]):02X}", text)
