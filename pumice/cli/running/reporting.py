"""What `pumice run` prints: on stdout what containers write, on stderr how pods and Jobs end."""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pumice.api.fields import plain
from pumice.api.meta import Raw
from pumice.api.raw import key_in
from pumice.cli.live.log_lines import shown
from pumice.cli.output import COLOURS, note, paint, write

if TYPE_CHECKING:
    from pumice.embedded.node.kubelet import Kubelet
    from pumice.embedded.node.pod import ProcessPod

GOOD = frozenset({"Completed", "Succeed"})
"""Phases in which a Job or a JobFlow has done its work."""
BAD = frozenset({"Failed", "Aborted", "Terminated"})
"""Phases in which it has ended without."""
_LAST_LINES = 5


class Printer:
    """Prints what containers write, a line at a time, with the names of their pods."""

    def __init__(self) -> None:
        self._styles: dict[str, str] = {}
        self._is_waiting = False

    def show(self, pod: "ProcessPod", container: str, run: int, line: bytes) -> None:
        """Print a line."""
        title = pod.name if len(pod.states) == 1 else f"{pod.name}/{container}"
        style = self._styles.setdefault(title, COLOURS[len(self._styles) % len(COLOURS)])
        title = f"{title}#{run + 1}" if run else title
        write(f"{paint(title, style)} | {shown(line)}")
        if not self._is_waiting:
            self._is_waiting = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Let all that was printed be seen."""
        self._is_waiting = False
        sys.stdout.flush()


def tell_pod(before: Raw | None, pod: Raw, kubelets: "Sequence[Kubelet]") -> None:
    """Say why a pod has failed, with its last lines."""
    status = pod.get("status") or {}
    old = ((before or {}).get("status") or {}).get("phase")
    if status.get("phase") != "Failed" or old == "Failed":
        return
    if pod["metadata"].get("deletionTimestamp"):
        return
    note(paint(f"{pod['metadata']['name']} failed: {_why(status)}", "red", sys.stderr))
    for kubelet in kubelets:
        running = kubelet.pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
        for name in _failed_containers(status):
            for log in (running.processes.logs.get(name) or ())[-1:] if running else ():
                for line in log.tail(_LAST_LINES):
                    note(f"  {shown(line.encode())}")


def tell_job(job: Raw) -> None:
    """Say how a Job has ended."""
    state = (job.get("status") or {}).get("state") or {}
    message = f": {state['message']}" if state.get("message") else ""
    style = "green" if state["phase"] in GOOD else "red"
    note(paint(f"{job['kind']} {key_in(job)}: {state['phase']}{message}", style, sys.stderr))


def tell_event(event: Raw) -> None:
    """Say what the node warns of."""
    about = event.get("involvedObject") or {}
    source = (event.get("source") or {}).get("component")
    if source == "kubelet" and event.get("type") == "Warning":
        message = f"{about.get('name')}: {event.get('reason')}: {event.get('message')}"
        note(paint(plain(message), "yellow", sys.stderr))


def _why(status: Raw) -> str:
    """Why a pod has failed, in one line."""
    found = [text for text in (status.get("reason"), status.get("message")) if text]
    for each in _statuses(status):
        ended = (each.get("state") or {}).get("terminated")
        if ended and ended["exitCode"]:
            text = f"container {each['name']} ended with exit code {ended['exitCode']} ({ended['reason']})"
            found.append(text + (f": {ended['message'].strip()}" if ended.get("message") else ""))
    return "; ".join(found)


def _failed_containers(status: Raw) -> list[str]:
    return [
        each["name"]
        for each in _statuses(status)
        if ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
    ]


def _statuses(status: Raw) -> list[Raw]:
    return [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
