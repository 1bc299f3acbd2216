"""The page of `pumice web` on a large cluster: its first view, updates, and memory.

    python -m benchmarks.web [--updates N] [--json FILE]

5,000 nodes with a pod each and 1,000 gangs of 8 pods that wait, in an API server in memory, in a process of its own. Then a
pod ends and another one starts, again and again, as often as the page says that there is something new. Processor time is that
of the process of `pumice web`; its memory is the most that it has had.
"""

import asyncio
import http.cookiejar
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import MACHINE, options_of, spread, write
from pumice.api.crds import all_crds
from pumice.api.kinds import POD
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster

NODES, GANGS, PODS, QUEUES = 5000, 1000, 8, 10
VIEWS = ("/waiting", "/queues", "/nodes", "/jobs")
GANG = "/gangs/team-7/wait-500"
MIB = 1024

Raw = dict[str, Any]


def pod(name: str, group: str, cpu: int, node: str = "") -> Raw:
    """A pod of a gang: one that waits, or runs on a node."""
    spec: Raw = {
        "schedulerName": "volcano",
        "containers": [
            {
                "name": "main",
                "image": "i",
                "resources": {"requests": {"cpu": str(cpu), "memory": "4Gi"}},
            }
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{cpu % 10}",
            "annotations": {"scheduling.k8s.io/group-name": group},
        },
        "spec": spec | ({"nodeName": node} if node else {}),
        "status": {"phase": "Running" if node else "Pending"},
    }


def group(name: str, namespace: str, queue: str, pods: int, phase: str, cpu: int) -> Raw:
    """A gang."""
    needs = {"cpu": str(cpu * pods), "memory": f"{4 * pods}Gi"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": pods, "queue": queue, "minResources": needs},
        "status": {"phase": phase},
    }


def objects() -> Iterator[Raw]:
    """The cluster."""
    for number in range(10):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}
    for number in range(QUEUES):
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": f"queue-{number}"},
            "spec": {"weight": 1},
            "status": {"state": "Open"},
        }
    for number in range(NODES // PODS):
        yield group(f"run-{number}", "team-4", f"queue-{number % QUEUES}", PODS, "Running", 14)
    for number in range(NODES):
        yield pod(f"run-{number}", f"run-{number // PODS}", 14, f"node{number}")
    for number in range(GANGS):
        cpu, name = 4 + number % 7, f"wait-{number}"
        yield group(name, f"team-{cpu % 10}", f"queue-{number % QUEUES}", PODS, "Inqueue", cpu)
        for each in range(PODS):
            yield pod(f"{name}-{each}", name, cpu)


async def serve() -> None:
    """Serve the cluster until stdin is closed."""
    async with EmbeddedCluster(all_crds()) as cluster:
        for number in range(NODES):
            labels = {"topology.kubernetes.io/zone": f"zone-{number % 5}"}
            cluster.add_node(f"node{number}", "16", "64Gi", labels=labels)
        for each in objects():
            cluster.store.restore(
                each | {"metadata": each["metadata"] | {"uid": each["metadata"]["name"]}}
            )
        print(cluster.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def started(*command: str) -> Iterator[tuple[int, str]]:
    """Run a command; its process id and its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def cpu_of(pid: int) -> float:
    """Processor time of a process, in seconds."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in tasks) / 1e9


def peak_of(pid: int) -> float:
    """The most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [peak] = [each for each in lines if each.startswith("VmHWM")]
    return int(peak.split()[1]) / MIB


class Reader:
    """A browser's part: a cookie, views, and the stream of events."""

    def __init__(self, address: str) -> None:
        """Exchange the secret for the cookie."""
        self._base = address.partition("/?")[0]
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar)
        self._opener.open(address, timeout=120).read()
        self.events = self._opener.open(f"{self._base}/events", timeout=120)

    def get(self, path: str) -> int:
        """Read a view; the bytes of it."""
        return len(self._opener.open(f"{self._base}{path}", timeout=120).read())

    def wait(self) -> None:
        """Wait until there is something new."""
        while not self.events.readline().startswith(b"data"):
            pass


async def change(url: str, number: int) -> None:
    """A pod ends and another one starts in its place."""
    async with Client.connect(server=url) as client:
        place = number * 7 % NODES
        await client.delete(POD, f"run-{place}", "team-4")
        new = pod(f"new-{number}", f"run-{place // PODS}", 14, f"node{place}")
        await client.create(POD, new, "team-4")


def measured(updates: int) -> list[Raw]:
    """All rows."""
    with ExitStack() as stack:
        _, url = stack.enter_context(started("benchmarks.web", "serve"))
        page = ("pumice", "web", "--no-browser", "--master", url)
        pid, address = stack.enter_context(started(*page))
        reader = Reader(address)
        while cpu_of(pid) == 0 or reader.get("/waiting?format=json") == 0:
            time.sleep(0.1)
        rows: list[Raw] = []
        for view in VIEWS:
            begun, cpu = time.monotonic(), cpu_of(pid)
            size = reader.get(view)
            took, used = time.monotonic() - begun, cpu_of(pid) - cpu
            rows.append({"view": view, "first_seconds": took, "first_cpu": used, "bytes": size})
        for row in rows:
            found = []
            for number in range(updates):
                before = cpu_of(pid)
                asyncio.run(change(url, number + 1000 * VIEWS.index(row["view"])))
                reader.wait()
                reader.get(row["view"])
                time.sleep(0.2)
                found.append(cpu_of(pid) - before)
            row["update_cpu"] = sorted(found)
        for key in ("gang_first_cpu", "gang_cpu"):
            cpu = cpu_of(pid)
            reader.get(f"{GANG}?format=json")
            rows[0][key] = cpu_of(pid) - cpu
            asyncio.run(change(url, 1000 * len(VIEWS) + len(rows[0])))
            reader.wait()
        rows[0]["peak_mib"] = peak_of(pid)
    return rows


def main() -> None:
    """Measure, print one table, write JSON if asked to."""
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
        return
    options = options_of("Benchmark the page of `pumice web`.", updates=9)
    rows = measured(options.updates)
    print(f"{'view':<10} {'KiB':>7} {'first CPU s':>12} {'update CPU ms':>24}")
    for row in rows:
        update = spread([1000 * each for each in row["update_cpu"]], 0)
        print(
            f"{row['view']:<10} {row['bytes'] / 1024:>7.0f} {row['first_cpu']:>12.2f} {update:>24}"
        )
    first, later = rows[0]["gang_first_cpu"], rows[0]["gang_cpu"]
    print(f"what would be enough for a gang: {first:.2f} s of CPU at first, then {later:.2f}")
    print(f"{rows[0]['peak_mib']:.0f} MiB at most; {os.cpu_count()} processors; {MACHINE}")
    write(options.json, rows, updates=options.updates)


if __name__ == "__main__":
    main()
