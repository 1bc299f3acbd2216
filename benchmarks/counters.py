"""What kube-apiserver and our processes have done so far: requests that write, and processor time."""

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pumice.cluster.client import Client

__all__ = ["Counters", "Write", "count", "cpu_seconds"]

_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_CPU = re.compile(r"^process_cpu_seconds_total (\S+)$", re.M)
_WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
_BY_TIME = {"leases", "nodes"}
"""Written once in a while for as long as a cluster lives, whatever is submitted."""


@dataclass(frozen=True, order=True)
class Write:
    """A sort of write.

    Attributes:
        resource: What is written: `pods`, `pods/status`.
        verb: How: `POST`, `PATCH`.
        code: The API server's answer.
    """

    resource: str
    verb: str
    code: str


@dataclass
class Counters:
    """A reading; the difference of two is what happened in between.

    Attributes:
        writes: Requests that write, without those that only time causes (Leases, heartbeats of nodes).
        cpu: Processor seconds by process.
    """

    writes: Counter[Write] = field(default_factory=Counter)
    cpu: dict[str, float] = field(default_factory=dict)

    def since(self, before: "Counters") -> "Counters":
        """The difference to an earlier reading."""
        cpu = {name: seconds - before.cpu.get(name, 0.0) for name, seconds in self.cpu.items()}
        return Counters(self.writes - before.writes, cpu)

    def of(self, resource: str, verb: str = "") -> int:
        """Writes of a resource, failed ones included."""
        return sum(
            number
            for write, number in self.writes.items()
            if write.resource == resource and verb in ("", write.verb)
        )


async def count(client: Client, pids: Mapping[str, int]) -> Counters:
    """Read the counters.

    Args:
        client: Session with the API server.
        pids: Our processes by name.
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
    found.cpu |= {name: cpu_seconds(pid) for name, pid in pids.items()}
    return found


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
