"""Runs of a trace, each from its beginning to its end, with progress on stderr, until Ctrl-C stops it."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pumice.api.fields import plain
from pumice.cli import exits
from pumice.cli.files.checking import registry
from pumice.cli.files.configuration import read_config
from pumice.cli.lean import settled
from pumice.cli.output import Format, note
from pumice.cli.simulation.answers import Answers
from pumice.cli.simulation.trace_input import TraceInput
from pumice.cli.simulation.trace_options import TraceOptions
from pumice.cli.simulation.two_processes import in_two_processes
from pumice.scheduler import Config
from pumice.scheduler.results import CycleFailedError
from pumice.scheduler.simulate import UnreadableObjectError
from pumice.traces.controlled_job import without_uids
from pumice.traces.engine import TraceRun
from pumice.traces.node_spec import WrittenNodes
from pumice.traces.records import Past, Progress

_TERMINAL_SECONDS = 0.5
_FILE_SECONDS = 10.0
_FIRST_ESTIMATE = 0.01
"""Share of the jobs that must be over before an estimate is shown."""
_DAY = 86_400.0


def simulate_trace(
    options: TraceOptions, state: Sequence[str], config: Path | None, output: Format
) -> NoReturn:
    """Run a trace, and print what was measured.

    Raises:
        UserError: Input cannot be read.
    """
    given = TraceInput(options, state)
    base = read_config(config)
    is_compared = options.compare is not None or options.compare_nodes is not None
    other = base if options.compare is None else read_config(options.compare)
    nodes = (
        None
        if options.compare_nodes is None
        else given.nodes(options.compare_nodes, "--compare-nodes")
    )
    answers = Answers.of(
        given.title if given.title != "-" else "stdin",
        _names(options, config) if is_compared else ["base"],
        output,
        options.jobs,
        options.report,
        options.fail_if or [],
        [*(options.trace or []), *state, *filter(None, (config, options.compare))],
    )
    if is_compared:
        pasts: Sequence[Past] = in_two_processes(
            lambda: run_trace(given, base),
            lambda is_alone: run_trace(given, other, nodes, title="other: ", is_shown=is_alone),
        )
    else:
        pasts = [run_trace(given, base)]
    has_failed = answers.give(pasts)
    for remark in dict.fromkeys(remark for past in pasts for remark in past.remarks):
        note(plain(remark))
    if stopped := [past for past in pasts if not (past.is_whole or past.is_endless)]:
        times = " and ".join(f"{past.end:,.0f} s" for past in stopped)
        note(f"stopped after {times} of the trace")
        exits.finish(exits.INTERRUPTED)
    has_failed |= any(past.is_endless for past in pasts)
    exits.finish(exits.REFUSED if has_failed else exits.FINE)


def _names(options: TraceOptions, config: Path | None) -> list[str]:
    """Names of two runs: what differs between them."""
    base = [str(config or "default configuration")] if options.compare else []
    other = [str(options.compare)] if options.compare else []
    if options.compare_nodes:
        base.append(options.nodes or "given nodes")
        other.append(options.compare_nodes)
    return [", ".join(base), ", ".join(other)]


def run_trace(
    given: TraceInput,
    config: Config,
    nodes: WrittenNodes | None = None,
    *,
    title: str = "",
    is_shown: Callable[[], bool] = lambda: True,
) -> Past:
    """Run the trace once.

    After SIGINT the run stops at the next moment, and the result is what is known until then. A second one ends the program.

    Args:
        given: The trace and the cluster.
        config: Configuration of the scheduler.
        nodes: Nodes in place of those of the cluster.
        title: Stands before what is shown of its progress.
        is_shown: Whether progress is shown on stderr at this moment.

    Raises:
        UserError: An object of the cluster cannot be read, or a plugin of the scheduler failed.
    """
    objects, ample = given.objects, given.ample
    if nodes is not None:
        objects, ample = given.objects_on(nodes.nodes), nodes.ample
    try:
        run = TraceRun(
            given.trace,
            objects,
            config,
            admit=given.admit,
            registry=registry(),
            measure_time=time.process_time,
            admitted_pod=given.admitted_pod,
            not_measured=ample,
        )
    except UnreadableObjectError as error:
        raise exits.UserError(f"an object of the cluster cannot be read: {error}") from None
    progress = _ProgressLine(len(given.trace.jobs), title, is_shown)
    try:
        with settled(), _stoppable() as stopped:
            for step in run.steps():
                progress.show(step)
                if stopped:
                    break
    except CycleFailedError as error:
        raise exits.UserError(plain(without_uids(f"{title}{error}"))) from None
    finally:
        progress.clear()
    return run.past()


@contextmanager
def _stoppable() -> Iterator[list[int]]:
    """A list that is empty until SIGINT. A handler that was installed before is called, too."""
    stopped: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)
        if callable(before) and before is not signal.default_int_handler:
            try:
                before(number, frame)
            except KeyboardInterrupt:
                return

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


class _ProgressLine:
    """One line on stderr: rewritten on a terminal, and elsewhere a new one each ten seconds."""

    def __init__(self, jobs: int, title: str, is_shown: Callable[[], bool]) -> None:
        self._jobs = jobs
        self._title = title
        self._is_shown = is_shown
        self._is_terminal = sys.stderr.isatty()
        self._pause = _TERMINAL_SECONDS if self._is_terminal else _FILE_SECONDS
        self._begin = time.monotonic()
        self._next = self._begin + self._pause
        self._width = 0

    def show(self, step: Progress) -> None:
        """Show where the run is, if it is time to."""
        now = time.monotonic()
        if now < self._next or not self._is_shown():
            return
        self._next = now + self._pause
        text = self._title + progress_text(step, self._jobs, now - self._begin)
        if self._is_terminal:
            sys.stderr.write(f"\r{text.ljust(self._width)}")
            self._width = len(text)
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line from a terminal."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()


def progress_text(step: Progress, jobs: int, seconds: float) -> str:
    """Where a run is, and about how long it still takes: as long for each further job as for those that are over."""
    is_known = step.ended > jobs * _FIRST_ESTIMATE
    left = seconds * (jobs - step.ended) / step.ended if is_known else 0.0
    about = f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} min"
    return (
        f"day {step.now / _DAY:.1f}: {step.ended:,} of {jobs:,} jobs are over, {step.running:,} run, {step.waiting:,} wait"
        f"{f'; about {about} left' if is_known else ''}"
    )
