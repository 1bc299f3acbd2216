"""A backup of a control plane's etcd, and its restore as the Kubernetes documentation describes it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

_DATA = "etcd"

_OUTAGE_SECONDS = 4.0
"""How long nothing answers, longer than the pause after a watch that broke. No real restore takes less."""


def back_up(plane: ControlPlane) -> Path:
    """Copy etcd's data while it is stopped."""
    copy = plane.folder / "backup"
    stop(plane)
    shutil.copytree(plane.folder / _DATA, copy)
    start(plane)
    return copy


def restore(plane: ControlPlane, copy: Path) -> None:
    """Stop all parts, give etcd the data of a backup, and start them again after an outage that components notice."""
    stop(plane)
    shutil.rmtree(plane.folder / _DATA)
    shutil.copytree(copy, plane.folder / _DATA)
    time.sleep(_OUTAGE_SECONDS)
    start(plane)


def stop(plane: ControlPlane) -> None:
    for each in reversed(plane.processes):
        each.end()


def start(plane: ControlPlane) -> None:
    for number, each in enumerate(plane.processes, 1):
        each.start_again()
        if each.name == "kube-apiserver":
            running = plane.processes[:number]
            wait_until(plane.ready, "kube-apiserver to be ready", 60, running)
