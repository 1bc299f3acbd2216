"""What `pumice simulate --trace` answers with: JSON or tables, the CSV of jobs, the report, and thresholds.

Files are opened before a run that may take minutes, so that one that cannot be written is reported at once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pumice.cli.exits import UserError
from pumice.cli.output import Format, note, write, write_json
from pumice.cli.simulation.measures_text import comparison_text, measures_text
from pumice.traces.comparison import differences
from pumice.traces.jobs_csv import write_jobs
from pumice.traces.measures import measure
from pumice.traces.records import Past, Samples
from pumice.traces.report import MeasuredRun, report
from pumice.traces.thresholds import Threshold, ThresholdError


@dataclass(slots=True)
class Answers:
    """How runs are answered.

    Attributes:
        title: Heading of the report, such as the file of the trace.
        names: Name of each run: one, or the base and the other.
        output: Form of what goes to stdout.
        jobs: File for the CSV of jobs, or None. That of the other run is beside it, with `.other` in its name.
        report: File for the report, or None.
        thresholds: When the runs fail.
    """

    title: str
    names: Sequence[str]
    output: Format
    jobs: Path | None
    report: Path | None
    thresholds: list[Threshold]

    @classmethod
    def of(
        cls,
        title: str,
        names: Sequence[str],
        output: Format,
        jobs: Path | None,
        report: Path | None,
        fail_if: Iterable[str],
        inputs: Iterable[str | Path] = (),
    ) -> "Answers":
        """Check what can be checked before a run.

        Args:
            title: As of `Answers`, like those that follow.
            names: Name of each run.
            output: Form of what goes to stdout.
            jobs: File for the CSV of jobs.
            report: File for the report.
            fail_if: The thresholds.
            inputs: Files that are read, and so must not be written.

        Raises:
            UserError: A threshold is invalid, or a file cannot be written.
        """
        found = cls(title, names, output, jobs, report, [])
        nothing = Past([], Samples(), [], {}, [], 0.0, 0, 0.0, True, 0)
        summary = msgspec.to_builtins(measure(nothing).summary)
        try:
            for text in fail_if:
                threshold = Threshold(text)
                threshold.check(summary, is_compared=len(names) > 1)
                found.thresholds.append(threshold)
        except ThresholdError as error:
            raise UserError(f"--fail-if: {error}") from None
        taken = {Path(each).resolve() for each in inputs}
        for path in (*found._job_files(), *([report] if report else [])):
            if path == Path("-"):
                raise UserError(
                    "--jobs and --report write files, and stdout has the numbers: name a file in place of -"
                )
            if path.resolve() in taken:
                raise UserError(
                    f"{path}: --jobs and --report would write over this file, which is read or written already: name another one"
                )
            taken.add(path.resolve())
            _writing(path, lambda path: path.open("a").close())
        return found

    def give(self, pasts: Sequence[Past]) -> bool:
        """Write everything; true if a threshold says that the runs fail.

        Raises:
            UserError: A file cannot be written, or the summary has no number that a threshold asks for.
        """
        runs = [
            MeasuredRun(name, past, measure(past))
            for name, past in zip(self.names, pasts, strict=True)
        ]
        measured = [run.measures for run in runs]
        found = differences(*measured) if len(measured) > 1 else None
        for path, run in zip(self._job_files(), runs, strict=False):
            _writing(path, partial(_write_jobs, run))
        if self.report is not None:
            page = report(self.title, runs, found)
            _writing(self.report, lambda path: path.write_text(page, encoding="utf-8"))
        if self.output is Format.JSON:
            documents = [{"jobs": each.jobs, "summary": each.summary} for each in measured]
            keys = ("base", "other")
            write_json(
                documents[0]
                if found is None
                else {**dict(zip(keys, documents, strict=True)), "differences": found}
            )
        elif found is None:
            write(measures_text(measured[0]))
        else:
            write(comparison_text(measured[0], measured[1], found))
        return self._fails([msgspec.to_builtins(each.summary) for each in measured])

    def _fails(self, summaries: list[dict[str, Any]]) -> bool:
        try:
            failures = [
                failure
                for each in self.thresholds
                if (
                    failure := each.failure(
                        summaries[-1], summaries[0] if len(summaries) > 1 else None
                    )
                )
            ]
        except ThresholdError as error:
            raise UserError(f"--fail-if: {error}") from None
        for failure in failures:
            note(f"--fail-if {failure}")
        return bool(failures)

    def _job_files(self) -> list[Path]:
        if self.jobs is None:
            return []
        other = self.jobs.with_name(f"{self.jobs.stem}.other{self.jobs.suffix}")
        return [self.jobs, other][: len(self.names)]


def _writing(path: Path, what: Callable[[Path], Any]) -> None:
    try:
        what(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _write_jobs(run: MeasuredRun, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        write_jobs(file, run.past, run.measures.jobs)
