"""What `pumice simulate --trace` answers with: JSON or tables, the CSV of jobs, the report, and thresholds.

Files are opened before a run that may take minutes, so that one that cannot be written is reported at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pumice.api.messages import shortened
from pumice.cli.exits import UserError
from pumice.cli.output import Format, note, table, write, write_json
from pumice.traces.comparison import ChangedJob, Differences, differences
from pumice.traces.jobs_csv import write_jobs
from pumice.traces.measures import Measures, measure
from pumice.traces.records import Past, Samples
from pumice.traces.report import MeasuredRun, report
from pumice.traces.report.figures import cell_of, rows_of_summary, shown
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
        summary = measure(nothing).summary
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
            data = page.encode(errors="backslashreplace")  # names of files may be no UTF-8
            _writing(self.report, lambda path: path.write_bytes(data))
        if self.output is Format.JSON:
            documents = [{"jobs": each.jobs, "summary": each.summary} for each in measured]
            if found is None:
                write_json(documents[0])
            else:
                compared = dict(zip(("base", "other"), documents, strict=True))
                write_json({**compared, "differences": found})
        elif found is None:
            write(_measures_text(measured[0]))
        else:
            write(_comparison_text(measured[0], measured[1], found))
        return self._fails([each.summary for each in measured])

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


_DISTRIBUTIONS = ("wait", "turnaround", "slowdown", "bounded_slowdown")
_NUMBERS = ("count", "mean", "p50", "p95", "p99", "max")
_OF_RESOURCES = ("utilization", "fragmentation", "goodput", "lost_hours")
_QUEUES = 20
_NOT_STARTED, _REASON = 5, 300
"""Jobs of which is said why they did not start, and bytes of what is said."""


def _measures_text(measures: Measures) -> str:
    """The numbers of one run."""
    summary = measures.summary
    counts = [f"{count:,} {name}" for name, count in summary["jobs"].items() if count]
    parts = [_jobs(measures) + (f": {', '.join(counts)}" if counts else "")]
    parts.append(
        table(
            ("time", *(name if name != "count" else "jobs" for name in _NUMBERS)),
            [(name, *_texts(summary, name, _NUMBERS)) for name in _DISTRIBUTIONS],
        )
    )
    if resources := [*summary["utilization"]]:
        header = ("resource", *(name.replace("_", " ") for name in _OF_RESOURCES))
        rows = [
            (each, *(cell_of((name, each), summary[name][each]).text for name in _OF_RESOURCES))
            for each in resources
        ]
        parts.append(table(header, rows))
    if queues := [*_queues(summary)]:
        parts.append(table(("queue", "jobs", "wait mean", "p95", "below deserved"), queues))
    others = ("makespan", "jain", "evictions", "broken_gangs", "skipped")
    parts.append(
        table(
            ("measure", "value"), [(name, cell_of((name,), summary[name]).text) for name in others]
        )
    )
    return "\n\n".join([*parts, *_not_started(measures, ("Refused", "Waiting"))])


def _comparison_text(base: Measures, other: Measures, found: Differences) -> str:
    """The numbers of two runs that differ, and the jobs that gained and lost most."""
    summaries = [base.summary, other.summary]
    rows = [
        (row.path, *(cell.text for cell in row.cells))
        for row in rows_of_summary(summaries, found.summary)
        if not row.path.startswith("cost.") and len({cell.value for cell in row.cells[:2]}) > 1
    ]
    parts = [f"{_jobs(base)} in two runs"]
    header = ("measure", "base", "other", "difference")
    parts.append(table(header, rows) if rows else "all numbers are equal")
    for title, jobs in (("gained", found.gained), ("lost", found.lost)):
        if jobs:
            parts.append(table((title, "queue", *header[1:]), map(_changed, jobs)))
    return "\n\n".join([*parts, *_not_started(base, ("Refused",))])


def _not_started(measures: Measures, outcomes: Sequence[str]) -> Iterator[str]:
    """A table of why jobs with these outcomes did not start."""
    jobs = [job for job in measures.jobs if job.outcome in outcomes and job.start is None]
    rows = [
        (f"{job.namespace}/{job.name}", job.queue, shortened(job.reason or "–", _REASON))
        for job in jobs[:_NOT_STARTED]
    ]
    if len(jobs) > len(rows):
        rows.append((f"{len(jobs) - len(rows):,} more", "", ""))
    if rows:
        yield table(("not started", "queue", "why"), rows)


def _jobs(measures: Measures) -> str:
    count = len(measures.jobs)
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


def _texts(summary: Mapping[str, Any], name: str, numbers: Sequence[str]) -> list[str]:
    return [cell_of((name, number), summary[name][number]).text for number in numbers]


def _queues(summary: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    waits: Mapping[str, Any] = summary["wait_by"]["queue"]
    for queue in [*waits][:_QUEUES]:
        texts = _texts(waits, queue, ("count", "mean", "p95"))
        below = shown(summary["below_deserved"].get(queue))
        yield queue, texts[0], *(shown(waits[queue][each]) for each in ("mean", "p95")), below
    if len(waits) > _QUEUES:
        yield f"{len(waits) - _QUEUES} more", "", "", "", ""


def _changed(job: ChangedJob) -> tuple[str, ...]:
    name = f"{job.namespace}/{job.name}"
    difference = shown(job.difference, sign=True)
    return name, job.queue, shown(job.base), shown(job.other), difference
