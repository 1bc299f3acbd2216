"""The page: charts and tables of one run, or of two beside each other on the same axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from pumice.traces.comparison import Differences
from pumice.traces.measures import Measures, measured_period
from pumice.traces.records import Past
from pumice.traces.report.charts import LEFT, RIGHT, WIDTH, Chart
from pumice.traces.report.curves import queue_ranks, shares, utilization, waiting, waits
from pumice.traces.report.figures import groups, never_started, rows_of_summary, shown
from pumice.traces.report.gantt import by_node, by_queue


@dataclass
class MeasuredRun:
    """A run with its numbers.

    Attributes:
        name: What distinguishes it, such as the file of its configuration.
        past: The run.
        measures: Its numbers.
    """

    name: str
    past: Past
    measures: Measures


def report(title: str, runs: Sequence[MeasuredRun], differences: Differences | None = None) -> str:
    """The page as HTML.

    Args:
        title: Its heading, such as the file of the trace.
        runs: One run, or the base and the other.
        differences: What differs between them.
    """
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["seconds"] = shown
    summaries = [run.measures.summary for run in runs]
    return templates.get_template("page.html").render(
        title=title,
        runs=runs,
        charts=_charts(runs),
        rows=rows_of_summary(summaries, None if differences is None else differences.summary),
        groups=[*groups(summaries)],
        never_started=[never_started(run.measures.jobs) for run in runs],
        differences=differences,
        frame={"left": LEFT, "right": WIDTH - RIGHT, "width": WIDTH},
    )


def _charts(runs: Sequence[MeasuredRun]) -> list[list[Chart]]:
    """Charts of each run, one kind after the other; all of a kind have the same axes."""
    pasts = [run.past for run in runs]
    periods = [measured_period(past) for past in pasts]
    span = (min(begin for begin, _ in periods), max(end for _, end in periods))
    ranks = queue_ranks(pasts)
    most = max(
        (
            max(map(sum, zip(*past.samples.waiting.values(), strict=True)), default=0)
            for past in pasts
        ),
        default=0,
    )
    longest = max(
        (job.wait for run in runs for job in run.measures.jobs if job.wait is not None),
        default=0.0,
    )
    return [
        [utilization(past, span) for past in pasts],
        [waiting(past, span, float(most)) for past in pasts],
        [waits(run.measures, longest) for run in runs],
        [shares(past, span, ranks) for past in pasts],
        [by_queue(past, span, ranks) for past in pasts],
        [by_node(past, span, ranks) for past in pasts],
    ]
