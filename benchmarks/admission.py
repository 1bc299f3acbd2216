"""What a review costs: in the pure core, and over TLS with keep-alive, asked from outside.

    python benchmarks/admission.py [--quick] [--json FILE]

The server is `pumice webhook` with a certificate from files, a process on a processor of its own; its CPU
time is the kernel's count of it. It is asked from another processor by another process (`load.py`), or by
wrk where that is installed. Beside it, on the same processor and in turns with it, stands an aiohttp server
that answers a constant: what HTTP and TLS cost here before Pumice does anything. Every round measures
all of them one after the other, so that the difference to the constant holds even where the machine is
noisy. Linux only.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.load import numbered
from benchmarks.subjects import MARK, cluster, job, pod, queue, review, view
from pumice.certs.authority import Authority, generate_key
from pumice.cli.lean import settled
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings

Raw = dict[str, Any]

RATE = 1000
"""Reviews a second for the latencies."""

CONNECTIONS = 4
CONSTANT = "/constant"
CONSTANT_ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}'
SCRIPT = """
local file = io.open("{body}", "rb")
local body = file:read("*a")
local number = {first}
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = body
if number > 0 then
  request = function()
    number = number + 1
    local changed = body:gsub("{mark}", string.format("%08d", number))
    return wrk.format(nil, nil, nil, changed)
  end
end
done = function(summary)
  io.write(string.format("counted %d %d\\n", summary.requests, summary.duration))
end
"""
"""What wrk sends: the review, with another number each time where it shall be a new one."""

_ADDRESS = re.compile(r"https://127\.0\.0\.1:(\d+)")

BATCH = ("batch.volcano.sh", "v1alpha1", "jobs", "Job")
DEFAULTED = review(*BATCH, job(defaulted=True))


@dataclass(frozen=True)
class Subject:
    """What is asked.

    Attributes:
        name: In the table.
        path: Endpoint.
        body: The review.
        fresh: Whether every review brings templates that were never seen before. Otherwise it is the
            same review again and again, as of Jobs that are made from one manifest.
    """

    name: str
    path: str
    body: bytes
    fresh: bool = False

    @property
    def file(self) -> str:
        """Name of a file for the review."""
        return self.path.strip("/").replace("/", "-")


SUBJECTS = (
    Subject("/jobs/mutate", "/jobs/mutate", review(*BATCH, job(defaulted=False))),
    Subject("/jobs/validate, known templates", "/jobs/validate", DEFAULTED),
    Subject("/jobs/validate, new templates", "/jobs/validate", DEFAULTED, fresh=True),
    Subject(
        "/queues/validate",
        "/queues/validate",
        review("scheduling.volcano.sh", "v1beta1", "queues", "Queue", queue()),
    ),
    Subject("/pods/mutate, not ours", "/pods/mutate", review("", "v1", "pods", "Pod", pod())),
)
BESIDE = Subject("a constant", CONSTANT, SUBJECTS[0].body)


@dataclass(frozen=True)
class Row:
    """One measurement; times in microseconds.

    Attributes:
        what: `core`, `server`, or `aiohttp` for the server that answers a constant.
        asked: What was asked.
        bytes: Length of the review.
        cpu_us: CPU time of a review, median of the rounds.
        quartiles_us: Between these lies half of the rounds.
        least_us: The cheapest round, which others disturbed least.
        above_constant_us: Median of the difference to the constant of the same round.
        per_second: Reviews a second on the clock with every connection busy, median.
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
    """Between which half of the values lies."""
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


@dataclass(frozen=True)
class Site:
    """Files of a run, and who runs where.

    Attributes:
        folder: Where the files are.
        serving: Processor of the servers; None where there is but one.
        asking: Processor of whoever asks them.
    """

    folder: Path
    serving: int | None
    asking: int | None

    def file(self, name: str) -> Path:
        """A file of the run."""
        return self.folder / name

    @property
    def tls(self) -> list[str]:
        """Flags for the certificate."""
        certificate, key = self.file("tls.crt"), self.file("tls.key")
        return ["--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)]


@contextmanager
def site() -> Iterator[Site]:
    """A folder with a certificate, the cluster's queues, and the reviews."""
    processors = sorted(os.sched_getaffinity(0))
    serving, asking = processors[:2] if len(processors) > 1 else (None, None)
    with tempfile.TemporaryDirectory() as name:
        found = Site(Path(name), serving, asking)
        now = time.time()
        authority = Authority.create(generate_key(), now - 60, now + 3600)
        leaf = authority.issue(generate_key(), ["localhost"], ["127.0.0.1"], now - 60, now + 3600)
        found.file("ca.crt").write_bytes(authority.certificate_pem)
        found.file("tls.crt").write_bytes(leaf.certificate_pem)
        found.file("tls.key").write_bytes(leaf.key_pem)
        queues = {"apiVersion": "v1", "kind": "List", "items": cluster()}
        found.file("cluster.json").write_text(json.dumps(queues))
        found.file("queue.json").write_text(json.dumps(cluster()[0]))
        for subject in (BESIDE, *SUBJECTS):
            found.file(subject.file).write_bytes(subject.body)
        yield found


class Server:
    """A server in a process of its own, on a processor of its own.

    Attributes:
        ready_seconds: From the start of the process until it was ready.
    """

    def __init__(self, where: Site, command: Sequence[str]) -> None:
        """Start it and wait until it is ready."""
        if where.serving is not None:
            command = ["taskset", "-c", str(where.serving), *command]
        started = time.perf_counter()
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = _port(_text(self._process.stderr))
        trusting = ssl.create_default_context(cafile=where.file("ca.crt"))
        address = f"https://127.0.0.1:{self.port}/readyz"
        with urllib.request.urlopen(address, context=trusting) as response:
            response.read()
        self.ready_seconds = time.perf_counter() - started

    def cpu(self) -> float:
        """Seconds that the process has been on a processor."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9

    def rss_mib(self) -> float:
        """Memory that it occupies."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate()


def _text(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _port(log: IO[str]) -> int:
    for line in log:
        if found := _ADDRESS.search(line):
            return int(found[1])
    raise RuntimeError("the server did not start")


@contextmanager
def webhook(where: Site, state: str) -> Iterator[Server]:
    """`pumice webhook` over a state."""
    flags = ["--state", str(where.file(state)), "--port", "0", "--drain-seconds", "0"]
    server = Server(where, [sys.executable, "-m", "pumice", "webhook", *flags, *where.tls])
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def constant(where: Site) -> Iterator[Server]:
    """The server that answers a constant."""
    server = Server(where, [sys.executable, __file__, "--constant", str(where.folder)])
    try:
        yield server
    finally:
        server.stop()


async def serve_constant(folder: Path) -> None:
    """Be that server."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=CONSTANT_ANSWER, content_type="application/json")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    app = web.Application()
    app.router.add_post(CONSTANT, answer)
    app.router.add_get("/readyz", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    print(f"https://127.0.0.1:{runner.addresses[0][1]}", file=sys.stderr, flush=True)
    await asyncio.Event().wait()


class Load:
    """Whoever asks, in a process of its own, on a processor of its own."""

    def __init__(self, where: Site) -> None:
        """Start it."""
        self._where = where
        self.wrk = shutil.which("wrk")
        self._asked = 0
        processors = "" if where.asking is None else str(where.asking)
        authority = str(where.file("ca.crt"))
        self._process = subprocess.Popen(
            [
                sys.executable,
                Path(__file__).with_name("load.py"),
                authority,
                str(CONNECTIONS),
                processors,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _order(self, subject: Subject, port: int, **rest: float) -> Raw:
        body = str(self._where.file(subject.file))
        order = {"port": port, "path": subject.path, "body": body, "fresh": subject.fresh}
        orders = self._process.stdin
        assert orders is not None
        orders.write(json.dumps(order | rest) + "\n")
        orders.flush()
        answer: Raw = json.loads(_text(self._process.stdout).readline())
        return answer

    def work(self, subject: Subject, port: int, count: int) -> tuple[int, float]:
        """Ask on all connections; how many reviews were answered, and in how many seconds."""
        if self.wrk is not None:
            return self._wrk(self.wrk, subject, port)
        answer = self._order(subject, port, count=count)
        return int(answer["count"]), float(answer["seconds"])

    def _wrk(self, wrk: str, subject: Subject, port: int) -> tuple[int, float]:
        self._asked += 1
        first = self._asked * 1_000_000 if subject.fresh else 0
        script = self._where.file("post.lua")
        script.write_text(
            SCRIPT.format(body=self._where.file(subject.file), mark=MARK, first=first)
        )
        address = f"https://127.0.0.1:{port}{subject.path}?timeout=5s"
        command = [wrk, "-t1", f"-c{CONNECTIONS}", "-d1s", "-s", str(script), address]
        if self._where.asking is not None:
            command = ["taskset", "-c", str(self._where.asking), *command]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        counted = text.partition("counted ")[2].split()
        return int(counted[0]), int(counted[1]) / 1e6

    def latencies(self, subject: Subject, port: int, seconds: float) -> list[float]:
        """p50, p99 and p99.9 at the fixed rate, in seconds."""
        found: list[float] = self._order(subject, port, rate=RATE, seconds=seconds)["latencies"]
        return found

    def stop(self) -> None:
        """End it."""
        self._process.communicate()


@dataclass
class Sample:
    """What the rounds found about one subject."""

    cpu: list[float]
    per_second: list[float]


def served(where: Site, rounds: int, n: int, seconds: float) -> tuple[list[Row], float, str]:
    """The servers over TLS: rows, memory of the webhook afterwards, and who asked."""
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
    """Seconds from start to ready, and memory then."""
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
    """Measure, print the table, write JSON where wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a few seconds")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--constant", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.constant is not None:
        import uvloop

        uvloop.run(serve_constant(options.constant))
        return
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
        f"asked by {asking}; {platform.machine()}, Python {platform.python_version()}"
    )
    if options.json is not None:
        figures = {
            "rows": [asdict(each) for each in rows],
            "start_to_ready_seconds": [round(each, 3) for each in started],
            "rss_mib": {"ready": round(idle, 1), "after": round(busy, 1)},
            "rate": RATE,
            "rounds": rounds,
            "asked_by": asking,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "load_average": [round(each, 1) for each in os.getloadavg()],
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
