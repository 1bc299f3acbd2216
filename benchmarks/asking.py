"""The client of the servers that are measured: `load.py` in its own process, or wrk if it is installed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.questions import Subject
from benchmarks.servers import Site, text_of
from benchmarks.subjects import MARK

Raw = dict[str, Any]

RATE = 1000
"""Reviews per second while latencies are measured."""

CONNECTIONS = 4
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
"""wrk sends the review; if `first` is not 0, each review has another number in the place of the mark."""


class Load:
    """A load generator in its own process, on its own processor."""

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
        orders = text_of(self._process.stdin)
        orders.write(json.dumps(order | rest) + "\n")
        orders.flush()
        answer: Raw = json.loads(text_of(self._process.stdout).readline())
        return answer

    def work(self, subject: Subject, port: int, count: int) -> tuple[int, float]:
        """Send reviews on all connections; returns the number of answers and the seconds."""
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
        """Latencies p50, p99 and p99.9 at the fixed rate, in seconds."""
        found: list[float] = self._order(subject, port, rate=RATE, seconds=seconds)["latencies"]
        return found

    def stop(self) -> None:
        """End it."""
        self._process.communicate()
