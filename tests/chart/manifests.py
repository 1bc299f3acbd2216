"""What the chart's tests know of manifests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CHART = Path(__file__).resolve().parents[2] / "charts/pumice"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
RELEASE, NAMESPACE = "pumice", "pumice-system"
COMPONENTS = ("webhook", "controller", "scheduler")
MONITORING = "monitoring"
USERS = "users"
AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
"""Begins the label of a ClusterRole whose rights are added to a role of users, such as `edit`."""
"""The component of objects that watch all others."""

Manifest = dict[str, Any]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Render = Callable[..., list[Manifest]]


def of_kind(manifests: Iterable[Manifest], *kinds: str) -> list[Manifest]:
    """The manifests of these kinds."""
    return [each for each in manifests if each["kind"] in kinds]


def one(manifests: Iterable[Manifest], kind: str, of: str) -> Manifest:
    """The only manifest of a kind that belongs to a component."""
    (found,) = (each for each in of_kind(manifests, kind) if component(each) == of)
    return found


def component(manifest: Manifest) -> str:
    """Which component a manifest belongs to."""
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])


def containers(deployment: Manifest) -> list[Manifest]:
    """The containers of a Deployment."""
    found: list[Manifest] = deployment["spec"]["template"]["spec"]["containers"]
    return found


def arguments_of(deployment: Manifest) -> list[str]:
    """The arguments of a Deployment's only container."""
    (container,) = containers(deployment)
    arguments: list[str] = container["args"]
    return arguments
