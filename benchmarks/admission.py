"""What a review costs: in the pure core, and over TLS with keep-alive from another process.

    python benchmarks/admission.py [--quick] [--json FILE]

The server runs in a process of its own; its CPU time is the kernel's count of it, so that the load
generator does not matter. A server that answers a constant stands beside it, as the measure of what
aiohttp and TLS cost. Latency is measured at a fixed rate, from the moment at which each review was due.
Linux only.
"""

import argparse
import asyncio
import json
import os
import platform
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.subjects import job, pod, queue, review, view
from pumice.certs.authority import Authority, generate_key
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings

Raw = dict[str, Any]

RATE = 1000
"""Reviews a second for the latencies."""

CONNECTIONS = 4
CONSTANT = "/constant"


@dataclass(frozen=True)
class Row:
    """One measurement; times in microseconds."""

    what: str
    path: str
    bytes: int
    cpu_us: float
    spread_us: float
    per_cpu_second: int
    p50_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None


BATCH = ("batch.volcano.sh", "v1alpha1", "jobs", "Job")
REVIEWS: dict[str, bytes] = {
    "/jobs/mutate": review(*BATCH, job(defaulted=False)),
    "/jobs/validate": review(*BATCH, job(defaulted=True)),
    "/queues/validate": review("scheduling.volcano.sh", "v1beta1", "queues", "Queue", queue()),
    "/pods/mutate": review("", "v1", "pods", "Pod", pod()),
}


def repeated(
    cpu: Callable[[], float], work: Callable[[int], None], rounds: int, n: int
) -> list[float]:
    """CPU microseconds of one piece of work, once a round; the first round is for warming up."""
    found = []
    for number in range(rounds + 1):
        before = cpu()
        work(n)
        if number:
            found.append((cpu() - before) / n * 1e6)
    return found


def row(what: str, path: str, size: int, costs: Sequence[float], latency: Sequence[float]) -> Row:
    """A row of the table: the median of the rounds and their spread."""
    cost = statistics.median(costs)
    percentiles: list[float | None] = [round(1e6 * each, 1) for each in latency]
    percentiles += [None] * (3 - len(percentiles))
    return Row(
        what,
        path,
        size,
        round(cost, 1),
        round(max(costs) - min(costs), 1),
        round(1e6 / cost),
        *percentiles,
    )


def pure(rounds: int, n: int) -> Iterator[Row]:
    """The core alone: bytes in, bytes out."""
    admission = Admission(AdmissionSettings(), view(), builtin())
    for path, body in REVIEWS.items():
        answer = json.loads(admission.review(path, body))["response"]
        assert answer["allowed"], answer

        def work(times: int, path: str = path, body: bytes = body) -> None:
            for _ in range(times):
                admission.review(path, body)

        yield row("core", path, len(body), repeated(time.process_time, work, rounds, n), ())


class Server:
    """The server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        now = time.time()
        authority = Authority.create(generate_key(), now - 60, now + 3600)
        leaf = authority.issue(generate_key(), ["localhost"], ["127.0.0.1"], now - 60, now + 3600)
        (folder / "tls.crt").write_bytes(leaf.certificate_pem)
        (folder / "tls.key").write_bytes(leaf.key_pem)
        self.trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.ports = [int(port) for port in self._process.stdout.readline().split()]
        self.start_seconds = time.perf_counter() - started

    def cpu(self) -> float:
        """Seconds that the process has been on a CPU."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9

    def rss_mib(self) -> float:
        """Memory that it occupies."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Connections:
    """Keep-alive connections that are used in turn."""

    def __init__(self, port: int, trusting: ssl.SSLContext, path: str, body: bytes) -> None:
        head = (
            f"POST {path}?timeout=5s HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Accept-Encoding: gzip\r\n\r\n"
        )
        self._request = head.encode() + body
        self._sockets = [_connected(port, trusting) for _ in range(CONNECTIONS)]

    def ask(self, number: int) -> None:
        """Send a review and read its answer."""
        connection = self._sockets[number % CONNECTIONS]
        connection.sendall(self._request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        head, _, rest = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(rest) < length:
            rest += connection.recv(65536)

    def work(self, times: int) -> None:
        """Send reviews one after the other."""
        for number in range(times):
            self.ask(number)

    def latencies(self, seconds: float) -> list[float]:
        """p50, p99 and p99.9 at the fixed rate, in seconds."""
        found = []
        start = time.perf_counter()
        for number in range(int(seconds * RATE)):
            due = start + number / RATE
            while (now := time.perf_counter()) < due:
                time.sleep(max(0.0, due - now - 0.0002))
            self.ask(number)
            found.append(time.perf_counter() - due)
        found.sort()
        return [found[int(len(found) * share)] for share in (0.5, 0.99, 0.999)]

    def close(self) -> None:
        """Close them."""
        for each in self._sockets:
            each.close()


def _connected(port: int, trusting: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return trusting.wrap_socket(plain, server_hostname="127.0.0.1")


def served(server: Server, rounds: int, n: int, seconds: float) -> Iterator[Row]:
    """The server over TLS, and beside it one that answers a constant."""
    main, constant = server.ports
    asked = [("aiohttp, a constant", CONSTANT, constant, REVIEWS["/jobs/mutate"])]
    asked += [("server", path, main, body) for path, body in REVIEWS.items()]
    for what, path, port, body in asked:
        connections = Connections(port, server.trusting, path, body)
        try:
            costs = repeated(server.cpu, connections.work, rounds, n)
            yield row(what, path, len(body), costs, connections.latencies(seconds))
        finally:
            connections.close()


async def serve(folder: Path) -> None:
    """Be the server; prints its ports."""
    from aiohttp import web

    from pumice.cluster.lifecycle import run_until_stopped
    from pumice.webhook.server import FileCertificates, OfflineWorker, ServerSettings

    certificates = FileCertificates(folder / "tls.crt", folder / "tls.key")
    settings = ServerSettings(drain_seconds=0.0)
    worker = OfflineWorker(view(), builtin(), None, settings, certificates)
    answer = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}'

    async def constant(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=answer, content_type="application/json")

    app = web.Application()
    app.router.add_post(CONSTANT, constant)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificates.context).start()

    async def announce() -> None:
        await worker.listener.started.wait()
        print(worker.listener.port, runner.addresses[0][1], flush=True)

    announcing = asyncio.create_task(announce())
    try:
        await run_until_stopped(worker.tasks())
    finally:
        announcing.cancel()
        await runner.cleanup()


@contextmanager
def running() -> Iterator[Server]:
    """A server for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            yield server
        finally:
            server.stop()


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    names = ("CPU µs", "±", "/CPU s", "p50 µs", "p99 µs", "p99.9 µs")
    lines = [f"{'':20} {'path':18} {'bytes':>6} " + " ".join(f"{name:>8}" for name in names)]
    for each in rows:
        latency = (each.p50_us, each.p99_us, each.p999_us)
        p50, p99, p999 = ("" if value is None else f"{value:.0f}" for value in latency)
        lines.append(
            f"{each.what:20} {each.path:18} {each.bytes:6} {each.cpu_us:8.1f} {each.spread_us:8.1f} "
            f"{each.per_cpu_second:8} {p50:>8} {p99:>8} {p999:>8}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write JSON where wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a few seconds")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        import uvloop

        uvloop.run(serve(options.serve))
        return
    rounds, n, seconds = (3, 300, 0.5) if options.quick else (7, 1000, 2.0)
    rows = list(pure(rounds, n))
    with running() as server:
        start = server.start_seconds
        idle = server.rss_mib()
        rows += served(server, rounds, n, seconds)
        busy = server.rss_mib()
    print(table(rows))
    print(
        f"\nstart to listening {start:.2f} s; memory {idle:.0f} MiB idle, {busy:.0f} MiB after; "
        f"latencies at {RATE} reviews/s; {platform.machine()}, Python {platform.python_version()}"
    )
    if options.json is not None:
        figures = {
            "rows": [asdict(each) for each in rows],
            "start_seconds": round(start, 3),
            "rss_mib": {"idle": round(idle, 1), "after": round(busy, 1)},
            "rate": RATE,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
        }
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
