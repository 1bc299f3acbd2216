"""Counters of kube-apiserver and Pumice's processes: write requests and processor time."""

import asyncio
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pumice.cluster.client import Client
from tests.support.installation import Installation

_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_POD_STATUS = re.compile(r'^pumice_scheduler_status_writes_total\{kind="pod",.*\} (\S+)$', re.M)
_CPU = re.compile(r"^process_cpu_seconds_total (\S+)$", re.M)
_WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
_BY_TIME = {"leases", "nodes"}
"""Resources that are written periodically in each cluster, independent of the workload."""


@dataclass(frozen=True, order=True)
class Write:
    """A kind of write request.

    Attributes:
        resource: What is written: `pods`, `pods/status`.
        verb: The HTTP method: `POST`, `PATCH`.
        code: HTTP status of the answer.
    """

    resource: str
    verb: str
    code: str


@dataclass
class Counters:
    """One reading of the counters; the difference of two readings is the work in between.

    Attributes:
        writes: Write requests, without periodic ones (Leases, heartbeats of nodes).
        pod_statuses: Writes of pod statuses by the scheduler, failed ones included, as it counts them.
        cpu: Processor seconds by process.
    """

    writes: Counter[Write] = field(default_factory=Counter)
    pod_statuses: int = 0
    cpu: dict[str, float] = field(default_factory=dict)

    def since(self, before: "Counters") -> "Counters":
        """The difference to an earlier reading."""
        cpu = {name: seconds - before.cpu.get(name, 0.0) for name, seconds in self.cpu.items()}
        statuses = self.pod_statuses - before.pod_statuses
        return Counters(self.writes - before.writes, statuses, cpu)


async def count(client: Client, installation: Installation | None = None) -> Counters:
    """Read the counters.

    Args:
        client: Session with the API server.
        installation: The components, if they run.
    """
    text = (await client.raw("GET", "/metrics")).decode()
    found = Counters()
    for labels, value in _SAMPLE.findall(text):
        label = dict(_LABEL.findall(labels))
        if label["verb"] in _WRITES and label["resource"] not in _BY_TIME:
            resource = "/".join(filter(None, (label["resource"], label["subresource"])))
            found.writes[Write(resource, label["verb"], label["code"])] += int(float(value))
    cpu = _CPU.search(text)
    assert cpu is not None
    found.cpu = {"kube-apiserver": float(cpu[1])}
    if installation is not None:
        processes = installation.processes.items()
        found.cpu |= {name: cpu_seconds(process.pid) for name, process in processes}
        text = await asyncio.to_thread(installation.metrics, "scheduler")
        found.pod_statuses = sum(int(float(value)) for value in _POD_STATUS.findall(text))
    return found


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
