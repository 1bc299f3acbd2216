"""The release that is tested, the webhook that hangs up, and what users ask of them."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.chart.manifests import Manifest

HOME, USERS, GOING = "chart-home", "chart-users", "chart-going"
JOBS = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{USERS}/jobs"


class Dead:
    """A webhook that hangs up on everybody, and counts who called.

    Attributes:
        url: Where it is.
        calls: How often it was called.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._hang_up, daemon=True).start()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                self.calls += 1
                caller.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def job(name: str) -> Manifest:
    container = {"name": "main", "image": "busybox"}
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [task]},
    }


def pod(name: str, scheduler: str, **annotations: str) -> Manifest:
    container = {"name": "main", "image": "busybox"}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }
