"""The servers that are measured, each a process on one processor, and the files that they need."""

import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.questions import BESIDE, SUBJECTS
from benchmarks.subjects import cluster
from pumice.certs.authority import Authority, generate_key

_CONSTANT = Path(__file__).with_name("constant.py")
_ADDRESS = re.compile(r"https://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class Site:
    """Files of a run, and the processors of servers and client.

    Attributes:
        folder: Where the files are.
        serving: Processor of the servers; None if the machine has only one.
        asking: Processor of the client.
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
    """A server in its own process, on its own processor.

    Attributes:
        ready_seconds: From the start of the process until it was ready.
    """

    def __init__(self, where: Site, command: Sequence[str]) -> None:
        """Start it and wait until it is ready."""
        if where.serving is not None:
            command = ["taskset", "-c", str(where.serving), *command]
        started = time.perf_counter()
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = _port(text_of(self._process.stderr))
        trusting = ssl.create_default_context(cafile=where.file("ca.crt"))
        address = f"https://127.0.0.1:{self.port}/readyz"
        with urllib.request.urlopen(address, context=trusting) as response:
            response.read()
        self.ready_seconds = time.perf_counter() - started

    def cpu(self) -> float:
        """CPU time of the process in seconds."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9

    def rss_mib(self) -> float:
        """Resident memory of the process."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate()


def text_of(stream: IO[str] | None) -> IO[str]:
    """The stream, which exists because the process was started with pipes."""
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
    server = Server(where, [sys.executable, str(_CONSTANT), str(where.folder)])
    try:
        yield server
    finally:
        server.stop()
