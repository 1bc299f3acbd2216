"""CPU time and latency of a review: in the core alone, and over TLS with keep-alive from another process.

    python benchmarks/admission.py [--quick] [--json FILE]

The server is `pumice webhook` with a certificate from files, a process on one processor; the kernel counts its
CPU time. The client (`load.py`, or wrk if it is installed) is another process on another processor. For
comparison an aiohttp server on the server's processor answers the same requests with a constant: the cost of
HTTP and TLS without Pumice. Every round measures all of them one after the other, so that the difference to
the constant is usable on a noisy machine, too. Linux only.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.asking import RATE, Load
from benchmarks.load import numbered
from benchmarks.questions import BESIDE, SUBJECTS, Subject
from benchmarks.report import MACHINE, write
from benchmarks.servers import Site, constant, site, webhook
from benchmarks.subjects import view
from pumice.cli.lean import settled
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings


@dataclass(frozen=True)
class Row:
    """One measurement; times in microseconds.

    Attributes:
        what: `core`, `server`, or `aiohttp` for the server that answers a constant.
        asked: Name of the review.
        bytes: Length of the review.
        cpu_us: CPU time of a review, median of the rounds.
        quartiles_us: Lower and upper quartile of the rounds.
        least_us: CPU time in the cheapest round, which other processes disturbed least.
        above_constant_us: Median of the difference to the constant of the same round.
        per_second: Reviews per second of wall time with all connections busy, median.
        p50_us: Latency at a fixed rate.
        p99_us: Likewise.
        p999_us: Likewise.
    """

    what: str
    asked: str
    bytes: int
    cpu_us: float
    quartiles_us: tuple[float, float]
    least_us: float
    above_constant_us: float | None = None
    per_second: int | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None


def quartiles(found: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile."""
    low, _, high = statistics.quantiles(found, n=4, method="inclusive")
    return round(low, 1), round(high, 1)


def pure(rounds: int, n: int) -> Iterator[Row]:
    """The core alone: bytes in, bytes out."""
    admission = Admission(AdmissionSettings(), view(), builtin())
    costs: dict[Subject, list[float]] = {subject: [] for subject in SUBJECTS}
    for subject in SUBJECTS:
        answer = json.loads(admission.review(subject.path, subject.body))["response"]
        assert answer["allowed"], answer
    with settled():
        for number in range(rounds + 1):
            for subject, found in costs.items():
                bodies = [subject.body] * n
                if subject.fresh:
                    bodies = [numbered(subject.body, number * n + each) for each in range(n)]
                before = time.process_time()
                for body in bodies:
                    admission.review(subject.path, body)
                if number:  # the first round is for warming up
                    found.append((time.process_time() - before) / n * 1e6)
    for subject, found in costs.items():
        least, median = round(min(found), 1), round(statistics.median(found), 1)
        yield Row("core", subject.name, len(subject.body), median, quartiles(found), least)


@dataclass
class Sample:
    """Measurements of one subject, one of each list a round."""

    cpu: list[float]
    per_second: list[float]


def served(where: Site, rounds: int, n: int, seconds: float) -> tuple[list[Row], float, str]:
    """Measure the servers over TLS: rows, memory of the webhook afterwards, and the name of the client."""
    with ExitStack() as stack:
        ours = stack.enter_context(webhook(where, "cluster.json"))
        theirs = stack.enter_context(constant(where))
        load = Load(where)
        stack.callback(load.stop)
        asked = {BESIDE: theirs, **dict.fromkeys(SUBJECTS, ours)}
        samples = {subject: Sample([], []) for subject in asked}
        for number in range(rounds + 1):
            for subject, server in asked.items():
                before = server.cpu()
                count, took = load.work(subject, server.port, n)
                if number:  # the first round is for warming up
                    samples[subject].cpu.append((server.cpu() - before) / count * 1e6)
                    samples[subject].per_second.append(count / took)
        rows = []
        for subject, server in asked.items():
            late = load.latencies(subject, server.port, seconds)
            rows.append(_row(subject, samples[subject], samples[BESIDE], late))
        return rows, ours.rss_mib(), "wrk" if load.wrk else "load.py"


def _row(subject: Subject, sample: Sample, beside: Sample, late: Sequence[float]) -> Row:
    above = [one - other for one, other in zip(sample.cpu, beside.cpu, strict=True)]
    return Row(
        "aiohttp" if subject is BESIDE else "server",
        subject.name,
        len(subject.body),
        round(statistics.median(sample.cpu), 1),
        quartiles(sample.cpu),
        round(min(sample.cpu), 1),
        None if subject is BESIDE else round(statistics.median(above), 1),
        round(statistics.median(sample.per_second)),
        *(round(1e6 * each) for each in late),
    )


def starts(where: Site, times: int) -> tuple[list[float], float]:
    """Seconds from the start until the server is ready, and its memory at that time."""
    seconds, memory = [], []
    for _ in range(times):
        with webhook(where, "queue.json") as server:
            seconds.append(server.ready_seconds)
            memory.append(server.rss_mib())
    return sorted(seconds), statistics.median(memory)


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    names = ("CPU µs", "q1", "q3", "least", "+const", "/s", "p50 µs", "p99 µs", "p99.9 µs")
    lines = [f"{'':7} {'':31} {'bytes':>6} " + " ".join(f"{name:>8}" for name in names)]
    for each in rows:
        values = (
            each.cpu_us,
            *each.quartiles_us,
            each.least_us,
            each.above_constant_us,
            each.per_second,
            each.p50_us,
            each.p99_us,
            each.p999_us,
        )
        cells = " ".join(f"{'' if value is None else f'{value:.0f}':>8}" for value in values)
        lines.append(f"{each.what:7} {each.asked:31} {each.bytes:6} {cells}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a few seconds")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    rounds, n, seconds, times = (3, 200, 0.5, 3) if options.quick else (15, 400, 3.0, 9)
    rows = list(pure(rounds, n))
    with site() as where:
        started, idle = starts(where, times)
        over_tls, busy, asking = served(where, rounds, n, seconds)
    rows += over_tls
    ready = statistics.median(started)
    print(table(rows))
    print(
        f"\nstart to ready {ready:.2f} s ({started[0]:.2f}-{started[-1]:.2f}); memory {idle:.0f} MiB "
        f"when ready, {busy:.0f} MiB with a thousand queues after all this; latencies at {RATE} reviews/s; "
        f"asked by {asking}; {MACHINE}"
    )
    write(
        options.json,
        [asdict(row) for row in rows],
        start_to_ready_seconds=[round(each, 3) for each in started],
        rss_mib={"ready": round(idle, 1), "after": round(busy, 1)},
        rate=RATE,
        rounds=rounds,
        asked_by=asking,
    )


if __name__ == "__main__":
    main()
